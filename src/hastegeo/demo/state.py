"""What the demo knows at one moment: the data of the live view and of the summary."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from hastegeo.domain import Decision, NodeCounts, TaskRef, TaskState, TaskStatus


@dataclass(frozen=True)
class TrackedTask:
    """One submitted task with its routing decision and what became of it."""

    tenant: str
    label: str
    ref: TaskRef
    decision: Decision
    status: TaskStatus | None = None

    @property
    def state(self) -> TaskState:
        """The task's state; a task that was not asked about yet is queued."""
        return self.status.state if self.status else TaskState.QUEUED

    @property
    def node_seconds(self) -> float:
        """How long the task held a node, in seconds; 0 until it has ended."""
        if self.status is None or self.status.started is None or self.status.ended is None:
            return 0.0
        return (self.status.ended - self.status.started).total_seconds()


@dataclass
class Road:
    """The demo's run so far. `pools` holds the latest node counts, `history` when each pool held how many."""

    started: datetime
    tasks: list[TrackedTask] = field(default_factory=list)
    pools: dict[str, NodeCounts] = field(default_factory=dict)
    most_nodes: dict[str, int] = field(default_factory=dict)
    step: str = ""

    def add(self, task: TrackedTask) -> None:
        """Track one more task."""
        self.tasks.append(task)

    def record_status(self, status: TaskStatus) -> None:
        """Keep the latest status of a tracked task."""
        self.tasks = [replace(task, status=status) if task.ref == status.ref else task for task in self.tasks]

    def record_nodes(self, pool_id: str, counts: NodeCounts) -> None:
        """Keep the latest node counts of a pool."""
        self.pools[pool_id] = counts
        self.most_nodes[pool_id] = max(self.most_nodes.get(pool_id, 0), counts.total)

    @property
    def unfinished(self) -> list[TrackedTask]:
        """The tasks that have not ended."""
        return [task for task in self.tasks if not task.state.is_final]

    @property
    def spills(self) -> int:
        """How many tasks did not go to their preferred pool."""
        return sum(task.decision.spills > 0 for task in self.tasks)

    @property
    def queued_at_submission(self) -> int:
        """How many tasks found no room anywhere and waited on their preferred pool."""
        return sum(task.decision.queues for task in self.tasks)
