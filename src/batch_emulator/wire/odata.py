"""The part of OData that the service understands: `$filter` and `$select`.

Filters compare properties of a resource with literals (eq, ne, lt, le, gt, ge, startswith), joined by and,
or, not and parentheses. Names reach into objects with `/`. Text compares without regard to case, as ids do.

Source: https://learn.microsoft.com/rest/api/batchservice/odata-filters-in-batch
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from batch_emulator.errors import BatchError
from batch_emulator.wire.times import parse_time

Json = dict[str, Any]
Predicate = Callable[[Mapping[str, Any]], bool]

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<time>[Dd]ate[Tt]ime'[^']*'|\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?)
      | (?P<text>'(?:[^']|'')*')
      | (?P<number>-?\d+(?:\.\d+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z_][A-Za-z0-9_]*)*)
      | (?P<mark>[(),])
    )""",
    re.VERBOSE,
)
_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
}
_LONGEST_FILTER: Final = 8192
_DEEPEST_NESTING: Final = 50
_SELECT_NAME: Final = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)*")


def compile_filter(text: str) -> Predicate:
    """Return a test of a resource's JSON. Raises InvalidQueryParameterValue for what is no filter."""
    if len(text) > _LONGEST_FILTER:
        raise _invalid("$filter", text, "The filter is too long.")
    return _FilterParser(text).parse()


def parse_select(text: str) -> Callable[[Json], Json]:
    """Return a function that keeps the named properties. Raises InvalidQueryParameterValue for a bad list."""
    names = {name.strip() for name in text.split(",")}
    if not all(_SELECT_NAME.fullmatch(name) for name in names):
        raise _invalid("$select", text, "It is a list of property names, separated by commas.")
    tree: dict[str, Any] = {}
    for name in names:
        parts = name.split("/")
        # A property named as a whole is not narrowed by its parts being named too.
        if any("/".join(parts[:length]) in names for length in range(1, len(parts))):
            continue
        branch = tree
        for part in parts:
            branch = branch.setdefault(part, {})

    def select(shown: Json) -> Json:
        return _pick(tree, shown)

    return select


def _pick(tree: dict[str, Any], shown: Json) -> Json:
    chosen: Json = {}
    for name, branch in tree.items():
        if name in shown:
            value = shown[name]
            chosen[name] = _pick(branch, value) if branch and isinstance(value, dict) else value
    return chosen


class _FilterParser:
    """Recursive descent over `or`, `and`, `not`, and comparisons, from loose to tight."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._at = 0
        self._depth = 0

    def parse(self) -> Predicate:
        test = self._any_of()
        if self._at < len(self._tokens):
            raise self._error()
        return test

    def _split(self, text: str) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        at = 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None or match.lastgroup is None:
                raise self._error()
            tokens.append((match.lastgroup, match.group(match.lastgroup)))
            at = match.end()
        return tokens

    def _error(self) -> BatchError:
        return _invalid("$filter", self._text, "The filter is not one that the service supports.")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _take(self, word: str) -> bool:
        if self._peek()[1].lower() == word and self._peek()[0] in {"name", "mark"}:
            self._at += 1
            return True
        return False

    def _any_of(self) -> Predicate:
        tests = [self._all_of()]
        while self._take("or"):
            tests.append(self._all_of())
        return tests[0] if len(tests) == 1 else lambda item: any(test(item) for test in tests)

    def _all_of(self) -> Predicate:
        tests = [self._negation()]
        while self._take("and"):
            tests.append(self._negation())
        return tests[0] if len(tests) == 1 else lambda item: all(test(item) for test in tests)

    def _negation(self) -> Predicate:
        self._depth += 1
        if self._depth > _DEEPEST_NESTING:
            raise self._error()
        try:
            if self._take("not"):
                test = self._negation()
                return lambda item: not test(item)
            if self._take("("):
                test = self._any_of()
                self._expect(")")
                return test
            if self._take("startswith"):
                return self._starts_with()
            return self._comparison()
        finally:
            self._depth -= 1

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self._error()

    def _starts_with(self) -> Predicate:
        self._expect("(")
        name = self._name()
        self._expect(",")
        kind, text = self._next()
        if kind != "text":
            raise self._error()
        self._expect(")")
        prefix = _unquote(text).lower()
        return lambda item: str(_look_up(item, name) or "").lower().startswith(prefix)

    def _comparison(self) -> Predicate:
        name = self._name()
        compare = _COMPARISONS.get(self._next()[1].lower())
        if compare is None:
            raise self._error()
        wanted = self._literal()

        def test(item: Mapping[str, Any]) -> bool:
            found = _comparable(_look_up(item, name), wanted)
            if found is None or wanted is None:
                # Nothing is before or after null; it only equals itself.
                return (
                    compare(found, wanted) if compare in (_COMPARISONS["eq"], _COMPARISONS["ne"]) else False
                )
            try:
                return compare(found, wanted)
            except TypeError:
                return False

        return test

    def _name(self) -> str:
        kind, text = self._next()
        if kind != "name":
            raise self._error()
        return text

    def _literal(self) -> Any:
        kind, text = self._next()
        if kind == "text":
            return _unquote(text).lower()
        if kind == "number":
            return float(text)
        if kind == "time":
            try:
                return parse_time(text.split("'")[1] if "'" in text else text)
            except ValueError:
                raise self._error() from None
        words = {"true": True, "false": False, "null": None}
        if kind == "name" and text.lower() in words:
            return words[text.lower()]
        raise self._error()


def _unquote(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _look_up(item: Mapping[str, Any], name: str) -> Any:
    found: Any = item
    for part in name.split("/"):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def _comparable(value: Any, wanted: Any) -> Any:
    """Bring a property's value to the type of the literal it is compared with."""
    if isinstance(wanted, datetime) and isinstance(value, str):
        try:
            return parse_time(value)
        except ValueError:
            return None
    if isinstance(value, str):
        return value.lower()
    return value


def _invalid(parameter: str, value: str, reason: str) -> BatchError:
    return BatchError(
        "InvalidQueryParameterValue",
        values=(
            ("QueryParameterName", parameter),
            ("QueryParameterValue", value[:200]),
            ("Reason", reason),
        ),
    )
