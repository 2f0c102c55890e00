"""The choice of a pool: its order, its reasons, and what it never does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hastegeo.domain import (
    AllocationFailure,
    CapacitySnapshot,
    GpuNeed,
    NodeCounts,
    PoolDetails,
    PoolSnapshot,
    Verdict,
    find_sku,
)
from hastegeo.errors import CapacityError, ConfigurationError
from hastegeo.routing import select_pool

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
T4, H100 = "t4-pool", "h100-pool"


def pool(
    pool_id: str, *, reserved: int = 0, nodes: NodeCounts | None = None, known: bool = True, **details: Any
) -> PoolSnapshot:
    values = {"autoscaled": True, "max_nodes": 2, "sku": find_sku("Standard_NC16as_T4_v3")} | details
    return PoolSnapshot(pool_id, nodes or NodeCounts(), PoolDetails(**values) if known else None, reserved)


def snapshot(*pools: PoolSnapshot, **errors: str) -> CapacitySnapshot:
    return CapacitySnapshot(NOW, {item.pool_id: item for item in pools}, **errors)


def failed(seconds: int) -> tuple[AllocationFailure, ...]:
    return (AllocationFailure("AllocationFailed", "no capacity", NOW - timedelta(seconds=seconds)),)


def test_the_first_candidate_with_a_free_node_is_taken() -> None:
    decision = select_pool(
        [T4, H100],
        snapshot(pool(T4, nodes=NodeCounts(running=2)), pool(H100, nodes=NodeCounts(idle=1))),
    )
    assert decision.chosen == H100
    assert [str(attempt) for attempt in decision.attempts] == [
        "t4-pool: 2 of 2 nodes in use, cannot grow",
        "h100-pool: 1 idle node, 0 reserved",
    ]
    assert (decision.spills, decision.queues) == (1, False)


def test_a_free_node_elsewhere_wins_over_growing_the_preferred_pool() -> None:
    decision = select_pool([T4, H100], snapshot(pool(T4), pool(H100, nodes=NodeCounts(idle=1))))
    assert decision.chosen == H100


def test_a_reserved_idle_node_is_not_free() -> None:
    decision = select_pool(
        [T4, H100], snapshot(pool(T4, nodes=NodeCounts(idle=1, running=1), reserved=1), pool(H100))
    )
    assert decision.chosen == H100
    assert decision.attempts[0].reason == "2 of 2 nodes in use, cannot grow"


def test_a_pool_that_can_grow_is_next() -> None:
    decision = select_pool([T4, H100], snapshot(pool(T4), pool(H100)))
    assert decision.chosen == T4
    assert decision.reason == "no free node, 0 in use, can grow (at most 2)"


@pytest.mark.parametrize(
    ("nodes", "reserved", "queued", "chosen"),
    [
        (NodeCounts(), 1, None, T4),  # one of two nodes to come is spoken for
        (NodeCounts(), 2, None, H100),  # both are
        (NodeCounts(starting=1), 1, None, T4),  # the starting node is the reserved one, not one more
        (NodeCounts(starting=1), 2, None, H100),
        (NodeCounts(starting=2), 0, None, H100),  # others' tasks have called for them
        (NodeCounts(running=1), 1, None, H100),
        (NodeCounts(running=1), 0, 1, H100),  # the autoscale run saw a waiting task
        (NodeCounts(running=1), 0, 0, T4),
        (NodeCounts(running=1, preempted=1), 0, None, H100),  # a preempted node keeps its place
        (NodeCounts(running=1, leaving=1), 0, None, T4),  # a leaving one does not
    ],
)
def test_nodes_to_come_are_spoken_for_once(
    nodes: NodeCounts, reserved: int, queued: int | None, chosen: str
) -> None:
    preferred = pool(T4, nodes=nodes, reserved=reserved, queued=queued)
    assert select_pool([T4, H100], snapshot(preferred, pool(H100))).chosen == chosen


def test_a_fresh_allocation_failure_sends_the_task_on_and_an_old_one_does_not() -> None:
    fresh = select_pool([T4, H100], snapshot(pool(T4, failures=failed(40)), pool(H100)))
    assert fresh.chosen == H100
    assert fresh.attempts[0].reason == "AllocationFailed 40 s ago"
    old = select_pool([T4, H100], snapshot(pool(T4, failures=failed(601)), pool(H100)))
    assert old.chosen == T4
    idle = pool(T4, failures=failed(40), nodes=NodeCounts(idle=1))
    assert select_pool([T4, H100], snapshot(idle, pool(H100))).chosen == T4


def test_with_no_room_anywhere_the_task_queues_on_the_preferred_pool() -> None:
    full = NodeCounts(running=2)
    decision = select_pool([T4, H100], snapshot(pool(T4, nodes=full), pool(H100, nodes=full)))
    assert (decision.chosen, decision.queues, decision.spills) == (T4, True, 0)
    assert len(decision.attempts) == 2


def test_a_fixed_pool_does_not_grow_by_itself() -> None:
    fixed = pool(T4, nodes=NodeCounts(running=1), autoscaled=False, max_nodes=1)
    assert select_pool([T4, H100], snapshot(fixed, pool(H100))).chosen == H100


def test_a_pool_without_a_known_limit_may_grow() -> None:
    decision = select_pool(
        [T4, H100], snapshot(pool(T4, nodes=NodeCounts(running=9), max_nodes=None), pool(H100))
    )
    assert decision.chosen == T4
    assert "no limit known" in decision.reason


@pytest.mark.parametrize(
    ("broken", "verdict", "reason"),
    [
        (None, Verdict.MISSING, "does not exist"),
        (pool(T4, deleting=True, nodes=NodeCounts(idle=1)), Verdict.DELETING, "being deleted"),
        (pool(T4, nodes=NodeCounts(unusable=2), sku=None), Verdict.UNUSABLE, "2 nodes, all unusable"),
        (
            pool(T4, nodes=NodeCounts(idle=1), sku=find_sku("Standard_NC16as_T4_v3")),
            Verdict.TOO_SMALL,
            "16 GiB",
        ),
    ],
)
def test_a_pool_that_cannot_run_the_task_is_skipped_with_its_reason(
    broken: PoolSnapshot | None, verdict: Verdict, reason: str
) -> None:
    good = pool(H100, nodes=NodeCounts(running=2), sku=find_sku("Standard_NC40ads_H100_v5"))
    pools = [found for found in (broken, good) if found is not None]
    decision = select_pool([T4, H100], snapshot(*pools), GpuNeed(1, 40))
    assert (decision.chosen, decision.queues, decision.spills) == (H100, True, 0)
    assert decision.attempts[0].verdict is verdict
    assert reason in decision.attempts[0].reason
    with pytest.raises(CapacityError, match="t4-pool"):
        select_pool([T4, T4], snapshot(*pools), GpuNeed(1, 40))


def test_what_is_unknown_is_a_reason_and_never_an_error() -> None:
    nothing = select_pool([T4, H100], snapshot(nodes_error="HTTP 503", details_error="HTTP 503"))
    assert (nothing.chosen, nothing.queues) == (T4, True)
    assert nothing.reason == "capacity unknown: HTTP 503"
    counts_only = snapshot(
        pool(T4, known=False), pool(H100, known=False, nodes=NodeCounts(idle=1)), details_error="timed out"
    )
    assert select_pool([T4, H100], counts_only).chosen == H100
    pools_only = CapacitySnapshot(
        NOW, {T4: PoolSnapshot(T4, None, PoolDetails())}, nodes_error="HTTP 429 TooManyRequests"
    )
    decision = select_pool([T4, H100], pools_only)
    assert decision.chosen == T4
    assert "429" in decision.reason


def test_one_candidate_is_taken_without_a_snapshot() -> None:
    decision = select_pool([T4], None)
    assert (decision.chosen, decision.attempts[0].verdict) == (T4, Verdict.ONLY_CANDIDATE)


def test_no_candidates_and_unknown_policies_are_configuration_errors() -> None:
    with pytest.raises(ConfigurationError):
        select_pool([], snapshot())
    with pytest.raises(ConfigurationError, match="preferred"):
        select_pool([T4, H100], snapshot(), policy="cheapest")


counts = st.builds(
    NodeCounts,
    idle=st.integers(0, 3),
    running=st.integers(0, 3),
    starting=st.integers(0, 3),
    preempted=st.integers(0, 2),
    unusable=st.integers(0, 2),
)
details = st.builds(
    PoolDetails,
    deleting=st.booleans(),
    sku=st.sampled_from([None, find_sku("Standard_NC16as_T4_v3"), find_sku("Standard_NC40ads_H100_v5")]),
    autoscaled=st.just(True),
    max_nodes=st.none() | st.integers(0, 6),
    queued=st.none() | st.integers(0, 4),
    failures=st.just(()) | st.integers(0, 2000).map(failed),
)
NAMES = ["a", "b", "c", "d"]
pools = st.fixed_dictionaries(
    {},
    optional={
        name: st.builds(
            PoolSnapshot, st.just(name), st.none() | counts, st.none() | details, st.integers(0, 4)
        )
        for name in NAMES
    },
)
snapshots = st.builds(CapacitySnapshot, st.just(NOW), pools, st.just(""), st.sampled_from(["", "HTTP 503"]))
needs = st.builds(GpuNeed, st.integers(0, 2), st.sampled_from([0, 16, 40, 94]))
ORDER = [Verdict.FREE_NODE, Verdict.CAN_GROW]


@given(st.lists(st.sampled_from(NAMES), min_size=2, unique=True), snapshots, needs)
def test_the_choice_is_deterministic_ordered_and_never_skipped(
    candidates: list[str], taken: CapacitySnapshot, need: GpuNeed
) -> None:
    try:
        decision = select_pool(candidates, taken, need)
    except CapacityError:
        return
    assert decision == select_pool(candidates, taken, need)
    verdicts = {attempt.pool_id: attempt.verdict for attempt in decision.attempts}
    assert list(verdicts) == candidates
    assert not verdicts[decision.chosen].skips
    usable = [name for name in candidates if not verdicts[name].skips]
    best = next((wanted for wanted in ORDER if wanted in [verdicts[name] for name in usable]), None)
    expected = next(name for name in usable if best is None or verdicts[name] is best)
    assert decision.chosen == expected
    assert decision.queues is (best is None)


@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 12))
def test_no_more_tasks_are_sent_to_a_pool_than_it_can_ever_hold_while_another_has_room(
    idle: int, running: int, submissions: int
) -> None:
    most = 6
    taken = 0
    for _ in range(submissions):
        preferred = pool(
            T4, nodes=NodeCounts(idle=idle, running=min(running, most - idle)), reserved=taken, max_nodes=most
        )
        if select_pool([T4, H100], snapshot(preferred, pool(H100, max_nodes=99))).chosen == T4:
            taken += 1
    assert taken + min(running, most - idle) <= most
