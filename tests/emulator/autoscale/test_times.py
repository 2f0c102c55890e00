"""Timestamps and timeintervals."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.autoscale import AutoScaleResult, CurrentTargets, MetricStore, Value, evaluate

Run = Callable[..., AutoScaleResult]
Evaluated = Callable[..., Value]
Failure = Callable[..., str]


def test_time_without_argument_is_now(value: Evaluated, now: datetime) -> None:
    assert value("time()") == now
    assert value('time("")') == now


def test_now_is_told_in_utc(run: Run, now: datetime) -> None:
    elsewhere = now.astimezone(timezone(timedelta(hours=-8)))
    assert run("h = time().hour", now=elsewhere).variables["h"] == 12


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-03", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-04", datetime(2026, 3, 4, tzinfo=UTC)),
        ("2026-03-04T05:06Z", datetime(2026, 3, 4, 5, 6, tzinfo=UTC)),
        ("2026-03-04T05:06:07Z", datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
        ("2026-03-04T05:06:07+02:30", datetime(2026, 3, 4, 2, 36, 7, tzinfo=UTC)),
        ("2026-03-04T05:06:07-08:00", datetime(2026, 3, 4, 13, 6, 7, tzinfo=UTC)),
        ("2024-10-30T00:00:00.880011Z", datetime(2024, 10, 30, microsecond=880011, tzinfo=UTC)),
        ("2024-10-30T00:00:00.8800119Z", datetime(2024, 10, 30, microsecond=880011, tzinfo=UTC)),
        ("Wed, 04 Mar 2026 05:06:07 GMT", datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)),
    ],
)
def test_time_reads_w3c_and_rfc_1123(value: Evaluated, text: str, expected: datetime) -> None:
    assert value(f'time("{text}")') == expected


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("2023-04-14T10:11:12.123456789Z", "has more than 7 fractional digits"),
        ("2026-03-04T05:06:07", "is no time in W3C-DTF or RFC 1123 format"),
        ("2026-02-30", "is no time in W3C-DTF or RFC 1123 format"),
        ("yesterday", "is no time in W3C-DTF or RFC 1123 format"),
        ("Wed, 04 Mar 2026 05:06:07", "has no time zone"),
        ("0001-01-01T00:00:00+14:00", "is no time in W3C-DTF or RFC 1123 format"),
    ],
)
def test_other_times_are_errors(failure: Failure, text: str, detail: str) -> None:
    assert failure(f'x = time("{text}")') == f'Line 1, Col 9: "{text}" {detail}'


@given(st.text(alphabet=st.characters(exclude_characters='"\n'), max_size=40))
def test_any_other_text_is_an_error_and_not_a_crash(text: str) -> None:
    result = evaluate(
        f'x = time("x{text}")',
        metrics=MetricStore(),
        now=datetime(2026, 3, 4, tzinfo=UTC),
        current=CurrentTargets(0, 0),
    )
    assert result.error is not None


@given(st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)))
def test_both_formats_of_any_moment_are_read(moment: datetime) -> None:
    w3c = moment.isoformat().replace("+00:00", "Z")
    rfc1123 = format_datetime(moment, usegmt=True)
    result = evaluate(
        f'a = time("{w3c}"); b = time("{rfc1123}")',
        metrics=MetricStore(),
        now=moment,
        current=CurrentTargets(0, 0),
    )
    assert result.variables["a"] == moment
    assert result.variables["b"] == moment.replace(microsecond=0)


@pytest.mark.parametrize(
    ("member", "expected"),
    [("year", 2026), ("month", 3), ("day", 4), ("weekday", 3), ("hour", 12), ("minute", 0), ("second", 7)],
)
def test_members(value: Evaluated, member: str, expected: float) -> None:
    assert value(f"time().{member}") == expected


@pytest.mark.parametrize(("day", "weekday"), [("2026-03-02", 1), ("2026-03-07", 6), ("2026-03-08", 7)])
def test_weekdays_count_from_monday(value: Evaluated, day: str, weekday: float) -> None:
    assert value(f'time("{day}").weekday') == weekday


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("TimeInterval_Zero", "00:00:00"),
        ("TimeInterval_100ns * 10", "00:00:00.0000010"),
        ("TimeInterval_Microsecond * 1000 + TimeInterval_Millisecond", "00:00:00.0020000"),
        ("TimeInterval_Second * 60 - TimeInterval_Minute", "00:00:00"),
        ("1.5 * TimeInterval_Hour", "01:30:00"),
        ("TimeInterval_Day / 2", "12:00:00"),
        ("-TimeInterval_Week", "-7.00:00:00"),
        ("TimeInterval_Year", "365.00:00:00"),
        ("time() - time()", "00:00:00"),
        ('time("2026-03-04T12:00:00Z") - time("2026-03-03T11:59:30Z")', "1.00:00:30"),
        ("time() + (-6 * TimeInterval_Hour)", "2026-03-04T06:00:07.000Z"),
        ("TimeInterval_Minute + time()", "2026-03-04T12:01:07.000Z"),
    ],
)
def test_arithmetic_of_times(run: Run, expression: str, expected: str) -> None:
    assert run(f"x = {expression}").results.rsplit("=", 1)[1] == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("time() > time() + TimeInterval_100ns * -10", 1),
        ('time("2026-03-04") < time()', 1),
        ("TimeInterval_Minute * 60 == TimeInterval_Hour", 1),
        ("TimeInterval_Day <= TimeInterval_Hour", 0),
    ],
)
def test_comparisons_of_times(value: Evaluated, expression: str, expected: float) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "detail"),
    [
        ("TimeInterval_Year * (1 / 0)", "the timeinterval is out of range"),
        ("TimeInterval_Zero / 0", "the timeinterval is out of range"),
        ("TimeInterval_Year * 1e9", "the timeinterval is out of range"),
        ("TimeInterval_Year * 2e4 + TimeInterval_Year * 2e4", "the timeinterval is out of range"),
        ("time() + TimeInterval_Year * 1e4", "the timestamp is out of range"),
    ],
)
def test_times_out_of_range_are_errors(failure: Failure, expression: str, detail: str) -> None:
    assert failure(f"x = {expression}").endswith(detail)
