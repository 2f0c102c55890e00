"""Run a formula over recorded metrics, as a pool would have, without a pool."""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from batch_emulator.autoscale.evaluator import AutoScaleResult, CurrentTargets, evaluate
from batch_emulator.autoscale.metrics import METRICS, MetricStore
from batch_emulator.autoscale.syntax import Formula

SAMPLE_PERIOD: Final = timedelta(seconds=30)
LONGEST_TRACE: Final = timedelta(days=366)


class TraceError(ValueError):
    """A table of metrics cannot be used; the message names the line and column."""


@dataclass(frozen=True)
class Trace:
    """Metrics over time: each row holds until the next one.

    `rows` are in order of time, with the names as formulas write them. A metric that a row leaves out has no
    samples while the row holds.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[datetime, Mapping[str, float]], ...]

    def at(self, moment: datetime) -> Mapping[str, float]:
        """Return the values of the row that holds at `moment`, which is not before the first one."""
        return self.rows[bisect_right(self.rows, moment, key=lambda row: row[0]) - 1][1]


@dataclass(frozen=True)
class Run:
    """One evaluation: when it was, and what it gave."""

    at: datetime
    result: AutoScaleResult


def read_trace(text: str) -> Trace:
    """Read a table of comma-separated values: a column `time` (ISO 8601, UTC if it has no zone), and metrics.

    Metrics are named with or without `$`. An empty cell means that there is no value. If there are active and
    running tasks but no pending ones, those are their sum, as in the service.

    Raises `TraceError`.
    """
    table = _cells(text)
    header = [cell.strip() for cell in next(table, (1, [""]))[1]]
    if header[0].lower() != "time":
        raise TraceError("the first column must be called time")
    columns = tuple(f"${name.removeprefix('$')}" for name in header[1:])
    unknown = [name for name in columns if name not in METRICS]
    if unknown or not columns:
        raise TraceError(
            f"no metric of Azure Batch: {', '.join(unknown)}" if unknown else "there is no metric"
        )
    if len(set(columns)) < len(columns):
        raise TraceError("a metric has two columns")

    rows: list[tuple[datetime, Mapping[str, float]]] = []
    for line, cells in table:
        at, values = _row(cells, columns, line)
        if rows and at <= rows[-1][0]:
            raise TraceError(f"line {line}: the time is not later than the one before")
        rows.append((at, values))
    if not rows:
        raise TraceError("there are no rows")
    if rows[-1][0] - rows[0][0] > LONGEST_TRACE:
        raise TraceError(f"the rows span more than {LONGEST_TRACE.days} days")
    return Trace(columns, tuple(rows))


def _cells(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not empty, with their numbers."""
    table = csv.reader(io.StringIO(text, newline=""))
    try:
        for cells in table:
            if any(cell.strip() for cell in cells):
                yield table.line_num, cells
    except csv.Error as error:
        raise TraceError(f"line {table.line_num}: {error}") from error


def _row(cells: list[str], columns: tuple[str, ...], line: int) -> tuple[datetime, Mapping[str, float]]:
    if len(cells) != len(columns) + 1:
        raise TraceError(f"line {line}: expected {len(columns) + 1} cells, found {len(cells)}")
    try:
        at = datetime.fromisoformat(cells[0].strip())
    except ValueError as error:
        raise TraceError(f"line {line}, column time: {cells[0]!r} is no time in ISO 8601 format") from error
    values = {}
    for name, cell in zip(columns, cells[1:], strict=True):
        if cell.strip():
            values[name] = _number(cell, f"line {line}, column {name}")
    if "$PendingTasks" not in columns and {"$ActiveTasks", "$RunningTasks"} <= values.keys():
        values["$PendingTasks"] = values["$ActiveTasks"] + values["$RunningTasks"]
    return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC), values


def _number(cell: str, where: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise TraceError(f"{where}: {cell!r} is no number")
    return number


def replay(
    formula: Formula,
    trace: Trace,
    *,
    interval: timedelta,
    delay: timedelta,
    start: CurrentTargets,
) -> Iterator[Run]:
    """Evaluate `formula` at the first row and every `interval` until the last one.

    Samples are taken every 30 seconds and can be read `delay` later. The pool gets the nodes that a run asks
    for at once, unless the trace says itself how many there were.
    """
    metrics = MetricStore(period=SAMPLE_PERIOD, delay=delay)
    current = start
    first, last = trace.rows[0][0], trace.rows[-1][0]
    next_sample = next_run = first
    while next_run <= last:
        while next_sample <= next_run:
            nodes = {
                "$CurrentDedicatedNodes": float(current.dedicated),
                "$CurrentLowPriorityNodes": float(current.low_priority),
            }
            assumed = {name: count for name, count in nodes.items() if name not in trace.columns}
            metrics.record(next_sample, {**assumed, **trace.at(next_sample)})
            next_sample += SAMPLE_PERIOD
        result = evaluate(formula, metrics=metrics, now=next_run, current=current)
        current = CurrentTargets(result.target_dedicated, result.target_low_priority)
        yield Run(next_run, result)
        next_run += interval
