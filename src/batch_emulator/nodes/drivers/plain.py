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

    async def start(self, program: Program) -> RunningProgram:
        """Start the program in a session of its own."""
        mark = uuid.uuid4().hex
        environment = {**program.environment, _MARK: mark}
        argv = list(program.argv)
        found = shutil.which(argv[0], path=environment.get("PATH", os.defpath))
        if found is None and "/" not in argv[0]:
            raise ProgramError("exec", errno.ENOENT, f"{argv[0]}: no such program on the PATH")
        setpriv = shutil.which("setpriv")
        executable = os.path.abspath(found or os.path.join(program.directory, argv[0]))
        if setpriv is not None and os.access(executable, os.X_OK):
            # Without an argument for the program's own name, so it sees its full path there.
            argv = [setpriv, "--pdeathsig", "KILL", "--", executable, *argv[1:]]
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=program.stdout,
                stderr=program.stderr,
                env=environment,
                cwd=program.directory,
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramError("exec", error.errno or 0, f"{argv[0]}: {error.strerror}") from error
        return _Process(process, mark)


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
        while await asyncio.to_thread(_kill_marked, self._mark) and loop.time() < deadline:
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
