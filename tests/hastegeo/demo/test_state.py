"""What the demo keeps of a run: the latest of each task, and the most of each pool."""

from __future__ import annotations

from hastegeo.demo.state import Road, TrackedTask
from hastegeo.domain import NodeCounts, TaskRef, TaskState

from . import builders


def test_a_task_is_queued_until_something_else_is_known() -> None:
    task = TrackedTask("dev1", "scene1 pre", TaskRef("job", "task"), builders.GROWS)
    assert task.state is TaskState.QUEUED
    assert task.node_seconds == 0


def test_node_seconds_count_only_what_has_ended() -> None:
    assert builders.task(0, builders.GROWS, TaskState.RUNNING).node_seconds == 0
    assert builders.task(0, builders.GROWS).node_seconds == 8.0


def test_a_status_reaches_its_own_task_alone() -> None:
    road = Road(started=builders.STARTED)
    for number in (0, 1):
        road.add(builders.task(number, builders.GROWS, TaskState.QUEUED))
    road.record_status(builders.status(1, TaskState.RUNNING))
    assert [task.state for task in road.tasks] == [TaskState.QUEUED, TaskState.RUNNING]
    assert road.unfinished == road.tasks
    road.record_status(builders.status(0, TaskState.FAILED))
    assert [task.ref.task_id for task in road.unfinished] == ["task-1"]


def test_the_most_nodes_of_a_pool_are_remembered() -> None:
    road = Road(started=builders.STARTED)
    for counts in (NodeCounts(starting=1), NodeCounts(running=2), NodeCounts(), NodeCounts(leaving=2)):
        road.record_nodes(builders.T4, counts)
    assert road.most_nodes == {builders.T4: 2}
    assert road.pools == {builders.T4: NodeCounts(leaving=2)}


def test_spills_and_queues_are_counted_apart() -> None:
    road = builders.road()
    assert (road.spills, road.queued_at_submission) == (1, 5)
