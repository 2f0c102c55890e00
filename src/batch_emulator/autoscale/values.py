"""The values of the language: double, doubleVec, string, timestamp, timeinterval, deallocation options."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

from batch_emulator.autoscale.errors import OperationError

_TICKS_PER_SECOND: Final = 10_000_000
_TICKS_PER_MICROSECOND: Final = 10
_TICKS_LIMIT: Final = 2**63


class NodeDeallocationOption(StrEnum):
    """What becomes of the tasks on a node that autoscale removes."""

    REQUEUE = "requeue"
    TERMINATE = "terminate"
    TASK_COMPLETION = "taskcompletion"
    RETAINED_DATA = "retaineddata"


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A timeinterval, in ticks of 100 nanoseconds, the smallest that the language names."""

    ticks: int

    @classmethod
    def of(cls, ticks: float) -> Interval:
        """Round to whole ticks. Raises `OperationError` for what 64 bits cannot hold."""
        if not abs(ticks) < _TICKS_LIMIT:
            raise OperationError("the timeinterval is out of range")
        return cls(round(ticks))

    @property
    def delta(self) -> timedelta:
        """The same interval, to the microsecond."""
        return timedelta(microseconds=self.ticks / _TICKS_PER_MICROSECOND)

    @classmethod
    def between(cls, start: datetime, end: datetime) -> Interval:
        """The time from `start` to `end`."""
        return cls((end - start) // timedelta(microseconds=1) * _TICKS_PER_MICROSECOND)


Value = float | tuple[float, ...] | datetime | Interval | NodeDeallocationOption | str

INTERVALS: Final = {
    "TimeInterval_Zero": Interval(0),
    "TimeInterval_100ns": Interval(1),
    "TimeInterval_Microsecond": Interval(_TICKS_PER_MICROSECOND),
    "TimeInterval_Millisecond": Interval(_TICKS_PER_SECOND // 1000),
    "TimeInterval_Second": Interval(_TICKS_PER_SECOND),
    "TimeInterval_Minute": Interval(60 * _TICKS_PER_SECOND),
    "TimeInterval_Hour": Interval(3600 * _TICKS_PER_SECOND),
    "TimeInterval_Day": Interval(86_400 * _TICKS_PER_SECOND),
    "TimeInterval_Week": Interval(7 * 86_400 * _TICKS_PER_SECOND),
    "TimeInterval_Year": Interval(365 * 86_400 * _TICKS_PER_SECOND),
}


def type_name(value: Value) -> str:
    """What the language calls the type of `value`."""
    match value:
        case float():
            return "double"
        case tuple():
            return "doubleVec"
        case datetime():
            return "timestamp"
        case Interval():
            return "timeinterval"
        case NodeDeallocationOption():
            return "nodeDeallocationOption"
        case str():
            return "string"


def shift(moment: datetime, interval: Interval) -> datetime:
    """Return the timestamp `interval` after `moment`. Raises `OperationError` outside the years 1 to 9999."""
    try:
        return moment + interval.delta
    except OverflowError as error:
        raise OperationError("the timestamp is out of range") from error


def member(moment: datetime, name: str) -> float:
    """Return a member of a timestamp; weekdays count from Monday, 1, to Sunday, 7.

    Raises `OperationError` for a member that timestamps do not have.
    """
    match name:
        case "year" | "month" | "day" | "hour" | "minute" | "second":
            return float(getattr(moment, name))
        case "weekday":
            return float(moment.isoweekday())
        case _:
            raise OperationError(f"timestamp has no member {name}")


def text(value: Value) -> str:
    """The text of a value in the results of an evaluation.

    Doubles have six significant digits (a recorded run shows `96.6667`), timestamps milliseconds (from the
    documentation). How the service writes a timeinterval is not known; ours is `[-][d.]hh:mm:ss[.fffffff]`.
    """
    match value:
        case float():
            return f"{value:g}"
        case tuple():
            return f"[{','.join(f'{element:g}' for element in value)}]"
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case Interval():
            return _interval_text(value)
        case str():
            return value


def _interval_text(interval: Interval) -> str:
    seconds, fraction = divmod(abs(interval.ticks), _TICKS_PER_SECOND)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    sign = "-" if interval.ticks < 0 else ""
    return f"{sign}{f'{days}.' if days else ''}{clock}{f'.{fraction:07}' if fraction else ''}"


_W3C: Final = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)"
    r"(?:T(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?"
    r"(?P<zone>Z|[+-]\d\d:\d\d))?)?)?",
    re.ASCII,
)
_MAX_FRACTION_DIGITS: Final = 7


def parse_time(source: str) -> datetime:
    """Parse the argument of `time(...)`: W3C-DTF or RFC 1123.

    More than seven fractional digits of a second are refused; formulas with nanoseconds fail on the service
    too. Raises `OperationError` for anything else than a time.
    """
    try:
        found = _W3C.fullmatch(source)
        moment = parsedate_to_datetime(source) if found is None else _w3c(found)
        if moment.tzinfo is None:
            raise OperationError(f'"{source}" has no time zone')
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise OperationError(f'"{source}" is no time in W3C-DTF or RFC 1123 format') from error


def _w3c(found: re.Match[str]) -> datetime:
    fraction = found["fraction"] or ""
    if len(fraction) > _MAX_FRACTION_DIGITS:
        raise OperationError(f'"{found.group()}" has more than {_MAX_FRACTION_DIGITS} fractional digits')
    zone = found["zone"] or "Z"
    offset = timedelta()
    if zone != "Z":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
    return datetime(
        int(found["year"]),
        int(found["month"] or 1),
        int(found["day"] or 1),
        int(found["hour"] or 0),
        int(found["minute"] or 0),
        int(found["second"] or 0),
        int(f"{fraction:0<6}"[:6]),
        tzinfo=timezone(offset),
    )
