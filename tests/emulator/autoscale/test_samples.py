"""What a formula can ask of a metric."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from batch_emulator.autoscale import AutoScaleResult, MetricStore, Value

Run = Callable[..., AutoScaleResult]
Evaluated = Callable[..., Value]
Failure = Callable[..., str]
Stores = Callable[..., MetricStore]


@pytest.fixture
def rising(history: Stores) -> MetricStore:
    """A sample each 30 seconds for an hour; number 119 is the newest, taken 3 seconds ago, at 12:00:04."""
    return history({"$PendingTasks": range(120)})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$PendingTasks.GetSample(1)", (117,)),
        ("$PendingTasks.GetSample(3)", (115, 116, 117)),
        ("$PendingTasks.GetSample(2.9)", (116, 117)),
        ("$PendingTasks.GetSample(TimeInterval_Minute * 3)", (113, 114, 115, 116, 117)),
        ("$PendingTasks.GetSample(TimeInterval_Minute * 3, 80)", (113, 114, 115, 116, 117)),
        ("$PendingTasks.GetSample(60 * TimeInterval_Second, 120 * TimeInterval_Second)", (116, 117)),
        ("$PendingTasks.GetSample(120 * TimeInterval_Second, 60 * TimeInterval_Second, 75)", (116, 117)),
        ('$PendingTasks.GetSample(time("2026-03-04T11:55:00Z"), 50)', tuple(range(108, 118))),
        (
            '$PendingTasks.GetSample(time("2026-03-04T11:50:00Z"), time("2026-03-04T11:51:00Z"))',
            (99, 100),
        ),
    ],
)
def test_get_sample(
    value: Evaluated, rising: MetricStore, expression: str, expected: tuple[float, ...]
) -> None:
    assert value(expression, rising) == expected


def test_the_documented_range_from_one_to_six_minutes_has_ten_samples(
    value: Evaluated, steady: Stores
) -> None:
    expression = "$RunningTasks.GetSample(1 * TimeInterval_Minute, 6 * TimeInterval_Minute)"
    assert value(expression, steady(RunningTasks=1)) == (1,) * 10


@pytest.mark.parametrize(
    ("minutes", "percent"), [(3, 5 / 6 * 100), (10, 95), (15, 29 / 30 * 100), (60, 119 / 120 * 100)]
)
def test_the_last_minute_is_missing_from_the_percentage(
    value: Evaluated, steady: Stores, minutes: int, percent: float
) -> None:
    expression = f"$PendingTasks.GetSamplePercent(TimeInterval_Minute * {minutes})"
    assert value(expression, steady(PendingTasks=1, minutes=90)) == pytest.approx(percent)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$PendingTasks.GetSamplePercent(TimeInterval_Minute * 1, TimeInterval_Minute * 3)", 100),
        ("$PendingTasks.GetSamplePercent(TimeInterval_Minute * 0, TimeInterval_Minute * 1)", 50),
        ("$PendingTasks.GetSamplePercent(TimeInterval_Second * 10)", 0),
        ("$PendingTasks.GetSamplePercent(TimeInterval_Minute * 120, TimeInterval_Minute * 0)", 49.1667),
        ("$CPUPercent.GetSamplePercent(TimeInterval_Minute * 10)", 0),
    ],
)
def test_get_sample_percent(value: Evaluated, rising: MetricStore, expression: str, expected: float) -> None:
    assert value(expression, rising) == pytest.approx(expected, abs=1e-4)


def test_count_period_and_begin_of_the_history(value: Evaluated, rising: MetricStore, now: datetime) -> None:
    assert value("$PendingTasks.Count()", rising) == 118
    assert value("$PendingTasks.GetSamplePeriod() == 30 * TimeInterval_Second", rising) == 1
    oldest = now - timedelta(seconds=3 + 119 * 30)
    assert value("$PendingTasks.HistoryBeginTime()", rising) == oldest
    assert value("$PendingTasks.HistoryBeginTime().minute", rising) == oldest.minute


def test_too_few_samples_are_an_error_with_its_own_code(run: Run, history: Stores) -> None:
    # Seven of ten possible samples: the pool is young, and the last minute cannot be read yet.
    young = history({"$RunningTasks": [1] * 9})
    formula = "a = 1;\n$x = $RunningTasks.GetSample(TimeInterval_Minute * 5, 75);"
    result = run(formula, young, dedicated=4)
    assert result.error is not None
    assert result.error.code == "InsufficientSampleData"
    assert result.error.message == "Autoscale evaluation failed due to insufficient sample data"
    assert result.error.values == (
        (
            "Message",
            "Line 2, Col 29: Insufficient data from data set: $RunningTasks wanted 75%, received 70%",
        ),
    )
    assert result.target_dedicated == 4
    assert run(formula.replace("75", "70"), young).error is None


@pytest.mark.parametrize(
    ("formula", "detail"),
    [
        # Reported runs of the service: the column is that of the parenthesis.
        (
            "$RunningTasks.GetSample(10 * TimeInterval_Second, 0 * TimeInterval_Second, 100);",
            "Line 1, Col 24: Insufficient data from data set: $RunningTasks wanted 100%, received 0%",
        ),
        (
            "sli = TimeInterval_Second * 600;\nsamplevecavg = avg($PendingTasks.GetSample(sli));",
            "Line 2, Col 43: Insufficient data from data set: $PendingTasks wanted 70%, received 0%",
        ),
        (
            "$TargetDedicatedNodes = $CPUPercent;",
            "Line 1, Col 25: Insufficient data from data set: $CPUPercent wanted 100%, received 0%",
        ),
        (
            "x = $CPUPercent.HistoryBeginTime();",
            "Line 1, Col 33: Insufficient data from data set: $CPUPercent wanted 100%, received 0%",
        ),
    ],
)
def test_missing_samples_are_told_as_the_service_tells_them(
    failure: Failure, formula: str, detail: str
) -> None:
    assert failure(formula) == detail


def test_a_count_of_samples_is_never_insufficient(value: Evaluated, history: Stores) -> None:
    assert value("$PendingTasks.GetSample(1)", MetricStore()) == ()
    assert value("max(0, $PendingTasks.GetSample(1))", MetricStore()) == 0
    assert value("len($PendingTasks.GetSample(20))", history({"$PendingTasks": [1] * 9})) == 7


def test_a_bare_metric_is_its_newest_value(value: Evaluated, rising: MetricStore) -> None:
    assert value("$PendingTasks * 1.1", rising) == pytest.approx(119 * 1.1)
    assert value("max(0, $PendingTasks)", rising) == 119


def test_older_formulas_may_say_current_dedicated(value: Evaluated, steady: Stores) -> None:
    metrics = steady(CurrentDedicatedNodes=3)
    assert value("$CurrentDedicated", metrics) == 3
    assert value("$CurrentDedicated.GetSample(1)", metrics) == (3,)


@pytest.mark.parametrize(
    ("expression", "detail"),
    [
        ("$PendingTasks.GetSample()", "GetSample was given arguments that it does not take"),
        ("$PendingTasks.GetSample(1, 70)", "GetSample was given arguments that it does not take"),
        ("$PendingTasks.GetSample(0)", "GetSample takes a count of one or more, not 0"),
        ("$PendingTasks.GetSample(1 / 0)", "GetSample takes a count of one or more, not inf"),
        ("$PendingTasks.GetSamplePercent(70)", "GetSamplePercent was given arguments that it does not take"),
        ("$PendingTasks.Count(1)", "Count was given arguments that it does not take"),
        ("$PendingTasks.GetSamples(1)", "$PendingTasks has no method GetSamples"),
        ("$PendingTasks.getsample(1)", "$PendingTasks has no method getsample"),
    ],
)
def test_other_calls_are_errors(failure: Failure, expression: str, detail: str) -> None:
    column = 5 + expression.index("(")
    assert failure(f"x = {expression}") == f"Line 1, Col {column}: {detail}"
