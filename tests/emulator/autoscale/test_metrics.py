"""The store of samples, held against a plain list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.autoscale import METRICS, MetricStore

START = datetime(2026, 3, 4, tzinfo=UTC)
PENDING = "$PendingTasks"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_sample_can_be_read_a_minute_after_it_was_taken() -> None:
    metrics = MetricStore()
    metrics.record(at(0), {PENDING: 5})
    assert metrics.latest(PENDING, 1, now=at(59.999999)) == []
    assert metrics.latest(PENDING, 1, now=at(60)) == [5]


def test_the_current_value_does_not_wait() -> None:
    metrics = MetricStore()
    assert metrics.current(PENDING) is None
    metrics.record(at(0), {PENDING: 5})
    metrics.record(at(30), {"$ActiveTasks": 1})
    assert (metrics.current(PENDING), metrics.current("$ActiveTasks")) == (5, 1)


def test_a_metric_left_out_of_a_sample_has_none_there() -> None:
    metrics = MetricStore(delay=timedelta())
    metrics.record(at(0), {"$ActiveTasks": 1})
    metrics.record(at(30), {PENDING: 2})
    metrics.record(at(60), {"$ActiveTasks": 3})
    assert metrics.latest("$ActiveTasks", 9, now=at(60)) == [1, 3]
    assert metrics.latest(PENDING, 9, now=at(60)) == [2]
    assert metrics.count(PENDING, now=at(60)) == 1
    assert metrics.history_begin(PENDING, now=at(60)) == at(30)


def test_a_metric_without_samples_has_no_values() -> None:
    metrics = MetricStore()
    metrics.record(at(0), {PENDING: 2})
    now = at(120)
    assert metrics.latest("$CPUPercent", 3, now=now) == []
    assert metrics.between("$CPUPercent", at(0), now, now=now) == []
    assert metrics.count("$CPUPercent", now=now) == 0
    assert metrics.history_begin("$CPUPercent", now=now) is None
    assert metrics.history_begin(PENDING, now=at(10)) is None


def test_old_samples_are_overwritten() -> None:
    metrics = MetricStore(delay=timedelta(), keep=timedelta(minutes=1))
    for step in range(7):
        metrics.record(at(30 * step), {PENDING: step})
    now = at(180)
    assert metrics.latest(PENDING, 99, now=now) == [4, 5, 6]
    assert metrics.history_begin(PENDING, now=now) == at(120)
    metrics.record(at(210), {"$ActiveTasks": 1})
    assert metrics.latest(PENDING, 99, now=at(210)) == [5, 6]


def test_what_is_no_sample_is_refused() -> None:
    metrics = MetricStore()
    with pytest.raises(ValueError, match="not a metric of Azure Batch: PendingTasks"):
        metrics.record(at(0), {"PendingTasks": 1})
    with pytest.raises(ValueError, match="finite"):
        metrics.record(at(0), {PENDING: float("nan")})
    metrics.record(at(0), dict.fromkeys(METRICS, 1.0))
    with pytest.raises(ValueError, match="order of time"):
        metrics.record(at(0), {PENDING: 1})
    assert metrics.count(PENDING, now=at(60)) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"period": timedelta()},
        {"delay": timedelta(seconds=-1)},
        {"keep": timedelta(seconds=29)},
    ],
)
def test_a_store_that_could_keep_nothing_is_refused(arguments: dict[str, timedelta]) -> None:
    with pytest.raises(ValueError, match="period must be positive"):
        MetricStore(**arguments)


samples = st.lists(
    st.tuples(st.integers(1, 90), st.none() | st.integers(0, 9)),  # seconds after the last sample, value
    max_size=40,
)


@given(samples, st.integers(0, 4000), st.integers(0, 2000), st.integers(0, 2000), st.integers(1, 50))
def test_a_store_answers_like_a_list(
    steps: list[tuple[int, int | None]], asked_at: int, back_from: int, back_to: int, count: int
) -> None:
    keep, delay = timedelta(minutes=8), timedelta(seconds=60)
    metrics = MetricStore(delay=delay, keep=keep)
    taken: list[tuple[datetime, int | None]] = []
    moment = START
    for seconds, value in steps:
        moment += timedelta(seconds=seconds)
        metrics.record(moment, {} if value is None else {PENDING: value})
        taken.append((moment, value))

    now = at(asked_at)
    kept = taken[-17:]  # eight minutes of 30 seconds, and the one at their begin
    readable = [(when, value) for when, value in kept if value is not None and when <= now - delay]
    start, end = sorted((now - timedelta(seconds=back_from), now - timedelta(seconds=back_to)))

    values = [value for _, value in readable]
    assert metrics.latest(PENDING, count, now=now) == values[-count:]
    assert metrics.count(PENDING, now=now) == len(values)
    assert metrics.history_begin(PENDING, now=now) == (readable[0][0] if readable else None)
    assert metrics.between(PENDING, start, end, now=now) == [
        value for when, value in readable if start - timedelta(seconds=30) < when <= end
    ]
