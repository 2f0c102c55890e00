"""How far a run is, for people and programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# The share of an event's time that has passed when a step begins.
_BEGINS: Final = {
    "check": 0.0,
    "mosaic": 0.05,
    "count": 0.40,
    "raw": 0.50,
    "stretch": 0.70,
    "processed": 0.80,
    "preview": 0.95,
    "finish": 0.97,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: `fraction` from 0 to 1, the `step`, and a message for people."""

    fraction: float
    step: str
    message: str


Report = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """Report to nobody."""


def say(report: Report, step: str, message: str) -> None:
    """Report that a step begins."""
    report(Progress(fraction=_BEGINS[step], step=step, message=message))


def stepper(report: Report, step: str, message: str) -> Callable[[float], None]:
    """Return a function that reports a share of one step as a share of the whole."""
    order = list(_BEGINS)
    begin = _BEGINS[step]
    end = _BEGINS[order[order.index(step) + 1]]

    def advance(share: float) -> None:
        report(Progress(fraction=begin + share * (end - begin), step=step, message=message))

    return advance


def within(report: Report, begin: float, end: float) -> Report:
    """Return a reporter for a part of a longer run, from `begin` to `end` of it."""

    def scaled(progress: Progress) -> None:
        fraction = begin + progress.fraction * (end - begin)
        report(Progress(fraction=fraction, step=progress.step, message=progress.message))

    return scaled


class Printer:
    """Prints a line when a step begins and whenever `every` more of the run is done."""

    def __init__(self, every: float = 0.05) -> None:
        self._every = every
        self._step = ""
        self._shown = -1.0

    def __call__(self, progress: Progress) -> None:
        """Print a line, if it is time for one."""
        if progress.step == self._step and progress.fraction - self._shown < self._every:
            return
        self._step, self._shown = progress.step, progress.fraction
        print(f"[{progress.fraction:4.0%}] {progress.message}", flush=True)
