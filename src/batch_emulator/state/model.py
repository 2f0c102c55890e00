"""The resources of an account: what the client sent (`spec`, as validated JSON) and what the service adds.

Ids are case-insensitive and keep the case they were created with; the mappings here are keyed by `key(id)`.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from batch_emulator.autoscale import MetricStore
from batch_emulator.clock import Timer
from batch_emulator.nodes.contract import Failure

Json = dict[str, Any]


def key(identifier: str) -> str:
    """Return what two ids that mean the same resource have in common."""
    return identifier.lower()


class PoolState(StrEnum):
    """The state of a pool."""

    ACTIVE = "active"
    DELETING = "deleting"


class AllocationState(StrEnum):
    """What a pool is doing about its size."""

    STEADY = "steady"
    RESIZING = "resizing"
    STOPPING = "stopping"


class NodeState(StrEnum):
    """The state of a node, as on the wire."""

    CREATING = "creating"
    STARTING = "starting"
    WAITING_FOR_START_TASK = "waitingforstarttask"
    START_TASK_FAILED = "starttaskfailed"
    IDLE = "idle"
    RUNNING = "running"
    REBOOTING = "rebooting"
    REIMAGING = "reimaging"
    OFFLINE = "offline"
    UNUSABLE = "unusable"
    UNKNOWN = "unknown"
    PREEMPTED = "preempted"
    LEAVING_POOL = "leavingpool"
    UPGRADING_OS = "upgradingos"
    DEALLOCATING = "deallocating"
    DEALLOCATED = "deallocated"


class JobState(StrEnum):
    """The state of a job."""

    ACTIVE = "active"
    DISABLING = "disabling"
    DISABLED = "disabled"
    ENABLING = "enabling"
    TERMINATING = "terminating"
    COMPLETED = "completed"
    DELETING = "deleting"


class TaskState(StrEnum):
    """The state of a task."""

    ACTIVE = "active"
    PREPARING = "preparing"
    RUNNING = "running"
    COMPLETED = "completed"


@dataclass(kw_only=True, eq=False)
class Resource:
    """What every resource has. `etag` changes when a client changes the resource, not when its state does."""

    id: str
    spec: Json
    created: datetime
    last_modified: datetime
    etag: str
    state_since: datetime


@dataclass(kw_only=True, eq=False)
class Node:
    """One compute node. `root` is the directory that its tasks see as `/mnt/batch/tasks`."""

    id: str
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
    total_tasks_run: int = 0
    total_tasks_succeeded: int = 0
    errors: list[Json] = field(default_factory=list)
    timer: Timer | None = None

    @property
    def used_slots(self) -> int:
        """How many task slots are held."""
        return sum(task.required_slots for task in self.tasks)

    @property
    def takes_tasks(self) -> bool:
        """Whether the scheduler may place a task here at all."""
        return (
            self.state in {NodeState.IDLE, NodeState.RUNNING}
            and self.scheduling_enabled
            and not self.leaves_when_idle
        )


@dataclass(kw_only=True, eq=False)
class Pool(Resource):
    """One pool. Targets are nodes; `resize_deadline` ends a resize that cannot be met."""

    state: PoolState = PoolState.ACTIVE
    allocation_state: AllocationState = AllocationState.STEADY
    allocation_since: datetime
    target_dedicated: int = 0
    target_low_priority: int = 0
    deallocation_option: str = "requeue"
    nodes: dict[str, Node] = field(default_factory=dict)
    resize_errors: list[Json] = field(default_factory=list)
    failing_allocation: tuple[str, str] | None = None
    metrics: MetricStore | None = None
    auto_scale_run: Json | None = None
    auto_scale_timer: Timer | None = None
    auto_scale_enabled_at: float | None = None
    resize_timer: Timer | None = None
    waiting: list[tuple[int, int, Task]] = field(default_factory=list)
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


@dataclass(kw_only=True, eq=False)
class Job(Resource):
    """One job. `order` holds its tasks by sequence number, deleted ones too until they are many."""

    pool_id: str
    state: JobState = JobState.ACTIVE
    previous_state: JobState | None = None
    started: datetime
    ended: datetime | None = None
    terminate_reason: str | None = None
    tasks: dict[str, Task] = field(default_factory=dict)
    order: list[Task] = field(default_factory=list)
    last_sequence: int = 0
    running: int = 0
    blocked: dict[str, list[Task]] = field(default_factory=dict)

    @property
    def priority(self) -> int:
        """From -1000 to 1000; higher goes first."""
        return int(self.spec.get("priority", 0))

    @property
    def max_parallel_tasks(self) -> int | None:
        """The most tasks that may run at once; None for no limit."""
        limit = int(self.spec.get("maxParallelTasks", -1))
        return None if limit < 0 else limit

    def add(self, task: Task) -> None:
        """Keep a new task."""
        self.tasks[key(task.id)] = task
        self.order.append(task)

    def discard(self, task: Task) -> None:
        """Forget a task. The order is compacted now and then, so that a removal costs little."""
        del self.tasks[key(task.id)]
        if len(self.order) > 2 * len(self.tasks) + 100:
            self.order = [kept for kept in self.order if self.holds(kept)]

    def holds(self, task: Task) -> bool:
        """Whether the task has not been deleted."""
        return self.tasks.get(key(task.id)) is task

    def tasks_after(self, sequence: int) -> Iterator[Task]:
        """Yield the tasks whose sequence number is above this one, at a cost that does not grow with it."""
        start = bisect.bisect_right(self.order, sequence, key=lambda task: task.sequence)
        for index in range(start, len(self.order)):
            if self.holds(self.order[index]):
                yield self.order[index]


@dataclass(kw_only=True, eq=False)
class Task(Resource):
    """One task. `epoch` counts its runs: the late end of a lost run is not taken for the current one's."""

    job: Job
    sequence: int
    state: TaskState = TaskState.ACTIVE
    previous_state: TaskState | None = None
    node: Node | None = None
    last_node: Node | None = None
    epoch: int = 0
    retry_count: int = 0
    requeue_count: int = 0
    started: datetime | None = None
    ended: datetime | None = None
    last_retry: datetime | None = None
    last_requeue: datetime | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    container_id: str | None = None
    result: str | None = None
    unmet: set[str] = field(default_factory=set)
    terminate_requested: bool = False
    retention_timer: Timer | None = None
    files_removed: bool = False

    @property
    def required_slots(self) -> int:
        """Task slots that a run holds."""
        return int(self.spec.get("requiredSlots", 1))

    @property
    def path(self) -> str:
        """The task's directory below its node's root."""
        return f"workitems/{self.job.id}/job-1/{self.id}"


@dataclass
class Account:
    """Everything that one account holds, in the order it was created."""

    name: str
    pools: dict[str, Pool] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
