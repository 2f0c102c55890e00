"""On the local Azure Batch: two tenants and two shared pools from zero nodes, routed by capacity."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.batch import BatchClient, models
from azure.core.credentials import AzureNamedKeyCredential

from hastegeo.domain import TaskSpec, TaskState, Workload
from hastegeo.routing.autoscale import pool_formula
from hastegeo.runners import AzureBatchRunner
from hastegeo.settings import Settings

T4, H100 = "haste-shared-test-t4-pool", "haste-shared-test-h100-pool"
PATIENCE = timedelta(seconds=90)
POLL = timedelta(seconds=0.3)


@pytest.fixture
def account(storage: Any, tmp_path: Path) -> Iterator[dict[str, str]]:
    from batch_emulator.clock import SystemClock
    from batch_emulator.nodes.images import Image, ImageTable
    from batch_emulator.testing import running_emulator

    image = Image(read_only_paths=(Path(sys.prefix), Path(sys.base_prefix)))
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(
            running_emulator(clock=SystemClock(200), images=ImageTable({"haste/test:1": image}))
        )
        key = AzureNamedKeyCredential(found.account_name, found.account_key)
        client = stack.enter_context(BatchClient(found.endpoint, key))
        create_pool(client, T4, "Standard_NC16as_T4_v3", most=2)
        create_pool(client, H100, "Standard_NC40ads_H100_v5", most=1)
        yield {
            "AZURE_BATCH_URL": found.endpoint,
            "AZURE_BATCH_ACCOUNT_NAME": found.account_name,
            "AZURE_BATCH_ACCOUNT_KEY": found.account_key,
            "AZURE_BATCH_USE_SAS": "true",
            "AZURE_BATCH_MANAGE_POOLS": "false",
            "AZURE_BATCH_IMAGERYPREP_POOL_IDS": f"{T4}, {H100}",
            "HASTE_GRANT_LEDGER": str(tmp_path / "grants.jsonl"),
        }


def create_pool(client: BatchClient, pool_id: str, size: str, most: int) -> None:
    client.create_pool(
        models.BatchPoolCreateOptions(
            id=pool_id,
            vm_size=size,
            virtual_machine_configuration=models.VirtualMachineConfiguration(
                image_reference=models.BatchVmImageReference(publisher="p", offer="o", sku="s"),
                node_agent_sku_id="batch.node.ubuntu 24.04",
            ),
            enable_auto_scale=True,
            auto_scale_evaluation_interval=timedelta(minutes=5),
            auto_scale_formula=pool_formula(min_nodes=0, max_nodes=most, node_type="low_priority"),
            metadata=[models.BatchMetadataItem(name="haste_max_nodes", value=str(most))],
        )
    )


def spec(tenant: str, key: str) -> TaskSpec:
    return TaskSpec(
        key=key,
        tenant=tenant,
        workload=Workload.IMAGERYPREP,
        image="haste/test:1",
        command=(sys.executable, "-c", "print('done')"),
        max_wall_clock=timedelta(minutes=5),
    )


def test_two_tenants_fill_two_pools_from_zero_spill_and_queue(account: dict[str, str], storage: Any) -> None:
    runners: dict[str, AzureBatchRunner] = {}
    for tenant in ("dev1", "dev2"):
        own = {
            "HASTE_TENANT": tenant,
            "AZURE_BATCH_OUTPUT_CONTAINER_URL": storage.address(f"{tenant}store").url,
        }
        shared = {"capacity": runners["dev1"].capacity} if runners else {}
        settings = Settings.load({**account, **own})
        runners[tenant] = AzureBatchRunner(settings, storage.credential, **shared)
    order = ["dev1", "dev2", "dev1", "dev2", "dev1"]
    found = [
        (tenant, runners[tenant].submit(spec(tenant, f"task-{number}")))
        for number, tenant in enumerate(order)
    ]
    assert [submission.decision.chosen for _, submission in found] == [T4, T4, H100, T4, T4]
    assert [submission.decision.queues for _, submission in found] == [False, False, False, True, True]
    for tenant, submission in found:
        status = runners[tenant].wait(submission.ref, timeout=PATIENCE, poll=POLL)
        assert status.state is TaskState.SUCCEEDED, status
        assert status.pool_id == submission.decision.chosen
        assert status.spills == (1 if submission.decision.chosen == H100 else 0)
        assert b"".join(runners[tenant].logs(submission.ref)) == b"done\n"
    jobs = {submission.ref.job_id for _, submission in found}
    assert len(jobs) == 3  # dev1 on both pools, dev2 on one
    assert {status.ref for status in runners["dev2"].list()} == {
        submission.ref for tenant, submission in found if tenant == "dev2"
    }
    # Nothing is reserved once every task was seen to have ended.
    assert [pool.reserved for pool in runners["dev1"].capacity.snapshot().pools.values()] == [0, 0]
    for runner in runners.values():
        runner.close()
