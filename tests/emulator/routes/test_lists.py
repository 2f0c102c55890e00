"""Lists as the SDK reads them: pages, filters, selections, and counts."""

from __future__ import annotations

import asyncio

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.batch.aio import BatchClient as AsyncBatchClient
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError

from batch_emulator.testing import PrivateEmulator

from ..core.support import new_job, new_pool, new_task

JOB = "many"
IDS = [f"task-{number:03}" for number in range(250)]


@pytest.fixture(scope="module", autouse=True)
def many_tasks(client: BatchClient) -> None:
    """250 tasks, which the SDK adds in chunks of 100."""
    client.create_job(new_job(JOB, uses_task_dependencies=True))
    result = client.create_tasks(JOB, [new_task(task_id) for task_id in IDS])
    assert {value.status for value in result.result_values or ()} == {batch.BatchTaskAddStatus.SUCCESS}


def test_a_list_is_in_the_order_of_creation_and_complete(client: BatchClient) -> None:
    assert sorted(task.id for task in client.list_tasks(JOB)) == IDS


@pytest.mark.parametrize("size", [1, 7, 100, 250, 1000])
def test_pages_have_the_size_asked_for_and_lose_nothing(client: BatchClient, size: int) -> None:
    pages = [[task.id for task in page] for page in client.list_tasks(JOB, max_results=size).by_page()]
    assert sorted(task_id for page in pages for task_id in page) == IDS
    assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert 0 < len(pages[-1]) <= size


def test_what_is_deleted_between_two_pages_hides_nothing(client: BatchClient) -> None:
    client.create_job(new_job("shrinking"))
    client.create_tasks("shrinking", [new_task(str(number)) for number in range(20)])
    pages = client.list_tasks("shrinking", max_results=5).by_page()
    first = [task.id for task in next(pages)]
    for task_id in first:
        client.delete_task("shrinking", task_id)
    rest = [task.id for page in pages for task in page]
    assert len(first) == 5
    assert {*first, *rest} == {str(number) for number in range(20)}


@pytest.mark.parametrize("size", [0, -1, 1001])
def test_a_page_size_out_of_range_is_refused(client: BatchClient, size: int) -> None:
    with pytest.raises(HttpResponseError) as raised:
        list(client.list_tasks(JOB, max_results=size))
    assert raised.value.model.code == "OutOfRangeInput"


def test_a_filter_holds_on_every_page(client: BatchClient) -> None:
    found = client.list_tasks(JOB, filter="startswith(id,'task-1') and state eq 'active'", max_results=30)
    assert sorted(task.id for task in found) == [task_id for task_id in IDS if task_id.startswith("task-1")]


def test_a_bad_filter_is_refused(client: BatchClient) -> None:
    with pytest.raises(HttpResponseError) as raised:
        list(client.list_tasks(JOB, filter="id equals 'x'"))
    assert raised.value.model.code == "InvalidQueryParameterValue"


def test_a_selection_leaves_the_rest_out(client: BatchClient) -> None:
    (task,) = client.list_tasks(JOB, filter="id eq 'task-007'", select=["id", "executionInfo/retryCount"])
    assert task.as_dict() == {"id": "task-007", "executionInfo": {"retryCount": 0}}
    assert client.get_task(JOB, "task-007", select=["state"]).keys() - {"odata.metadata"} == {"state"}


def test_jobs_pools_and_nodes_are_listed(emulator: PrivateEmulator, client: BatchClient) -> None:
    client.create_pool(new_pool("listed", target_dedicated_nodes=1, target_low_priority_nodes=2))
    client.create_job(new_job("listed", "listed"))
    emulator.advance(150)
    assert "listed" in [pool.id for pool in client.list_pools(filter="state eq 'active'")]
    assert [job.id for job in client.list_jobs(filter="id eq 'listed'", select=["id"])] == ["listed"]
    found = client.list_nodes("listed", filter="isDedicated eq false", select=["id", "state"], max_results=1)
    assert [node.state for node in found] == ["idle", "idle"]
    (counts,) = client.list_pool_node_counts(filter="poolId eq 'listed'")
    assert (counts.dedicated.total, counts.low_priority.idle, counts.low_priority.running) == (1, 2, 0)


def test_tasks_are_counted_by_state_and_slots(client: BatchClient) -> None:
    client.create_job(new_job("counted", "no-such-pool", uses_task_dependencies=True))
    client.create_task("counted", new_task("first", required_slots=3))
    depends_on = batch.BatchTaskDependencies(task_ids=["first"])
    client.create_task("counted", new_task("second", depends_on=depends_on))
    client.terminate_task("counted", "first")
    result = client.get_job_task_counts("counted")
    counts, slots = result.task_counts, result.task_slot_counts
    assert [counts.active, counts.running, counts.completed, counts.succeeded, counts.failed] == [
        1,
        0,
        1,
        0,
        1,
    ]
    assert [slots.active, slots.running, slots.completed, slots.succeeded, slots.failed] == [1, 0, 3, 0, 3]


def test_supported_images_and_applications_are_listed(client: BatchClient) -> None:
    agents = [image.node_agent_sku_id for image in client.list_supported_images()]
    assert "batch.node.ubuntu 24.04" in agents
    assert list(client.list_supported_images(filter="osType eq 'windows'")) == []
    assert list(client.list_applications()) == []


def test_the_async_client_reads_the_same(emulator: PrivateEmulator) -> None:
    async def read() -> tuple[list[str | None], str | None]:
        credential = AzureNamedKeyCredential(emulator.account_name, emulator.account_key)
        async with AsyncBatchClient(emulator.endpoint, credential, retry_total=0) as client:
            listed = [task.id async for task in client.list_tasks(JOB, max_results=100)]
            return listed, (await client.get_job(JOB)).id

    listed, job_id = asyncio.run(read())
    assert sorted(listed) == IDS
    assert job_id == JOB
