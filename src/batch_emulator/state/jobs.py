"""Jobs and their tasks."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from batch_emulator.clock import Timer
from batch_emulator.nodes.contract import Failure
from batch_emulator.state.pools import Node
from batch_emulator.state.queues import Count, Tally, WaitingTasks
from batch_emulator.state.resources import Json, Resource, key
from batch_emulator.state.runs import Run, SideTask
from batch_emulator.state.states import JobState, TaskState


@dataclass(kw_only=True, eq=False)
class JobOnNode:
    """What a job has done on one node: its preparation task there, and its release task.

    `waiting` are tasks that are on the node and begin once it is prepared.
    """

    node: Node
    preparation: SideTask | None = None
    release: SideTask | None = None
    waiting: list[Task] = field(default_factory=list)


@dataclass(kw_only=True, eq=False)
class Job(Resource):
    """One job. `order` holds its tasks by sequence number, deleted ones too until they are many.

    `blocked` holds, by the id they wait for, the tasks that depend on others; `blocked_by_range` those that
    depend on ranges of ids; `satisfied_numbers`, sorted, the ids that are numbers and are waited for no
    longer. `on_nodes` is by node id.
    """

    pool_id: str
    state: JobState = JobState.ACTIVE
    previous_state: JobState | None = None
    previous_state_since: datetime | None = None
    started: datetime
    ended: datetime | None = None
    terminate_reason: str | None = None
    scheduling_error: Json | None = None
    tasks: dict[str, Task] = field(default_factory=dict)
    order: list[Task] = field(default_factory=list)
    waiting: WaitingTasks = field(default_factory=WaitingTasks)
    tally: Tally = field(default_factory=Tally)
    blocked: dict[str, list[Task]] = field(default_factory=dict)
    blocked_by_range: list[tuple[range, Task]] = field(default_factory=list)
    satisfied_numbers: list[int] = field(default_factory=list)
    on_nodes: dict[str, JobOnNode] = field(default_factory=dict)
    wall_clock_timer: Timer | None = None
    auto_pool_id: str | None = None
    schedule_id: str | None = None

    @property
    def priority(self) -> int:
        """From -1000 to 1000; higher goes first."""
        return int(self.spec.get("priority", 0))

    @property
    def max_parallel_tasks(self) -> int | None:
        """The most tasks that may run at once; None for no limit."""
        limit = int(self.spec.get("maxParallelTasks", -1))
        return None if limit < 0 else limit

    @property
    def is_full(self) -> bool:
        """Whether as many tasks run as may."""
        limit = self.max_parallel_tasks
        return limit is not None and self.tally.running.tasks >= limit

    @property
    def directory(self) -> str:
        """The job's directory below the root of any node; the jobs of one schedule share a parent."""
        work_item, _, job = self.id.partition(":")
        return f"workitems/{work_item}/{job or 'job-1'}"

    def move(self, state: JobState, at: datetime) -> None:
        """Change the state."""
        self.previous_state, self.previous_state_since = self.state, self.state_since
        self.state, self.state_since = state, at

    def add(self, task: Task) -> None:
        """Keep a new task."""
        self.tasks[key(task.id)] = task
        self.order.append(task)
        self.tally.note(task)

    def discard(self, task: Task) -> None:
        """Forget a task. The order is compacted now and then, so that a removal costs little."""
        del self.tasks[key(task.id)]
        self.tally.forget(task)
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

    def tasks_on_nodes(self) -> list[Task]:
        """Return the tasks that hold slots of a node."""
        return (
            [task for task in self.tasks.values() if task.node is not None]
            if self.tally.running.tasks
            else []
        )


@dataclass(kw_only=True, eq=False, slots=True)
class Task(Resource):
    """One task.

    `node` is where it is now, `last_node` where its files are. `unmet` counts the ids and ranges that it
    depends on and that have not been satisfied. `arrival` says when it was last queued, in the scheduler's
    order; `waits` whether it still is. `ends_by` is why its run is being ended, if it is.
    """

    job: Job
    state: TaskState = TaskState.ACTIVE
    previous_state: TaskState | None = None
    previous_state_since: datetime | None = None
    node: Node | None = None
    last_node: Node | None = None
    slots: tuple[int, ...] = ()
    run: Run | None = None
    retry_count: int = 0
    requeue_count: int = 0
    started: datetime | None = None
    ended: datetime | None = None
    last_retry: datetime | None = None
    last_requeue: datetime | None = None
    exit_code: int | None = None
    failure: Failure | None = None
    container_id: str | None = None
    unmet: int = 0
    waits: bool = False
    arrival: int = 0
    counted_as: Count | None = None
    ends_by: Failure | None = None
    retention_timer: Timer | None = None
    files_removed: bool = False

    @property
    def required_slots(self) -> int:
        """Task slots that a run holds."""
        return int(self.spec.get("requiredSlots", 1))

    @property
    def path(self) -> str:
        """The task's directory below its node's root."""
        return f"{self.job.directory}/{self.id}"

    def move(self, state: TaskState, at: datetime) -> None:
        """Change the state."""
        self.previous_state, self.previous_state_since = self.state, self.state_since
        self.state, self.state_since = state, at
        self.job.tally.note(self)
