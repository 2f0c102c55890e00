"""Commands on nodes: one run of one, and the tasks that belong to a node or a job rather than to a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from batch_emulator.nodes.contract import Failure, TaskLaunch, TaskOutcome
from batch_emulator.state.states import SideTaskState

if TYPE_CHECKING:
    from batch_emulator.state.pools import Node


@dataclass(kw_only=True, eq=False)
class Run:
    """One run of a command on a node.

    Whatever it belongs to knows it as its current run: what any other run reports is old news.
    """

    node: Node
    launch: TaskLaunch
    on_started: Callable[[Run, datetime], None]
    on_ended: Callable[[Run, TaskOutcome], None]


@dataclass(kw_only=True, eq=False)
class SideTask:
    """A start, preparation or release task on one node, with what has come of it so far."""

    spec: dict[str, Any]
    path: str
    state: SideTaskState = SideTaskState.RUNNING
    started: datetime
    ended: datetime | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    container_id: str | None = None
    retry_count: int = 0
    last_retry: datetime | None = None
    run: Run | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it has ended, and well."""
        return self.state is SideTaskState.COMPLETED and self.failure is None
