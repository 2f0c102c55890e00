"""Values, operators, variables, targets, and the form of results and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from batch_emulator.autoscale import (
    AutoScaleFormulaSyntaxError,
    AutoScaleResult,
    CurrentTargets,
    MetricStore,
    Value,
    evaluate,
    parse,
)

Run = Callable[..., AutoScaleResult]
Evaluated = Callable[..., Value]
Failure = Callable[..., str]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3 - 4 / 8", 6.5),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("2 - -2", 4),
        ("-2 * -3", 6),
        ("1 < 2", 1),
        ("2 <= 1", 0),
        ("1 == 1 != 0", 1),
        ("1 < 2 == 2 > 1", 1),
        ("3 >= 3", 1),
        ("!0", 1),
        ("!0.1", 0),
        ("0 || 0 && 1 || 2", 1),
        ("5 && 0.1", 1),
        ("1 + 1 > 1 && 2 > 1", 1),
        ("0 ? 1 : 0.1 ? 2 : 3", 2),
        ("1 ? 2 : 3 + 4", 2),
        ("0 == 1", 0),
        ('"a" < "b"', 1),
        ('"a" == "b"', 0),
        ('"a" != "b" ? 7 : 8', 7),
    ],
)
def test_numbers_and_strings(value: Evaluated, expression: str, expected: float) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("vec(1, 2, 3) + 1", (2, 3, 4)),
        ("vec(1, 2, 3) - 1", (0, 1, 2)),
        ("vec(1, 2) * 2 / 4", (0.5, 1)),
        ("vec(1, 2) + vec(10, 20)", (11, 22)),
        ("vec(4, 9) / vec(2, 3)", (2, 3)),
    ],
)
def test_vectors(value: Evaluated, expression: str, expected: tuple[float, ...]) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"), [("1 / 0", math.inf), ("-1 / 0", -math.inf), ("1 / -0", -math.inf)]
)
def test_division_by_zero_gives_an_infinity(value: Evaluated, expression: str, expected: float) -> None:
    assert value(expression) == expected


def test_zero_by_zero_is_no_number(value: Evaluated) -> None:
    assert value("(0 / 0) == (0 / 0)") == 0


@pytest.mark.parametrize(
    ("expression", "types"),
    [
        ('1 + "a"', "+ is not defined for double and string"),
        ("1 - vec(1)", "- is not defined for double and doubleVec"),
        ("vec(1) > 0", "> is not defined for doubleVec and double"),
        ("vec(1) == vec(1)", "== is not defined for doubleVec and doubleVec"),
        ("time() - TimeInterval_Hour", "- is not defined for timestamp and timeinterval"),
        ("time() + time()", "+ is not defined for timestamp and timestamp"),
        ("TimeInterval_Hour / TimeInterval_Hour", "/ is not defined for timeinterval and timeinterval"),
        ("2 / TimeInterval_Hour", "/ is not defined for double and timeinterval"),
        ("TimeInterval_Hour > 1", "> is not defined for timeinterval and double"),
        ("requeue == requeue", "== is not defined for nodeDeallocationOption and nodeDeallocationOption"),
        ("-vec(1)", "- is not defined for doubleVec"),
        ('!"a"', "! is not defined for string"),
    ],
)
def test_an_operator_that_the_table_does_not_list_is_an_error(
    failure: Failure, expression: str, types: str
) -> None:
    assert f"operator {types}" in failure(f"x = {expression}")


@pytest.mark.parametrize(
    "expression",
    ["0 && nothing", "1 || nothing", "1 ? 2 : nothing", "0 ? nothing : 2", "0 && time() || 1"],
)
def test_what_does_not_decide_is_not_evaluated(run: Run, expression: str) -> None:
    assert run(f"x = {expression}").error is None


@pytest.mark.parametrize("expression", ["1 && nothing", "0 || nothing", "0 ? 2 : nothing"])
def test_what_decides_is_evaluated(failure: Failure, expression: str) -> None:
    assert failure(f"x = {expression}").endswith("unknown variable nothing")


@pytest.mark.parametrize("expression", ["vec(1) ? 1 : 2", "vec(1) && 1", "1 && time()", "time() || 1"])
def test_only_doubles_are_conditions(failure: Failure, expression: str) -> None:
    assert "expected a double as condition" in failure(f"x = {expression}")


def test_results_have_the_form_of_the_service(run: Run) -> None:
    result = run("$TargetDedicatedNodes = 3;", dedicated=2)
    assert result.results == (
        "$TargetDedicatedNodes=3;$TargetLowPriorityNodes=0;$NodeDeallocationOption=requeue"
    )
    assert (result.target_dedicated, result.target_low_priority) == (3, 0)
    assert result.node_deallocation_option == "requeue"


def test_user_variables_follow_in_alphabetical_order_with_and_without_dollar(run: Run) -> None:
    # The text of a recorded run: numbers have six digits.
    result = run(
        "cappedPoolSize = 3; $tasks = 0; $samples = 29 / 30 * 100; $targetVMs = 0.5;"
        "$TargetDedicatedNodes = max(1, min($targetVMs, cappedPoolSize));"
        "$NodeDeallocationOption = taskcompletion"
    )
    assert result.results == (
        "$TargetDedicatedNodes=1;$TargetLowPriorityNodes=0;$NodeDeallocationOption=taskcompletion;"
        "$samples=96.6667;$targetVMs=0.5;$tasks=0;cappedPoolSize=3"
    )
    assert dict(result.variables) == {
        "$samples": pytest.approx(96.6667, abs=1e-4),
        "$targetVMs": 0.5,
        "$tasks": 0,
        "cappedPoolSize": 3,
    }


def test_every_type_has_a_text(run: Run) -> None:
    result = run(
        'a = vec(1, 2.5); b = time("2016-10-13T19:18:47.8059Z"); c = TimeInterval_Minute * 90;'
        "d = TimeInterval_Day * -1.5 + TimeInterval_100ns; e = requeue; f = 16777216; g = vec(); h = 1/0;"
        'i = "text"'
    )
    assert result.results.split(";")[3:] == [
        *("a=[1,2.5]", "b=2016-10-13T19:18:47.805Z", "c=01:30:00", "d=-1.11:59:59.9999999", "e=requeue"),
        *("f=1.67772e+07", "g=[]", "h=inf", "i=text"),
    ]


def test_a_variable_with_dollar_is_not_the_one_without(failure: Failure) -> None:
    assert failure("$x = 1; y = x") == "Line 1, Col 13: unknown variable x"


@pytest.mark.parametrize(
    ("target", "nodes"), [("2.9", 2), ("0.5", 0), ("-0.5", 0), ("7", 7), ("2147483647", 2147483647)]
)
def test_a_fractional_target_is_truncated(run: Run, target: str, nodes: int) -> None:
    result = run(f"$TargetDedicatedNodes = {target}", dedicated=4)
    assert (result.error, result.target_dedicated) == (None, nodes)
    assert result.results.startswith(f"$TargetDedicatedNodes={nodes};")


@pytest.mark.parametrize("target", ["-1", "1 / 0", "0 / 0", "2147483648"])
@pytest.mark.parametrize("name", ["$TargetDedicatedNodes", "$TargetLowPriority"])
def test_a_target_that_is_no_number_of_nodes_is_an_error(failure: Failure, name: str, target: str) -> None:
    assert "must be from 0 to 2147483647 nodes, not " in failure(f"a = 1;\n  {name} = {target}")
    assert failure(f"a = 1;\n  {name} = {target}").startswith("Line 2, Col 3: ")


def test_targets_that_are_not_set_stay(run: Run) -> None:
    result = run("$TargetLowPriorityNodes = 1", dedicated=5, low_priority=9)
    assert (result.target_dedicated, result.target_low_priority) == (5, 1)


def test_a_target_reads_as_it_is_until_it_is_set(run: Run) -> None:
    result = run(
        "before = $TargetDedicatedNodes; $TargetDedicatedNodes = before / 2; after = $TargetDedicatedNodes",
        dedicated=5,
    )
    assert (result.variables["before"], result.variables["after"]) == (5, 2.5)
    assert result.target_dedicated == 2


@pytest.mark.parametrize("full", ["$TargetDedicatedNodes", "$TargetLowPriorityNodes"])
def test_aliases_set_targets_and_the_full_name_wins(run: Run, full: str) -> None:
    alias = full.removesuffix("Nodes")

    def targets(formula: str) -> int:
        result = run(formula)
        assert result.error is None
        return max(result.target_dedicated, result.target_low_priority)

    assert targets(f"{alias} = 3") == 3
    assert targets(f"{full} = 4; {alias} = 3") == 4
    assert targets(f"{alias} = 3; {full} = 4") == 4
    assert targets(f"{alias} = 3; {full} = {alias} + {full}") == 6


@pytest.mark.parametrize("option", ["requeue", "terminate", "taskcompletion", "retaineddata"])
def test_deallocation_options(run: Run, option: str) -> None:
    result = run(f"x = 1; $NodeDeallocationOption = x ? {option} : requeue; y = $NodeDeallocationOption")
    assert result.node_deallocation_option == option
    assert f"$NodeDeallocationOption={option};" in result.results
    assert result.variables["y"] == option


@pytest.mark.parametrize("option", ["1", '"taskcompletion"', "time()"])
def test_other_deallocation_options_are_errors(failure: Failure, option: str) -> None:
    assert failure(f"$NodeDeallocationOption = {option}") == (
        "Line 1, Col 1: $NodeDeallocationOption must be one of "
        "requeue, terminate, taskcompletion, retaineddata"
    )


@pytest.mark.parametrize(
    ("formula", "detail"),
    [
        ("$something_useless", "Line 1, Col 1: unknown variable $something_useless"),
        ("a = 1;\n b = a + c", "Line 2, Col 10: unknown variable c"),
        ("$TargetDedicatedNodes = vec(1)", "Line 1, Col 1: $TargetDedicatedNodes must be a double, "),
        ("$PendingTasks = 1", "Line 1, Col 1: $PendingTasks is read-only"),
        ("$CurrentDedicated = 1", "Line 1, Col 1: $CurrentDedicated is read-only"),
        ("TimeInterval_Hour = 1", "Line 1, Col 1: TimeInterval_Hour is a constant"),
        ("requeue = 1", "Line 1, Col 1: requeue is a constant"),
        ("a = nothing(1)", "Line 1, Col 12: unknown function nothing"),
        ("a = 1; b = a.hour", "Line 1, Col 14: double has no member hour"),
        ("a = time().week", "Line 1, Col 12: timestamp has no member week"),
        ("a = 1; b = a.GetSample(1)", "Line 1, Col 23: GetSample is a method of the service's metrics only"),
        ("a = time(1, 2)", "Line 1, Col 9: time was given arguments that it does not take"),
        ("a = stop(1)", "Line 1, Col 9: stop was given arguments that it does not take"),
        ("a = vec(1, 2) + vec(1)", "Line 1, Col 15: the vectors have 2 and 1 elements"),
    ],
)
def test_an_error_is_a_value_with_its_place(failure: Failure, formula: str, detail: str) -> None:
    assert failure(formula).startswith(detail)


def test_an_error_keeps_the_current_targets(run: Run) -> None:
    result = run(
        "x = 1; $TargetDedicatedNodes = 9; $NodeDeallocationOption = taskcompletion; $something_useless",
        dedicated=2,
    )
    assert result.error is not None
    assert result.error.code == "AutoScalingFormulaEvaluationError"
    assert (result.target_dedicated, result.target_low_priority) == (2, 0)
    assert result.results == (
        "$TargetDedicatedNodes=2;$TargetLowPriorityNodes=0;$NodeDeallocationOption=requeue"
    )
    assert dict(result.variables) == {"x": 1}


def test_stop_ends_the_evaluation_with_what_is_set(run: Run) -> None:
    result = run("$TargetDedicatedNodes = 3; a = 1 ? stop() : 2; $TargetDedicatedNodes = 4; nothing")
    assert (result.error, result.target_dedicated) == (None, 3)
    assert "a" not in result.variables


def test_text_that_does_not_parse_is_an_exception(run: Run) -> None:
    with pytest.raises(AutoScaleFormulaSyntaxError):
        run("$TargetDedicatedNodes = ")


def test_a_parsed_formula_evaluates_like_its_text(run: Run, now: datetime) -> None:
    text = "x = rand(); $TargetDedicatedNodes = 3 + x"
    parsed = evaluate(parse(text), metrics=MetricStore(), now=now, current=CurrentTargets(0, 0))
    assert parsed == run(text)


def test_a_moment_without_time_zone_is_refused(run: Run, now: datetime) -> None:
    with pytest.raises(ValueError, match="time zone"):
        run("a = 1", now=now.replace(tzinfo=None))


@pytest.mark.parametrize("formula", ["x = " + "+".join(["1"] * 4000), "x = " + "1<" * 4000 + "1"])
def test_a_long_chain_of_operators_is_evaluated(run: Run, formula: str) -> None:
    assert run(formula).error is None


def test_the_deepest_nesting_is_evaluated(value: Evaluated) -> None:
    level = "0||1&&1==1+0*("
    assert value(level * 30 + "1" + ")" * 30) in (0, 1)
    assert value("max(" * 30 + "3" + ")" * 30) == 3


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(numbers, numbers, st.sampled_from(["+", "-", "*"]))
def test_arithmetic_is_that_of_doubles(left: float, right: float, operator: str) -> None:
    expected = {"+": left + right, "-": left - right, "*": left * right}[operator]
    formula = f"x = ({left!r}) {operator} ({right!r})"
    result = evaluate(formula, metrics=MetricStore(), now=NOW, current=CurrentTargets(0, 0))
    assert result.variables["x"] == expected


NOW = datetime.fromisoformat("2026-03-04T12:00:07+00:00")
OPERANDS = ["$PendingTasks", "time()", "TimeInterval_Hour", "vec(1,2)", "1", "0.5", '"a"', "requeue", "x"]
FUNCTIONS = ["max", "avg", "val", "len", "percentile", "norm", "round", "std", "sum", "time", "lg", "range"]
OPERATORS = ["+", "-", "*", "/", "<", "<=", "==", "&&", "||", "!="]
MEMBERS = ["hour", "weekday", "GetSample(1)", "GetSample(TimeInterval_Minute*2)", "Count()"]
EXPRESSIONS = st.recursive(
    st.sampled_from(OPERANDS),
    lambda inner: st.one_of(
        st.builds("({}{}{})".format, inner, st.sampled_from(OPERATORS), inner),
        st.builds("{}({})".format, st.sampled_from(FUNCTIONS), st.lists(inner, max_size=3).map(",".join)),
        st.builds("-{}".format, inner),
        st.builds("({}?{}:{})".format, inner, inner, inner),
        st.builds("{}.{}".format, inner, st.sampled_from(MEMBERS)),
    ),
    max_leaves=12,
)


@given(EXPRESSIONS)
def test_any_expression_gives_a_value_or_an_error(expression: str) -> None:
    metrics = MetricStore()
    for age in range(300, 0, -30):
        metrics.record(NOW - timedelta(seconds=age), {"$PendingTasks": 4})
    try:
        formula = parse(f"x = 3; $TargetDedicatedNodes = {expression}")
    except AutoScaleFormulaSyntaxError:
        assume(False)
    result = evaluate(formula, metrics=metrics, now=NOW, current=CurrentTargets(1, 2))
    if result.error is not None:
        assert (result.target_dedicated, result.target_low_priority) == (1, 2)
    assert result.target_dedicated >= 0
