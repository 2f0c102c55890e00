"""Evaluate a parsed formula."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from batch_emulator.autoscale import operations
from batch_emulator.autoscale.errors import (
    AutoScaleError,
    EvaluationError,
    OperationError,
    Position,
)
from batch_emulator.autoscale.functions import FUNCTIONS
from batch_emulator.autoscale.metrics import METRICS, MetricSource
from batch_emulator.autoscale.parser import parse
from batch_emulator.autoscale.sampling import Metric
from batch_emulator.autoscale.syntax import (
    Binary,
    Call,
    Conditional,
    Expression,
    Formula,
    Member,
    MethodCall,
    Name,
    Number,
    Statement,
    Text,
    Unary,
)
from batch_emulator.autoscale.values import (
    INTERVALS,
    NodeDeallocationOption,
    Value,
    member,
    parse_time,
    text,
    type_name,
)

DEDICATED: Final = "$TargetDedicatedNodes"
LOW_PRIORITY: Final = "$TargetLowPriorityNodes"
DEALLOCATION: Final = "$NodeDeallocationOption"

# Targets are 32-bit integers on the wire (`targetDedicatedNodes` and its fellow in the REST API).
_LARGEST_TARGET: Final = 2**31 - 1

_TARGET_ALIASES: Final = {DEDICATED: "$TargetDedicated", LOW_PRIORITY: "$TargetLowPriority"}
_TARGETS: Final = {name: full for full, alias in _TARGET_ALIASES.items() for name in (full, alias)}

_METRIC_ALIASES: Final = {"$CurrentDedicated": "$CurrentDedicatedNodes"}  # in older published formulas

_CONSTANTS: Final[Mapping[str, Value]] = MappingProxyType(
    {**INTERVALS, **{option.value: option for option in NodeDeallocationOption}}
)


@dataclass(frozen=True)
class CurrentTargets:
    """The targets of the pool before the evaluation, in nodes; they stay if the evaluation fails."""

    dedicated: int
    low_priority: int


@dataclass(frozen=True)
class AutoScaleResult:
    """What an evaluation gave.

    `results` is the text of `autoScaleRun.results`. `variables` has the user variables as values; after an
    error those that were set before it, which `results` leaves out.
    """

    target_dedicated: int
    target_low_priority: int
    node_deallocation_option: NodeDeallocationOption
    results: str
    variables: Mapping[str, Value]
    error: AutoScaleError | None


def evaluate(
    formula: str | Formula, *, metrics: MetricSource, now: datetime, current: CurrentTargets
) -> AutoScaleResult:
    """Evaluate an autoscale formula at `now`, which must have a time zone.

    A fractional target is truncated. An error of the evaluation is part of the result, with the current
    targets kept. `rand()` depends on `now` alone, so that a run can be repeated.

    Raises `AutoScaleFormulaSyntaxError` if `formula` is text that does not parse.
    """
    if now.tzinfo is None:
        raise ValueError("the time of an evaluation must have a time zone")
    parsed = parse(formula) if isinstance(formula, str) else formula
    evaluation = _Evaluation(metrics, now.astimezone(UTC), current)
    try:
        evaluation.run(parsed.statements)
        dedicated = evaluation.target(DEDICATED)
        low_priority = evaluation.target(LOW_PRIORITY)
    except EvaluationError as error:
        option = NodeDeallocationOption.REQUEUE
        return AutoScaleResult(
            target_dedicated=current.dedicated,
            target_low_priority=current.low_priority,
            node_deallocation_option=option,
            results=_results(current.dedicated, current.low_priority, option, {}),
            variables=MappingProxyType(evaluation.variables),
            error=error.as_value(),
        )
    return AutoScaleResult(
        target_dedicated=dedicated,
        target_low_priority=low_priority,
        node_deallocation_option=evaluation.option,
        results=_results(dedicated, low_priority, evaluation.option, evaluation.variables),
        variables=MappingProxyType(evaluation.variables),
        error=None,
    )


def _results(
    dedicated: int, low_priority: int, option: NodeDeallocationOption, variables: Mapping[str, Value]
) -> str:
    parts = [f"{DEDICATED}={dedicated}", f"{LOW_PRIORITY}={low_priority}", f"{DEALLOCATION}={option}"]
    parts += [f"{name}={text(variables[name])}" for name in sorted(variables)]
    return ";".join(parts)


class _Stop(Exception):  # noqa: N818 - it is no error: it ends an evaluation well
    """`stop()` was called; what is set so far is the result."""


class _Evaluation:
    """The state of one evaluation."""

    def __init__(self, metrics: MetricSource, now: datetime, current: CurrentTargets) -> None:
        self.variables: dict[str, Value] = {}
        self.option = NodeDeallocationOption.REQUEUE
        self._metrics = metrics
        self._now = now
        self._current = {DEDICATED: current.dedicated, LOW_PRIORITY: current.low_priority}
        self._assigned: dict[str, tuple[float, Position]] = {}
        self._random: random.Random | None = None

    def run(self, statements: Sequence[Statement]) -> None:
        try:
            for statement in statements:
                value = self._value(statement.value)
                if statement.name is not None:
                    self._assign(statement.name, value, statement.at)
        except _Stop:
            return

    def target(self, name: str) -> int:
        """Return the target as a number of nodes, truncated."""
        value, at = self._assigned_target(name)
        if at is not None and not (math.isfinite(value) and 0 <= math.trunc(value) <= _LARGEST_TARGET):
            raise EvaluationError(f"{name} must be from 0 to {_LARGEST_TARGET} nodes, not {value:g}", at)
        return math.trunc(value)

    def _assigned_target(self, name: str) -> tuple[float, Position | None]:
        """Return the value of a target; the full name wins over its alias, whatever their order."""
        for spelling in (name, _TARGET_ALIASES[name]):
            if spelling in self._assigned:
                return self._assigned[spelling]
        return float(self._current[name]), None

    def _assign(self, name: str, value: Value, at: Position) -> None:
        if name in _TARGETS:
            if not isinstance(value, float):
                raise EvaluationError(f"{name} must be a double, not a {type_name(value)}", at)
            self._assigned[name] = (value, at)
        elif name == DEALLOCATION:
            if not isinstance(value, NodeDeallocationOption):
                options = ", ".join(NodeDeallocationOption)
                raise EvaluationError(f"{name} must be one of {options}", at)
            self.option = value
        elif name in METRICS or name in _METRIC_ALIASES:
            raise EvaluationError(f"{name} is read-only", at)
        elif name in _CONSTANTS:
            raise EvaluationError(f"{name} is a constant", at)
        else:
            self.variables[name] = value

    def _value(self, node: Expression) -> Value:
        match node:
            case Number() | Text():
                return node.value
            case Name():
                return self._name(node.name, node.at)
            case Binary():
                return self._binary(node)
            case Call():
                return self._call(node)
            case MethodCall():
                return self._method(node)
            case Conditional():
                return self._value(node.then if self._truth(node.test, node.at) else node.otherwise)
            case Unary():
                operand = self._value(node.operand)
                try:
                    return operations.unary(node.operator, operand)
                except OperationError as error:
                    raise EvaluationError(str(error), node.at) from error
            case Member():
                return self._member(node)

    def _name(self, name: str, at: Position) -> Value:
        if name in self.variables:
            return self.variables[name]
        if name in _TARGETS:
            return self._assigned_target(_TARGETS[name])[0]
        if name == DEALLOCATION:
            return self.option
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        metric = self._metric(name)
        if metric is None:
            raise EvaluationError(f"unknown variable {name}", at)
        return metric.current(at)

    def _metric(self, name: str) -> Metric | None:
        full = _METRIC_ALIASES.get(name, name)
        return Metric(full, self._metrics, self._now) if full in METRICS else None

    def _truth(self, node: Expression, at: Position) -> bool:
        value = self._value(node)
        try:
            return operations.truth(value)
        except OperationError as error:
            raise EvaluationError(str(error), at) from error

    def _binary(self, node: Binary) -> Value:
        # A long sum is as deep on its left side as it is long, so that side is walked, not recursed into.
        pending = [node]
        while isinstance(pending[-1].left, Binary):
            pending.append(pending[-1].left)
        value = self._value(pending[-1].left)
        for step in reversed(pending):
            try:
                match step.operator:
                    case "&&":
                        value = float(operations.truth(value) and self._truth(step.right, step.at))
                    case "||":
                        value = float(operations.truth(value) or self._truth(step.right, step.at))
                    case operator:
                        value = operations.binary(operator, value, self._value(step.right))
            except OperationError as error:
                raise EvaluationError(str(error), step.at) from error
        return value

    def _call(self, node: Call) -> Value:
        arguments = [self._value(argument) for argument in node.arguments]
        try:
            return self._apply(node.function, arguments)
        except OperationError as error:
            raise EvaluationError(str(error), node.at) from error

    def _apply(self, function: str, arguments: Sequence[Value]) -> Value:
        match function, arguments:
            case "time", [] | [""]:
                return self._now
            case "time", [str() as source]:
                return parse_time(source)
            case "rand", []:
                return self._rand()
            case "stop", []:
                raise _Stop
            case "time" | "rand" | "stop", _:
                raise OperationError(f"{function} was given arguments that it does not take")
        if function not in FUNCTIONS:
            raise OperationError(f"unknown function {function}")
        return FUNCTIONS[function](function, arguments)

    def _rand(self) -> float:
        if self._random is None:
            self._random = random.Random(self._now.isoformat())  # noqa: S311 - a number for a formula, no secret
        return self._random.random()

    def _method(self, node: MethodCall) -> Value:
        metric = self._metric(node.target.name) if isinstance(node.target, Name) else None
        if metric is None:
            raise EvaluationError(f"{node.method} is a method of the service's metrics only", node.at)
        arguments = [self._value(argument) for argument in node.arguments]
        try:
            return metric.call(node.method, arguments, node.at)
        except OperationError as error:
            raise EvaluationError(str(error), node.at) from error

    def _member(self, node: Member) -> Value:
        target = self._value(node.target)
        if not isinstance(target, datetime):
            raise EvaluationError(f"{type_name(target)} has no member {node.member}", node.at)
        try:
            return member(target, node.member)
        except OperationError as error:
            raise EvaluationError(str(error), node.at) from error
