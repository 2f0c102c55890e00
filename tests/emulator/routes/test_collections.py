"""Adding many tasks in one call: each succeeds or fails for itself, and a call has its limits."""

from __future__ import annotations

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

from ..core.support import new_job, new_task

DEPENDS = batch.BatchTaskDependencies(task_ids=["new"])


def add(
    client: BatchClient, job_id: str, *tasks: batch.BatchTaskCreateOptions
) -> list[batch.BatchTaskCreateResult]:
    result = client.create_task_collection(job_id, batch.BatchTaskGroup(task_values=list(tasks)))
    return list(result.result_values or ())


def test_one_bad_task_does_not_keep_the_others_out(client: BatchClient, name: str) -> None:
    client.create_job(new_job(name))
    client.create_task(name, new_task("there"))
    results = add(
        client,
        name,
        new_task("new"),
        new_task("THERE"),
        new_task("dependent", depends_on=DEPENDS),
    )
    assert [(result.task_id, result.status) for result in results] == [
        ("new", "success"),
        ("THERE", "clienterror"),
        ("dependent", "clienterror"),
    ]
    assert results[0].location == f"{client._config.endpoint}/jobs/{name}/tasks/new"
    assert results[0].etag == client.get_task(name, "new").etag
    codes = [result.error.code for result in results[1:] if result.error]
    assert codes == ["TaskExists", "TaskDependenciesNotSpecifiedOnJob"]
    assert sorted(task.id for task in client.list_tasks(name)) == ["new", "there"]


def test_the_sdk_raises_for_what_failed(client: BatchClient, name: str) -> None:
    client.create_job(new_job(name))
    with pytest.raises(batch.CreateTasksError) as raised:
        client.create_tasks(name, [new_task("good"), new_task("bad", depends_on=DEPENDS)])
    assert [failed.task_id for failed in raised.value.failure_tasks] == ["bad"]


def test_a_malformed_task_refuses_the_call_and_adds_nothing(client: BatchClient, name: str) -> None:
    client.create_job(new_job(name))
    with pytest.raises(HttpResponseError) as raised:
        add(client, name, new_task("good"), new_task("bad id!"))
    assert (raised.value.status_code, raised.value.model.code) == (400, "InvalidPropertyValue")
    assert list(client.list_tasks(name)) == []


def test_a_call_adds_at_most_100_tasks(client: BatchClient, name: str) -> None:
    client.create_job(new_job(name))
    assert len(add(client, name, *(new_task(str(number)) for number in range(100)))) == 100
    with pytest.raises(HttpResponseError) as raised:
        add(client, name, *(new_task(f"x{number}") for number in range(101)))
    assert (raised.value.status_code, raised.value.model.code) == (413, "RequestBodyTooLarge")


def test_the_sdk_splits_what_is_too_large_for_one_call(client: BatchClient, name: str) -> None:
    client.create_job(new_job(name))
    large = [new_task(str(number), "x" * 20_000) for number in range(90)]  # 1.8 MB
    with pytest.raises(HttpResponseError) as raised:
        add(client, name, *large)
    assert (raised.value.status_code, raised.value.model.code) == (413, "RequestBodyTooLarge")
    client.create_tasks(name, large)
    assert len(list(client.list_tasks(name))) == 90


def test_a_collection_needs_its_job(client: BatchClient, name: str) -> None:
    with pytest.raises(ResourceNotFoundError) as raised:
        add(client, name, new_task())
    assert raised.value.model.code == "JobNotFound"
