"""The samples that formulas read: what the evaluator asks for, and a store that keeps them.

Azure Batch takes a sample of every metric each 30 seconds, and a formula sees it about a minute later.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

METRICS: Final = frozenset(
    {
        "$ActiveTasks",
        "$CPUPercent",
        "$CurrentDedicatedNodes",
        "$CurrentLowPriorityNodes",
        "$DiskBytes",
        "$DiskReadBytes",
        "$DiskReadOps",
        "$DiskWriteBytes",
        "$DiskWriteOps",
        "$FailedTasks",
        "$MemoryBytes",
        "$NetworkInBytes",
        "$NetworkOutBytes",
        "$PendingTasks",
        "$PreemptedNodeCount",
        "$RunningTasks",
        "$SampleNodeCount",
        "$SucceededTasks",
        "$TaskSlotsPerNode",
        "$UsableNodeCount",
        "$WallClockSeconds",
    }
)
"""The read-only variables of the service that have samples."""


class MetricSource(Protocol):
    """Where the evaluator finds samples. Names are written as in formulas (`$PendingTasks`).

    A metric without samples has no values; it is never an error here.
    """

    @property
    def period(self) -> timedelta:
        """The time between two samples."""
        ...

    def current(self, name: str) -> float | None:
        """Return the newest value of a metric, whether or not it can be read as a sample yet."""
        ...

    def latest(self, name: str, count: int, *, now: datetime) -> Sequence[float]:
        """Return the newest `count` samples that can be read at `now`, oldest first, or all if fewer."""
        ...

    def between(self, name: str, start: datetime, end: datetime, *, now: datetime) -> Sequence[float]:
        """Return the samples of an interval that can be read at `now`, oldest first.

        A sample stands for the period that begins when it is taken, so the interval has the samples taken
        later than `start - period`, up to `end`.
        """
        ...

    def count(self, name: str, *, now: datetime) -> int:
        """Return the number of samples that can be read at `now`."""
        ...

    def history_begin(self, name: str, *, now: datetime) -> datetime | None:
        """Return when the oldest sample that can be read at `now` was taken."""
        ...


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class MetricStore:
    """A bounded history of samples, all metrics on one time axis: a ring of times and one of values a metric.

    Call `record` once a period. A sample can be read `delay` after it was taken. History older than `keep`
    is overwritten, so memory is fixed: 8 bytes a sample and metric.

    Not safe to use from several threads at once.
    """

    def __init__(
        self,
        period: timedelta = timedelta(seconds=30),
        delay: timedelta = timedelta(seconds=60),
        keep: timedelta = timedelta(hours=6),
    ) -> None:
        if period <= timedelta() or delay < timedelta() or keep < period:
            raise ValueError("a period must be positive, a delay not negative, and keep at least one period")
        self.period = period
        self._delay = delay // _MICROSECOND
        self._capacity = keep // period + 1
        self._times = array("q", bytes(8 * self._capacity))
        self._values: dict[str, array[float]] = {}
        self._newest: dict[str, float] = {}
        self._taken = 0  # samples ever taken; sample i is in slot i % capacity

    def record(self, now: datetime, values: Mapping[str, float]) -> None:
        """Take one sample: the values of the metrics at `now`. Metrics left out have none in this sample.

        Raises `ValueError` for a name that is no metric, a value that is not finite, and a time that is not
        later than the last one.
        """
        unknown = sorted(values.keys() - METRICS)
        if unknown:
            raise ValueError(f"not a metric of Azure Batch: {', '.join(unknown)}")
        if not all(math.isfinite(value) for value in values.values()):
            raise ValueError("samples must be finite numbers")
        taken_at = _microseconds(now)
        if self._taken and taken_at <= self._times[(self._taken - 1) % self._capacity]:
            raise ValueError(
                f"samples must be taken in the order of time, and {now} is not later than the last"
            )
        slot = self._taken % self._capacity
        self._times[slot] = taken_at
        for series in self._values.values():
            series[slot] = math.nan
        for name, value in values.items():
            if name not in self._values:
                self._values[name] = array("d", [math.nan]) * self._capacity
            self._values[name][slot] = value
            self._newest[name] = float(value)
        self._taken += 1

    def current(self, name: str) -> float | None:
        """Return the newest value of a metric, whether or not it can be read as a sample yet."""
        return self._newest.get(name)

    def latest(self, name: str, count: int, *, now: datetime) -> list[float]:
        """Return the newest `count` samples that can be read at `now`, oldest first."""
        found: list[float] = []
        series = self._values.get(name)
        if series is None:
            return found
        for index in reversed(self._readable(now)):
            if len(found) >= count:
                break
            value = series[index % self._capacity]
            if not math.isnan(value):
                found.append(value)
        found.reverse()
        return found

    def between(self, name: str, start: datetime, end: datetime, *, now: datetime) -> list[float]:
        """Return the samples of an interval that can be read at `now`, oldest first."""
        readable = self._readable(now)
        after = _microseconds(start) - self.period // _MICROSECOND
        first = bisect_right(readable, after, key=self._time)
        last = bisect_right(readable, _microseconds(end), key=self._time)
        return self._present(name, readable[first:last])

    def count(self, name: str, *, now: datetime) -> int:
        """Return the number of samples that can be read at `now`."""
        return len(self._present(name, self._readable(now)))

    def history_begin(self, name: str, *, now: datetime) -> datetime | None:
        """Return when the oldest sample that can be read at `now` was taken."""
        series = self._values.get(name)
        if series is None:
            return None
        for index in self._readable(now):
            if not math.isnan(series[index % self._capacity]):
                return _EPOCH + self._time(index) * _MICROSECOND
        return None

    def _readable(self, now: datetime) -> range:
        """Return the numbers of the samples that are kept and old enough to be read."""
        kept = range(max(0, self._taken - self._capacity), self._taken)
        return kept[: bisect_right(kept, _microseconds(now) - self._delay, key=self._time)]

    def _time(self, index: int) -> int:
        return self._times[index % self._capacity]

    def _present(self, name: str, indexes: range) -> list[float]:
        series = self._values.get(name)
        if series is None:
            return []
        values = (series[index % self._capacity] for index in indexes)
        return [value for value in values if not math.isnan(value)]


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
