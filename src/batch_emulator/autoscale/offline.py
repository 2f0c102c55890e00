"""`batch-emulator autoscale`: see what a formula would have done, before a pool runs it."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from batch_emulator.autoscale.chart import draw
from batch_emulator.autoscale.errors import AutoScaleFormulaSyntaxError
from batch_emulator.autoscale.evaluator import CurrentTargets
from batch_emulator.autoscale.parser import parse
from batch_emulator.autoscale.replay import Run, TraceError, read_trace, replay


def autoscale_command(
    formula: Annotated[Path, typer.Argument(help="File with the autoscale formula.", show_default=False)],
    samples: Annotated[
        Path,
        typer.Option(
            help="Table (CSV) with a column time (ISO 8601) and one for each metric, such as PendingTasks. "
            "A row holds until the next one; an empty cell means no samples.",
            show_default=False,
        ),
    ],
    interval: Annotated[int, typer.Option(min=1, help="Seconds from one evaluation to the next.")] = 900,
    delay: Annotated[int, typer.Option(min=0, help="Seconds until a sample can be read.")] = 60,
    dedicated: Annotated[int, typer.Option(min=0, help="Dedicated nodes at the start.")] = 0,
    low_priority: Annotated[int, typer.Option(min=0, help="Low-priority nodes at the start.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Where to write the plot (SVG). Default: the formula's name with .svg, in this folder; "
            "with --json none.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show all evaluations, not only the changes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all evaluations as JSON.")] = False,
) -> None:
    """Evaluate an autoscale formula over recorded metrics, and plot the targets over time.

    Exits with 2 if the formula is not in the language or the table cannot be read. Failed evaluations are
    part of what is shown, as in the service.
    """
    try:
        parsed = parse(_read(formula))
    except AutoScaleFormulaSyntaxError as error:
        raise _refusal(formula, str(error)) from error
    try:
        trace = read_trace(_read(samples))
    except TraceError as error:
        raise _refusal(samples, str(error)) from error
    runs = list(
        replay(
            parsed,
            trace,
            interval=timedelta(seconds=interval),
            delay=timedelta(seconds=delay),
            start=CurrentTargets(dedicated, low_priority),
        )
    )
    if as_json:
        typer.echo(json.dumps({"evaluations": [_as_json(run) for run in runs]}, indent=2))
    else:
        _print_table(runs, every=every)
        plot = plot or Path(f"{formula.stem}.svg")
    if plot is not None:
        try:
            plot.write_text(draw(f"Targets of {formula.name}", runs, trace), encoding="utf-8")
        except OSError as error:
            raise _refusal(plot, error.strerror or "cannot be written") from error
        typer.echo(f"Plot: {plot}", err=as_json)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _refusal(path, error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise _refusal(path, "is not text in UTF-8") from error


def _refusal(path: Path, reason: str) -> typer.Exit:
    typer.echo(f"{path}: {reason}", err=True)
    return typer.Exit(2)


def _print_table(runs: list[Run], *, every: bool) -> None:
    shown = runs if every else _changes(runs)
    table = Table(title=f"{len(runs)} evaluations" + ("" if every else f", {len(shown)} changes"))
    table.add_column("time (UTC)")
    table.add_column("dedicated", justify="right")
    table.add_column("low-priority", justify="right")
    table.add_column("option")
    table.add_column("error", overflow="fold")
    for run in shown:
        table.add_row(
            f"{run.at:%Y-%m-%d %H:%M:%S}",
            str(run.result.target_dedicated),
            str(run.result.target_low_priority),
            run.result.node_deallocation_option,
            _error_text(run),
        )
    Console().print(table)


def _changes(runs: list[Run]) -> list[Run]:
    """Keep the first run and those that differ from the one before."""

    def outcome(run: Run) -> tuple[object, ...]:
        result = run.result
        return (
            result.target_dedicated,
            result.target_low_priority,
            result.node_deallocation_option,
            _error_text(run),
        )

    return runs[:1] + [run for before, run in pairwise(runs) if outcome(run) != outcome(before)]


def _error_text(run: Run) -> str:
    error = run.result.error
    return "" if error is None else "; ".join(value for _, value in error.values)


def _as_json(run: Run) -> dict[str, object]:
    result, error = run.result, run.result.error
    return {
        "time": run.at.isoformat().replace("+00:00", "Z"),
        "targetDedicatedNodes": result.target_dedicated,
        "targetLowPriorityNodes": result.target_low_priority,
        "nodeDeallocationOption": result.node_deallocation_option,
        "results": result.results,
        "error": None
        if error is None
        else {
            "code": error.code,
            "message": error.message,
            "values": [{"name": name, "value": value} for name, value in error.values],
        },
    }
