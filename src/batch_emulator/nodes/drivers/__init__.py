"""Ways to run a program on this machine: in a sandbox by bubblewrap or unshare, or as a plain process."""

from batch_emulator.nodes.drivers.base import Driver, Program, ProgramError, RunningProgram
from batch_emulator.nodes.drivers.choice import (
    AUTO,
    DRIVERS,
    DriverProbe,
    DriverUnavailableError,
    choose_driver,
    probe_drivers,
)

__all__ = [
    "AUTO",
    "DRIVERS",
    "Driver",
    "DriverProbe",
    "DriverUnavailableError",
    "Program",
    "ProgramError",
    "RunningProgram",
    "choose_driver",
    "probe_drivers",
]
