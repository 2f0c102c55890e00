"""Dates and durations: what clients send is read, and what the service answers has one form."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.wire.durations import UNLIMITED, format_duration, parse_duration
from batch_emulator.wire.times import format_http_time, format_time, parse_http_time, parse_time

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("PT15M00S", "PT15M"),  # azure-batch 15.1
        ("PT0S", "PT0S"),
        ("PT90S", "PT1M30S"),
        ("P1W", "P7D"),
        ("P1DT0H0M0.50S", "P1DT0.5S"),
        ("PT36H", "P1DT12H"),
        (UNLIMITED, UNLIMITED),
        ("P10675199DT2H48M5.477581S", UNLIMITED),  # the same once it has been through Python's timedelta
    ],
)
def test_a_duration_is_answered_in_its_shortest_form(sent: str, answered: str) -> None:
    assert format_duration(parse_duration(sent)) == answered


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "PT", "P1DT", "15M", "PT15", "-PT15M", "PT1.5M", "P1Y", "P1M", "PT15M "),
        "PT\N{ARABIC-INDIC DIGIT ONE}S",
        "P10675200D",
        f"P{'9' * 400}D",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|longer"):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=3650)))
def test_a_duration_survives_the_wire(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T12:00:00Z",
        "2026-01-02T12:00:00",
        "2026-01-02T13:00:00+01:00",
        "2026-01-02T12:00:00.0000000Z",  # seven digits, as .NET clients send them
    ],
)
def test_every_form_of_a_date_is_read(text: str) -> None:
    assert parse_time(text) == NOON


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "12:00", "2026-01-02T25:00:00Z"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)


def test_dates_are_answered_in_utc() -> None:
    there = timezone(timedelta(hours=2))
    assert format_time(datetime(2026, 1, 2, 14, 0, 0, 123456, tzinfo=there)) == "2026-01-02T12:00:00.123456Z"
    assert format_time(NOON) == "2026-01-02T12:00:00Z"


@given(st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)))
def test_a_date_survives_the_wire(time: datetime) -> None:
    assert parse_time(format_time(time)) == time


def test_a_date_of_a_header_survives_the_wire() -> None:
    assert format_http_time(NOON) == "Fri, 02 Jan 2026 12:00:00 GMT"
    assert parse_http_time("Fri, 02 Jan 2026 12:00:00 GMT") == NOON


@given(st.text())
def test_any_header_is_a_date_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_http_time(text).tzinfo is not None


def test_an_impossible_offset_is_no_date() -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_http_time("Mon, 30 Nov 2026 06:11:03 +" + "9" * 30)
