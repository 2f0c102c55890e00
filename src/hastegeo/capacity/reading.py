"""From the answers of the two capacity calls to pool snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from azure.batch import models
from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseTimeoutError,
)

from hastegeo.domain import AllocationFailure, NodeCounts, PoolDetails, PoolSnapshot, find_sku

# What is read of a pool, by its names on the wire.
POOL_FIELDS: Final = (
    "id",
    "state",
    "allocationState",
    "allocationStateTransitionTime",
    "vmSize",
    "resizeErrors",
    "targetDedicatedNodes",
    "targetLowPriorityNodes",
    "enableAutoScale",
    "autoScaleRun",
    "metadata",
)
TIER_METADATA: Final = "haste_tier"
MAX_NODES_METADATA: Final = "haste_max_nodes"
# The user variables in which the pools' autoscale formula leaves the tasks that it saw.
QUEUED_VARIABLE: Final = "queued"
PENDING_VARIABLE: Final = "pendingTasks"
_RESULT: Final = re.compile(r"\s*\$?(?P<name>\w+)\s*=\s*(?P<value>[^;]*)")


def node_counts(counts: models.BatchPoolNodeCounts) -> NodeCounts:
    """Add up the dedicated and the low-priority nodes of a pool."""
    kinds = [kind for kind in (counts.dedicated, counts.low_priority) if kind is not None]

    def total(*states: str) -> int:
        # A state that the service does not send (older versions know fewer) counts none.
        return sum(getattr(kind, state) or 0 for kind in kinds for state in states)

    return NodeCounts(
        idle=total("idle"),
        running=total("running"),
        starting=total(
            "creating", "starting", "waiting_for_start_task", "rebooting", "reimaging", "upgrading_os"
        ),
        preempted=total("preempted"),
        unusable=total("unusable", "start_task_failed", "offline", "unknown", "deallocated", "deallocating"),
        leaving=total("leaving_pool"),
    )


def pool_details(pool: models.BatchPool, running: int) -> PoolDetails:
    """Read what a pool says of itself. `running` is its running nodes now, one task each."""
    metadata = {item.name: item.value for item in pool.metadata or ()}
    autoscaled = bool(pool.enable_auto_scale)
    queued, queued_at = _queued(pool.auto_scale_run, running)
    return PoolDetails(
        deleting=_lower(pool.state) == "deleting",
        allocation_state=_lower(pool.allocation_state),
        vm_size=pool.vm_size or "",
        sku=find_sku(pool.vm_size or ""),
        tier=metadata.get(TIER_METADATA, ""),
        autoscaled=autoscaled,
        max_nodes=_max_nodes(metadata) if autoscaled else _target(pool),
        queued=queued,
        queued_at=queued_at,
        failures=_failures(pool),
    )


def merge(
    counts: Iterable[models.BatchPoolNodeCounts] | None, pools: Iterable[models.BatchPool] | None
) -> dict[str, PoolSnapshot]:
    """Join both answers by pool. None stands for a call that failed."""
    nodes: Mapping[str, NodeCounts] = {item.pool_id: node_counts(item) for item in counts or ()}
    if pools is None:
        return {pool_id: PoolSnapshot(pool_id, found, None) for pool_id, found in nodes.items()}
    result = {}
    for pool in pools:
        # A pool that is too new for the counts has no nodes.
        found = None if counts is None else nodes.get(pool.id, NodeCounts())
        result[pool.id] = PoolSnapshot(pool.id, found, pool_details(pool, found.running if found else 0))
    return result


def why(error: AzureError) -> str:
    """Say in a few words why a call failed, without its URL or headers."""
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        code = getattr(error.error, "code", None) or error.reason or ""
        return f"HTTP {error.status_code} {code}".strip()
    if isinstance(error, ServiceRequestTimeoutError | ServiceResponseTimeoutError):
        return "timed out"
    return "cannot connect" if isinstance(error, ServiceRequestError) else "the connection broke"


def _max_nodes(metadata: Mapping[str, str]) -> int | None:
    text = metadata.get(MAX_NODES_METADATA, "")
    return int(text) if text.isdecimal() else None


def _target(pool: models.BatchPool) -> int:
    return (pool.target_dedicated_nodes or 0) + (pool.target_low_priority_nodes or 0)


def _failures(pool: models.BatchPool) -> tuple[AllocationFailure, ...]:
    when: datetime | None = pool.allocation_state_transition_time
    if when is None:
        return ()
    return tuple(
        AllocationFailure(code=error.code or "AllocationFailed", message=error.message or "", at=when)
        for error in pool.resize_errors or ()
    )


def _queued(run: models.AutoScaleRun | None, running: int) -> tuple[int | None, datetime | None]:
    if run is None or not run.results:
        return None, None
    found = {
        match["name"]: match["value"] for part in run.results.split(";") if (match := _RESULT.match(part))
    }
    try:
        queued, pending = float(found[QUEUED_VARIABLE]), float(found[PENDING_VARIABLE])
    except (KeyError, ValueError):
        return None, None
    # The run's samples are a minute old or more: tasks that waited then and run now are taken off.
    return max(min(int(queued), int(pending) - running), 0), run.timestamp


def _lower(value: object) -> str:
    """Write an enumeration's value in lower case: the service is free in its case and adds values."""
    return str(getattr(value, "value", value) or "").lower()
