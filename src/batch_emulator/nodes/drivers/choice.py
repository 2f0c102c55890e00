"""Which drivers work on this machine, found out by really running something in each."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from batch_emulator.nodes.drivers.base import Driver, Program, ProgramError
from batch_emulator.nodes.drivers.namespaces import BubblewrapDriver, NamespaceDriver, UnshareDriver
from batch_emulator.nodes.drivers.plain import ProcessDriver
from batch_emulator.nodes.mounts import interpreter_paths, read_only_mounts, shared_memory, system_mounts

AUTO = "auto"
_PROBE_SECONDS = 20.0
_NAMESPACE_DRIVERS: Mapping[str, type[NamespaceDriver]] = {
    driver.name: driver for driver in (BubblewrapDriver, UnshareDriver)
}
DRIVERS: tuple[str, ...] = (*_NAMESPACE_DRIVERS, ProcessDriver.name)

logger = logging.getLogger(__name__)


class DriverUnavailableError(RuntimeError):
    """The driver that was asked for does not work on this machine; the message says why."""


@dataclass(frozen=True, kw_only=True)
class DriverProbe:
    """What a probe found: `problem` is empty where the driver works."""

    name: str
    enforces_isolation: bool
    problem: str

    @property
    def usable(self) -> bool:
        """Whether the driver works on this machine."""
        return not self.problem


def probe_drivers(names: Sequence[str] = DRIVERS) -> tuple[DriverProbe, ...]:
    """Try drivers in the order of preference, each with a whole sandbox: mounts, /proc, network and user."""
    return tuple(_probe(name) for name in names)


def choose_driver(name: str) -> Driver:
    """The driver of that name, or with `auto` the first that works, plain processes if none does.

    DriverUnavailableError if the named one does not work here, ValueError if there is none of that name.
    """
    if name not in {AUTO, *DRIVERS}:
        raise ValueError(f"unknown driver {name!r}; known: {', '.join((AUTO, *DRIVERS))}")
    problems: list[str] = []
    for candidate in _NAMESPACE_DRIVERS if name == AUTO else (name,):
        if candidate == ProcessDriver.name:
            break
        probe = _probe(candidate)
        if probe.usable:
            logger.info("tasks run in sandboxes made by the %s driver", candidate)
            return _NAMESPACE_DRIVERS[candidate]()
        problems.append(f"{candidate}: {probe.problem}")
    if name not in {AUTO, ProcessDriver.name}:
        raise DriverUnavailableError(f"the driver does not work on this machine: {problems[0]}")
    logger.warning(
        "node isolation is NOT enforced: tasks run as plain processes and can read each other's files%s",
        f" ({'; '.join(problems)})" if problems else "",
    )
    return ProcessDriver()


def _probe(name: str) -> DriverProbe:
    if name == ProcessDriver.name:
        return DriverProbe(name=name, enforces_isolation=False, problem="")
    return DriverProbe(name=name, enforces_isolation=True, problem=_problem(_NAMESPACE_DRIVERS[name]()))


def _problem(driver: NamespaceDriver) -> str:
    null = os.open(os.devnull, os.O_WRONLY)
    program = Program(
        argv=("/bin/sh", "-c", "test -r /proc/self/status && test -w /dev/null && : > /tmp/probe"),
        environment={"PATH": os.defpath},
        directory="/tmp",  # noqa: S108 - inside the sandbox
        stdout=null,
        stderr=null,
        mounts=(
            *system_mounts(host_network=False),
            shared_memory(None),
            *read_only_mounts(interpreter_paths()),
        ),
        egress=(),
    )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, tempfile.TemporaryFile() as diagnostics:
        try:
            process = driver.spawn(program, theirs.fileno(), diagnostics)
        except ProgramError as error:
            return str(error)
        finally:
            os.close(null)
        theirs.close()
        try:
            code = process.wait(_PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"it did not end in {_PROBE_SECONDS:.0f} seconds"
        if code == 0:
            return ""
        diagnostics.seek(0)
        said = diagnostics.read().decode(errors="replace").strip().splitlines()
        ours.setblocking(False)
        try:
            reported = ours.recv(4096).decode(errors="replace")
        except BlockingIOError:
            reported = ""
        return (said[-1] if said else reported) or f"the probe ended with code {code}"
