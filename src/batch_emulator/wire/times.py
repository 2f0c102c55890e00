"""Dates as the service writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

_EXCESS_DIGITS = re.compile(r"(\.\d{6})\d+")


def format_time(time: datetime) -> str:
    """Return a date in ISO 8601 with Z, with microseconds only where there are some."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """Read an ISO 8601 date; without an offset it is UTC. Raises `ValueError`."""
    # Clients send seven digits (ticks of 100 ns), one more than Python keeps.
    time = datetime.fromisoformat(_EXCESS_DIGITS.sub(r"\1", text))
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def format_http_time(time: datetime) -> str:
    """Return a date as HTTP headers have it."""
    return format_datetime(time.astimezone(UTC), usegmt=True)


def parse_http_time(text: str) -> datetime:
    """Read a date of an HTTP header. Raises `ValueError`."""
    try:
        time = parsedate_to_datetime(text)
    except (TypeError, IndexError, OverflowError):
        # The standard library's own ways to say that a text is no date, or its offset no offset.
        raise ValueError(f"{text!r} is not a date of an HTTP header") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
