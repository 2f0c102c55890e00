"""What can be wrong with an autoscale formula, and where.

A formula that is not in the language is refused with an exception, as the service answers 400. A formula that
is in the language but cannot be evaluated gives an `AutoScaleError`, a value, as the service answers 200 with
an `error` beside the unchanged targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EVALUATION_ERROR: Final = "AutoScalingFormulaEvaluationError"
INSUFFICIENT_DATA: Final = "InsufficientSampleData"

_MESSAGES: Final = {
    EVALUATION_ERROR: "Autoscale evaluation failed due to an error in the formula",
    INSUFFICIENT_DATA: "Autoscale evaluation failed due to insufficient sample data",
}


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the formula's text; line and column count from 1, a tab is one column."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"Line {self.line}, Col {self.column}"


class AutoScaleFormulaSyntaxError(ValueError):
    """The text is no autoscale formula, or breaks a limit of the language.

    `message` says what is wrong, `line` and `column` where (both from 1).
    """

    def __init__(self, message: str, at: Position) -> None:
        super().__init__(f"{at}: {message}")
        self.message = message
        self.line = at.line
        self.column = at.column


@dataclass(frozen=True)
class AutoScaleError:
    """Why an evaluation failed, as `autoScaleRun.error` carries it: `values` are (name, value) pairs."""

    code: str
    message: str
    values: tuple[tuple[str, str], ...]


class OperationError(Exception):
    """An operation has no result; raised where the place in the formula is not known."""


class EvaluationError(Exception):
    """The evaluation cannot go on; `evaluate` turns it into an `AutoScaleError`, so it never leaves here."""

    def __init__(self, message: str, at: Position, *, code: str = EVALUATION_ERROR) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.code = code

    def as_value(self) -> AutoScaleError:
        """The error in the form of the service."""
        return AutoScaleError(
            code=self.code,
            message=_MESSAGES[self.code],
            values=(("Message", f"{self.at}: {self.message}"),),
        )
