"""The live view: pools with their nodes, tasks with their state, and the reason of every routing decision."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hastegeo.demo.pools import POOLS
from hastegeo.demo.state import Road
from hastegeo.domain import Attempt, Decision, NodeCounts, TaskState

STATE_STYLES = {
    TaskState.QUEUED: "yellow",
    TaskState.PREPARING: "cyan",
    TaskState.RUNNING: "bold cyan",
    TaskState.SUCCEEDED: "green",
    TaskState.FAILED: "bold red",
    TaskState.CANCELLED: "magenta",
}


def render(road: Road, *, now: datetime) -> RenderableType:
    """Draw the view as of `now`, with a line a task, so that all of it fits into a terminal of 80 by 24."""
    elapsed = (now - road.started).total_seconds()
    return Group(
        Text.assemble((f"{elapsed:5.0f} s  ", "dim"), (road.step, "bold")),
        pools_table(road),
        tasks_table(road, briefly),
    )


def short_pool(pool_id: str) -> str:
    """Return the tier of one of the demo's pools, to keep the tables narrow; else the id as it is."""
    return next((pool.tier for pool in POOLS if pool.pool_id == pool_id), pool_id)


def pools_table(road: Road) -> Table:
    """Draw the pools with their nodes by state."""
    table = Table(expand=True)
    table.add_column("shared pool", no_wrap=True)
    table.add_column("low-priority nodes", ratio=1)
    table.add_column("at most", justify="right", no_wrap=True)
    for pool in POOLS:
        counts = road.pools.get(pool.pool_id, NodeCounts())
        table.add_row(pool.pool_id, _nodes(counts), str(pool.max_nodes))
    return table


def _nodes(counts: NodeCounts) -> Text:
    by_state = {
        "starting": counts.starting,
        "idle": counts.idle,
        "running": counts.running,
        "preempted": counts.preempted,
        "unusable": counts.unusable,
        "leaving": counts.leaving,
    }
    present = [f"{count} {state}" for state, count in by_state.items() if count]
    return Text(", ".join(present), style="bold green") if present else Text("none", style="dim")


def tasks_table(road: Road, reason: Callable[[Decision], str]) -> Table:
    """Draw the tasks: whose, where, in which state, and why there, as `reason` tells it."""
    table = Table(expand=True)
    table.add_column("tenant", no_wrap=True)
    table.add_column("task", no_wrap=True)
    table.add_column("pool", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("why this pool", ratio=1)
    for task in road.tasks:
        table.add_row(
            task.tenant,
            task.label,
            short_pool(task.decision.chosen),
            Text(task.state.value, style=STATE_STYLES[task.state]),
            reason(task.decision),
        )
    return table


def briefly(decision: Decision) -> str:
    """Say in a few words what routing made of each pool that it looked at."""
    return _told(decision, lambda attempt: attempt.verdict.value)


def why(decision: Decision) -> str:
    """Say why a pool was chosen: its own reason, after those of the pools that were passed over for it.

    Where no pool had room, the reasons of all of them are told.
    """
    return _told(decision, lambda attempt: attempt.reason)


def _told(decision: Decision, tell: Callable[[Attempt], str]) -> str:
    told = []
    for attempt in decision.attempts:
        told.append(f"{short_pool(attempt.pool_id)}: {tell(attempt)}")
        if attempt.pool_id == decision.chosen and not decision.queues:
            break
    return "; ".join([*told, "queues"] if decision.queues else told)
