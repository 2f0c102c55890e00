"""The live view: pools with their nodes, tasks with their state, and the reason of every routing decision."""

from __future__ import annotations

from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hastegeo.demo.pools import POOLS
from hastegeo.demo.state import Road
from hastegeo.domain import NodeCounts, TaskState

STATE_STYLES = {
    TaskState.QUEUED: "yellow",
    TaskState.PREPARING: "cyan",
    TaskState.RUNNING: "bold cyan",
    TaskState.SUCCEEDED: "green",
    TaskState.FAILED: "bold red",
    TaskState.CANCELLED: "magenta",
}


def render(road: Road, *, now: datetime) -> RenderableType:
    """Draw the whole view as of `now`."""
    elapsed = (now - road.started).total_seconds()
    return Group(
        Text.assemble((f"{elapsed:5.0f} s  ", "dim"), (road.step, "bold")),
        pools_table(road),
        tasks_table(road),
    )


def short_pool(pool_id: str) -> str:
    """Return the tier of one of the demo's pools, to keep the tables narrow; else the id as it is."""
    return next((pool.tier for pool in POOLS if pool.pool_id == pool_id), pool_id)


def pools_table(road: Road) -> Table:
    """Draw the pools with their nodes by state."""
    table = Table(title="Shared pools (low-priority nodes)", title_justify="left", expand=True)
    for heading in ("pool", "starting", "idle", "running", "preempted", "leaving", "of at most"):
        table.add_column(heading, justify="left" if heading == "pool" else "right")
    for pool in POOLS:
        counts = road.pools.get(pool.pool_id, NodeCounts())
        cells = (counts.starting, counts.idle, counts.running, counts.preempted, counts.leaving)
        table.add_row(
            pool.pool_id,
            *(Text(str(count), style="bold green" if count else "dim") for count in cells),
            str(pool.max_nodes),
        )
    return table


def tasks_table(road: Road) -> Table:
    """Draw the tasks: whose, where, in which state, and why there."""
    table = Table(title="Tasks", title_justify="left", expand=True)
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
            "; ".join(
                f"{short_pool(attempt.pool_id)}: {attempt.reason}" for attempt in task.decision.attempts
            ),
        )
    return table
