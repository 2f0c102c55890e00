"""The operators, as the documentation's table of operations lists them, and no others.

The table has no `double - doubleVec` and no `timestamp - timeinterval`; such formulas are refused here, for
the documentation itself writes `time() + (-6 * TimeInterval_Hour)`. Doubles follow IEEE 754,
so a division by zero gives an infinity; only a target must be finite.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from batch_emulator.autoscale.errors import OperationError
from batch_emulator.autoscale.values import Interval, Value, shift, type_name


def _divide(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = MappingProxyType(
    {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide}
)


def unary(symbol: str, operand: Value) -> Value:
    """Apply `-` or `!`. Raises `OperationError` for a type that has no such operator."""
    match symbol, operand:
        case "-", float():
            return -operand
        case "!", float():
            return float(operand == 0)
        case "-", Interval():
            return Interval(-operand.ticks)
        case _:
            raise OperationError(f"operator {symbol} is not defined for {type_name(operand)}")


def binary(symbol: str, left: Value, right: Value) -> Value:
    """Apply an operator other than `&&` and `||`.

    Raises `OperationError` if it is not defined for the types.
    """
    result = _compare(symbol, left, right) if symbol in _COMPARISONS else _calculate(symbol, left, right)
    if result is None:
        raise OperationError(f"operator {symbol} is not defined for {type_name(left)} and {type_name(right)}")
    return result


def truth(value: Value) -> bool:
    """Tell whether a double stands for true: nonzero is. Raises `OperationError` for other types."""
    if isinstance(value, float):
        return value != 0
    raise OperationError(f"expected a double as condition, found {type_name(value)}")


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        "<": operator.lt,
        "<=": operator.le,
        "==": operator.eq,
        ">=": operator.ge,
        ">": operator.gt,
        "!=": operator.ne,
    }
)
_COMPARABLE: Final = frozenset({"double", "string", "timestamp", "timeinterval"})


def _compare(symbol: str, left: Value, right: Value) -> float | None:
    kind = type_name(left)
    if kind != type_name(right) or kind not in _COMPARABLE:
        return None
    return float(_COMPARISONS[symbol](left, right))


def _calculate(symbol: str, left: Value, right: Value) -> Value | None:
    calculate = _ARITHMETIC[symbol]
    match left, right, symbol:
        case float(), float(), _:
            return calculate(left, right)
        case tuple(), float(), _:
            return tuple(calculate(element, right) for element in left)
        case tuple(), tuple(), _:
            if len(left) != len(right):
                raise OperationError(f"the vectors have {len(left)} and {len(right)} elements")
            return tuple(calculate(one, other) for one, other in zip(left, right, strict=True))
        case float(), Interval(), "*":
            return Interval.of(left * right.ticks)
        case Interval(), float(), "*" | "/":
            return Interval.of(calculate(left.ticks, right))
        case Interval(), Interval(), "+" | "-":
            return Interval.of(calculate(left.ticks, right.ticks))
        case Interval(), datetime(), "+":
            return shift(right, left)
        case datetime(), Interval(), "+":
            return shift(left, right)
        case datetime(), datetime(), "-":
            return Interval.between(right, left)
    return None
