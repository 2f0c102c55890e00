"""`haste pools`: what there is to share, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from hastegeo.cli._candidates import candidate_ranks
from hastegeo.cli._environment import EnvFile, on_batch, open_runner
from hastegeo.cli._output import JsonFlag, length, note, print_json, print_table
from hastegeo.domain import CapacitySnapshot, PoolSnapshot
from hastegeo.errors import RunnerError

# The columns that count nodes, as `NodeCounts` names them.
_STATES: Final = ("idle", "running", "starting", "preempted", "unusable", "leaving")


def pools(json: JsonFlag = False, env_file: EnvFile = None) -> None:
    """Show the account's pools: tier, nodes by state, waiting tasks, headroom, last allocation error.

    Candidates of this environment are named by workload, with their rank; one that does not exist is shown.
    """
    with open_runner(env_file) as (settings, runner):
        snapshot = on_batch(runner).capacity.snapshot(fresh=True)
    if snapshot.nodes_error and snapshot.details_error:
        raise RunnerError(
            f"The Batch account does not tell its pools ({snapshot.details_error}).",
            hint="Run `haste doctor`, which finds out why.",
        )
    ranks = candidate_ranks(settings)
    shown = sorted({*snapshot.pools, *ranks})
    if json:
        print_json(
            {
                "taken_at": snapshot.taken_at,
                "nodes_error": snapshot.nodes_error,
                "details_error": snapshot.details_error,
                "pools": [
                    _record(pool, snapshot.pools.get(pool), snapshot, ranks.get(pool, {})) for pool in shown
                ],
            }
        )
        return
    for what, error in (("Node counts", snapshot.nodes_error), ("Pool details", snapshot.details_error)):
        if error:
            note(f"{what} are unknown: {error}.")
    print_table(
        ("POOL", "TIER", "IDLE", "RUN", "START", "PREEMPT", "BAD", "LEAVE", "QUEUED", "ROOM", "FOR", "ERROR"),
        [_row(pool, snapshot.pools.get(pool), snapshot, ranks.get(pool, {})) for pool in shown],
        empty="The Batch account has no pool.",
    )


def _record(
    pool_id: str, pool: PoolSnapshot | None, snapshot: CapacitySnapshot, ranks: Mapping[str, int]
) -> dict[str, Any]:
    nodes = pool.nodes if pool else None
    details = pool.details if pool else None
    return {
        "pool": pool_id,
        # Not known where the pools could not be listed.
        "exists": None if pool is None and snapshot.details_error else pool is not None,
        "candidate_for": dict(ranks),
        "nodes": {name: getattr(nodes, name) for name in _STATES} if nodes else None,
        "headroom": _headroom(pool),
        "tier": _tier(pool),
        "vm_size": details.vm_size if details else "",
        "deleting": details.deleting if details else None,
        "allocation_state": details.allocation_state if details else "",
        "max_nodes": details.max_nodes if details else None,
        "queued": details.queued if details else None,
        "queued_at": details.queued_at if details else None,
        "allocation_errors": [
            {"code": failure.code, "message": failure.message, "at": failure.at}
            for failure in (details.failures if details else ())
        ],
    }


def _row(
    pool_id: str, pool: PoolSnapshot | None, snapshot: CapacitySnapshot, ranks: Mapping[str, int]
) -> tuple[str, ...]:
    used_for = ",".join(f"{workload}:{rank}" for workload, rank in ranks.items()) or "-"
    if pool is None:
        why = "unknown" if snapshot.details_error else "the pool does not exist"
        return (pool_id, "-", *["-"] * len(_STATES), "-", "-", used_for, why)
    nodes, details = pool.nodes, pool.details
    counts = [str(getattr(nodes, name)) if nodes else "?" for name in _STATES]
    room = _headroom(pool)
    return (
        pool_id,
        _tier(pool) or "-",
        *counts,
        _queued(pool, snapshot.taken_at),
        "?" if room is None else str(room),
        used_for,
        "being deleted" if details and details.deleting else _last_failure(pool, snapshot.taken_at),
    )


def _headroom(pool: PoolSnapshot | None) -> int | None:
    """Return how many nodes the pool may still get; None where no limit, or no count, is known."""
    if pool is None or pool.nodes is None or pool.details is None or pool.details.max_nodes is None:
        return None
    return max(pool.details.max_nodes - pool.nodes.total, 0)


def _tier(pool: PoolSnapshot | None) -> str:
    details = pool.details if pool else None
    if details is None:
        return ""
    return details.tier or (details.sku.tier if details.sku else details.vm_size)


def _queued(pool: PoolSnapshot, now: datetime) -> str:
    details = pool.details
    if details is None or details.queued is None:
        return "?"
    age = f" ({length(now - details.queued_at)} ago)" if details.queued_at else ""
    return f"{details.queued}{age}"


def _last_failure(pool: PoolSnapshot, now: datetime) -> str:
    failures = pool.details.failures if pool.details else ()
    if not failures:
        return "-"
    newest = max(failures, key=lambda failure: failure.at)
    return f"{newest.code} {length(now - newest.at)} ago"
