"""The formula that hastegeo gives its pools, run by the emulator's evaluator of Azure Batch's language."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from azure.batch import models
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.autoscale import AutoScaleResult, CurrentTargets, MetricStore, evaluate
from hastegeo.capacity.reading import pool_details
from hastegeo.errors import ConfigurationError
from hastegeo.routing.autoscale import NodeType, pool_formula

NOW = datetime(2026, 3, 4, 12, 0, 7, tzinfo=UTC)
PERIOD = timedelta(seconds=30)


def store(*samples: tuple[int, int, int], newest_age: timedelta = timedelta(seconds=65)) -> MetricStore:
    """Samples of (active, running, preempted), the last one taken `newest_age` before NOW."""
    metrics = MetricStore()
    for index, (active, running, preempted) in enumerate(samples):
        metrics.record(
            NOW - newest_age - PERIOD * (len(samples) - 1 - index),
            {
                "$ActiveTasks": active,
                "$RunningTasks": running,
                "$PendingTasks": active + running,
                "$PreemptedNodeCount": preempted,
            },
        )
    return metrics


def run(
    formula: str, metrics: MetricStore, *, now: datetime = NOW, dedicated: int = 0, low_priority: int = 0
) -> AutoScaleResult:
    result = evaluate(formula, metrics=metrics, now=now, current=CurrentTargets(dedicated, low_priority))
    assert result.error is None
    assert result.node_deallocation_option == "taskcompletion"
    return result


def low_priority_formula(min_nodes: int = 0, max_nodes: int = 4, **window: int) -> str:
    return pool_formula(min_nodes=min_nodes, max_nodes=max_nodes, node_type="low_priority", **window)


def test_counts_waiting_and_running_tasks() -> None:
    result = run(low_priority_formula(), store((2, 1, 0)))
    assert result.target_low_priority == 3
    assert result.target_dedicated == 0


def test_the_results_tell_the_router_what_was_seen() -> None:
    result = run(low_priority_formula(), store((5, 2, 1)))
    assert result.results == (
        "$TargetDedicatedNodes=0;$TargetLowPriorityNodes=4;$NodeDeallocationOption=taskcompletion;"
        "needed=7;pendingTasks=7;preempted=1;queued=5;running=2;seen=25;target=4;window=00:02:00"
    )


def test_the_capacity_snapshot_reads_the_queue_from_the_results() -> None:
    results = run(low_priority_formula(), store((5, 2, 0))).results
    pool = models.BatchPool(
        {
            "id": "pool",
            "enableAutoScale": True,
            "autoScaleRun": {"timestamp": "2026-03-04T12:00:07Z", "results": results},
        }
    )
    details = pool_details(pool, running=2)
    assert (details.queued, details.queued_at) == (5, NOW)


@pytest.mark.parametrize("node_type", get_args(NodeType))
def test_only_the_nodes_of_the_given_type_are_used(node_type: NodeType) -> None:
    formula = pool_formula(min_nodes=0, max_nodes=4, node_type=node_type)
    result = run(formula, store((3, 0, 0)), dedicated=2, low_priority=2)
    expected = (3, 0) if node_type == "dedicated" else (0, 3)
    assert (result.target_dedicated, result.target_low_priority) == expected


def test_a_first_task_is_seen_by_the_first_evaluation_after_its_sample_can_be_read() -> None:
    metrics = store((0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 0, 0), newest_age=timedelta())
    formula = low_priority_formula()
    assert run(formula, metrics, now=NOW + timedelta(seconds=59)).target_low_priority == 0
    assert run(formula, metrics, now=NOW + timedelta(seconds=60)).target_low_priority == 1


def test_a_preempted_node_gets_a_node_beside_it_only_while_tasks_are_pending() -> None:
    formula = low_priority_formula()
    assert run(formula, store((1, 1, 1))).target_low_priority == 3
    assert run(formula, store((0, 0, 1))).target_low_priority == 0


def test_preempted_nodes_do_not_lift_a_pool_above_its_maximum() -> None:
    assert run(low_priority_formula(max_nodes=3), store((1, 2, 5))).target_low_priority == 3


def test_a_short_quiet_between_two_tasks_does_not_cost_the_node() -> None:
    busy_within_the_window = store((0, 1, 0), (0, 0, 0))
    assert run(low_priority_formula(), busy_within_the_window).target_low_priority == 1


def test_a_quiet_window_empties_the_pool() -> None:
    quiet = store((0, 2, 0), *[(0, 0, 0)] * 5)
    assert run(low_priority_formula(), quiet, low_priority=2).target_low_priority == 0


@pytest.mark.parametrize("metrics", [store(), store((9, 9, 9), newest_age=timedelta(hours=1))])
def test_without_recent_samples_the_pool_keeps_its_size(metrics: MetricStore) -> None:
    assert run(low_priority_formula(), metrics, low_priority=2).target_low_priority == 2


def test_a_new_pool_without_samples_starts_at_its_minimum() -> None:
    assert run(low_priority_formula(min_nodes=1), store()).target_low_priority == 1


counts = st.integers(min_value=0, max_value=50)
histories = st.lists(st.tuples(counts, counts, counts), max_size=12)
ages = st.integers(min_value=0, max_value=600).map(lambda seconds: timedelta(seconds=seconds))


@given(
    histories,
    ages,
    counts,
    counts,
    st.sampled_from(get_args(NodeType)),
    st.integers(90, 3600),
    st.tuples(counts, counts),
)
def test_targets_stay_in_range_and_cover_what_runs(
    history: list[tuple[int, int, int]],
    age: timedelta,
    low: int,
    extra: int,
    node_type: NodeType,
    window_seconds: int,
    current: tuple[int, int],
) -> None:
    min_nodes, max_nodes = low, low + extra
    formula = pool_formula(
        min_nodes=min_nodes, max_nodes=max_nodes, node_type=node_type, window_seconds=window_seconds
    )
    metrics = store(*history, newest_age=age)
    result = run(formula, metrics, dedicated=current[0], low_priority=current[1])
    targets = (result.target_dedicated, result.target_low_priority)
    used, unused = targets if node_type == "dedicated" else targets[::-1]
    assert min_nodes <= used <= max_nodes
    assert unused == 0
    # What the pool sees within its window, all else is unknown to it.
    window = timedelta(seconds=window_seconds)
    visible = metrics.latest("$RunningTasks", 1, now=NOW)
    if visible and metrics.between("$RunningTasks", NOW - window, NOW, now=NOW):
        assert used >= min(max_nodes, visible[-1])


@given(st.integers(1, 12), counts, counts, counts)
def test_an_idle_pool_goes_to_its_minimum(samples: int, low: int, extra: int, preempted: int) -> None:
    formula = low_priority_formula(min_nodes=low, max_nodes=low + extra)
    idle = store(*[(0, 0, preempted)] * samples)
    assert run(formula, idle, low_priority=low + extra).target_low_priority == low


@pytest.mark.parametrize(("min_nodes", "max_nodes"), [(-1, 3), (4, 3)])
def test_numbers_that_are_no_range_are_refused(min_nodes: int, max_nodes: int) -> None:
    with pytest.raises(ConfigurationError, match=f"from {min_nodes} to {max_nodes}"):
        low_priority_formula(min_nodes=min_nodes, max_nodes=max_nodes)


@pytest.mark.parametrize("window_seconds", [60, 3601])
def test_a_window_that_cannot_work_is_refused(window_seconds: int) -> None:
    with pytest.raises(ConfigurationError, match=f"{window_seconds} seconds"):
        low_priority_formula(window_seconds=window_seconds)
