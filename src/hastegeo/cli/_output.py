"""What commands print: tables and facts for people, JSON for programs, progress beside both.

Results go to standard output; progress, warnings and errors go to standard error, so that standard output
can be piped. Everything is redacted on its way out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs; standard output then holds nothing else.")
]
_GAP: Final = "  "
_COLOURS: Final = {
    "ok": typer.colors.GREEN,
    "succeeded": typer.colors.GREEN,
    "denied": typer.colors.GREEN,
    "running": typer.colors.CYAN,
    "warn": typer.colors.YELLOW,
    "not tested": typer.colors.YELLOW,
    "unproven": typer.colors.RED,
    "BROKEN": typer.colors.RED,
    "failed": typer.colors.RED,
    "FAIL": typer.colors.RED,
}


def redact(text: str) -> str:
    """Take secrets out of a text."""
    from hastegeo.credentials import redact as take_out

    return take_out(text)


def print_line(text: str = "") -> None:
    """Print one line of a result."""
    typer.echo(redact(text))


def note(text: str) -> None:
    """Print one line that is no result: to standard error."""
    typer.echo(redact(text), err=True)


def print_json(value: object) -> None:
    """Print a value as JSON: dataclasses as objects, times in ISO 8601, durations in seconds."""
    # Each text is redacted by itself, before JSON's own escapes could hide the shape of a secret.
    typer.echo(json.dumps(_plain(value), indent=2))


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str = "") -> None:
    """Print aligned columns, never cut short; on a terminal with colours.

    Where there is no row, `empty` is said on standard error.
    """
    lines = [[redact(cell) for cell in row] for row in rows]
    if not lines:
        if empty:
            note(empty)
        return
    widths = [max(len(line[column]) for line in [list(header), *lines]) for column in range(len(header))]
    typer.echo(_line([typer.style(cell, bold=True) for cell in header], header, widths))
    for line in lines:
        typer.echo(_line([_coloured(cell) for cell in line], line, widths))


def print_facts(facts: Mapping[str, str]) -> None:
    """Print names and values, one a line; those without a value are left out."""
    shown = {name: value for name, value in facts.items() if value}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        typer.echo(f"{typer.style(f'{name:<{width}}', bold=True)}{_GAP}{_coloured(redact(value))}")


def ago(moment: datetime | None) -> str:
    """Write how long ago a moment was, such as `5m`; a hyphen for none."""
    return "-" if moment is None else length(datetime.now(UTC) - moment)


def length(span: timedelta) -> str:
    """Write a duration by its largest unit, such as `42s`, `5m`, `3h` or `2d`."""
    seconds = max(int(span.total_seconds()), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


class Steps:
    """Says on standard error how far long work is: a bar on a terminal, elsewhere a line a step."""

    def __init__(self, progress: Progress | None, task: TaskID | None) -> None:
        self._progress = progress
        self._task = task
        self._last = ""

    def say(self, text: str, *, done: int | None = None, total: int | None = None) -> None:
        """Say what is being done now, and how much of how many is done."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=redact(text), completed=done, total=total)
        elif text != self._last:
            note(text)
        self._last = text


@contextmanager
def steps(text: str, *, total: int | None = None, in_bytes: bool = False) -> Iterator[Steps]:
    """Show progress until the block ends. On a terminal nothing of it stays."""
    console = Console(stderr=True)
    if not console.is_terminal:
        shown = Steps(None, None)
        shown.say(text)
        yield shown
        return
    columns: list[Any] = [TextColumn("{task.description}", markup=False), BarColumn(bar_width=30)]
    if total is not None:
        columns.append(DownloadColumn() if in_bytes else MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        yield Steps(progress, progress.add_task(redact(text), total=total))


def is_terminal() -> bool:
    """Whether a person is likely to read standard output as it comes."""
    return sys.stdout.isatty()


def _line(shown: Sequence[str], plain: Sequence[str], widths: Sequence[int]) -> str:
    # Colour codes have no width, so that the padding is counted from the plain text.
    cells = [text + " " * (width - len(bare)) for text, bare, width in zip(shown, plain, widths, strict=True)]
    return _GAP.join(cells).rstrip()


def _coloured(cell: str) -> str:
    colour = _COLOURS.get(cell)
    return typer.style(cell, fg=colour) if colour else cell


def _plain(value: object) -> Any:
    if isinstance(value, str):
        return redact(str(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Enum):
        return _plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    return redact(str(value))
