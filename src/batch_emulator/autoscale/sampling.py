"""The methods of a metric in a formula: `$PendingTasks.GetSample(...)` and its companions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from batch_emulator.autoscale.errors import INSUFFICIENT_DATA, EvaluationError, OperationError, Position
from batch_emulator.autoscale.metrics import MetricSource
from batch_emulator.autoscale.values import Interval, Value, shift

# What GetSample(interval) wants if no percentage is given: a reported run of the service says "wanted 70%,
# received 0%" of such a call, and the documentation's examples guard such calls with this value.
DEFAULT_PERCENT: Final = 70.0


@dataclass(frozen=True)
class Metric:
    """One metric, as a formula sees it at one moment."""

    name: str
    source: MetricSource
    now: datetime

    def current(self, at: Position) -> float:
        """Return the value of the bare name: the newest one. Raises `EvaluationError` if there is none."""
        value = self.source.current(self.name)
        if value is None:
            raise self._insufficient(100, 0, at)
        return value

    def call(self, method: str, arguments: Sequence[Value], at: Position) -> Value:
        """Call a method. Raises `OperationError` for unknown ones, `EvaluationError` for missing samples."""
        match method, arguments:
            case "GetSample", [float() as count]:
                return self._latest(count)
            case "GetSample", [datetime() | Interval() as start]:
                return self._between(start, None, DEFAULT_PERCENT, at)
            case "GetSample", [datetime() | Interval() as start, float() as percent]:
                return self._between(start, None, percent, at)
            case "GetSample", [datetime() | Interval() as start, datetime() | Interval() as end]:
                return self._between(start, end, DEFAULT_PERCENT, at)
            case "GetSample", [
                datetime() | Interval() as start,
                datetime() | Interval() as end,
                float() as percent,
            ]:
                return self._between(start, end, percent, at)
            case "GetSamplePercent", [datetime() | Interval() as start]:
                return self._window(start, None)[1]
            case "GetSamplePercent", [datetime() | Interval() as start, datetime() | Interval() as end]:
                return self._window(start, end)[1]
            case "GetSamplePeriod", []:
                return Interval.between(self.now, self.now + self.source.period)
            case "Count", []:
                return float(self.source.count(self.name, now=self.now))
            case "HistoryBeginTime", []:
                begin = self.source.history_begin(self.name, now=self.now)
                if begin is None:
                    raise self._insufficient(100, 0, at)
                return begin
            case (("GetSample" | "GetSamplePercent" | "GetSamplePeriod" | "Count" | "HistoryBeginTime"), _):
                raise OperationError(f"{method} was given arguments that it does not take")
            case _:
                raise OperationError(f"{self.name} has no method {method}")

    def _latest(self, count: float) -> tuple[float, ...]:
        """Return the newest samples, however old; a metric without any gives an empty vector.

        That it is no error is what the documented formulas rely on: `max(0, $PendingTasks.GetSample(1))`.
        """
        if not (math.isfinite(count) and count >= 1):
            raise OperationError(f"GetSample takes a count of one or more, not {count:g}")
        return tuple(self.source.latest(self.name, int(count), now=self.now))

    def _between(
        self, start: datetime | Interval, end: datetime | Interval | None, percent: float, at: Position
    ) -> tuple[float, ...]:
        samples, received = self._window(start, end)
        if received < percent:
            raise self._insufficient(percent, received, at)
        return samples

    def _window(
        self, start: datetime | Interval, end: datetime | Interval | None
    ) -> tuple[tuple[float, ...], float]:
        """Return the samples of an interval and how many percent of its possible samples they are.

        An interval counts back from now; the documentation gives the bounds in either order.
        """
        bounds = sorted((self._moment(start), self.now if end is None else self._moment(end)))
        possible = max(1, math.ceil((bounds[1] - bounds[0]) / self.source.period))
        found = self.source.between(self.name, bounds[0], bounds[1], now=self.now)
        # A window between two samples touches one more of them than its length has room for.
        samples = tuple(found[-possible:])
        return samples, 100 * len(samples) / possible

    def _moment(self, bound: datetime | Interval) -> datetime:
        return shift(self.now, Interval(-bound.ticks)) if isinstance(bound, Interval) else bound

    def _insufficient(self, wanted: float, received: float, at: Position) -> EvaluationError:
        message = f"Insufficient data from data set: {self.name} wanted {wanted:g}%, received {received:g}%"
        return EvaluationError(message, at, code=INSUFFICIENT_DATA)
