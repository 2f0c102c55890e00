"""Durations as ISO 8601 writes them, in the part that the service uses: days to seconds, with a fraction."""

from __future__ import annotations

import re
from datetime import timedelta

_DURATION = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def parse_duration(text: str) -> timedelta:
    """Read a duration such as `PT15M` or `P1DT2H`. Raises `ValueError`.

    The service's longest (`P10675199DT2H48M5.4775807S`, meaning no limit) fits.
    """
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()) or text.endswith("T"):
        raise ValueError(f"{text!r} is not an ISO 8601 duration")
    return timedelta(**{unit: float(number) for unit, number in match.groupdict().items() if number})


def format_duration(duration: timedelta) -> str:
    """Return the shortest form, as the service answers: `PT15M` for what was sent as `PT15M00S`."""
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
