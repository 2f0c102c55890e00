"""The syntax tree of an autoscale formula."""

from __future__ import annotations

from dataclasses import dataclass, field

from batch_emulator.autoscale.errors import Position


@dataclass(frozen=True, slots=True)
class Number:
    """A number; the language knows doubles only."""

    value: float
    at: Position


@dataclass(frozen=True, slots=True)
class Text:
    """A string in double quotes, without them."""

    value: str
    at: Position


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, a constant such as `TimeInterval_Hour`, or a word such as `requeue`."""

    name: str
    at: Position


@dataclass(frozen=True, slots=True)
class Unary:
    """`-` or `!` before an operand."""

    operator: str
    operand: Expression
    at: Position


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two operands; `at` is the operator's place."""

    operator: str
    left: Expression
    right: Expression
    at: Position


@dataclass(frozen=True, slots=True)
class Conditional:
    """`test ? then : otherwise`; `at` is the place of the question mark."""

    test: Expression
    then: Expression
    otherwise: Expression
    at: Position


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function; `at` is its opening parenthesis, the place that the service's messages name."""

    function: str
    arguments: tuple[Expression, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A call of a method, such as `$PendingTasks.GetSample(1)`; `at` is its opening parenthesis."""

    target: Expression
    method: str
    arguments: tuple[Expression, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a timestamp, such as `time().hour`; `at` is the member's place."""

    target: Expression
    member: str
    at: Position


Expression = Number | Text | Name | Unary | Binary | Conditional | Call | MethodCall | Member


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: an assignment, or an expression alone (`name` is None)."""

    name: str | None
    value: Expression
    at: Position


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula; evaluate it as often as you like."""

    source: str
    statements: tuple[Statement, ...] = field(repr=False)
