"""What happens when the rules of pools, jobs and tasks meet: each of these once left something hanging."""

from __future__ import annotations

import pytest

from batch_emulator.rules import jobs, nodes, pools, tasks
from batch_emulator.state import JobState, NodeState, TaskState

from ..core.world import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_job_that_waits_to_be_disabled_is_when_its_nodes_are_taken(rig: Rig) -> None:
    pool = rig.pool(targetDedicatedNodes=1)
    job = rig.job()
    task = rig.task(job)
    jobs.disable(rig.world, job, "wait")
    pools.resize(rig.world, pool, {"targetDedicatedNodes": 0})
    assert (job.state, task.state) == (JobState.DISABLED, TaskState.ACTIVE)


def test_a_job_that_waits_to_be_disabled_does_not_wait_for_retries(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    job = rig.job()
    task = rig.task(job, constraints={"maxTaskRetryCount": -1})
    jobs.disable(rig.world, job, "wait")
    rig.end("task", 1)
    assert (job.state, task.state) == (JobState.DISABLED, TaskState.ACTIVE)


def test_a_node_leaves_although_ending_one_task_ends_its_whole_job(rig: Rig) -> None:
    pool = rig.pool(targetDedicatedNodes=1, taskSlotsPerNode=3)
    job = rig.job(
        onTaskFailure="performExitOptionsJobAction",
        jobPreparationTask={"commandLine": "prepare"},
        jobReleaseTask={"commandLine": "release"},
    )
    added = [rig.task(job, name) for name in "abc"]
    pools.remove_nodes(rig.world, pool, list(pool.nodes), "terminate")
    assert [task.state for task in added] == [TaskState.COMPLETED] * 3
    assert job.state is JobState.COMPLETED
    rig.advance(30)
    assert pool.nodes == {}


def test_a_broken_node_that_was_to_leave_after_its_tasks_leaves(rig: Rig) -> None:
    pool = rig.pool(targetDedicatedNodes=1)
    rig.task(rig.job())
    (node,) = pool.nodes.values()
    pools.resize(rig.world, pool, {"targetDedicatedNodes": 0, "nodeDeallocationOption": "taskcompletion"})
    nodes.make_unusable(rig.world, node, {"code": "Broken"})
    assert node.state is NodeState.LEAVING_POOL
    rig.advance(30)
    assert pool.nodes == {}


def test_a_task_that_was_ended_while_it_waited_runs_once_after_reactivation(rig: Rig) -> None:
    pool = rig.pool()
    job = rig.job()
    task = rig.task(job)
    tasks.terminate(rig.world, task)
    tasks.reactivate(rig.world, task)
    pools.resize(rig.world, pool, {"targetDedicatedNodes": 2})
    rig.advance(150)
    assert rig.effects.launches == [task.path]
