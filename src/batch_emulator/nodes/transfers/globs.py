"""File patterns of output files: `*`, `**`, `?`, `[a-c]`, `[!a]`, and `$VARIABLE` (facts: Batch, OutputFile).

A pattern is relative to the task's working directory, or absolute, and must stay in the task's directory. A
wildcard never matches a name's leading dot. `**` as a whole component matches any number of directories, none
included; as part of a longer component it is the same as `*`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

_WILDCARDS = frozenset("*?[")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_ANY_DEPTH = "**"

_P = TypeVar("_P")
_I = TypeVar("_I")


class PatternError(ValueError):
    """The pattern leads out of the task's directory or names a variable that is not set."""


@dataclass(frozen=True)
class Pattern:
    """A pattern in components relative to the task's directory; `base` of them, leading, hold no wildcard."""

    components: tuple[str, ...]
    base: int

    @property
    def is_literal(self) -> bool:
        """Whether the pattern names exactly one file."""
        return self.base == len(self.components)

    def matches(self, path: Sequence[str]) -> bool:
        """Whether a file, by its components relative to the task's directory, matches."""
        return _covers(
            self.components,
            path,
            repeats=lambda component: component == _ANY_DEPTH,
            accepts=_component_matches,
        )

    def below_base(self, path: Sequence[str]) -> str:
        """The matched file's path below the part of the pattern without wildcards."""
        return "/".join(path[self.base :])


def parse_pattern(
    text: str, *, environment: Mapping[str, str], task_directory: str, working_directory: str
) -> Pattern:
    """Expand variables and make the pattern relative to the task's directory (both as the task sees them).

    PatternError if it leaves the task's directory.
    """
    expanded = _VARIABLE.sub(lambda match: _value(match, environment, text), text)
    absolute = expanded if expanded.startswith("/") else f"{working_directory}/{expanded}"
    components: list[str] = []
    for component in absolute.split("/"):
        if component == "..":
            if not components or _WILDCARDS.intersection(components[-1]):
                raise PatternError(f"the file pattern {text!r} leads out of the task's directory")
            components.pop()
        elif component not in {"", "."}:
            components.append(component)
    root = [part for part in task_directory.split("/") if part]
    if components[: len(root)] != root or len(components) == len(root):
        raise PatternError(f"the file pattern {text!r} leads out of the task's directory")
    relative = tuple(components[len(root) :])
    base = next((i for i, part in enumerate(relative) if _WILDCARDS.intersection(part)), len(relative))
    return Pattern(relative, base)


def _value(match: re.Match[str], environment: Mapping[str, str], text: str) -> str:
    name = match[1] or match[2]
    if name not in environment:
        raise PatternError(f"the file pattern {text!r} names the variable {name}, which is not set")
    return environment[name]


def _covers(
    pattern: Sequence[_P],
    items: Sequence[_I],
    *,
    repeats: Callable[[_P], bool],
    accepts: Callable[[_P, _I], bool],
) -> bool:
    """Whether the pattern covers all items; an element that `repeats` takes any number of those it accepts.

    All ways are followed at once, so the work is at most the product of both lengths, whatever the pattern.
    """

    def with_skips(positions: set[int]) -> set[int]:
        for position in sorted(positions):
            following = position
            while following < len(pattern) and repeats(pattern[following]):
                following += 1
                positions.add(following)
        return positions

    positions = with_skips({0})
    for item in items:
        positions = with_skips(
            {
                position if repeats(pattern[position]) else position + 1
                for position in positions
                if position < len(pattern) and accepts(pattern[position], item)
            }
        )
    return len(pattern) in positions


def _component_matches(component: str, name: str) -> bool:
    if name.startswith(".") and not component.startswith("."):
        return False
    if component == _ANY_DEPTH:
        return True
    return _covers(
        _tokens(component),
        name,
        repeats=lambda token: token.repeats,
        accepts=lambda token, c: token.accepts(c),
    )


@dataclass(frozen=True)
class _Token:
    """One element of a component: a set of characters, by ranges, or all but them; `repeats` for a star."""

    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False
    repeats: bool = False

    def accepts(self, character: str) -> bool:
        """Whether the character is in the set."""
        return any(low <= character <= high for low, high in self.ranges) != self.negated


_ANY_ONE = _Token(negated=True)
_ANY_MANY = _Token(negated=True, repeats=True)


@lru_cache(maxsize=256)
def _tokens(component: str) -> tuple[_Token, ...]:
    tokens: list[_Token] = []
    position = 0
    while position < len(component):
        character = component[position]
        position += 1
        if character == "*":
            tokens.append(_ANY_MANY)
        elif character == "?":
            tokens.append(_ANY_ONE)
        elif character == "[" and (end := _class_end(component, position)) > 0:
            tokens.append(_character_class(component[position:end]))
            position = end + 1
        else:
            tokens.append(_Token(ranges=((character, character),)))
    return tuple(tokens)


def _class_end(component: str, start: int) -> int:
    """The index of the bracket that closes a class, or -1; a bracket that comes first is a member."""
    first = start + 1 if component[start : start + 1] == "!" else start
    return component.find("]", first + 1)


def _character_class(text: str) -> _Token:
    negated = text.startswith("!")
    members = text[1:] if negated else text
    ranges: list[tuple[str, str]] = []
    position = 0
    while position < len(members):
        if members[position + 1 : position + 2] == "-" and position + 2 < len(members):
            ranges.append((members[position], members[position + 2]))
            position += 3
        else:
            ranges.append((members[position], members[position]))
            position += 1
    return _Token(ranges=tuple(ranges), negated=negated)
