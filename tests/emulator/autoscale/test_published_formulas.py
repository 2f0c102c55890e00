"""Formulas that people use: those of Microsoft's documentation, of Nextflow, and others seen in public."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from batch_emulator.autoscale import AutoScaleFormulaSyntaxError, AutoScaleResult, MetricStore, parse

Run = Callable[..., AutoScaleResult]
Stores = Callable[..., MetricStore]

PENDING_TASKS = """
startingNumberOfVMs = 1;
maxNumberofVMs = 25;
pendingTaskSamplePercent = $PendingTasks.GetSamplePercent(180 * TimeInterval_Second);
pendingTaskSamples = pendingTaskSamplePercent < 70 ? startingNumberOfVMs : avg($PendingTasks.GetSample(180 * TimeInterval_Second));
$TargetDedicatedNodes=min(maxNumberofVMs, pendingTaskSamples);
$NodeDeallocationOption = taskcompletion;
"""  # noqa: E501 - as published


@pytest.mark.parametrize(("pending", "nodes"), [(0, 0), (7, 7), (40, 25)])
def test_pending_tasks(run: Run, steady: Stores, pending: int, nodes: int) -> None:
    result = run(PENDING_TASKS, steady(PendingTasks=pending))
    assert result.results == (
        f"$TargetDedicatedNodes={nodes};$TargetLowPriorityNodes=0;$NodeDeallocationOption=taskcompletion;"
        f"maxNumberofVMs=25;pendingTaskSamplePercent=83.3333;pendingTaskSamples={pending};"
        "startingNumberOfVMs=1"
    )


def test_pending_tasks_in_a_new_pool(run: Run) -> None:
    assert run(PENDING_TASKS).target_dedicated == 1


PREEMPTED_NODES = """
maxNumberofVMs = 25;
$TargetDedicatedNodes = min(maxNumberofVMs, $PreemptedNodeCount.GetSample(180 * TimeInterval_Second));
$TargetLowPriorityNodes = min(maxNumberofVMs , maxNumberofVMs - $TargetDedicatedNodes);
$NodeDeallocationOption = taskcompletion;
"""


@pytest.mark.parametrize(("preempted", "targets"), [(0, (0, 25)), (3, (3, 22)), (30, (25, 0))])
def test_preempted_nodes(run: Run, steady: Stores, preempted: int, targets: tuple[int, int]) -> None:
    result = run(PREEMPTED_NODES, steady(PreemptedNodeCount=preempted))
    assert result.error is None
    assert (result.target_dedicated, result.target_low_priority) == targets


WORKING_HOURS = """
$curTime = time();
$workHours = $curTime.hour >= 8 && $curTime.hour < 18;
$isWeekday = $curTime.weekday >= 1 && $curTime.weekday <= 5;
$isWorkingWeekdayHour = $workHours && $isWeekday;
$TargetDedicatedNodes = $isWorkingWeekdayHour ? 20:10;
$NodeDeallocationOption = taskcompletion;
"""


@pytest.mark.parametrize(
    ("moment", "nodes"),
    [
        ("2026-03-04T07:59:59+00:00", 10),
        ("2026-03-04T08:00:00+00:00", 20),
        ("2026-03-04T17:59:59+00:00", 20),
        ("2026-03-04T18:00:00+00:00", 10),
        ("2026-03-06T12:00:00+00:00", 20),
        ("2026-03-07T12:00:00+00:00", 10),
        ("2026-03-08T12:00:00+00:00", 10),
    ],
)
def test_working_hours(run: Run, moment: str, nodes: int) -> None:
    assert run(WORKING_HOURS, now=datetime.fromisoformat(moment)).target_dedicated == nodes


def test_working_hours_have_the_documented_results(run: Run) -> None:
    result = run(
        WORKING_HOURS.replace("$NodeDeallocationOption = taskcompletion;", ""),
        now=datetime.fromisoformat("2016-10-13T19:18:47.805+00:00"),
    )
    assert result.results == (
        "$TargetDedicatedNodes=10;$TargetLowPriorityNodes=0;$NodeDeallocationOption=requeue;"
        "$curTime=2016-10-13T19:18:47.805Z;$isWeekday=1;$isWorkingWeekdayHour=0;$workHours=0"
    )


TASK_BASED = """
// Get pending tasks for the past 15 minutes.
$samples = $PendingTasks.GetSamplePercent(TimeInterval_Minute * 15);
// If we have fewer than 70 percent data points, we use the last sample point,
// otherwise we use the maximum of last sample point and the history average.
$tasks = $samples < 70 ? max(0,$PendingTasks.GetSample(1)) : max( $PendingTasks.GetSample(1), avg($PendingTasks.GetSample(TimeInterval_Minute * 15)));
// If number of pending tasks is not 0, set targetVM to pending tasks, otherwise
// half of current dedicated.
$targetVMs = $tasks > 0? $tasks:max(0, $TargetDedicatedNodes/2);
// The pool size is capped at 20, if target VM value is more than that, set it
// to 20. This value should be adjusted according to your use case.
$TargetDedicatedNodes = max(0, min($targetVMs, 20));
// Set node deallocation mode - let running tasks finish before removing a node
$NodeDeallocationOption = taskcompletion;
"""  # noqa: E501 - as published


@pytest.mark.parametrize(
    ("samples", "current", "nodes"),
    [
        ([], 0, 0),  # a new pool
        ([6] * 5, 0, 6),  # too few samples: the newest that can be read
        ([4] * 60, 0, 4),
        ([0] * 50 + [12] * 10, 0, 12),  # growing: the newest sample
        ([12] * 50 + [0] * 10, 12, 8),  # shrinking: the average of 15 minutes, 21 of 29 samples with 12
        ([0] * 60, 9, 4),  # idle: half of what is there
        ([90] * 60, 0, 20),
    ],
)
def test_task_based_adjustment(
    run: Run, history: Stores, samples: list[float], current: int, nodes: int
) -> None:
    result = run(TASK_BASED, history({"$PendingTasks": samples}), dedicated=current)
    assert result.error is None
    assert result.target_dedicated == nodes


PARALLEL_TASKS = """
// Determine whether 70 percent of the samples have been recorded in the past
// 15 minutes; if not, use last sample
$samples = $ActiveTasks.GetSamplePercent(TimeInterval_Minute * 15);
$tasks = $samples < 70 ? max(0,$ActiveTasks.GetSample(1)) : max( $ActiveTasks.GetSample(1),avg($ActiveTasks.GetSample(TimeInterval_Minute * 15)));
// Set the number of nodes to add to one-fourth the number of active tasks (the
// TaskSlotsPerNode property on this pool is set to 4, adjust this number
// for your use case)
$cores = $TargetDedicatedNodes * 4;
$extraVMs = (($tasks - $cores) + 3) / 4;
$targetVMs = ($TargetDedicatedNodes + $extraVMs);
// Attempt to grow the number of compute nodes to match the number of active
// tasks, with a maximum of 3
$TargetDedicatedNodes = max(0,min($targetVMs,3));
// Keep the nodes active until the tasks finish
$NodeDeallocationOption = taskcompletion;
"""  # noqa: E501 - as published


@pytest.mark.parametrize(
    ("active", "current", "nodes"), [(0, 0, 0), (1, 0, 1), (4, 0, 1), (5, 0, 2), (5, 2, 2), (90, 0, 3)]
)
def test_parallel_tasks(run: Run, steady: Stores, active: int, current: int, nodes: int) -> None:
    result = run(PARALLEL_TASKS, steady(ActiveTasks=active), dedicated=current)
    assert result.error is None
    assert result.target_dedicated == nodes


def test_counting_active_tasks_alone_gives_up_nodes_while_tasks_run(run: Run, steady: Stores) -> None:
    """The known trap: three tasks run on three nodes, one waits, and the formula asks for one node."""
    metrics = steady(ActiveTasks=1, RunningTasks=3, PendingTasks=4)
    assert run(TASK_BASED, metrics, dedicated=3).target_dedicated == 4
    assert run(TASK_BASED.replace("$PendingTasks", "$ActiveTasks"), metrics).target_dedicated == 1


INITIAL_SIZE = """
    $TargetDedicatedNodes = {nodes};
    lifespan         = time() - time("{created}");
    span             = TimeInterval_Minute * 60;
    startup          = TimeInterval_Minute * 10;
    ratio            = 50;

    $TargetDedicatedNodes = (lifespan > startup ? (max($RunningTasks.GetSample(span, ratio), $ActiveTasks.GetSample(span, ratio)) == 0 ? 0 : $TargetDedicatedNodes) : {nodes});
    """  # noqa: E501 - as published


@pytest.mark.parametrize(
    ("age_minutes", "active", "running", "nodes"), [(9, 0, 0, 4), (11, 0, 0, 0), (11, 1, 0, 4), (70, 0, 2, 4)]
)
def test_initial_size(
    run: Run, steady: Stores, now: datetime, age_minutes: int, active: int, running: int, nodes: int
) -> None:
    created = (now - timedelta(minutes=age_minutes)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    formula = INITIAL_SIZE.format(nodes=4, created=created)
    result = run(formula, steady(ActiveTasks=active, RunningTasks=running))
    assert result.error is None
    assert result.target_dedicated == nodes


CPU_USE = """
$totalDedicatedNodes =
    (min($CPUPercent.GetSample(TimeInterval_Minute * 10)) > 0.7) ?
    ($CurrentDedicatedNodes * 1.1) : $CurrentDedicatedNodes;
$totalDedicatedNodes =
    (avg($CPUPercent.GetSample(TimeInterval_Minute * 60)) < 0.2) ?
    ($CurrentDedicatedNodes * 0.9) : $totalDedicatedNodes;
$TargetDedicatedNodes = min(400, $totalDedicatedNodes)
"""


@pytest.mark.parametrize(("cpu", "nodes"), [(0.9, 22), (0.5, 20), (0.1, 18)])
def test_cpu_use(run: Run, steady: Stores, cpu: float, nodes: int) -> None:
    result = run(CPU_USE, steady(CPUPercent=cpu, CurrentDedicatedNodes=20))
    assert result.error is None
    assert result.target_dedicated == nodes


def test_monday(run: Run) -> None:
    formula = "$TargetDedicatedNodes = (time().weekday == 1 ? 5:1);"
    assert run(formula, now=datetime.fromisoformat("2026-03-02T00:00:00+00:00")).target_dedicated == 5
    assert run(formula, now=datetime.fromisoformat("2026-03-03T00:00:00+00:00")).target_dedicated == 1


NEXTFLOW = """
// Get pool lifetime since creation.
lifespan = time() - time("{created}");
interval = TimeInterval_Minute * 5;

// Compute the target nodes based on pending tasks.
// $PendingTasks == The sum of $ActiveTasks and $RunningTasks
$samples = $PendingTasks.GetSamplePercent(interval);
$tasks = $samples < 70 ? max(0, $PendingTasks.GetSample(1)) : max( $PendingTasks.GetSample(1), avg($PendingTasks.GetSample(interval)));
$targetVMs = $tasks > 0 ? $tasks : max(0, $TargetDedicatedNodes/2);
targetPoolSize = max(0, min($targetVMs, 50));

// For first interval deploy 1 node, for other intervals scale up/down as per tasks.
$TargetDedicatedNodes = lifespan < interval ? 5 : targetPoolSize;
$NodeDeallocationOption = taskcompletion;
"""  # noqa: E501 - as published


@pytest.mark.parametrize(
    ("age_minutes", "pending", "current", "nodes"),
    [(4, 0, 0, 5), (6, 8, 5, 8), (6, 90, 5, 50), (60, 0, 5, 2)],
)
def test_nextflow(
    run: Run, steady: Stores, now: datetime, age_minutes: int, pending: int, current: int, nodes: int
) -> None:
    created = (now - timedelta(minutes=age_minutes)).isoformat().replace("+00:00", ".880011Z")
    metrics = steady(PendingTasks=pending, minutes=age_minutes)
    result = run(NEXTFLOW.format(created=created), metrics, dedicated=current)
    assert result.error is None
    assert result.target_dedicated == nodes


def test_nextflow_with_nanoseconds_fails_as_it_did(run: Run) -> None:
    result = run(NEXTFLOW.format(created="2023-04-14T10:11:12.123456789Z"), dedicated=2)
    assert result.error is not None
    assert result.error.code == "AutoScalingFormulaEvaluationError"
    assert result.target_dedicated == 2


def test_a_share_of_a_node_truncates(run: Run, steady: Stores) -> None:
    metrics = steady(PendingTasks=4, TaskSlotsPerNode=2)
    formula = "$TargetDedicatedNodes = $PendingTasks / $TaskSlotsPerNode + 0.9;"
    assert run(formula, metrics).target_dedicated == 2
    assert run(formula.replace("+ 0.9", ""), metrics).target_dedicated == 2
    rounded = "$TargetDedicatedNodes = ceil($PendingTasks / $TaskSlotsPerNode + 0.9);"
    assert run(rounded, metrics).target_dedicated == 3


def test_a_missing_semicolon_is_refused() -> None:
    """A formula seen in public that the service refuses: the statement before the option is not ended."""
    published = PENDING_TASKS.replace("pendingTaskSamples);\n", "pendingTaskSamples)\n")
    assert parse(PENDING_TASKS)
    with pytest.raises(AutoScaleFormulaSyntaxError, match=r"Line 7, Col 1: expected ';'"):
        parse(published)
