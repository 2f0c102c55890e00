"""Drivers that confine a program in Linux namespaces; they differ in which tool makes the namespaces.

In both, PID 1 of the sandbox is `_init.py`, which starts the program without capabilities and in a user
namespace of its own. Where the emulator is root, the program's user on this machine is another one than
root, and the tools run as root; else everything runs as the emulator's user inside a user namespace.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from batch_emulator.nodes.drivers.base import Program, ProgramError, RunningProgram
from batch_emulator.nodes.drivers.channel import Channel, wait_for_exit
from batch_emulator.nodes.mounts import Bind, Dev, Mount, Proc, Symlink, Tmpfs

USER_ID = 1000
"""The user and group id of a program in its sandbox, unless it is elevated (`skeleton/passwd` names it)."""

_TASK_USER = 65530  # below 65536 it exists in any container's user namespace; above the ranges for accounts
_PROGRAMS = Path(__file__).parents[1]
_INIT = str(_PROGRAMS / "_init.py")
_ENTER = str(_PROGRAMS / "_enter.py")
_KILL_SECONDS = 10.0
_MAX_DIAGNOSTICS = 2000


class NamespaceDriver(ABC):
    """Runs programs in new namespaces with `_init.py` as PID 1."""

    name: str
    enforces_isolation = True

    def __init__(self) -> None:
        self.task_user = _task_user()

    @property
    def lowest_port(self) -> int:
        """See `Driver.lowest_port`."""
        return 1

    @abstractmethod
    def command(self, program: Program, init: Sequence[str]) -> list[str]:
        """The command that makes the namespaces and the file system and becomes `init` in them."""

    def plan(self, program: Program) -> dict[str, Any] | None:  # noqa: ARG002 - for drivers that need it
        """What `_enter.py` needs to build the file system, where the driver uses it."""
        return None

    async def start(self, program: Program) -> RunningProgram:
        """Start the program in its sandbox. ProgramError with what the tool said if that fails."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        diagnostics = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the program
        with theirs:
            try:
                process = self.spawn(program, theirs.fileno(), diagnostics)
            except BaseException:
                ours.close()
                diagnostics.close()
                raise
        sandbox = _Sandbox(process, Channel(ours, program.egress or ()), diagnostics)
        await sandbox.started()
        return sandbox

    def spawn(self, program: Program, control: int, diagnostics: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the tool. The program's environment goes through memory, never a command line or a file."""
        launch = {
            "argv": list(program.argv),
            "environment": dict(program.environment),
            "cwd": program.directory,
            "listen": [[endpoint.host, endpoint.port] for endpoint in program.egress or ()],
            "stdio": [program.stdout, program.stderr],
            "identity": None
            if self.task_user is None
            else {"outer": self.task_user, "inner": inner_user(program)},
            "sandbox": self.plan(program),
        }
        with _in_memory(launch) as standard_input:
            try:
                return subprocess.Popen(
                    self.command(program, [*_interpreter(), _INIT, str(control)]),
                    stdin=standard_input,
                    stdout=diagnostics,
                    stderr=diagnostics,
                    pass_fds=(control, program.stdout, program.stderr),
                    env={},
                    cwd="/",
                    # Ctrl-C at the emulator's terminal is the emulator's to handle.
                    start_new_session=True,
                )
            except OSError as error:
                raise ProgramError("sandbox", error.errno or 0, f"{self.name}: {error.strerror}") from error


class BubblewrapDriver(NamespaceDriver):
    """Makes the sandbox with `bwrap`."""

    name = "bubblewrap"

    @property
    def lowest_port(self) -> int:
        """See `Driver.lowest_port`; an ordinary user's bwrap leaves PID 1 no rights over the network."""
        return 1024 if self.task_user is None else 1

    def command(self, program: Program, init: Sequence[str]) -> list[str]:
        """The `bwrap` command line."""
        words = [_tool("bwrap"), "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        words += [
            "--hostname",
            program.hostname,
            "--as-pid-1",
            "--die-with-parent",
            "--new-session",
            "--clearenv",
        ]
        if program.egress is not None:
            words.append("--unshare-net")
        if self.task_user is None:
            inner = str(inner_user(program))
            words += ["--unshare-user", "--uid", inner, "--gid", inner]
        made: set[str] = set()
        for mount in program.mounts:
            # Made here, for those that bwrap makes itself may be closed to the program's user.
            for parent in map(str, reversed(Path(mount.target).parents[:-1])):
                if parent not in made:
                    made.add(parent)
                    words += ["--perms", "0755", "--dir", parent]
            made.add(mount.target)
            words += _bwrap_words(mount)
        return [*words, "--remount-ro", "/", "--chdir", "/", "--", *init]


class UnshareDriver(NamespaceDriver):
    """Makes the namespaces with util-linux `unshare`, and the file system with `_enter.py`."""

    name = "unshare"

    def command(self, program: Program, init: Sequence[str]) -> list[str]:
        """The `unshare` command line, under `setpriv` so that it dies with the emulator."""
        words = [_tool("setpriv"), "--pdeathsig", "KILL", "--", _tool("unshare"), "--pid", "--ipc", "--uts"]
        words += ["--cgroup", "--mount", "--propagation", "private", "--fork", "--kill-child=KILL"]
        if program.egress is not None:
            words.append("--net")
        if self.task_user is None:
            inner = inner_user(program)
            words += ["--user", f"--map-user={inner}", f"--map-group={inner}", "--keep-caps"]
        return [*words, "--", *_interpreter(), _ENTER, *init]

    def plan(self, program: Program) -> dict[str, Any]:
        """The mounts, for `_enter.py`."""
        return {
            "hostname": program.hostname,
            "loopback": program.egress is not None,
            "mounts": [{"kind": type(mount).__name__.lower(), **asdict(mount)} for mount in program.mounts],
        }


class _Sandbox:
    """A program running in namespaces."""

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel, diagnostics: IO[bytes]) -> None:
        self._process = process
        self._channel = channel
        self._diagnostics = diagnostics
        self._escalation: asyncio.TimerHandle | None = None
        self._ended = asyncio.get_running_loop().create_task(self._watch())

    async def started(self) -> None:
        """Return when the program runs. ProgramError, with nothing left behind, when it cannot."""
        with self._diagnostics:
            try:
                running = await self._channel.started
            except BaseException:
                self.kill()
                await asyncio.shield(self._ended)
                raise
            if not running:
                raise ProgramError("sandbox", 0, f"the sandbox could not be made: {await self._complaint()}")

    async def wait(self) -> int:
        """See `RunningProgram.wait`. The kernel ends PID 1 only after everything else in its namespace."""
        code = await asyncio.shield(self._ended)
        reported = self._channel.exit_code
        return reported if reported is not None else code

    def kill(self) -> None:
        """Close the lifeline; should that not do, kill the tool, on which the sandbox's life depends too."""
        self._channel.close()
        if self._escalation is None and not self._ended.done():
            self._escalation = asyncio.get_running_loop().call_later(_KILL_SECONDS, self._process.kill)

    async def _watch(self) -> int:
        await wait_for_exit(self._process.pid)
        code = self._process.wait()
        if self._escalation is not None:
            self._escalation.cancel()
        self._channel.hear()
        self._channel.close()
        return code if code >= 0 else 128 - code

    async def _complaint(self) -> str:
        await asyncio.shield(self._ended)
        self._diagnostics.seek(0)
        text = self._diagnostics.read().decode(errors="replace").strip()
        return text[-_MAX_DIAGNOSTICS:] or f"it ended with code {self._ended.result()} and said nothing"


def inner_user(program: Program) -> int:
    """The user id of the program inside of its sandbox."""
    return 0 if program.elevated else USER_ID


def _task_user() -> int | None:
    """The id to run programs as, where the emulator may change users and that id exists here."""
    if os.geteuid() != 0:
        return None
    ranges = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
    mapped = any(int(start) <= _TASK_USER < int(start) + int(count) for start, _, count in ranges)
    return _TASK_USER if mapped else None


def _interpreter() -> list[str]:
    """A Python for the sandbox's own helpers; any will do, for they need the standard library alone."""
    for candidate in (sys.executable, getattr(sys, "_base_executable", None), shutil.which("python3")):
        if candidate and os.access(candidate, os.X_OK):
            return [candidate, "-I", "-S", "-B", "-X", "utf8"]
    raise ProgramError("sandbox", 0, "no Python interpreter can be run for the sandbox")


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ProgramError("sandbox", 0, f"{name} is not installed")
    return path


def _in_memory(content: dict[str, Any]) -> IO[bytes]:
    file = os.fdopen(os.memfd_create("launch"), "w+b")
    file.write(json.dumps(content).encode())
    file.seek(0)
    return file


def _bwrap_words(mount: Mount) -> list[str]:
    match mount:
        case Bind():
            return ["--ro-bind" if mount.read_only else "--bind", mount.source, mount.target]
        case Symlink():
            return ["--symlink", mount.to, mount.target]
        case Tmpfs():
            size = ["--size", str(mount.size)] if mount.size else []
            return ["--perms", f"{mount.mode:04o}", *size, "--tmpfs", mount.target]
        case Proc():
            return ["--proc", mount.target]
        case Dev():
            return ["--dev", mount.target, "--remount-ro", mount.target]
