"""The last resort: plain processes. Nothing is confined; a run still ends with everything that it started."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import subprocess
import uuid
from contextlib import suppress
from pathlib import Path

from batch_emulator.nodes.drivers.base import Program, ProgramError, RunningProgram
from batch_emulator.nodes.drivers.channel import wait_for_exit

_MARK = "BATCH_EMULATOR_RUN_ID"
_SWEEP_SECONDS = 10.0
_SWEEP_PAUSE_SECONDS = 0.02


class ProcessDriver:
    """Runs programs as ordinary processes of the emulator's user: no mounts, no network rules, no other user.

    What a program has started is found again by a variable in its environment, so a process that clears its
    environment, or outlives a killed emulator in the background, is not found.
    """

    name = "process"
    enforces_isolation = False
    task_user: int | None = None
    lowest_port = 1

    async def start(self, program: Program) -> RunningProgram:
        """Start the program in a session of its own."""
        mark = uuid.uuid4().hex
        return _Process(_spawn(program, mark), mark)


def _spawn(program: Program, mark: str) -> subprocess.Popen[bytes]:
    environment = {**program.environment, _MARK: mark}
    name = program.argv[0]
    if "/" in name:
        executable: Path | None = Path(program.directory, name)
    else:
        found = shutil.which(name, path=environment.get("PATH", os.defpath))
        executable = None if found is None else Path(program.directory, found)
    if executable is None or not executable.exists():
        raise ProgramError("exec", errno.ENOENT, f"{name}: no such program")
    if executable.is_dir() or not os.access(executable, os.X_OK):
        raise ProgramError("exec", errno.EACCES, f"{name}: not a program that may be run")
    setpriv = shutil.which("setpriv")
    bound_to_us = [] if setpriv is None else [setpriv, "--pdeathsig", "KILL", "--"]
    try:
        return subprocess.Popen(
            [*bound_to_us, *program.argv],
            stdin=subprocess.DEVNULL,
            stdout=program.stdout,
            stderr=program.stderr,
            env=environment,
            cwd=program.directory,
            start_new_session=True,
        )
    except OSError as error:
        raise ProgramError("exec", error.errno or 0, f"{name}: {error.strerror}") from error


class _Process:
    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        self._process = process
        self._mark = f"{_MARK}={mark}".encode()
        self._ended = asyncio.get_running_loop().create_task(self._watch())

    async def wait(self) -> int:
        """See `RunningProgram.wait`."""
        return await asyncio.shield(self._ended)

    def kill(self) -> None:
        """Kill the session's first process; what it leaves behind is swept up after its end."""
        if not self._ended.done():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _watch(self) -> int:
        await wait_for_exit(self._process.pid)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SWEEP_SECONDS
        # Killed processes take a moment to go, and may have started others; there is no event to wait for.
        while (  # noqa: ASYNC110
            await asyncio.to_thread(_kill_marked, self._mark) and loop.time() < deadline
        ):
            await asyncio.sleep(_SWEEP_PAUSE_SECONDS)
        return code if code >= 0 else 128 - code


def _kill_marked(mark: bytes) -> bool:
    """Kill every process whose environment holds the mark; true if there was one."""
    found = False
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0"):
            found = True
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(entry.name), signal.SIGKILL)
    return found
