"""The functions of the language that depend on their arguments only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from batch_emulator.autoscale.errors import OperationError
from batch_emulator.autoscale.values import Value, type_name

Function = Callable[[str, Sequence[Value]], Value]


def _flat(name: str, arguments: Sequence[Value]) -> tuple[float, ...]:
    """Join doubles and vectors to one vector, as the documentation's doubleVecList."""
    joined: list[float] = []
    for argument in arguments:
        match argument:
            case float():
                joined.append(argument)
            case tuple():
                joined.extend(argument)
            case _:
                raise OperationError(f"{name} takes doubles and vectors, not {type_name(argument)}")
    return tuple(joined)


def _total(reduce: Callable[[Sequence[float]], float]) -> Function:
    """Make a function of a list that has a result for the empty list too."""

    def apply(name: str, arguments: Sequence[Value]) -> Value:
        return float(reduce(_flat(name, arguments)))

    return apply


def _partial(reduce: Callable[[Sequence[float]], float]) -> Function:
    """Make a function of a list that needs one element at least."""

    def apply(name: str, arguments: Sequence[Value]) -> Value:
        elements = _flat(name, arguments)
        if not elements:
            raise OperationError(f"{name} needs at least one value, and was given none")
        return float(reduce(elements))

    return apply


def _each(transform: Callable[[float], float]) -> Function:
    """Make a function that maps one double to a double, and a list to a vector."""

    def apply(name: str, arguments: Sequence[Value]) -> Value:
        if len(arguments) == 1 and isinstance(arguments[0], float):
            return float(transform(arguments[0]))
        return tuple(float(transform(element)) for element in _flat(name, arguments))

    return apply


def _logarithm(log: Callable[[float], float]) -> Callable[[float], float]:
    def apply(value: float) -> float:
        if value > 0:
            return log(value)
        return -math.inf if value == 0 else math.nan

    return apply


def _whole(rounding: Callable[[float], float]) -> Callable[[float], float]:
    def apply(value: float) -> float:
        return float(rounding(value)) if math.isfinite(value) else value

    return apply


def _round(value: float) -> float:
    # Halves go away from zero, as in C; Python would take the even neighbour.
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _avg(elements: Sequence[float]) -> float:
    return sum(elements) / len(elements)


def _std(elements: Sequence[float]) -> float:
    """Return the sample standard deviation, 0 for a single value."""
    if len(elements) == 1:
        return 0.0
    mean = _avg(elements)
    squares = sum((element - mean) * (element - mean) for element in elements)
    return math.sqrt(squares / (len(elements) - 1))


def _pair(name: str, arguments: Sequence[Value]) -> tuple[tuple[float, ...], float]:
    match arguments:
        case [tuple() as vector, float() as number]:
            return vector, number
    raise OperationError(f"{name} takes a vector and a double")


def _percentile(name: str, arguments: Sequence[Value]) -> Value:
    """Return the element at or below which `p` percent of the vector lie (nearest rank, p from 0 to 100)."""
    vector, percent = _pair(name, arguments)
    if not vector:
        raise OperationError(f"{name} needs at least one value, and was given none")
    if not 0 <= percent <= 100:
        raise OperationError(f"{name} takes a percentage from 0 to 100, not {percent:g}")
    return sorted(vector)[max(math.ceil(percent / 100 * len(vector)), 1) - 1]


def _val(name: str, arguments: Sequence[Value]) -> Value:
    vector, index = _pair(name, arguments)
    if not 0 <= index < len(vector):
        raise OperationError(f"{name} was given index {index:g} for a vector of {len(vector)} values")
    return vector[int(index)]


FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "avg": _partial(_avg),
        "ceil": _each(_whole(math.ceil)),
        "floor": _each(_whole(math.floor)),
        "len": _total(len),
        "lg": _each(_logarithm(math.log2)),
        "ln": _each(_logarithm(math.log)),
        "log": _each(_logarithm(math.log10)),
        "max": _partial(max),
        "min": _partial(min),
        "norm": _total(lambda elements: math.hypot(*elements)),
        "percentile": _percentile,
        "range": _partial(lambda elements: max(elements) - min(elements)),
        "round": _each(_whole(_round)),
        "std": _partial(_std),
        "sum": _total(sum),
        "val": _val,
        "vec": _flat,
    }
)
