"""The state machine of tasks: retries, requeues, termination, retention, slots and dependencies."""

from __future__ import annotations

import pytest

from batch_emulator.errors import BatchError
from batch_emulator.rules import jobs, nodes, tasks
from batch_emulator.state import NodeState, TaskState

from .world import Rig, failed


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_task_is_prepared_then_runs_then_completes(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    task = rig.task(rig.job())
    assert task.state is TaskState.PREPARING
    rig.start("task")
    assert task.state is TaskState.RUNNING
    rig.end("task")
    assert task.state is TaskState.COMPLETED
    assert (task.exit_code, task.failure) == (0, None)
    assert task.last_node is not None
    assert task.last_node.state is NodeState.IDLE


def test_a_task_whose_etag_was_read_while_it_waited_still_has_it_when_completed(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    task = rig.task(rig.job())
    before = task.etag, task.last_modified
    rig.advance(5)
    rig.end("task")
    assert (task.etag, task.last_modified) == before


def test_only_exit_codes_are_retried_as_often_as_allowed(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    task = rig.task(rig.job(), constraints={"maxTaskRetryCount": 2})
    for expected in (1, 2):
        rig.end("task", 7)
        assert (task.state, task.retry_count) == (TaskState.PREPARING, expected)
    rig.end("task", 7)
    assert (task.state, task.retry_count, task.exit_code) == (TaskState.COMPLETED, 2, 7)


@pytest.mark.parametrize("phase", ["preprocessing", "upload"])
def test_failed_transfers_are_not_retried(rig: Rig, phase: str) -> None:
    rig.pool(targetDedicatedNodes=1)
    task = rig.task(rig.job(), constraints={"maxTaskRetryCount": -1})
    rig.end("task", None if phase == "preprocessing" else 0, failed("BlobAccessDenied", phase))
    assert (task.state, task.retry_count) == (TaskState.COMPLETED, 0)


def test_a_job_s_retry_count_holds_for_tasks_that_give_none(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=2)
    job = rig.job(constraints={"maxTaskRetryCount": 1})
    inherits = rig.task(job, "inherits")
    own = rig.task(job, "own", constraints={"maxTaskRetryCount": 0})
    rig.end("inherits", 1)
    rig.end("own", 1)
    assert inherits.state is TaskState.PREPARING
    assert own.state is TaskState.COMPLETED


def test_a_task_on_a_lost_node_is_queued_again_without_a_retry(rig: Rig) -> None:
    pool = rig.pool(targetLowPriorityNodes=1)
    task = rig.task(rig.job())
    lost = rig.start("task")
    nodes.preempt(rig.world, next(iter(pool.nodes.values())))
    assert (task.state, task.retry_count, task.requeue_count) == (TaskState.ACTIVE, 0, 1)
    # What the lost run still reports is old news.
    lost.on_started(lost, rig.world.now())
    assert task.state is TaskState.ACTIVE


@pytest.mark.parametrize(("counts", "expected"), [(True, 1), (False, 0)])
def test_whether_preemption_counts_as_a_requeue_is_a_setting(counts: bool, expected: int) -> None:
    rig = Rig(requeue_counts_preemption=counts)
    pool = rig.pool(targetLowPriorityNodes=1)
    task = rig.task(rig.job())
    nodes.preempt(rig.world, next(iter(pool.nodes.values())))
    assert task.requeue_count == expected


def test_a_terminated_task_ends_once_its_run_has(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    task = rig.task(rig.job())
    rig.start("task")
    tasks.terminate(rig.world, task)
    assert rig.effects.ended == [("workitems/job/job-1/task", True)]
    assert task.state is TaskState.RUNNING
    rig.end("task", None)
    assert task.state is TaskState.COMPLETED
    assert task.failure is not None
    assert task.failure.code == "TaskEnded"
    with pytest.raises(BatchError, match="TaskCompleted"):
        tasks.terminate(rig.world, task)


def test_a_task_that_was_being_ended_does_not_run_again_when_its_node_is_lost(rig: Rig) -> None:
    pool = rig.pool(targetLowPriorityNodes=1)
    task = rig.task(rig.job())
    tasks.terminate(rig.world, task)
    nodes.preempt(rig.world, next(iter(pool.nodes.values())))
    assert task.state is TaskState.COMPLETED


def test_a_task_that_waits_can_be_terminated_and_never_runs(rig: Rig) -> None:
    job = rig.job()
    task = rig.task(job)
    tasks.terminate(rig.world, task)
    assert task.state is TaskState.COMPLETED
    rig.pool(targetDedicatedNodes=1)
    assert rig.effects.launches == []


def test_a_failed_task_can_be_reactivated_with_its_retries_counted_anew(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    task = rig.task(rig.job(), constraints={"maxTaskRetryCount": 1})
    with pytest.raises(BatchError, match="TaskNotCompleted"):
        tasks.reactivate(rig.world, task)
    rig.end("task", 1)
    rig.end("task", 1)
    tasks.reactivate(rig.world, task)
    assert (task.state, task.retry_count) == (TaskState.PREPARING, 0)
    rig.end("task")
    with pytest.raises(BatchError, match="TaskSucceeded"):
        tasks.reactivate(rig.world, task)


def test_files_are_kept_for_the_retention_time(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    task = rig.task(rig.job(), constraints={"retentionTime": "PT10M"})
    rig.end("task")
    rig.advance(599)
    assert not task.files_removed
    rig.advance(1)
    assert task.files_removed
    assert rig.effects.removed == ["workitems/job/job-1/task"]


def test_a_deleted_task_is_ended_and_its_late_report_is_ignored(rig: Rig) -> None:
    rig.pool(targetDedicatedNodes=1)
    job = rig.job()
    task = rig.task(job)
    rig.start("task")
    tasks.delete(rig.world, task)
    assert job.tasks == {}
    assert rig.effects.ended == [("workitems/job/job-1/task", False)]
    again = rig.task(job)
    rig.effects.runs[0].on_ended(rig.effects.runs[0], None)  # type: ignore[arg-type] # must not be looked at
    assert again.state is TaskState.PREPARING


class TestSlots:
    def test_a_node_runs_as_many_tasks_as_its_slots_hold(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1, taskSlotsPerNode=4)
        job = rig.job()
        large = rig.task(job, "large", requiredSlots=3)
        second = rig.task(job, "second", requiredSlots=2)
        small = rig.task(job, "small")
        assert large.slots == (0, 1, 2)
        assert small.slots == (3,)
        assert second.state is TaskState.ACTIVE
        rig.end("large")
        assert second.slots == (0, 1)

    def test_a_task_that_needs_more_slots_than_a_node_has_is_accepted_and_waits(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=1, taskSlotsPerNode=2)
        job = rig.job()
        assert rig.task(job, "huge", requiredSlots=3).state is TaskState.ACTIVE
        assert rig.task(job, "fits").state is TaskState.PREPARING

    @pytest.mark.parametrize(("fill", "nodes_used"), [("Spread", 2), ("Pack", 1)])
    def test_tasks_are_spread_or_packed(self, rig: Rig, fill: str, nodes_used: int) -> None:
        rig.pool(targetDedicatedNodes=2, taskSlotsPerNode=2, taskSchedulingPolicy={"nodeFillType": fill})
        job = rig.job()
        placed = [rig.task(job, str(number)).node for number in range(2)]
        assert len(set(placed)) == nodes_used

    def test_an_affinity_is_granted_where_there_is_room(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=3)
        wanted = list(pool.nodes.values())[1]
        job = rig.job()
        task = rig.task(job, "wish", affinityInfo={"affinityId": f"TVM:{wanted.id}"})
        other = rig.task(job, "late", affinityInfo={"affinityId": f"TVM:{wanted.id}"})
        assert task.node is wanted
        assert other.state is TaskState.PREPARING


class TestDependencies:
    def test_a_task_waits_for_those_it_depends_on_even_if_they_are_added_later(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=5)
        job = rig.job(usesTaskDependencies=True)
        last = rig.task(job, "last", dependsOn={"taskIds": ["a", "B"]})
        rig.task(job, "A")
        rig.end("A")
        assert last.state is TaskState.ACTIVE
        assert job.tally.blocked.tasks == 1
        rig.task(job, "b")
        rig.end("/b")
        assert last.state is TaskState.PREPARING
        assert job.tally.blocked.tasks == 0

    def test_a_range_means_the_ids_that_are_its_numbers(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=9)
        job = rig.job(usesTaskDependencies=True)
        last = rig.task(job, "last", dependsOn={"taskIdRanges": [{"start": 1, "end": 3}]})
        for name in ("1", "02", "3"):
            rig.task(job, name)
            rig.end(f"/{name}")
        assert last.state is TaskState.ACTIVE
        rig.task(job, "2")
        rig.end("/2")
        assert last.state is TaskState.PREPARING

    def test_a_range_of_a_thousand_million_costs_nothing(self, rig: Rig) -> None:
        job = rig.job(usesTaskDependencies=True)
        task = rig.task(job, "last", dependsOn={"taskIdRanges": [{"start": 1, "end": 1_000_000_000}]})
        assert task.unmet == 1

    def test_dependencies_need_a_job_that_uses_them(self, rig: Rig) -> None:
        with pytest.raises(BatchError, match="TaskDependenciesNotSpecifiedOnJob"):
            rig.task(rig.job(), dependsOn={"taskIds": ["a"]})

    def test_a_failed_task_blocks_unless_its_exit_options_say_otherwise(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=5)
        job = rig.job(usesTaskDependencies=True)
        satisfied = {
            "exitCodes": [{"code": 3, "exitOptions": {"dependencyAction": "satisfy"}}],
            "exitCodeRanges": [{"start": 10, "end": 20, "exitOptions": {"dependencyAction": "Satisfy"}}],
        }
        waiting = {}
        for name, code in (("three", 3), ("four", 4), ("fifteen", 15)):
            rig.task(job, name, exitConditions=satisfied)
            waiting[name] = rig.task(job, f"after-{name}", dependsOn={"taskIds": [name]})
            rig.end(f"/{name}", code)
        assert waiting["three"].state is TaskState.PREPARING
        assert waiting["four"].state is TaskState.ACTIVE
        assert waiting["fifteen"].state is TaskState.PREPARING

    def test_a_dependency_is_satisfied_only_once_retries_are_over(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=5)
        job = rig.job(usesTaskDependencies=True)
        rig.task(job, "first", constraints={"maxTaskRetryCount": 1})
        last = rig.task(job, "last", dependsOn={"taskIds": ["first"]})
        rig.end("first", 1)
        assert last.state is TaskState.ACTIVE
        rig.end("first", 0)
        assert last.state is TaskState.PREPARING

    def test_a_task_terminated_while_it_waited_is_not_woken(self, rig: Rig) -> None:
        rig.pool(targetDedicatedNodes=5)
        job = rig.job(usesTaskDependencies=True)
        rig.task(job, "first")
        last = rig.task(job, "last", dependsOn={"taskIds": ["first"]})
        tasks.terminate(rig.world, last)
        rig.end("first")
        assert last.state is TaskState.COMPLETED


def test_higher_priority_goes_first_and_a_full_job_lets_others_pass(rig: Rig) -> None:
    pool = rig.pool(targetDedicatedNodes=1)
    low = rig.job("low", priority=-5)
    high = rig.job("high", priority=5, maxParallelTasks=1)
    running = rig.task(low, "running")
    waiting_low = rig.task(low, "waits")
    first, second = rig.task(high, "first"), rig.task(high, "second")
    assert running.node is not None
    rig.end("running")
    assert first.node is not None
    rig.end("first")
    assert second.node is not None
    jobs.disable(rig.world, high, "requeue")
    assert second.state is TaskState.ACTIVE
    assert waiting_low.node is next(iter(pool.nodes.values()))
