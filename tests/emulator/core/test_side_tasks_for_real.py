"""Start, preparation and release tasks as real processes, seen by the official SDK."""

from __future__ import annotations

from azure.batch import BatchClient
from azure.batch import models as batch

from batch_emulator.testing import PrivateEmulator

from .support import completed, eventually, new_job, new_pool, new_task


def test_a_start_task_leaves_its_files_in_the_startup_directory(
    emulator: PrivateEmulator, client: BatchClient
) -> None:
    start = batch.BatchStartTask(command_line="/bin/sh -c 'echo ready > made; pwd'")
    client.create_pool(new_pool(target_dedicated_nodes=1, start_task=start))
    emulator.advance(150)
    eventually(lambda: next(iter(client.list_nodes("pool"))).state == batch.BatchNodeState.IDLE, "idle")
    (node,) = client.list_nodes("pool")
    assert node.start_task_info.state == batch.BatchStartTaskState.COMPLETED
    assert node.start_task_info.exit_code == 0
    assert b"".join(client.download_node_file("pool", node.id, "startup/wd/made")) == b"ready\n"

    client.create_job(new_job())
    client.create_task("job", new_task(command="/bin/sh -c 'cat $AZ_BATCH_NODE_STARTUP_DIR/wd/made'"))
    completed(client)
    assert b"".join(client.download_task_file("job", "task", "stdout.txt")) == b"ready\n"


def test_a_failed_start_task_is_told_with_its_exit_code(
    emulator: PrivateEmulator, client: BatchClient
) -> None:
    start = batch.BatchStartTask(command_line="/bin/sh -c 'exit 9'", max_task_retry_count=1)
    client.create_pool(new_pool(target_dedicated_nodes=1, start_task=start))
    emulator.advance(150)
    eventually(
        lambda: next(iter(client.list_nodes("pool"))).state == batch.BatchNodeState.START_TASK_FAILED,
        "start task failed",
    )
    (node,) = client.list_nodes("pool")
    info = node.start_task_info
    assert (info.exit_code, info.retry_count) == (9, 1)
    assert info.failure_info.code == "FailureExitCode"
    (counts,) = client.list_pool_node_counts()
    assert counts.dedicated.start_task_failed == 1


def test_preparation_and_release_run_on_the_node_and_are_listed(
    emulator: PrivateEmulator, client: BatchClient
) -> None:
    client.create_pool(new_pool(target_dedicated_nodes=1))
    client.create_job(
        new_job(
            job_preparation_task=batch.BatchJobPreparationTask(
                command_line="/bin/sh -c 'echo prepared > made'"
            ),
            job_release_task=batch.BatchJobReleaseTask(command_line="/bin/sh -c 'exit 0'"),
        )
    )
    client.create_task(
        "job",
        new_task(
            command="/bin/sh -c 'cat $AZ_BATCH_JOB_PREP_DIR/wd/made $AZ_BATCH_JOB_PREP_WORKING_DIR/made'"
        ),
    )
    emulator.advance(150)
    assert completed(client).execution_info.exit_code == 0
    assert b"".join(client.download_task_file("job", "task", "stdout.txt")) == b"prepared\n" * 2

    # Without options this SDK fails before it sends anything.
    client.begin_terminate_job("job", options={"terminateReason": "done"}, polling_interval=0).result()

    (status,) = client.list_job_preparation_and_release_task_status("job")
    assert status.job_preparation_task_execution_info.exit_code == 0
    assert status.job_release_task_execution_info.state == batch.BatchJobReleaseTaskState.COMPLETED
    assert client.get_job("job").state == batch.BatchJobState.COMPLETED
