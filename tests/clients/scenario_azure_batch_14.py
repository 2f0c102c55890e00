"""The scenario, spoken by azure-batch 14.2: run in an environment of its own that holds nothing else."""

import os
import time

from azure.batch import BatchServiceClient, models
from azure.batch.batch_auth import SharedKeyCredentials

TASKS = 250


def main() -> None:
    credentials = SharedKeyCredentials(os.environ["BATCH_ACCOUNT"], os.environ["BATCH_KEY"])
    client = BatchServiceClient(credentials, batch_url=os.environ["BATCH_URL"])
    image = models.ImageReference(
        publisher="microsoft-dsvm", offer="ubuntu-hpc", sku="2404", version="latest"
    )
    machine = models.VirtualMachineConfiguration(
        image_reference=image, node_agent_sku_id="batch.node.ubuntu 24.04"
    )
    client.pool.add(
        models.PoolAddParameter(
            id="pool14",
            vm_size="Standard_D2s_v3",
            virtual_machine_configuration=machine,
            target_dedicated_nodes=2,
        )
    )
    assert client.pool.exists("pool14")
    assert not client.pool.exists("no-such-pool")
    client.job.add(models.JobAddParameter(id="job14", pool_info=models.PoolInformation(pool_id="pool14")))

    tasks = [models.TaskAddParameter(id=f"t{n:03}", command_line="/bin/echo hello") for n in range(TASKS)]
    for start in range(0, TASKS, 100):
        added = client.task.add_collection("job14", tasks[start : start + 100])
        assert all(result.status == models.TaskAddStatus.success for result in added.value)
    repeated = client.task.add_collection("job14", tasks[:1]).value[0]
    assert (repeated.status, repeated.error.code) == (models.TaskAddStatus.client_error, "TaskExists")

    options = models.TaskListOptions(max_results=40, select="id,state")
    listed = [task.id for task in client.task.list("job14", options)]
    # This SDK sends a collection from its end.
    assert sorted(listed) == [task.id for task in tasks]
    wait_for(lambda: client.job.get_task_counts("job14").task_counts.succeeded == TASKS)
    done = models.TaskListOptions(filter="state eq 'completed' and startswith(id, 't00')")
    assert len(list(client.task.list("job14", done))) == 10

    content = b"".join(client.file.get_from_task("job14", "t000", "stdout.txt"))
    assert content == b"hello\n", content
    names = {file.name for file in client.file.list_from_task("job14", "t000", recursive=True)}
    assert {"stdout.txt", "stderr.txt"} <= names, names
    counts = {count.pool_id: count.dedicated.total for count in client.account.list_pool_node_counts()}
    assert counts == {"pool14": 2}, counts

    fails(lambda: client.job.get("no-such-job"), "JobNotFound")
    fails(lambda: client.task.get("job14", "no-such-task"), "TaskNotFound")
    fails(
        lambda: client.job.add(
            models.JobAddParameter(id="job14", pool_info=models.PoolInformation(pool_id="pool14"))
        ),
        "JobExists",
    )
    stale = models.JobPatchOptions(if_match='"0x0"')
    fails(lambda: client.job.patch("job14", models.JobPatchParameter(priority=5), stale), "ConditionNotMet")

    client.job.delete("job14")
    client.pool.delete("pool14")
    wait_for(lambda: not list(client.pool.list()))
    print("ok")


def fails(call, code: str) -> None:
    try:
        call()
    except models.BatchErrorException as error:
        assert error.error.code == code, error.error.code
    else:
        raise AssertionError(f"{code} was expected")


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "took too long"
        time.sleep(0.1)


main()
