"""What is a formula, what is not, and where it goes wrong."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from batch_emulator.autoscale import AutoScaleFormulaSyntaxError, Formula, parse


def refusal(formula: str) -> AutoScaleFormulaSyntaxError:
    with pytest.raises(AutoScaleFormulaSyntaxError) as caught:
        parse(formula)
    return caught.value


@pytest.mark.parametrize(
    ("formula", "statements"),
    [
        ("$TargetDedicatedNodes = 3", 1),
        ("$TargetDedicatedNodes=3;", 1),
        ("a=1;b=2;\r\nc=3;\n", 3),
        ("// a comment = 1;\na=1; // another\n;;b=2", 2),
        ("$something_useless", 1),
        ('stop(); a = time("") ; b = .5 + 1. + 1e3 + 2.5E-1', 3),
        ("a=1?2:3?4:5", 1),
        ("a=$PendingTasks.GetSample ( 1 ) ; b = time ( ) . hour", 2),
        ("a = - - ! 1", 1),
    ],
)
def test_formulas_are_parsed(formula: str, statements: int) -> None:
    assert len(parse(formula).statements) == statements


@pytest.mark.parametrize(
    ("formula", "line", "column", "message"),
    [
        ("", 1, 1, "the formula has no statement"),
        ("// nothing\n ; ", 2, 4, "the formula has no statement"),
        ("a = ", 1, 5, "expected an expression, found the end of the formula"),
        ("a = 1 +", 1, 8, "expected an expression, found the end of the formula"),
        ("a = 1\nb = 2", 2, 1, "expected ';' between two statements, found 'b'"),
        ("a = (1 + 2", 1, 11, "expected ')' to close the parenthesis, found the end of the formula"),
        ("a = max(1, 2;", 1, 13, "expected ')' to close the arguments, found ';'"),
        ("a = max(1,)", 1, 11, "expected an expression, found ')'"),
        ("a = 1 ? 2;", 1, 10, "expected ':' in a conditional, found ';'"),
        ("1 = 2", 1, 3, "only a variable can stand left of ="),
        ("(a) = 2", 1, 5, "only a variable can stand left of ="),
        ("a = b = 2", 1, 7, "expected ';' between two statements, found '='"),
        ("a = 5 % 2", 1, 7, "the language has no operator %"),
        ("a = 1 & 2", 1, 7, "expected &&, found a single &"),
        ("a = 1;\n  b = #", 2, 7, "unexpected character '#'"),
        ("a = 1;\tb = #", 1, 12, "unexpected character '#'"),
        ('a = time("2026', 1, 10, "the string is not closed on its line"),
        ('a = time("2026\n")', 1, 10, "the string is not closed on its line"),
        ("a = time().", 1, 12, "expected a member after '.', found the end of the formula"),
        ("a = $x.$y", 1, 8, "expected a member after '.', found '$y'"),
        ("a = $", 1, 5, "unexpected character '$'"),
        ("a = 3abc", 1, 6, "expected ';' between two statements, found 'abc'"),
    ],
)
def test_a_mistake_is_named_with_line_and_column(formula: str, line: int, column: int, message: str) -> None:
    error = refusal(formula)
    assert (error.line, error.column, error.message) == (line, column, message)
    assert str(error) == f"Line {line}, Col {column}: {message}"


def test_a_formula_has_at_most_8192_characters() -> None:
    longest = "a = 1" + " " * (8192 - 5)
    assert parse(longest).source == longest
    error = refusal("a = 1;\n" + " " * 8186)
    assert (error.line, error.column) == (2, 8186)
    assert error.message == "the formula has 8193 characters, at most 8192 are allowed"


def test_a_formula_has_at_most_100_statements() -> None:
    assert len(parse("a=1;" * 100).statements) == 100
    error = refusal("a=1;\n" * 100 + "b=2")
    assert (error.line, error.column, error.message) == (101, 1, "a formula has at most 100 statements")


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("-", ""), ("max(", ")"), ("1?", ":1")])
def test_nesting_has_a_bound(opening: str, closing: str) -> None:
    def nested(depth: int) -> str:
        return f"a = {opening * depth}1{closing * depth}"

    assert parse(nested(31))
    assert refusal(nested(32)).message == "expressions are nested more than 32 deep"


TOKENS = ["$PendingTasks", ".GetSample", "(", ")", "1", "0.5", "+", "-", "*", "/", "?", ":", "=", "=="]
MORE_TOKENS = ["!", "&&", ";", ",", "max", "time", "x", '"a"', "\n", "//", " ", "<=", ".hour"]
SOUP = st.lists(st.sampled_from([*TOKENS, *MORE_TOKENS]), max_size=60).map("".join)


@given(st.text(max_size=200) | SOUP)
@example("(" * 8192)
@example("-" * 8192)
@example("a?" * 4096)
@example("a.b" * 2730)
@example("1||1&&1==1<1+1*(" * 500)
def test_any_text_is_a_formula_or_refused_within_it(text: str) -> None:
    try:
        assert isinstance(parse(text), Formula)
    except AutoScaleFormulaSyntaxError as error:
        refused = error
    else:
        return
    assert 1 <= refused.line <= text.count("\n") + 1
    assert 1 <= refused.column <= len(text) + 1
