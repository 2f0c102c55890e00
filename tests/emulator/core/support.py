"""What the tests of the emulator's core share: the SDK's client and short ways to make its requests."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.core.credentials import AzureNamedKeyCredential

from batch_emulator.testing import PrivateEmulator

DEADLINE_SECONDS = 20.0


def batch_client(emulator: PrivateEmulator) -> BatchClient:
    """The real SDK, without its retries: a retried error would only cost time here."""
    credential = AzureNamedKeyCredential(emulator.account_name, emulator.account_key)
    return BatchClient(emulator.endpoint, credential, retry_total=0)


def new_pool(pool_id: str = "pool", **options: object) -> batch.BatchPoolCreateOptions:
    return batch.BatchPoolCreateOptions(
        id=pool_id,
        vm_size="Standard_D4s_v3",
        virtual_machine_configuration=batch.VirtualMachineConfiguration(
            image_reference=batch.BatchVmImageReference(
                publisher="microsoft-dsvm", offer="ubuntu-hpc", sku="2404", version="latest"
            ),
            node_agent_sku_id="batch.node.ubuntu 24.04",
        ),
        **options,
    )


def new_job(job_id: str = "job", pool_id: str = "pool", **options: object) -> batch.BatchJobCreateOptions:
    return batch.BatchJobCreateOptions(id=job_id, pool_info=batch.BatchPoolInfo(pool_id=pool_id), **options)


def new_task(
    task_id: str = "task", command: str = "/bin/true", **options: object
) -> batch.BatchTaskCreateOptions:
    return batch.BatchTaskCreateOptions(id=task_id, command_line=command, **options)


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait for what real processes do; service time is never waited for here."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {DEADLINE_SECONDS:.0f} seconds: {what}")
        time.sleep(0.02)


def completed(client: BatchClient, task_id: str = "task", job_id: str = "job") -> batch.BatchTask:
    """Wait until a task has completed, and return it."""
    eventually(
        lambda: client.get_task(job_id, task_id).state == batch.BatchTaskState.COMPLETED,
        f"{task_id} completed",
    )
    return client.get_task(job_id, task_id)
