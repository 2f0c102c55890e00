"""The road of a task, walked by the official SDK: a pool boots, a task runs, and its files can be read."""

from __future__ import annotations

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.core.exceptions import ResourceNotFoundError

from batch_emulator.testing import PrivateEmulator

from .support import completed, new_job, new_pool, new_task


def test_a_task_runs_once_its_pool_has_booted(emulator: PrivateEmulator, client: BatchClient) -> None:
    client.create_pool(new_pool(target_dedicated_nodes=1))
    client.create_job(new_job())
    client.create_task("job", new_task(command="/bin/sh -c 'echo hello from $AZ_BATCH_TASK_ID'"))
    assert client.get_task("job", "task").state == batch.BatchTaskState.ACTIVE
    assert client.get_pool("pool").allocation_state == batch.AllocationState.RESIZING

    emulator.advance(30 + 120)

    task = completed(client)
    assert task.execution_info.exit_code == 0
    assert task.execution_info.result == batch.BatchTaskExecutionResult.SUCCESS
    assert b"".join(client.download_task_file("job", "task", "stdout.txt")) == b"hello from task\n"
    assert client.get_pool("pool").allocation_state == batch.AllocationState.STEADY
    (node,) = client.list_nodes("pool")
    assert node.state == batch.BatchNodeState.IDLE
    assert task.node_info.node_id == node.id


def test_a_failing_task_says_why(emulator: PrivateEmulator, client: BatchClient) -> None:
    client.create_pool(new_pool(target_dedicated_nodes=1))
    client.create_job(new_job())
    client.create_task("job", new_task(command="/bin/sh -c 'exit 3'"))
    emulator.advance(150)

    info = completed(client).execution_info

    assert info.exit_code == 3
    assert info.result == batch.BatchTaskExecutionResult.FAILURE
    assert info.failure_info.code == "FailureExitCode"
    assert info.failure_info.category == batch.BatchErrorSourceCategory.USER_ERROR


def test_a_deleted_task_takes_its_files_along(emulator: PrivateEmulator, client: BatchClient) -> None:
    client.create_pool(new_pool(target_dedicated_nodes=1))
    client.create_job(new_job())
    client.create_task("job", new_task())
    emulator.advance(150)
    node_id = completed(client).node_info.node_id
    path = "workitems/job/job-1/task/stdout.txt"
    assert b"".join(client.download_node_file("pool", node_id, path)) == b""

    client.delete_task("job", "task")

    with pytest.raises(ResourceNotFoundError):
        client.get_task("job", "task")
    with pytest.raises(ResourceNotFoundError):
        list(client.download_node_file("pool", node_id, path))
