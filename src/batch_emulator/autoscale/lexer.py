"""Cut the text of a formula into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from batch_emulator.autoscale.errors import AutoScaleFormulaSyntaxError, Position


class Kind(Enum):
    """What a token is; the value is how messages call it."""

    NUMBER = "a number"
    STRING = "a string"
    NAME = "a name"
    SYMBOL = "a symbol"
    END = "the end of the formula"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` of a string is without its quotes."""

    kind: Kind
    text: str
    at: Position

    def __str__(self) -> str:
        return self.kind.value if self.kind is Kind.END else f"'{self.text}'"


_TOKEN: Final = re.compile(
    r"""
      (?P<blank>   \s+ | //[^\n]* )
    | (?P<NUMBER>  (?: [0-9]+ (?: \.[0-9]* )? | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? )
    | (?P<NAME>    \$?[A-Za-z_][A-Za-z0-9_]* )
    | (?P<STRING>  "[^"\n]*" )
    | (?P<SYMBOL>  && | \|\| | <= | >= | == | != | [-+*/<>=!?:;,.()] )
    """,
    re.VERBOSE,
)


def tokens(source: str) -> Iterator[Token]:
    """Yield the tokens of `source`, the last of kind END.

    Raises `AutoScaleFormulaSyntaxError` at the first character that begins no token.
    """
    offset, line, line_start = 0, 1, 0
    while offset < len(source):
        at = Position(line, offset - line_start + 1)
        found = _TOKEN.match(source, offset)
        if found is None:
            raise AutoScaleFormulaSyntaxError(_unexpected(source[offset]), at)
        text = found.group()
        if found.lastgroup == "blank":
            breaks = text.count("\n")
            if breaks:
                line += breaks
                line_start = offset + text.rindex("\n") + 1
        elif found.lastgroup is not None:
            kind = Kind[found.lastgroup]
            yield Token(kind, text[1:-1] if kind is Kind.STRING else text, at)
        offset = found.end()
    yield Token(Kind.END, "", Position(line, offset - line_start + 1))


def _unexpected(character: str) -> str:
    match character:
        case '"':
            return "the string is not closed on its line"
        case "%":
            return "the language has no operator %"
        case "&" | "|":
            return f"expected {character * 2}, found a single {character}"
        case _:
            return f"unexpected character {character!r}"
