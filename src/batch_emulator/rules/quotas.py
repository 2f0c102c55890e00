"""What an account may have at most, and what a pool's machines are.

A pool that asks for more cores than are left is brought as far as they reach, and says so as a resize error.
What a `None` quota counts has no limit.

Source: https://learn.microsoft.com/azure/batch/batch-quota-limit
"""

from __future__ import annotations

from batch_emulator.errors import BatchError, invalid_property
from batch_emulator.rules.world import World
from batch_emulator.state import JobScheduleState, JobState, Json, NodeState, Pool
from batch_emulator.state.vm_sizes import VmSize, find_vm_size

_WITHOUT_MACHINE = {NodeState.PREEMPTED, NodeState.DEALLOCATED, NodeState.LEAVING_POOL}
_MOST_SLOTS = 256
_SLOTS_PER_CORE = 4


def vm_size(pool: Pool) -> VmSize:
    """Return the size of a pool's machines."""
    size = find_vm_size(pool.spec["vmSize"])
    assert size is not None  # noqa: S101 - it was checked when the pool was created
    return size


def check_pool(world: World, spec: Json) -> None:
    """Check what a new pool asks for. Raises `BatchError`: InvalidPropertyValue, PoolQuotaReached."""
    size = find_vm_size(spec["vmSize"])
    if size is None:
        raise invalid_property("vmSize", "There is no such size of virtual machines.", spec["vmSize"])
    most = min(_SLOTS_PER_CORE * size.cores, _MOST_SLOTS)
    slots = int(spec.get("taskSlotsPerNode", 1))
    if not 1 <= slots <= most:
        reason = f"A {size.name} has {size.cores} cores, and so from 1 to {most} task slots."
        raise invalid_property("taskSlotsPerNode", reason, slots)
    limit = world.quotas.pools
    if limit is not None and len(world.account.pools) >= limit:
        raise BatchError("PoolQuotaReached")


def check_job(world: World) -> None:
    """Raise ActiveJobAndScheduleQuotaReached if the account can take no more jobs and schedules."""
    limit = world.quotas.active_jobs_and_schedules
    if limit is None:
        return
    account = world.account
    active = sum(job.state is not JobState.COMPLETED for job in account.jobs.values())
    active += sum(schedule.state is not JobScheduleState.COMPLETED for schedule in account.schedules.values())
    if active >= limit:
        raise BatchError("ActiveJobAndScheduleQuotaReached")


def nodes_left(world: World, pool: Pool, *, dedicated: bool) -> int | None:
    """Return how many more nodes of one kind the quota of cores allows a pool; None for any number."""
    limit = world.quotas.dedicated_cores if dedicated else world.quotas.low_priority_cores
    if limit is None:
        return None
    return max(0, limit - cores_used(world, dedicated=dedicated)) // vm_size(pool).cores


def cores_used(world: World, *, dedicated: bool) -> int:
    """Return how many cores the nodes of all pools have."""
    return sum(
        vm_size(pool).cores
        for pool in world.account.pools.values()
        for node in pool.bucket(dedicated=dedicated)
        if node.state not in _WITHOUT_MACHINE
    )


def core_error(*, dedicated: bool) -> Json:
    """Return the resize error of a pool that has met the quota of cores."""
    if dedicated:
        code, kind = "AccountCoreQuotaReached", "core quota"
    else:
        code, kind = "AccountLowPriorityCoreQuotaReached", "low priority core quota"
    return {"code": code, "message": f"The specified account has reached {kind}", "values": []}
