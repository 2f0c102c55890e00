"""Pools that live as long as a job, or a job schedule.

Source: https://learn.microsoft.com/rest/api/batchservice/job/add#autopoolspecification
"""

from __future__ import annotations

import copy
import uuid

from batch_emulator.errors import invalid_property
from batch_emulator.rules import pools
from batch_emulator.rules.world import World
from batch_emulator.state import Job, Json, PoolState, key


def create(world: World, specification: Json, schedule_id: str | None) -> str:
    """Create the pool of a job, unless its schedule's pool is there already, and return its id."""
    for_schedule = specification["poolLifetimeOption"].lower() == "jobschedule"
    if for_schedule and schedule_id is None:
        raise invalid_property(
            "poolInfo.autoPoolSpecification.poolLifetimeOption", "The job has no job schedule."
        )
    prefix = specification.get("autoPoolIdPrefix", "")
    name = schedule_id if for_schedule and schedule_id is not None else str(uuid.uuid4()).upper()
    pool_id = f"{prefix}_{name}" if prefix else name
    if key(pool_id) not in world.account.pools:
        spec = copy.deepcopy(specification.get("pool"))
        if spec is None:
            raise invalid_property("poolInfo.autoPoolSpecification.pool", "A pool specification is expected.")
        pools.add(world, {**spec, "id": pool_id})
    return pool_id


def job_ended(world: World, job: Job) -> None:
    """Delete the pool of a job that has ended, unless it is to be kept or belongs to a schedule."""
    specification: Json = job.spec["poolInfo"]["autoPoolSpecification"]
    if specification["poolLifetimeOption"].lower() == "job":
        _delete(world, job.auto_pool_id or "", specification)


def schedule_ended(world: World, pool_id: str, specification: Json) -> None:
    """Delete the pool of a job schedule that has ended, unless it is to be kept."""
    _delete(world, pool_id, specification)


def _delete(world: World, pool_id: str, specification: Json) -> None:
    pool = world.account.pools.get(key(pool_id))
    if pool is not None and pool.state is PoolState.ACTIVE and not specification.get("keepAlive"):
        pools.delete(world, pool)
