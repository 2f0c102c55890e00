"""Durations as ISO 8601 writes them, in the part that the service uses: days to seconds, with a fraction."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_DURATION = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
# The service's longest, which means "no limit". It counts ticks of 100 ns, one digit more than Python keeps.
UNLIMITED: Final = "P10675199DT2H48M5.4775807S"
_LONGEST: Final = timedelta(days=10675199, hours=2, minutes=48, seconds=5, microseconds=477581)


def parse_duration(text: str) -> timedelta:
    """Read a duration such as `PT15M` or `P1DT2H`, to the microsecond. Raises `ValueError`.

    Nothing longer than the service's longest, `UNLIMITED`, is a duration.
    """
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()) or text.endswith("T"):
        raise ValueError(f"{text!r} is not an ISO 8601 duration")
    try:
        parts = {unit: float(number) for unit, number in match.groupdict().items() if number}
        duration = timedelta(**parts)
    except OverflowError:
        raise ValueError(f"{text!r} is longer than {UNLIMITED}") from None
    if duration > _LONGEST:
        raise ValueError(f"{text!r} is longer than {UNLIMITED}")
    return duration


def format_duration(duration: timedelta) -> str:
    """Return the shortest form, as the service answers: `PT15M` for what was sent as `PT15M00S`."""
    if duration == _LONGEST:
        return UNLIMITED
    minutes, seconds = divmod(duration.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{duration.microseconds:06d}".rstrip("0").rstrip(".")
    time = "".join(
        (
            f"{hours}H" if hours else "",
            f"{minutes}M" if minutes else "",
            f"{seconds}{fraction}S" if seconds or fraction else "",
        )
    )
    days = f"{duration.days}D" if duration.days else ""
    if not (days or time):
        return "PT0S"
    return f"P{days}{'T' if time else ''}{time}"
