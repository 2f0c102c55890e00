"""The functions: what they give, and what they refuse."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.autoscale import CurrentTargets, MetricStore, Value, evaluate

Evaluated = Callable[..., Value]
Failure = Callable[..., str]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("avg(1, 2, 6)", 3),
        ("avg(vec(1, 2, 3), 7)", 3.25),
        ("len(1, vec(2, 3))", 3),
        ("len()", 0),
        ("max(1, vec(5, 2), 3)", 5),
        ("min(vec(4, 2), 3)", 2),
        ("max(0, vec())", 0),
        ("norm(3, 4)", 5),
        ("range(2, vec(9, 4))", 7),
        ("std(vec(2, 4, 4, 4, 5, 5, 7, 9))", statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9])),
        ("std(5)", 0),
        ("sum(1, vec(2, 3))", 6),
        ("sum()", 0),
        ("val(vec(7, 8, 9), 0)", 7),
        ("val(vec(7, 8, 9), 2.9)", 9),
        ("percentile(vec(15, 20, 35, 40, 50), 30)", 20),
        ("percentile(vec(15, 20, 35, 40, 50), 40)", 20),
        ("percentile(vec(50, 15, 40, 20, 35), 100)", 50),
        ("percentile(vec(50, 15), 0)", 15),
        ("lg(8)", 3),
        ("ln(1)", 0),
        ("log(1000)", 3),
        ("lg(0)", -math.inf),
        ("ceil(2.1)", 3),
        ("ceil(-2.1)", -2),
        ("floor(2.9)", 2),
        ("floor(-2.1)", -3),
        ("round(2.5)", 3),
        ("round(-2.5)", -3),
        ("round(2.4)", 2),
        ("ceil(1 / 0)", math.inf),
    ],
)
def test_functions_with_one_result(value: Evaluated, expression: str, expected: float) -> None:
    assert value(expression) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("lg(vec(2, 8))", (1, 3)),
        ("lg(vec(8))", (3,)),
        ("ln(1, 1)", (0, 0)),
        ("log(vec(10), 100)", (1, 2)),
        ("ceil(1.2, vec(2.5))", (2, 3)),
        ("floor(vec(1.2, 2.5))", (1, 2)),
        ("round(vec(0.5, 1.5))", (1, 2)),
        ("vec(1, vec(2), vec())", (1, 2)),
    ],
)
def test_functions_by_component(value: Evaluated, expression: str, expected: tuple[float, ...]) -> None:
    assert value(expression) == pytest.approx(expected)


def test_a_logarithm_of_a_negative_number_is_no_number(value: Evaluated) -> None:
    result = value("ln(-1)")
    assert isinstance(result, float)
    assert math.isnan(result)


@pytest.mark.parametrize(
    ("expression", "detail"),
    [
        ("avg()", "avg needs at least one value, and was given none"),
        ("max(vec())", "max needs at least one value, and was given none"),
        ("percentile(vec(), 50)", "percentile needs at least one value, and was given none"),
        ("percentile(vec(1), 101)", "percentile takes a percentage from 0 to 100, not 101"),
        ("percentile(1, 50)", "percentile takes a vector and a double"),
        ("val(vec(1, 2), 2)", "val was given index 2 for a vector of 2 values"),
        ("val(vec(1, 2), -1)", "val was given index -1 for a vector of 2 values"),
        ("val(1, 0)", "val takes a vector and a double"),
        ('max(1, "a")', "max takes doubles and vectors, not string"),
        ("avg(time())", "avg takes doubles and vectors, not timestamp"),
        ("lg(TimeInterval_Hour)", "lg takes doubles and vectors, not timeinterval"),
    ],
)
def test_what_functions_refuse(failure: Failure, expression: str, detail: str) -> None:
    column = 5 + expression.index("(")
    assert failure(f"x = {expression}") == f"Line 1, Col {column}: {detail}"


def test_rand_is_repeated_by_an_evaluation_at_the_same_moment() -> None:
    def numbers(now: datetime) -> list[Value]:
        result = evaluate(
            "a = rand(); b = rand()", metrics=MetricStore(), now=now, current=CurrentTargets(0, 0)
        )
        return [result.variables["a"], result.variables["b"]]

    now = datetime(2026, 3, 4, tzinfo=UTC)
    first, second = numbers(now)
    assert first != second
    assert numbers(now) == [first, second]
    assert numbers(now + timedelta(seconds=1)) != [first, second]


@given(st.integers(0, 10**9))
def test_rand_lies_between_0_and_1(seconds: int) -> None:
    now = datetime(2026, 3, 4, tzinfo=UTC) + timedelta(seconds=seconds)
    result = evaluate(
        "x = rand(); y = x >= 0 && x <= 1", metrics=MetricStore(), now=now, current=CurrentTargets(0, 0)
    )
    assert result.variables["y"] == 1
