"""How fast formulas are parsed and evaluated, and what samples cost: python benchmarks/emulator/autoscale.py

Each figure is the best of five runs, so that what else the machine does disturbs least.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.table import Table

from batch_emulator.autoscale import CurrentTargets, MetricStore, evaluate, parse

NOW = datetime(2026, 3, 4, 12, 0, 7, tzinfo=UTC)
TASK_BASED = """
$samples = $PendingTasks.GetSamplePercent(TimeInterval_Minute * 15);
$tasks = $samples < 70 ? max(0, $PendingTasks.GetSample(1))
    : max($PendingTasks.GetSample(1), avg($PendingTasks.GetSample(TimeInterval_Minute * 15)));
$targetVMs = $tasks > 0 ? $tasks : max(0, $TargetDedicatedNodes / 2);
$TargetDedicatedNodes = max(0, min($targetVMs, 20));
$NodeDeallocationOption = taskcompletion;
"""
LONGEST = ";".join(f"v{index} = {index} * 2 + max({index}, 7, $TargetDedicatedNodes)" for index in range(100))
METRICS = {"$PendingTasks": 7.0, "$ActiveTasks": 4.0, "$RunningTasks": 3.0, "$CurrentDedicatedNodes": 3.0}


def rate(operation: Callable[[], object], *, seconds: float = 0.4, rounds: int = 5) -> float:
    """Return how often `operation` runs in a second, in the best of some rounds."""
    best = 0.0
    for _ in range(rounds):
        count, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            for _ in range(10):
                operation()
            count += 10
        best = max(best, count / elapsed)
    return best


def full_store() -> MetricStore:
    """A store whose ring has gone round: twelve hours of samples, of which it keeps six."""
    metrics = MetricStore()
    for index in range(1440, -1, -1):
        metrics.record(NOW - timedelta(seconds=30 * index), METRICS)
    return metrics


def main() -> None:
    metrics = full_store()
    current = CurrentTargets(3, 0)
    parsed, longest = parse(TASK_BASED), parse(LONGEST)
    moment = NOW

    def record() -> None:
        nonlocal moment
        moment += timedelta(seconds=30)
        recorded.record(moment, METRICS)

    recorded = full_store()
    measured = [
        ("parse a usual formula (5 statements)", rate(lambda: parse(TASK_BASED))),
        ("evaluate it, parsed", rate(lambda: evaluate(parsed, metrics=metrics, now=NOW, current=current))),
        (
            "parse and evaluate it",
            rate(lambda: evaluate(TASK_BASED, metrics=metrics, now=NOW, current=current)),
        ),
        ("parse 100 statements", rate(lambda: parse(LONGEST))),
        (
            "evaluate 100 statements",
            rate(lambda: evaluate(longest, metrics=metrics, now=NOW, current=current)),
        ),
        ("record a sample of 4 metrics", rate(record)),
    ]
    table = Table(title=f"Autoscale language, Python {platform.python_version()}")
    table.add_column("operation")
    table.add_column("a second", justify="right")
    for name, result in measured:
        table.add_row(name, f"{result:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
