"""Pools and their nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from batch_emulator.autoscale import MetricStore
from batch_emulator.clock import Timer
from batch_emulator.state.resources import Json, Resource
from batch_emulator.state.runs import SideTask
from batch_emulator.state.states import AllocationState, NodeState, PoolState

if TYPE_CHECKING:
    from batch_emulator.state.jobs import Task


@dataclass(kw_only=True, eq=False)
class Node:
    """One compute node. `root` is the directory that its tasks see as `/mnt/batch/tasks`.

    `recent` are the tasks that it was given last, newest first. `when_idle` waits for its tasks to complete.
    """

    id: str
    sequence: int
    pool: Pool
    dedicated: bool
    root: Path
    ip_address: str
    allocated: datetime
    state_since: datetime
    state: NodeState = NodeState.CREATING
    last_boot: datetime | None = None
    scheduling_enabled: bool = True
    leaves_when_idle: bool = False
    slots: int = 1
    tasks: list[Task] = field(default_factory=list)
    recent: list[Task] = field(default_factory=list)
    total_tasks_run: int = 0
    total_tasks_succeeded: int = 0
    errors: list[Json] = field(default_factory=list)
    users: dict[str, Json] = field(default_factory=dict)
    start_task: SideTask | None = None
    timer: Timer | None = None
    when_idle: Callable[[], None] | None = None

    @property
    def free_slots(self) -> int:
        """How many task slots are not held."""
        return self.slots - sum(len(task.slots) for task in self.tasks)

    @property
    def takes_tasks(self) -> bool:
        """Whether the scheduler may place a task here at all."""
        return (
            self.state in {NodeState.IDLE, NodeState.RUNNING}
            and self.scheduling_enabled
            and not self.leaves_when_idle
            and self.when_idle is None
        )

    def move(self, state: NodeState, at: datetime) -> None:
        """Change the state."""
        self.state, self.state_since = state, at

    def cancel_timer(self) -> None:
        """Give up what the node was waiting for."""
        if self.timer:
            self.timer.cancel()
            self.timer = None


@dataclass(kw_only=True, eq=False)
class Pool(Resource):
    """One pool. Targets are numbers of nodes.

    `allocation_timer` brings the next nodes, `deadline_timer` ends a resize that cannot be met.
    """

    state: PoolState = PoolState.ACTIVE
    allocation_state: AllocationState = AllocationState.STEADY
    allocation_since: datetime
    target_dedicated: int = 0
    target_low_priority: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    resize_errors: list[Json] = field(default_factory=list)
    failing_allocation: tuple[str, str] | None = None
    metrics: MetricStore | None = None
    auto_scale_run: Json | None = None
    auto_scale_timer: Timer | None = None
    auto_scale_enabled_at: float | None = None
    allocation_timer: Timer | None = None
    deadline_timer: Timer | None = None
    succeeded_tasks: int = 0
    failed_tasks: int = 0

    @property
    def autoscales(self) -> bool:
        """Whether a formula sets the targets."""
        return bool(self.spec.get("enableAutoScale"))

    @property
    def slots_per_node(self) -> int:
        """Task slots of each node."""
        return int(self.spec.get("taskSlotsPerNode", 1))

    def bucket(self, *, dedicated: bool) -> list[Node]:
        """Return the nodes of one kind that hold a place in the pool."""
        return [
            node
            for node in self.nodes.values()
            if node.dedicated is dedicated and node.state is not NodeState.LEAVING_POOL
        ]

    def staying(self, *, dedicated: bool) -> list[Node]:
        """Return the nodes of one kind that are not about to leave."""
        return [node for node in self.bucket(dedicated=dedicated) if not node.leaves_when_idle]

    def move_allocation(self, state: AllocationState, at: datetime) -> None:
        """Change the allocation state."""
        if self.allocation_state is not state:
            self.allocation_state, self.allocation_since = state, at
