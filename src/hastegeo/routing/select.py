"""Choosing a pool for a task: a pure function of the candidates, one snapshot, and the task's need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from hastegeo.domain import (
    Attempt,
    CapacitySnapshot,
    Decision,
    GpuNeed,
    NodeCounts,
    PoolDetails,
    PoolSnapshot,
    Verdict,
)
from hastegeo.errors import CapacityError, ConfigurationError

FRESH_FAILURE: Final = timedelta(minutes=10)

# A policy picks among the assessed candidates, none of which skips, and says whether the task queues.
Policy = Callable[[Sequence[Attempt]], tuple[Attempt, bool]]


def prefer_first(attempts: Sequence[Attempt]) -> tuple[Attempt, bool]:
    """Pick the first candidate with a free node, else the first that can grow, else the first of all to
    queue on.
    """
    for wanted in (Verdict.FREE_NODE, Verdict.CAN_GROW):
        for attempt in attempts:
            if attempt.verdict is wanted:
                return attempt, False
    return attempts[0], True


POLICIES: Final[Mapping[str, Policy]] = MappingProxyType({"preferred": prefer_first})


def select_pool(
    candidates: Sequence[str],
    snapshot: CapacitySnapshot | None,
    need: GpuNeed | None = None,
    *,
    policy: str = "preferred",
    fresh_failure: timedelta = FRESH_FAILURE,
) -> Decision:
    """Choose one of the candidate pools, which are given preferred first.

    The default policy takes the first candidate with a free node; else the first that can still grow and
    had no allocation failure within `fresh_failure`; else the preferred one, where the task queues. A pool
    that does not exist, is being deleted, has only unusable nodes, or cannot meet `need` is never chosen.
    What is not known is a reason, never an error. A single candidate needs no snapshot, which may then be
    None.

    Raises `CapacityError`, with every candidate's reason, if none can be used.
    """
    if not candidates:
        raise ConfigurationError(
            "No candidate pool is given.", hint="Set the workload's AZURE_BATCH_*_POOL_IDS."
        )
    if policy not in POLICIES:
        raise ConfigurationError(
            f"There is no routing policy {policy!r}.", hint=f"Use one of {', '.join(POLICIES)}."
        )
    if len(candidates) == 1 or snapshot is None:
        only = Attempt(
            candidates[0], Verdict.ONLY_CANDIDATE, "the only candidate, so its capacity was not asked"
        )
        return Decision(chosen=only.pool_id, attempts=(only,))
    attempts = tuple(_assess(pool, snapshot, need or GpuNeed(), fresh_failure) for pool in candidates)
    usable = [attempt for attempt in attempts if not attempt.verdict.skips]
    if not usable:
        reasons = "; ".join(map(str, attempts))
        raise CapacityError(
            f"No candidate pool can take the task ({reasons}).",
            hint="Correct the list of candidate pools, or repair one of them; `haste pools` shows them all.",
        )
    chosen, queues = POLICIES[policy](usable)
    return Decision(chosen=chosen.pool_id, attempts=attempts, queues=queues)


def _assess(pool_id: str, snapshot: CapacitySnapshot, need: GpuNeed, fresh_failure: timedelta) -> Attempt:
    pool = snapshot.pools.get(pool_id)
    if pool is None:
        if snapshot.details_error:
            return Attempt(pool_id, Verdict.UNKNOWN, f"capacity unknown: {snapshot.details_error}")
        return Attempt(pool_id, Verdict.MISSING, "the pool does not exist")
    if pool.details is not None:
        if pool.details.deleting:
            return Attempt(pool_id, Verdict.DELETING, "the pool is being deleted")
        if pool.details.sku is not None and (shortfall := pool.details.sku.shortfall(need)):
            return Attempt(pool_id, Verdict.TOO_SMALL, shortfall)
    if pool.nodes is None:
        return Attempt(pool_id, Verdict.UNKNOWN, f"node counts unknown: {snapshot.nodes_error}")
    if pool.nodes.total and pool.nodes.unusable == pool.nodes.total:
        return Attempt(pool_id, Verdict.UNUSABLE, f"{_count(pool.nodes.total, 'node')}, all unusable")
    if pool.nodes.idle > pool.reserved:
        reason = f"{_count(pool.nodes.idle, 'idle node')}, {pool.reserved} reserved"
        return Attempt(pool_id, Verdict.FREE_NODE, reason)
    if pool.details is None:
        return Attempt(pool_id, Verdict.UNKNOWN, f"no free node, growth unknown: {snapshot.details_error}")
    return _assess_growth(pool, pool.nodes, pool.details, snapshot.taken_at, fresh_failure)


def _assess_growth(
    pool: PoolSnapshot, nodes: NodeCounts, details: PoolDetails, now: datetime, fresh_failure: timedelta
) -> Attempt:
    waiting = waiting_for_nodes(nodes, pool.reserved, details.queued)
    in_use = nodes.total - nodes.starting
    claims = f", {_count(waiting, 'task')} waiting for a node" if waiting else ""
    if details.max_nodes is not None and in_use + waiting >= details.max_nodes:
        reason = f"{in_use} of {_count(details.max_nodes, 'node')} in use{claims}, cannot grow"
        return Attempt(pool.pool_id, Verdict.BUSY, reason)
    recent = [failure for failure in details.failures if now - failure.at < fresh_failure]
    if recent:
        newest = max(recent, key=lambda failure: failure.at)
        return Attempt(pool.pool_id, Verdict.ALLOCATION_FAILED, f"{newest.code} {_age(now - newest.at)} ago")
    limit = "no limit known" if details.max_nodes is None else f"at most {details.max_nodes}"
    reason = f"no free node, {in_use} in use{claims}, can grow ({limit})"
    return Attempt(pool.pool_id, Verdict.CAN_GROW, reason)


def waiting_for_nodes(nodes: NodeCounts, reserved: int, queued: int | None) -> int:
    """Return how many waiting tasks have a claim on nodes that are still to come.

    The service does not tell it directly. It is at least the own reservations that no idle node serves, at
    least the queue that the autoscale run saw beyond the idle nodes, and at least the starting nodes, for
    somebody's task has called for each. These count the same tasks, so the largest is taken, not their sum.
    """
    return max(reserved - nodes.idle, (queued or 0) - nodes.idle, nodes.starting, 0)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _age(age: timedelta) -> str:
    seconds = max(int(age.total_seconds()), 0)
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
