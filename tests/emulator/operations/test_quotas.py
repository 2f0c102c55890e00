"""Sizes of machines are known, and the account's quotas hold as on the service."""

from __future__ import annotations

import re

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.core.exceptions import HttpResponseError, ResourceExistsError

from batch_emulator.clock import ManualClock
from batch_emulator.errors import BatchError
from batch_emulator.rules import job_schedules, jobs, nodes, pools
from batch_emulator.rules.world import Quotas
from batch_emulator.state import AllocationState
from batch_emulator.state.vm_sizes import find_vm_size, vm_sizes
from batch_emulator.testing import PrivateEmulator, running_emulator

from ..core.support import batch_client, new_job, new_pool
from ..core.world import Rig


def rig_with(**quotas: int | None) -> Rig:
    rig = Rig()
    rig.world.quotas = Quotas(**quotas)
    return rig


def test_sizes_are_found_in_any_case() -> None:
    size = find_vm_size("STANDARD_nc40ads_h100_v5")
    assert size is not None
    assert (size.cores, size.gpus, size.gpu_model, size.gpu_memory_gib) == (40, 1, "NVIDIA H100", 94)
    assert find_vm_size("standard_d4s_v3") == find_vm_size("Standard_D4s_v3")
    assert find_vm_size("standard_nothing") is None


def test_the_table_of_sizes_is_sane() -> None:
    for size in vm_sizes().values():
        assert re.fullmatch(r"Standard_[A-Za-z0-9]+(_[A-Za-z0-9]+)*", size.name)
        assert size.cores > 0
        assert size.memory_gib > 0
        assert bool(size.gpus) is bool(size.gpu_model) is bool(size.gpu_memory_gib)


def test_an_unknown_size_is_refused_by_name() -> None:
    with pytest.raises(BatchError) as caught:
        Rig().pool(vmSize="standard_d5_imagined", ready=False)
    assert caught.value.code == "InvalidPropertyValue"
    assert ("PropertyValue", "standard_d5_imagined") in caught.value.values


@pytest.mark.parametrize(("size", "most"), [("standard_d4s_v3", 16), ("standard_nd96isr_h200_v5", 256)])
def test_slots_are_limited_by_cores(size: str, most: int) -> None:
    rig = Rig()
    rig.pool("good", vmSize=size, taskSlotsPerNode=most)
    for slots in (0, most + 1):
        with pytest.raises(BatchError, match="InvalidPropertyValue"):
            rig.pool("bad", vmSize=size, taskSlotsPerNode=slots)


def test_no_more_pools_than_the_quota() -> None:
    rig = rig_with(pools=2)
    first = rig.pool("first")
    rig.pool("second")
    with pytest.raises(BatchError, match="PoolQuotaReached"):
        rig.pool("third")
    pools.delete(rig.world, first)
    rig.advance(60)
    rig.pool("third")


def test_jobs_and_schedules_share_a_quota_that_completed_ones_do_not_use() -> None:
    rig = rig_with(active_jobs_and_schedules=2)
    job = rig.job("one")
    schedule = {"id": "two", "jobSpecification": {"poolInfo": {"poolId": "pool"}}}
    added = job_schedules.add(rig.world, schedule)
    rig.advance(0)
    assert added.recent_job is not None  # it has its place with its schedule
    for add in (lambda: rig.job("three"), lambda: job_schedules.add(rig.world, {**schedule, "id": "three"})):
        with pytest.raises(BatchError, match="ActiveJobAndScheduleQuotaReached"):
            add()
    jobs.terminate(rig.world, job, "UserTerminate")
    jobs.terminate(rig.world, added.recent_job, "UserTerminate")
    rig.job("three")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("Dedicated", "AccountCoreQuotaReached"),
        ("LowPriority", "AccountLowPriorityCoreQuotaReached"),
    ],
)
def test_a_pool_grows_as_far_as_the_cores_reach(kind: str, code: str) -> None:
    rig = rig_with(dedicated_cores=10, low_priority_cores=10)
    pool = rig.pool(**{f"target{kind}Nodes": 3})  # of 4 cores each
    assert len(pool.nodes) == 2
    assert pool.allocation_state is AllocationState.STEADY
    assert [error["code"] for error in pool.resize_errors] == [code]
    other = rig.pool("other", **{f"target{kind}Nodes": 1})
    assert not other.nodes
    assert [error["code"] for error in other.resize_errors] == [code]

    pools.delete(rig.world, pool)
    rig.advance(60)
    pools.resize(rig.world, other, {f"target{kind}Nodes": 2})
    rig.advance(60)
    assert len(other.nodes) == 2
    assert other.resize_errors == []


def test_a_preempted_node_holds_no_cores() -> None:
    rig = rig_with(low_priority_cores=4)
    pool = rig.pool(targetLowPriorityNodes=1)
    (node,) = pool.nodes.values()
    assert len(rig.pool("other", targetLowPriorityNodes=1).nodes) == 0
    nodes.preempt(rig.world, node)
    assert len(rig.pool("third", targetLowPriorityNodes=1).nodes) == 1


def test_the_sdk_sees_the_services_codes() -> None:
    quotas = Quotas(pools=1, active_jobs_and_schedules=1, dedicated_cores=4)
    with (
        running_emulator(clock=ManualClock(), driver="process", quotas=quotas) as emulator,
        batch_client(emulator) as client,
    ):
        reaches_every_quota(emulator, client)


def reaches_every_quota(emulator: PrivateEmulator, client: BatchClient) -> None:
    client.create_pool(new_pool(target_dedicated_nodes=2))
    with pytest.raises(ResourceExistsError) as conflict:
        client.create_pool(new_pool("other"))
    assert conflict.value.error.code == "PoolQuotaReached"
    client.create_job(new_job())
    with pytest.raises(ResourceExistsError) as conflict:
        client.create_job(new_job("other"))
    assert conflict.value.error.code == "ActiveJobAndScheduleQuotaReached"
    emulator.advance(150)
    pool = client.get_pool("pool")
    assert (pool.current_dedicated_nodes, pool.target_dedicated_nodes) == (1, 2)
    assert pool.resize_errors[0].code == "AccountCoreQuotaReached"
    assert pool.allocation_state == batch.AllocationState.STEADY
    deletion = client.begin_delete_pool("pool", polling_interval=0.05)
    emulator.advance(60)
    deletion.wait(10)
    unknown = new_pool()
    unknown.vm_size = "Standard_Imagined"
    with pytest.raises(HttpResponseError) as refused:
        client.create_pool(unknown)
    assert refused.value.error.code == "InvalidPropertyValue"
