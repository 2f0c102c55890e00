"""Start, preparation and release tasks: when they run, and what their failure means."""

from __future__ import annotations

import pytest

from batch_emulator.rules import jobs, nodes, tasks
from batch_emulator.state import Job, JobState, Node, NodeState, Pool, TaskState

from .world import Rig

START = {"commandLine": "start"}


@pytest.fixture
def rig() -> Rig:
    return Rig()


def only_node(pool: Pool) -> Node:
    (node,) = pool.nodes.values()
    return node


class TestStartTask:
    def test_a_node_waits_for_its_start_task_before_it_takes_tasks(self, rig: Rig) -> None:
        node = only_node(rig.pool(targetDedicatedNodes=1, startTask=START))
        task = rig.task(rig.job())
        assert node.state is NodeState.WAITING_FOR_START_TASK
        assert task.state is TaskState.ACTIVE
        rig.end("startup")
        assert node.state is NodeState.RUNNING
        assert task.state is TaskState.PREPARING

    def test_it_is_retried_and_then_the_node_is_of_no_use_until_it_is_restarted(self, rig: Rig) -> None:
        node = only_node(rig.pool(targetDedicatedNodes=1, startTask={**START, "maxTaskRetryCount": 1}))
        rig.end("startup", 1)
        assert node.state is NodeState.WAITING_FOR_START_TASK
        rig.end("startup", 1)
        assert node.state is NodeState.START_TASK_FAILED
        assert node.start_task is not None
        assert (node.start_task.retry_count, node.start_task.exit_code) == (1, 1)
        nodes.reboot(rig.world, node, "requeue", reimage=False)
        rig.advance(60)
        rig.end("startup")
        assert node.state is NodeState.IDLE

    def test_a_node_that_does_not_wait_for_success_takes_tasks_at_once(self, rig: Rig) -> None:
        node = only_node(rig.pool(targetDedicatedNodes=1, startTask={**START, "waitForSuccess": False}))
        assert node.state is NodeState.IDLE
        rig.end("startup", 1)
        assert node.state is NodeState.IDLE

    def test_the_start_task_of_a_preempted_node_is_ended_and_runs_again_when_it_is_back(
        self, rig: Rig
    ) -> None:
        node = only_node(rig.pool(targetLowPriorityNodes=1, startTask=START))
        lost = rig.run_of("startup")
        nodes.preempt(rig.world, node)
        lost.on_ended(lost, None)  # type: ignore[arg-type] # must not be looked at
        assert node.state is NodeState.PREEMPTED
        rig.advance(300 + 120)
        rig.end("startup")
        assert node.state is NodeState.IDLE


def prepared_job(rig: Rig, **spec: object) -> Job:
    return rig.job(
        jobPreparationTask={"commandLine": "prepare", **spec}, jobReleaseTask={"commandLine": "release"}
    )


class TestPreparation:
    def test_the_first_task_on_a_node_waits_for_it_and_later_ones_do_not(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1, taskSlotsPerNode=2)
        job = prepared_job(rig)
        first, second = rig.task(job, "first"), rig.task(job, "second")
        assert rig.effects.launches == ["workitems/job/job-1/jobpreparation"]
        assert first.state is second.state is TaskState.PREPARING
        rig.end("jobpreparation")
        rig.end("first")
        rig.end("second")
        rig.task(job, "third")
        assert rig.effects.launches == [
            f"workitems/job/job-1/{name}" for name in ("jobpreparation", "first", "second", "third")
        ]

    def test_its_failure_sends_tasks_back_and_the_node_takes_no_more_of_the_job(self, rig: Rig) -> None:
        node = only_node(rig.pool(targetDedicatedNodes=1))
        task = rig.task(prepared_job(rig))
        rig.end("jobpreparation", 1)
        assert (task.state, task.retry_count) == (TaskState.ACTIVE, 0)
        other = rig.task(rig.job("other"), "of-another-job")
        assert other.node is node
        rig.end("of-another-job")
        assert task.state is TaskState.ACTIVE
        nodes.reboot(rig.world, node, "requeue", reimage=True)
        rig.advance(60)
        rig.end("jobpreparation")
        assert task.run is not None

    def test_a_job_that_does_not_wait_for_success_runs_anyway(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        task = rig.task(prepared_job(rig, waitForSuccess=False))
        assert task.run is not None
        rig.end("jobpreparation", 1)
        assert task.run is not None

    @pytest.mark.parametrize(("again", "times"), [(True, 2), (False, 1)])
    def test_it_runs_again_after_a_reboot_if_it_shall(self, rig: Rig, again: bool, times: int) -> None:
        node = only_node(rig.pool(targetDedicatedNodes=1))
        job = prepared_job(rig, rerunOnNodeRebootAfterSuccess=again)
        rig.task(job, "first")
        rig.end("jobpreparation")
        rig.end("first")
        nodes.reboot(rig.world, node, "requeue", reimage=False)
        rig.advance(60)
        rig.task(job, "second")
        assert rig.effects.launches.count("workitems/job/job-1/jobpreparation") == times

    def test_a_task_deleted_while_it_waits_for_it_never_begins(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = prepared_job(rig)
        tasks.delete(rig.world, rig.task(job))
        rig.end("jobpreparation")
        assert rig.effects.launches == ["workitems/job/job-1/jobpreparation"]


class TestRelease:
    def test_a_job_completes_once_it_was_released_on_every_node_it_used(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=3)
        job = prepared_job(rig)
        for name in ("first", "second"):
            rig.task(job, name)
            rig.end("jobpreparation")
        for name in ("first", "second"):
            rig.end(name)
        jobs.terminate(rig.world, job, "UserTerminate")
        assert job.state is JobState.TERMINATING
        assert rig.effects.launches.count("workitems/job/job-1/jobrelease") == 2
        rig.end("jobrelease")
        rig.end("jobrelease", 1)
        assert job.state is JobState.COMPLETED

    def test_a_job_that_no_node_prepared_completes_at_once(self, rig: Rig) -> None:
        job = prepared_job(rig)
        jobs.terminate(rig.world, job, "UserTerminate")
        assert job.state is JobState.COMPLETED

    def test_a_lost_node_is_not_waited_for(self, rig: Rig) -> None:
        pool = rig.pool(targetLowPriorityNodes=1)
        job = prepared_job(rig)
        rig.task(job)
        rig.end("jobpreparation")
        rig.end("task")
        jobs.terminate(rig.world, job, "UserTerminate")
        assert job.state is JobState.TERMINATING
        nodes.preempt(rig.world, only_node(pool))
        assert job.state is JobState.COMPLETED

    def test_a_deleted_job_is_gone_once_it_was_released(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = prepared_job(rig)
        rig.task(job)
        rig.end("jobpreparation")
        jobs.delete(rig.world, job)
        assert job.state is JobState.DELETING
        rig.end("jobrelease")
        assert rig.world.account.jobs == {}
        assert "workitems/job/job-1/jobpreparation" in rig.effects.removed
