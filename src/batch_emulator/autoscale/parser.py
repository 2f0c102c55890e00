"""Parse the text of a formula into its syntax tree (recursive descent; operators by precedence climbing).

Only the grammar and the limits are checked here. Names, types and numbers of arguments are checked by the
evaluation, because the service does so: it accepts a formula with an unknown variable, and reports an
evaluation error.
"""

from __future__ import annotations

from typing import Final

from batch_emulator.autoscale.errors import AutoScaleFormulaSyntaxError, Position
from batch_emulator.autoscale.lexer import Kind, Token, tokens
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

MAX_CHARACTERS: Final = 8192
MAX_STATEMENTS: Final = 100

# Ours, not the service's: far beyond any formula that people write, and within Python's recursion limit.
MAX_NESTING: Final = 32

_PRECEDENCE: Final = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
}


def parse(formula: str) -> Formula:
    """Parse an autoscale formula.

    A formula has at most 8192 characters and 100 statements (Azure Batch, "Create a formula to automatically
    scale compute nodes").

    Raises `AutoScaleFormulaSyntaxError`, with line and column, for anything else than a formula.
    """
    if len(formula) > MAX_CHARACTERS:
        line = formula.count("\n", 0, MAX_CHARACTERS) + 1
        column = MAX_CHARACTERS - formula.rfind("\n", 0, MAX_CHARACTERS)
        raise AutoScaleFormulaSyntaxError(
            f"the formula has {len(formula)} characters, at most {MAX_CHARACTERS} are allowed",
            Position(line, column),
        )
    return Formula(formula, _Parser(formula).statements())


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens = tokens(source)
        self._token = next(self._tokens)
        self._nesting = 0

    def statements(self) -> tuple[Statement, ...]:
        found: list[Statement] = []
        while not self._at_end():
            if self._accept(";"):
                continue
            if len(found) == MAX_STATEMENTS:
                raise self._error(f"a formula has at most {MAX_STATEMENTS} statements")
            found.append(self._statement())
            if not self._at_end():
                self._expect(";", "between two statements")
        if not found:
            raise self._error("the formula has no statement")
        return tuple(found)

    def _statement(self) -> Statement:
        first = self._token
        value = self._expression()
        if isinstance(value, Name) and first.kind is Kind.NAME and self._accept("="):
            return Statement(value.name, self._expression(), first.at)
        if self._token.text == "=" and self._token.kind is Kind.SYMBOL:
            raise self._error("only a variable can stand left of =")
        return Statement(None, value, first.at)

    def _expression(self) -> Expression:
        """Parse a conditional, the loosest of all expressions."""
        self._enter()
        test = self._binary(1)
        at = self._token.at
        if self._accept("?"):
            then = self._expression()
            self._expect(":", "in a conditional")
            test = Conditional(test, then, self._expression(), at)
        self._nesting -= 1
        return test

    def _binary(self, loosest: int) -> Expression:
        left = self._unary()
        while True:
            operator = self._token
            precedence = _PRECEDENCE.get(operator.text, 0) if operator.kind is Kind.SYMBOL else 0
            if precedence < loosest:
                return left
            self._advance()
            left = Binary(operator.text, left, self._binary(precedence + 1), operator.at)

    def _unary(self) -> Expression:
        operator = self._token
        if not (self._accept("-") or self._accept("!")):
            return self._postfix()
        self._enter()
        operand = self._unary()
        self._nesting -= 1
        return Unary(operator.text, operand, operator.at)

    def _postfix(self) -> Expression:
        # A method's result can have members, such as HistoryBeginTime().hour; nothing has more than that.
        target = self._primary()
        for _ in range(2):
            if not self._accept("."):
                break
            target = self._member(target)
        return target

    def _member(self, target: Expression) -> Expression:
        member = self._token
        if member.kind is not Kind.NAME or member.text.startswith("$"):
            raise self._error(f"expected a member after '.', found {member}")
        self._advance()
        at = self._token.at
        if self._accept("("):
            return MethodCall(target, member.text, self._arguments(), at)
        return Member(target, member.text, member.at)

    def _primary(self) -> Expression:
        token = self._token
        match token.kind:
            case Kind.NUMBER:
                self._advance()
                return Number(float(token.text), token.at)
            case Kind.STRING:
                self._advance()
                return Text(token.text, token.at)
            case Kind.NAME:
                self._advance()
                at = self._token.at
                if self._accept("("):
                    return Call(token.text, self._arguments(), at)
                return Name(token.text, token.at)
        if self._accept("("):
            inner = self._expression()
            self._expect(")", "to close the parenthesis")
            return inner
        raise self._error(f"expected an expression, found {token}")

    def _arguments(self) -> tuple[Expression, ...]:
        if self._accept(")"):
            return ()
        arguments = [self._expression()]
        while self._accept(","):
            arguments.append(self._expression())
        self._expect(")", "to close the arguments")
        return tuple(arguments)

    def _at_end(self) -> bool:
        return self._token.kind is Kind.END

    def _advance(self) -> Token:
        token = self._token
        self._token = next(self._tokens)
        return token

    def _accept(self, symbol: str) -> bool:
        if self._token.kind is Kind.SYMBOL and self._token.text == symbol:
            self._advance()
            return True
        return False

    def _expect(self, symbol: str, purpose: str) -> None:
        if not self._accept(symbol):
            raise self._error(f"expected '{symbol}' {purpose}, found {self._token}")

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self._error(f"expressions are nested more than {MAX_NESTING} deep")

    def _error(self, message: str) -> AutoScaleFormulaSyntaxError:
        return AutoScaleFormulaSyntaxError(message, self._token.at)
