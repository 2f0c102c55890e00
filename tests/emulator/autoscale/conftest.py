"""A pool's samples at a known moment, and evaluations over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from batch_emulator.autoscale import AutoScaleResult, CurrentTargets, MetricStore, Value, evaluate

# A Wednesday, at no round second: evaluations are not aligned with samples.
NOW = datetime(2026, 3, 4, 12, 0, 7, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    """The moment of every evaluation."""
    return NOW


@pytest.fixture
def history() -> Callable[..., MetricStore]:
    """Make a store of samples, oldest first, the last one taken `newest_age` before NOW."""

    def make(
        values: Mapping[str, Sequence[float]], *, newest_age: timedelta = timedelta(seconds=3)
    ) -> MetricStore:
        metrics = MetricStore()
        length = max((len(series) for series in values.values()), default=0)
        for index in range(length):
            metrics.record(
                NOW - newest_age - metrics.period * (length - 1 - index),
                {name: series[index] for name, series in values.items()},
            )
        return metrics

    return make


@pytest.fixture
def steady(history: Callable[..., MetricStore]) -> Callable[..., MetricStore]:
    """Make a store whose metrics have not changed for `minutes`: `steady(PendingTasks=4)`."""

    def make(*, minutes: float = 60, **values: float) -> MetricStore:
        return history({f"${name}": [value] * round(minutes * 2) for name, value in values.items()})

    return make


@pytest.fixture
def run() -> Callable[..., AutoScaleResult]:
    """Evaluate a formula at NOW: `run(formula, metrics, dedicated=…, low_priority=…)`."""

    def evaluate_now(
        formula: str,
        metrics: MetricStore | None = None,
        *,
        dedicated: int = 0,
        low_priority: int = 0,
        now: datetime = NOW,
    ) -> AutoScaleResult:
        source = MetricStore() if metrics is None else metrics
        return evaluate(formula, metrics=source, now=now, current=CurrentTargets(dedicated, low_priority))

    return evaluate_now


@pytest.fixture
def value(run: Callable[..., AutoScaleResult]) -> Callable[..., Value]:
    """Evaluate one expression."""

    def evaluate_expression(expression: str, metrics: MetricStore | None = None) -> Value:
        result = run(f"x = {expression}", metrics)
        assert result.error is None, result.error
        return result.variables["x"]

    return evaluate_expression


@pytest.fixture
def failure(run: Callable[..., AutoScaleResult]) -> Callable[..., str]:
    """Evaluate a formula that fails; return the detail of its error, which begins with the place."""

    def evaluate_failing(formula: str, metrics: MetricStore | None = None) -> str:
        result = run(formula, metrics)
        assert result.error is not None, result.results
        ((name, detail),) = result.error.values
        assert name == "Message"
        return detail

    return evaluate_failing
