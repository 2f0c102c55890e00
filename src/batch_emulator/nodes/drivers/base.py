"""What a driver is: the way to run one program on this machine, confined as far as the driver can.

Drivers know nothing of tasks. They are given a program with the file system it shall see, start it, and
kill it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from batch_emulator.nodes.endpoints import Endpoint
from batch_emulator.nodes.mounts import Mount


class ProgramError(Exception):
    """The program could not be started. `step` is `exec` when the program itself is at fault.

    `errno` is the system's error number, 0 where there is none.
    """

    def __init__(self, step: str, errno: int, message: str) -> None:
        super().__init__(message)
        self.step = step
        self.errno = errno


@dataclass(frozen=True, kw_only=True)
class Program:
    """One program to run.

    `stdout` and `stderr` are open descriptors, which stay the caller's to close. `mounts` is the whole file
    system it sees, in order. `egress` None gives the host's network; else a network of its own in which
    exactly these endpoints answer. `elevated` makes it user 0 inside (with no power over anything outside).
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    stdout: int
    stderr: int
    mounts: Sequence[Mount] = ()
    egress: tuple[Endpoint, ...] | None = None
    elevated: bool = False
    hostname: str = "batch-node"


class RunningProgram(Protocol):
    """A program that has started."""

    async def wait(self) -> int:
        """Return its exit code (128 + n for signal n) once it has ended and no process of it is left."""
        ...

    def kill(self) -> None:
        """Kill it with everything it has started. Harmless when it has already ended."""
        ...


class Driver(Protocol):
    """A way to run programs. Every driver keeps the same promises but for what `enforces_isolation` says."""

    @property
    def name(self) -> str:
        """The name by which users choose it."""
        ...

    @property
    def enforces_isolation(self) -> bool:
        """Whether mounts, network, users and process namespaces are enforced, or only asked for."""
        ...

    @property
    def task_user(self) -> int | None:
        """The user and group id on this machine that programs run as, None for the emulator's own."""
        ...

    @property
    def lowest_port(self) -> int:
        """The lowest port at which a sandbox can offer an endpoint."""
        ...

    async def start(self, program: Program) -> RunningProgram:
        """Start a program; it is running when this returns. ProgramError if it cannot be started."""
        ...
