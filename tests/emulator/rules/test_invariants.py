"""Whatever is asked, in whatever order, and however runs end: nothing is overcommitted or lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from batch_emulator.errors import BatchError
from batch_emulator.nodes.contract import TaskOutcome
from batch_emulator.rules import autoscaling, job_nodes, jobs, nodes, pools, tasks
from batch_emulator.state import (
    AllocationState,
    Job,
    JobState,
    Node,
    NodeState,
    Pool,
    PoolState,
    Run,
    Task,
    TaskState,
)

from ..core.world import Rig, failed

POOL_IDS, JOB_IDS, TASK_IDS = ("p", "q"), ("j", "k"), ("1", "2", "3", "a", "b")
ON_NODES = {TaskState.PREPARING, TaskState.RUNNING}
DEALLOCATION = st.sampled_from(["requeue", "terminate", "taskcompletion"])
FIRST_TWO = {"start": 1, "end": 2}
PENDING = "$TargetLowPriorityNodes = min(3, $PendingTasks.GetSample(1)); $NodeDeallocationOption = "


_Item = TypeVar("_Item")


def pick(data: st.DataObject, items: Sequence[_Item]) -> _Item:
    """Draw an item by its number, which a report of a failure shows in one line."""
    return items[data.draw(st.integers(0, len(items) - 1))]


class Service(RuleBasedStateMachine):
    """Clients, nodes and time, each doing anything at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.world = self.rig.world

    def ask(self, action: Callable[[], object]) -> None:
        """A request may be refused; any other exception is a defect."""
        with contextlib.suppress(BatchError):
            action()

    @property
    def all_pools(self) -> list[Pool]:
        return list(self.world.account.pools.values())

    @property
    def all_nodes(self) -> list[Node]:
        return [node for pool in self.all_pools for node in pool.nodes.values()]

    @property
    def all_jobs(self) -> list[Job]:
        return list(self.world.account.jobs.values())

    @property
    def all_tasks(self) -> list[Task]:
        return [task for job in self.all_jobs for task in job.tasks.values()]

    @initialize(
        slots=st.integers(1, 3),
        fill=st.sampled_from(["Pack", "Spread"]),
        prepares=st.booleans(),
        data=st.data(),
    )
    def begin(self, slots: int, fill: str, prepares: bool, data: st.DataObject) -> None:
        """Begin with nodes that are up and tasks that run, so that few steps lead far."""
        self.rig.pool(
            "p",
            targetDedicatedNodes=1,
            targetLowPriorityNodes=1,
            taskSlotsPerNode=slots,
            taskSchedulingPolicy={"nodeFillType": fill},
        )
        own = {"jobPreparationTask": {"commandLine": "x"}, "jobReleaseTask": {"commandLine": "x"}}
        job = self.rig.job("j", "p", usesTaskDependencies=True, **(own if prepares else {}))
        for number in ("1", "2", "a"):
            self.add(job, number, data)

    # Clients

    @rule(
        pool_id=st.sampled_from(POOL_IDS), dedicated=st.integers(0, 2), low=st.integers(0, 2), data=st.data()
    )
    def add_pool(self, pool_id: str, dedicated: int, low: int, data: st.DataObject) -> None:
        spec: dict[str, Any] = {
            "taskSlotsPerNode": data.draw(st.integers(1, 3)),
            "taskSchedulingPolicy": {"nodeFillType": data.draw(st.sampled_from(["Pack", "Spread"]))},
        }
        if data.draw(st.booleans()):
            spec["startTask"] = {"commandLine": "x", "waitForSuccess": data.draw(st.booleans())}
        self.ask(
            lambda: self.rig.pool(
                pool_id, ready=False, targetDedicatedNodes=dedicated, targetLowPriorityNodes=low, **spec
            )
        )

    @precondition(lambda self: self.all_pools)
    @rule(data=st.data(), dedicated=st.integers(0, 3), low=st.integers(0, 3), option=DEALLOCATION)
    def resize(self, data: st.DataObject, dedicated: int, low: int, option: str) -> None:
        request = {
            "targetDedicatedNodes": dedicated,
            "targetLowPriorityNodes": low,
            "nodeDeallocationOption": option,
        }
        self.ask(lambda: pools.resize(self.world, pick(data, self.all_pools), request))

    @precondition(lambda self: self.all_pools)
    @rule(data=st.data(), option=DEALLOCATION, change=st.integers(0, 4))
    def change_pool(self, data: st.DataObject, option: str, change: int) -> None:
        pool = pick(data, self.all_pools)
        formula = {"autoScaleFormula": PENDING + option, "autoScaleEvaluationInterval": "PT5M"}
        changes = [
            lambda: pools.stop_resize(self.world, pool),
            lambda: autoscaling.enable(self.world, pool, formula),
            lambda: autoscaling.disable(self.world, pool),
            lambda: pools.delete(self.world, pool),
            lambda: setattr(
                pool, "failing_allocation", None if pool.failing_allocation else ("AllocationFailed", "none")
            ),
        ]
        self.ask(changes[change])

    @precondition(lambda self: self.all_nodes)
    @rule(data=st.data(), option=DEALLOCATION, change=st.integers(0, 8))
    def change_node(self, data: st.DataObject, option: str, change: int) -> None:
        node = pick(data, self.all_nodes)
        changes = [
            lambda: nodes.preempt(self.world, node),
            lambda: nodes.reboot(self.world, node, option, reimage=False),
            lambda: nodes.reboot(self.world, node, option, reimage=True),
            lambda: nodes.set_scheduling(self.world, node, enabled=False, option=option),
            lambda: nodes.set_scheduling(self.world, node, enabled=True),
            lambda: pools.remove_nodes(self.world, node.pool, [node.id], option),
            lambda: nodes.deallocate(self.world, node, option),
            lambda: nodes.start(self.world, node),
            lambda: nodes.make_unusable(self.world, node, {"code": "Broken"}),
        ]
        self.ask(changes[change])

    @rule(job_id=st.sampled_from(JOB_IDS), pool_id=st.sampled_from(POOL_IDS), data=st.data())
    def add_job(self, job_id: str, pool_id: str, data: st.DataObject) -> None:
        spec: dict[str, Any] = {
            "priority": data.draw(st.integers(-1, 1)),
            "maxParallelTasks": data.draw(st.sampled_from([-1, 1, 2])),
            "usesTaskDependencies": True,
            "onTaskFailure": data.draw(st.sampled_from(["noaction", "performexitoptionsjobaction"])),
        }
        if data.draw(st.booleans()):
            spec["jobPreparationTask"] = {"commandLine": "x", "waitForSuccess": data.draw(st.booleans())}
            spec["jobReleaseTask"] = {"commandLine": "x"}
        self.ask(lambda: self.rig.job(job_id, pool_id, **spec))

    @precondition(lambda self: self.all_jobs)
    @rule(data=st.data(), change=st.integers(0, 7))
    def change_job(self, data: st.DataObject, change: int) -> None:
        job = pick(data, self.all_jobs)
        other = {"poolInfo": {"poolId": data.draw(st.sampled_from(POOL_IDS))}}
        changes = [
            *(
                lambda how=how: jobs.disable(self.world, job, how)  # type: ignore[misc]
                for how in ("requeue", "terminate", "wait")
            ),
            lambda: jobs.enable(self.world, job),
            lambda: jobs.terminate(self.world, job, "UserTerminate"),
            lambda: jobs.delete(self.world, job),
            lambda: jobs.change(self.world, job, other, replace=False),
            lambda: jobs.change(self.world, job, {"onAllTasksComplete": "terminatejob"}, replace=False),
        ]
        self.ask(changes[change])

    @precondition(lambda self: self.all_jobs)
    @rule(data=st.data(), task_id=st.sampled_from(TASK_IDS))
    def add_task(self, data: st.DataObject, task_id: str) -> None:
        self.add(pick(data, self.all_jobs), task_id, data)

    def add(self, job: Job, task_id: str, data: st.DataObject) -> None:
        spec: dict[str, Any] = {
            "requiredSlots": data.draw(st.sampled_from([1, 1, 2, 3])),
            "constraints": {"maxTaskRetryCount": data.draw(st.sampled_from([0, 1, -1]))},
        }
        waits_for = data.draw(st.sampled_from([None, {"taskIds": ["a"]}, {"taskIdRanges": [FIRST_TWO]}]))
        if waits_for is not None:
            spec["dependsOn"] = waits_for
        action = data.draw(st.sampled_from([None, "none", "disable", "terminate"]))
        if action is not None:
            after = data.draw(st.sampled_from(["satisfy", "block"]))
            spec["exitConditions"] = {"default": {"dependencyAction": after, "jobAction": action}}
        self.ask(lambda: self.rig.task(job, task_id, **spec))

    @precondition(lambda self: self.all_tasks)
    @rule(data=st.data(), change=st.sampled_from([tasks.terminate, tasks.delete, tasks.reactivate]))
    def change_task(self, data: st.DataObject, change: Callable[..., None]) -> None:
        self.ask(lambda: change(self.world, pick(data, self.all_tasks)))

    # Nodes, and time

    @precondition(lambda self: self.rig.effects.runs)
    @rule(data=st.data())
    def program_starts(self, data: st.DataObject) -> None:
        run = pick(data, self.rig.effects.runs)
        run.on_started(run, self.world.now())

    @precondition(lambda self: self.rig.effects.runs)
    @rule(data=st.data(), exit_code=st.sampled_from([0, 0, 1, None]))
    def run_ends(self, data: st.DataObject, exit_code: int | None) -> None:
        self.end(pick(data, self.rig.effects.runs), exit_code)

    @rule(seconds=st.sampled_from([151, 31, 61, 301, 1000, 1]))
    def time_passes(self, seconds: int) -> None:
        self.rig.advance(seconds)

    def end(self, run: Run, exit_code: int | None) -> None:
        self.rig.effects.runs.remove(run)
        now = self.world.now()
        failure = None if exit_code == 0 else failed("Failed", "run" if exit_code else "preprocessing")
        run.on_ended(run, TaskOutcome(exit_code=exit_code, failure=failure, started=now, ended=now))

    # What holds at every moment

    @invariant()
    def slots_are_never_overcommitted(self) -> None:
        for node in self.all_nodes:
            held = [slot for task in node.tasks for slot in task.slots]
            assert len(held) == len(set(held))
            assert set(held) <= set(range(node.slots))
            assert all(len(task.slots) == task.required_slots for task in node.tasks)

    @invariant()
    def a_task_is_on_one_node_or_none(self) -> None:
        placed = [task for node in self.all_nodes for task in node.tasks]
        assert len(placed) == len(set(placed))
        for node in self.all_nodes:
            assert all(task.node is node for task in node.tasks)
            assert bool(node.tasks) is (node.state is NodeState.RUNNING)
        for task in self.all_tasks:
            assert (task.state in ON_NODES) is (task.node is not None) is (task in placed)
            assert task.node is None or self.world.account.pool_of(task.job) is task.node.pool

    @invariant()
    def a_task_that_could_run_waits(self) -> None:
        for task in self.all_tasks:
            assert task.waits is (task.state is TaskState.ACTIVE and not task.unmet)

    @invariant()
    def no_task_waits_while_a_node_has_room_for_it(self) -> None:
        for task in self.all_tasks:
            pool, job = self.world.account.pool_of(task.job), task.job
            if not task.waits or job.state is not JobState.ACTIVE or job.is_full or pool is None:
                continue
            if pool.state is PoolState.ACTIVE:
                assert not [
                    node
                    for node in pool.nodes.values()
                    if node.takes_tasks
                    and node.free_slots >= task.required_slots
                    and job_nodes.accepts(job, node)
                ]

    @invariant()
    def counts_are_those_of_the_tasks(self) -> None:
        for job in self.all_jobs:
            every = job.tasks.values()
            done = [task for task in every if task.state is TaskState.COMPLETED]
            active = [task for task in every if task.state is TaskState.ACTIVE]
            expected = {
                "blocked": [task for task in active if task.unmet],
                "active": [task for task in active if not task.unmet],
                "running": [task for task in every if task.state in ON_NODES],
                "succeeded": [task for task in done if not task.failure],
                "failed": [task for task in done if task.failure],
            }
            for name, counted in expected.items():
                count = getattr(job.tally, name)
                assert count.tasks == len(counted), name
                assert count.slots == sum(task.required_slots for task in counted), name

    @invariant()
    def a_job_at_rest_runs_nothing_and_never_hangs(self) -> None:
        for job in self.all_jobs:
            running = job.tally.running.tasks
            if job.state in {JobState.DISABLED, JobState.COMPLETED}:
                assert not running
            if job.state is JobState.DISABLING:
                assert running
            if job.state in {JobState.TERMINATING, JobState.DELETING}:
                assert running or job_nodes.releasing(job)
            if job.max_parallel_tasks is not None:
                assert running <= job.max_parallel_tasks

    @invariant()
    def a_steady_pool_has_its_size_or_says_why_not(self) -> None:
        for pool in self.all_pools:
            at_rest = pool.state is PoolState.ACTIVE and pool.allocation_state is AllocationState.STEADY
            if at_rest and not pool.resize_errors:
                assert len(pool.bucket(dedicated=True)) == pool.target_dedicated
                assert len(pool.bucket(dedicated=False)) == pool.target_low_priority

    def teardown(self) -> None:
        """Once every program ends well, no task is left on a node, and no job in between."""
        for _ in range(100):
            for run in list(self.rig.effects.runs):
                self.end(run, 0)
        assert not [task for task in self.all_tasks if task.state in ON_NODES]
        passing = {JobState.DISABLING, JobState.TERMINATING, JobState.DELETING}
        assert not [job for job in self.all_jobs if job.state in passing]
        for pool in self.all_pools:
            pool.failing_allocation = None
        self.rig.advance(10_000)
        assert all(pool.allocation_state is AllocationState.STEADY for pool in self.all_pools)


Service.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_the_service = Service.TestCase
