"""The waiting tasks of a job, and how many of its tasks are in which state: both at a flat cost a task."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from batch_emulator.state.states import TaskState

if TYPE_CHECKING:
    from batch_emulator.state.jobs import Task


class WaitingTasks:
    """The tasks of one job that could run now, in the order in which they were added to the job.

    There is one heap for each number of slots that tasks need, so that a task which is too large for the free
    nodes never stands in the way of a smaller one. Entries of tasks that wait no longer are dropped when they
    come up.
    """

    def __init__(self) -> None:
        self._heaps: dict[int, list[tuple[int, Task]]] = {}

    def add(self, task: Task) -> None:
        """Let a task wait. It must be marked as waiting (`waits`), and not be here already."""
        heapq.heappush(self._heaps.setdefault(task.required_slots, []), (task.sequence, task))

    def first(self, free_slots: int) -> Task | None:
        """Return the task that comes first among those that fit into this many slots, or None."""
        best: Task | None = None
        for slots in [slots for slots in self._heaps if slots <= free_slots]:
            head = self._head(slots)
            if head is not None and (best is None or head.sequence < best.sequence):
                best = head
        return best

    def take(self, task: Task) -> None:
        """Remove the task that `first` returned."""
        heapq.heappop(self._heaps[task.required_slots])

    def _head(self, slots: int) -> Task | None:
        heap = self._heaps[slots]
        while heap:
            task = heap[0][1]
            if task.waits:
                return task
            heapq.heappop(heap)
        del self._heaps[slots]
        return None


@dataclass
class Count:
    """A number of tasks, and of the slots that they need."""

    tasks: int = 0
    slots: int = 0


@dataclass
class Tally:
    """How many tasks of a job are in which state.

    `blocked` are active, but wait for other tasks. `running` includes those that are being prepared.
    """

    blocked: Count = field(default_factory=Count)
    active: Count = field(default_factory=Count)
    running: Count = field(default_factory=Count)
    succeeded: Count = field(default_factory=Count)
    failed: Count = field(default_factory=Count)

    def note(self, task: Task) -> None:
        """Count a task as what it now is, and no longer as what it was."""
        self.forget(task)
        task.counted_as = count = self._count_for(task)
        count.tasks += 1
        count.slots += task.required_slots

    def forget(self, task: Task) -> None:
        """Count a task no longer."""
        if task.counted_as is not None:
            task.counted_as.tasks -= 1
            task.counted_as.slots -= task.required_slots
            task.counted_as = None

    @property
    def unfinished(self) -> int:
        """How many tasks have not completed."""
        return self.blocked.tasks + self.active.tasks + self.running.tasks

    def _count_for(self, task: Task) -> Count:
        if task.state is TaskState.COMPLETED:
            return self.failed if task.failure else self.succeeded
        if task.state is TaskState.ACTIVE:
            return self.blocked if task.unmet else self.active
        return self.running
