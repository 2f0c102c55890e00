"""The state machine of jobs: disabling, ending by themselves, their manager, limits, and own pools."""

from __future__ import annotations

import pytest

from batch_emulator.errors import BatchError
from batch_emulator.rules import jobs, tasks
from batch_emulator.state import JobState, PoolState, TaskState

from .world import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_job_may_be_added_before_its_pool(rig: Rig) -> None:
    task = rig.task(rig.job())
    assert task.state is TaskState.ACTIVE
    rig.pool(targetDedicatedNodes=1)
    assert task.state is TaskState.PREPARING


class TestDisable:
    def test_requeue_takes_running_tasks_back(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job()
        task = rig.task(job)
        jobs.disable(rig.world, job, "requeue")
        assert (job.state, task.state) == (JobState.DISABLED, TaskState.ACTIVE)
        jobs.enable(rig.world, job)
        assert (job.state, task.state) == (JobState.ACTIVE, TaskState.PREPARING)

    def test_terminate_ends_running_tasks(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job()
        task = rig.task(job)
        jobs.disable(rig.world, job, "terminate")
        assert job.state is JobState.DISABLING
        rig.end("task", None)
        assert (job.state, task.state) == (JobState.DISABLED, TaskState.COMPLETED)

    def test_wait_lets_running_tasks_end_and_starts_no_others(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job()
        running, waiting = rig.task(job, "running"), rig.task(job, "waiting")
        jobs.disable(rig.world, job, "wait")
        assert job.state is JobState.DISABLING
        rig.end("running")
        assert running.state is TaskState.COMPLETED
        assert (job.state, waiting.state) == (JobState.DISABLED, TaskState.ACTIVE)

    def test_only_a_disabled_job_can_be_given_another_pool(self, rig: Rig) -> None:
        rig.pool("other", targetDedicatedNodes=1)
        job = rig.job()
        task = rig.task(job)
        change = {"poolInfo": {"poolId": "other"}}
        with pytest.raises(BatchError, match="OperationInvalidForCurrentState"):
            jobs.change(rig.world, job, change, replace=False)
        jobs.disable(rig.world, job, "requeue")
        jobs.change(rig.world, job, change, replace=False)
        jobs.enable(rig.world, job)
        assert task.node is not None
        assert task.node.pool.id == "other"


class TestEnd:
    def test_terminate_leaves_waiting_tasks_active(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job()
        running, waiting = rig.task(job, "running"), rig.task(job, "waiting")
        jobs.terminate(rig.world, job, "UserTerminate")
        assert job.state is JobState.TERMINATING
        rig.end("running", None)
        assert job.state is JobState.COMPLETED
        assert (running.state, waiting.state) == (TaskState.COMPLETED, TaskState.ACTIVE)
        with pytest.raises(BatchError, match="JobCompleted"):
            rig.task(job, "late")

    def test_all_tasks_complete_ends_the_job_when_asked_to(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job()
        rig.task(job)
        jobs.change(rig.world, job, {"onAllTasksComplete": "terminatejob"}, replace=False)
        assert job.state is JobState.ACTIVE
        rig.end("task")
        assert (job.state, job.terminate_reason) == (JobState.COMPLETED, "AllTasksCompleted")

    def test_a_job_without_tasks_counts_as_complete(self, rig: Rig) -> None:
        assert rig.job(onAllTasksComplete="terminatejob").state is JobState.COMPLETED

    def test_its_wall_clock_ends_it(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job(constraints={"maxWallClockTime": "PT1H"})
        task = rig.task(job)
        rig.advance(3599)
        assert job.state is JobState.ACTIVE
        rig.advance(1)
        rig.end("task", None)
        assert (job.state, job.terminate_reason) == (JobState.COMPLETED, "MaxWallClockTimeExpiry")
        assert task.state is TaskState.COMPLETED

    def test_a_deleted_job_takes_its_tasks_and_their_files_along(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job()
        rig.task(job)
        rig.end("task")
        jobs.delete(rig.world, job)
        assert rig.world.account.jobs == {}
        assert rig.effects.removed == ["workitems/job/job-1/task"]


class TestFailedTasks:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, JobState.COMPLETED),
            ({"default": {"jobAction": "none"}}, JobState.ACTIVE),
            ({"default": {"jobAction": "disable"}}, JobState.DISABLED),
            (
                {"exitCodes": [{"code": 1, "exitOptions": {"jobAction": "none"}}], "default": {}},
                JobState.ACTIVE,
            ),
        ],
    )
    def test_exit_options_say_what_becomes_of_the_job(
        self, rig: Rig, options: dict[str, object], expected: JobState
    ) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job(onTaskFailure="performExitOptionsJobAction")
        rig.task(job, exitConditions=options)
        rig.end("task", 1)
        assert job.state is expected

    def test_they_count_for_nothing_by_default(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1)
        job = rig.job()
        rig.task(job, exitConditions={"default": {"jobAction": "terminate"}})
        rig.end("task", 1)
        assert job.state is JobState.ACTIVE


class TestManager:
    @pytest.mark.parametrize(("kills", "expected"), [(None, JobState.COMPLETED), (False, JobState.ACTIVE)])
    def test_its_end_ends_the_job_unless_told_otherwise(
        self, rig: Rig, kills: bool | None, expected: JobState
    ) -> None:
        rig.pool(targetDedicatedNodes=1)
        manager = {"id": "manager", "commandLine": "manage"}
        job = rig.job(jobManagerTask=manager if kills is None else {**manager, "killJobOnCompletion": kills})
        rig.task(job, "worker")
        rig.end("manager")
        if kills is None:
            assert job.terminate_reason == "JMComplete"
        assert job.state is expected


class TestAutomaticPool:
    def own_pool(self, **options: object) -> dict[str, object]:
        pool = {"vmSize": "standard_d4s_v3", "targetDedicatedNodes": 1}
        return {
            "autoPoolSpecification": {
                "autoPoolIdPrefix": "auto",
                "poolLifetimeOption": "job",
                "pool": pool,
                **options,
            }
        }

    def test_a_job_s_own_pool_comes_and_goes_with_it(self, rig: Rig) -> None:
        job = jobs.add(rig.world, {"id": "job", "poolInfo": self.own_pool()})
        (pool,) = rig.world.account.pools.values()
        assert pool.id.startswith("auto_")
        rig.advance(150)
        rig.task(job)
        rig.end("task")
        jobs.terminate(rig.world, job, "UserTerminate")
        assert pool.state is PoolState.DELETING
        rig.advance(30)
        assert rig.world.account.pools == {}

    def test_it_can_be_kept(self, rig: Rig) -> None:
        job = jobs.add(rig.world, {"id": "job", "poolInfo": self.own_pool(keepAlive=True)})
        jobs.terminate(rig.world, job, "UserTerminate")
        rig.advance(3600)
        assert len(rig.world.account.pools) == 1

    def test_a_job_without_a_schedule_has_no_pool_of_a_schedule(self, rig: Rig) -> None:
        with pytest.raises(BatchError, match="InvalidPropertyValue"):
            jobs.add(rig.world, {"id": "job", "poolInfo": self.own_pool(poolLifetimeOption="jobschedule")})
        assert rig.world.account.jobs == {}


def test_counts_follow_every_change(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    job = rig.job(usesTaskDependencies=True)
    rig.task(job, "runs", requiredSlots=1)
    rig.task(job, "waits")
    rig.task(job, "blocked", dependsOn={"taskIds": ["runs"]})
    tally = job.tally
    assert [tally.running.tasks, tally.active.tasks, tally.blocked.tasks] == [1, 1, 1]
    rig.end("runs", 1)
    assert [tally.failed.tasks, tally.running.tasks, tally.active.tasks] == [1, 1, 0]
    rig.end("waits")
    tasks.delete(rig.world, job.tasks["blocked"])
    assert [tally.succeeded.tasks, tally.unfinished] == [1, 0]
