"""Pools and nodes: growing, shrinking, errors of resizes, preemption, and what becomes of tasks meanwhile."""

from __future__ import annotations

import pytest

from batch_emulator.errors import BatchError
from batch_emulator.rules import autoscaling, nodes, pools
from batch_emulator.state import AllocationState, Node, NodeState, Pool, TaskState

from .world import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def states(pool: Pool) -> list[NodeState]:
    return [node.state for node in pool.nodes.values()]


def only_node(pool: Pool) -> Node:
    (node,) = pool.nodes.values()
    return node


def test_nodes_are_allocated_then_boot_then_are_idle(rig: Rig) -> None:
    pool = rig.pool(targetDedicatedNodes=2, ready=False)
    seen = []
    for seconds in (29, 1, 60, 60):
        rig.advance(seconds)
        seen.append((pool.allocation_state, states(pool)))
    assert seen == [
        (AllocationState.RESIZING, []),
        (AllocationState.STEADY, [NodeState.CREATING] * 2),
        (AllocationState.STEADY, [NodeState.STARTING] * 2),
        (AllocationState.STEADY, [NodeState.IDLE] * 2),
    ]


class TestResize:
    def test_it_needs_a_steady_pool(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=1)
        pools.resize(rig.world, pool, {"targetDedicatedNodes": 2})
        with pytest.raises(BatchError, match="PoolBeingResized"):
            pools.resize(rig.world, pool, {"targetDedicatedNodes": 3})
        rig.advance(150)
        assert states(pool) == [NodeState.IDLE] * 2

    def test_idle_nodes_leave_first_and_a_requeued_task_goes_to_another(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=2)
        task = rig.task(rig.job())
        busy = task.node
        pools.resize(rig.world, pool, {"targetDedicatedNodes": 1})
        rig.advance(30)
        assert only_node(pool) is busy
        pools.resize(rig.world, pool, {"targetDedicatedNodes": 0})
        assert task.state is TaskState.ACTIVE
        rig.advance(30)
        assert (pool.nodes, pool.allocation_state) == ({}, AllocationState.STEADY)
        assert rig.effects.removed_nodes

    def test_terminate_ends_the_tasks(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=1)
        task = rig.task(rig.job())
        pools.resize(rig.world, pool, {"targetDedicatedNodes": 0, "nodeDeallocationOption": "Terminate"})
        assert task.state is TaskState.COMPLETED

    def test_task_completion_waits_for_the_tasks_and_gives_the_node_no_more(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=1)
        job = rig.job()
        running, waiting = rig.task(job, "running"), rig.task(job, "waiting")
        pools.resize(rig.world, pool, {"targetDedicatedNodes": 0, "nodeDeallocationOption": "TaskCompletion"})
        rig.advance(60)
        assert pool.allocation_state is AllocationState.RESIZING
        rig.end("running")
        rig.advance(30)
        assert (running.state, waiting.state) == (TaskState.COMPLETED, TaskState.ACTIVE)
        assert (pool.nodes, pool.allocation_state) == ({}, AllocationState.STEADY)

    def test_the_timeout_ends_it_with_an_error(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=1)
        rig.task(rig.job())
        pools.resize(
            rig.world,
            pool,
            {
                "targetDedicatedNodes": 0,
                "nodeDeallocationOption": "taskcompletion",
                "resizeTimeout": "PT5M",
            },
        )
        rig.advance(299)
        assert pool.allocation_state is AllocationState.RESIZING
        rig.advance(1)
        assert pool.allocation_state is AllocationState.STEADY
        assert [error["code"] for error in pool.resize_errors] == ["AllocationTimedout"]

    def test_a_timeout_below_five_minutes_is_refused(self, rig: Rig) -> None:
        with pytest.raises(BatchError, match="InvalidPropertyValue"):
            rig.pool(resizeTimeout="PT4M")

    def test_stopping_it_keeps_what_is_there(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=1)
        with pytest.raises(BatchError, match="OperationInvalidForCurrentState"):
            pools.stop_resize(rig.world, pool)
        pools.resize(rig.world, pool, {"targetDedicatedNodes": 5})
        pools.stop_resize(rig.world, pool)
        rig.advance(600)
        assert (pool.target_dedicated, len(pool.nodes)) == (1, 1)
        assert [error["code"] for error in pool.resize_errors] == ["ResizeStopped"]

    def test_a_failed_allocation_leaves_its_error_and_a_later_one_succeeds(self, rig: Rig) -> None:
        pool = rig.pool(targetLowPriorityNodes=0)
        pool.failing_allocation = ("AllocationFailed", "no capacity")
        pools.resize(rig.world, pool, {"targetLowPriorityNodes": 1})
        rig.advance(30)
        assert (pool.allocation_state, len(pool.nodes)) == (AllocationState.STEADY, 0)
        assert [error["code"] for error in pool.resize_errors] == ["AllocationFailed"]
        pool.failing_allocation = None
        pools.resize(rig.world, pool, {"targetLowPriorityNodes": 1})
        rig.advance(30)
        assert (pool.resize_errors, len(pool.nodes)) == ([], 1)


class TestPreemption:
    def test_the_node_stays_listed_and_comes_back_under_its_id(self, rig: Rig) -> None:
        pool = rig.pool(targetLowPriorityNodes=1)
        node = only_node(pool)
        task = rig.task(rig.job())
        nodes.preempt(rig.world, node)
        assert states(pool) == [NodeState.PREEMPTED]
        assert (task.state, rig.effects.removed_nodes) == (TaskState.ACTIVE, [node.id])
        rig.advance(300)
        assert states(pool) == [NodeState.CREATING]
        rig.advance(120)
        assert only_node(pool) is node
        assert task.node is node

    def test_dedicated_nodes_are_never_preempted(self, rig: Rig) -> None:
        with pytest.raises(BatchError, match="OperationNotValidOnNode"):
            nodes.preempt(rig.world, only_node(rig.pool(targetDedicatedNodes=1)))

    def test_its_task_goes_to_a_node_that_is_free(self, rig: Rig) -> None:
        pool = rig.pool(targetLowPriorityNodes=2)
        task = rig.task(rig.job())
        first = task.node
        assert first is not None
        nodes.preempt(rig.world, first)
        assert task.node is not None
        assert task.node is not first
        assert pool.allocation_state is AllocationState.STEADY


class TestScheduling:
    def test_a_node_that_may_take_no_tasks_is_offline_once_it_is_empty(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=1)
        node, job = only_node(pool), rig.job()
        rig.task(job, "running")
        nodes.set_scheduling(rig.world, node, enabled=False, option="taskcompletion")
        assert node.state is NodeState.RUNNING
        rig.end("running")
        assert node.state is NodeState.OFFLINE
        waiting = rig.task(job, "waiting")
        with pytest.raises(BatchError, match="NodeAlreadyInTargetSchedulingState"):
            nodes.set_scheduling(rig.world, node, enabled=False)
        nodes.set_scheduling(rig.world, node, enabled=True)
        assert waiting.node is node

    def test_rebooting_queues_its_tasks_again(self, rig: Rig) -> None:
        node = only_node(rig.pool(targetDedicatedNodes=1))
        task = rig.task(rig.job())
        nodes.reboot(rig.world, node, "requeue", reimage=False)
        assert (node.state, task.state) == (NodeState.REBOOTING, TaskState.ACTIVE)
        rig.advance(60)
        assert task.node is node


def test_a_deleted_pool_takes_its_nodes_along_and_its_tasks_wait(rig: Rig) -> None:
    pool = rig.pool(targetDedicatedNodes=1)
    task = rig.task(rig.job())
    pools.delete(rig.world, pool)
    assert (task.state, states(pool)) == (TaskState.ACTIVE, [NodeState.LEAVING_POOL])
    rig.advance(30)
    assert rig.world.account.pools == {}
    rig.pool(targetDedicatedNodes=1)
    assert task.state is TaskState.PREPARING


def test_a_pool_deleted_while_its_nodes_boot_has_none_later(rig: Rig) -> None:
    pool = rig.pool(targetDedicatedNodes=1, startTask={"commandLine": "x"}, ready=False)
    rig.advance(60)
    pools.delete(rig.world, pool)
    rig.advance(600)
    assert rig.effects.launches == []


class TestAutoscale:
    FORMULA = "$TargetLowPriorityNodes = min(2, $PendingTasks.GetSample(1)); $NodeDeallocationOption = {};"

    def grown(self, rig: Rig, option: str) -> tuple[Pool, object]:
        pool = rig.pool(
            enableAutoScale=True,
            autoScaleFormula=self.FORMULA.format(option),
            autoScaleEvaluationInterval="PT5M",
            ready=False,
        )
        task = rig.task(rig.job())
        rig.advance(300 + 150)
        return pool, task

    def test_a_pool_grows_from_zero_and_goes_back(self, rig: Rig) -> None:
        pool, _ = self.grown(rig, "taskcompletion")
        assert states(pool) == [NodeState.RUNNING]
        rig.end("task")
        rig.advance(600)
        assert (pool.nodes, pool.target_low_priority) == ({}, 0)

    def test_while_a_node_waits_for_its_tasks_the_pool_keeps_its_aim(self, rig: Rig) -> None:
        pool, _ = self.grown(rig, "taskcompletion")
        formulas = {"shrink": "$TargetLowPriorityNodes = 0;", "grow": "$TargetLowPriorityNodes = 2;"}
        option = "$NodeDeallocationOption = taskcompletion;"
        for name, target in (("shrink", 0), ("grow", 0)):
            autoscaling.enable(
                rig.world,
                pool,
                {"autoScaleFormula": formulas[name] + option, "autoScaleEvaluationInterval": "PT5M"},
            )
            assert pool.target_low_priority == target
            rig.advance(31)
        rig.end("task")
        rig.advance(600)
        assert pool.target_low_priority == 2

    def test_it_counts_what_waits_and_what_runs(self, rig: Rig) -> None:
        pool = rig.pool(targetDedicatedNodes=1)
        job = rig.job(usesTaskDependencies=True)
        for name in ("running", "waiting"):
            rig.task(job, name)
        rig.task(job, "blocked", dependsOn={"taskIds": ["waiting"]})
        measured = autoscaling.measure(rig.world, pool)
        assert [measured[name] for name in ("$ActiveTasks", "$RunningTasks", "$PendingTasks")] == [1, 1, 2]

    def test_sampling_goes_on_once_when_autoscale_is_enabled_again(self, rig: Rig) -> None:
        pool, _ = self.grown(rig, "requeue")
        formula = pool.spec["autoScaleFormula"]
        autoscaling.disable(rig.world, pool)
        autoscaling.enable(rig.world, pool, {"autoScaleFormula": formula})
        rig.advance(90)  # two samples at one moment would be an error
        assert pool.metrics is not None
        assert pool.metrics.current("$PendingTasks") == 1
