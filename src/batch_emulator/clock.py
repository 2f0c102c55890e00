"""Two times: the wall's, and the service's own.

What a client measures for itself is real: timestamps on the wire, authentication skew, SAS times, the wall
clock of tasks. What the service makes clients wait for (boot, autoscale interval and samples, retention) is
service time, which may run faster.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Tells both times. `time_scale` is how many times faster service time goes."""

    time_scale: float

    def now(self) -> datetime:
        """Return the wall time, in UTC."""
        ...

    def service_seconds(self) -> float:
        """Return the service's own time, in seconds since the emulator started."""
        ...

    def service_now(self) -> datetime:
        """Return the service's own time as a date, for autoscale formulas."""
        ...


class SystemClock:
    """Real time, with service time running `time_scale` times faster."""

    def __init__(self, time_scale: float = 1.0) -> None:
        if time_scale <= 0:
            raise ValueError("the time scale must be above zero")
        self.time_scale = time_scale
        self._began = time.monotonic()
        self._began_at = datetime.now(UTC)

    def now(self) -> datetime:
        """Return the wall time, in UTC."""
        return datetime.now(UTC)

    def service_seconds(self) -> float:
        """Return the scaled seconds since this clock was made."""
        return (time.monotonic() - self._began) * self.time_scale

    def service_now(self) -> datetime:
        """Return the scaled time as a date."""
        return self._began_at + timedelta(seconds=self.service_seconds())


class ManualClock:
    """A clock for tests: both times stand still until they are advanced."""

    time_scale = 1.0

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._seconds = 0.0

    def now(self) -> datetime:
        """Return the time that the test has made it."""
        return self._start + timedelta(seconds=self._seconds)

    def service_seconds(self) -> float:
        """Return the seconds that the test has advanced."""
        return self._seconds

    def service_now(self) -> datetime:
        """Return the same as `now`."""
        return self.now()

    def move_to(self, seconds: float) -> None:
        """Set the time; it never goes back."""
        self._seconds = max(self._seconds, seconds)


@dataclass(order=True)
class Timer:
    """Something that is due at a service time."""

    due: float
    order: int
    action: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Make sure that it never fires; does nothing if it has."""
        self.cancelled = True


class Timers:
    """The things that are due, soonest first. All of it happens on one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[Timer] = []
        self._order = itertools.count()
        self.on_earlier: Callable[[], None] = lambda: None

    def after(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` once `seconds` of service time have passed."""
        timer = Timer(self._clock.service_seconds() + seconds, next(self._order), action)
        heapq.heappush(self._heap, timer)
        if self._heap[0] is timer:
            self.on_earlier()
        return timer

    def after_real(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call `action` once `seconds` of wall time have passed."""
        return self.after(seconds * self._clock.time_scale, action)

    def next_due(self) -> float | None:
        """Return the service time of the next timer, or None."""
        while self._heap and self._heap[0].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0].due if self._heap else None

    def run_due(self) -> None:
        """Fire everything that is due now, in order."""
        while (due := self.next_due()) is not None and due <= self._clock.service_seconds():
            heapq.heappop(self._heap).action()


def advance(clock: ManualClock, timers: Timers, seconds: float) -> None:
    """Move a manual clock on, and fire every timer at its own time on the way."""
    end = clock.service_seconds() + seconds
    while (due := timers.next_due()) is not None and due <= end:
        clock.move_to(due)
        timers.run_due()
    clock.move_to(end)
