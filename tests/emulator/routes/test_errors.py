"""Errors as the SDK raises them: the right exception, status and code for each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)

from batch_emulator.testing import PrivateEmulator

from ..core.support import new_job, new_pool, new_task

Call = Callable[[BatchClient], object]
OPTIONS = batch.BatchPoolResizeOptions(target_dedicated_nodes=1)

MISSING: dict[str, tuple[Call, str]] = {
    "pool": (lambda client: client.get_pool("none"), "PoolNotFound"),
    "pool of a node": (lambda client: client.get_node("none", "n"), "PoolNotFound"),
    "node": (lambda client: client.get_node("pool", "n"), "NodeNotFound"),
    "job": (lambda client: client.get_job("none"), "JobNotFound"),
    "job of a task": (lambda client: client.create_task("none", new_task()), "JobNotFound"),
    "task": (lambda client: client.get_task("job", "none"), "TaskNotFound"),
    "deletion": (lambda client: client.delete_task("job", "none"), "TaskNotFound"),
    "job schedule": (lambda client: client.get_job_schedule("none"), "JobScheduleNotFound"),
    "application": (lambda client: client.get_application("none"), "ApplicationNotFound"),
    "task of a file": (lambda client: list(client.list_task_files("job", "none")), "TaskNotFound"),
}
CONFLICTS: dict[str, tuple[Call, str]] = {
    "pool exists": (lambda client: client.create_pool(new_pool("POOL")), "PoolExists"),
    "job exists": (lambda client: client.create_job(new_job("Job")), "JobExists"),
    "task exists": (lambda client: client.create_task("job", new_task("TASK")), "TaskExists"),
    "being resized": (
        lambda client: client.begin_resize_pool("resizing", OPTIONS),
        "PoolBeingResized",
    ),
    "autoscaled": (
        lambda client: client.begin_resize_pool("scaling", OPTIONS),
        "PoolNotEligibleForOperation",
    ),
    "steady": (lambda client: client.begin_stop_pool_resize("pool"), "OperationInvalidForCurrentState"),
    "completed job": (lambda client: client.create_task("done", new_task()), "JobCompleted"),
    "completed task": (lambda client: client.terminate_task("job", "ended"), "TaskCompleted"),
    "active task": (lambda client: client.reactivate_task("job", "task"), "TaskNotCompleted"),
    "files of a waiting task": (
        lambda client: list(client.list_task_files("job", "task")),
        "TaskFilesUnavailable",
    ),
    "pool of an active job": (
        lambda client: client.update_job(
            "job", batch.BatchJobUpdateOptions(pool_info=batch.BatchPoolInfo(pool_id="other"))
        ),
        "OperationInvalidForCurrentState",
    ),
}
INVALID: dict[str, tuple[Call, str]] = {
    "id": (lambda client: client.create_job(new_job("no spaces")), "InvalidPropertyValue"),
    "formula": (
        lambda client: client.create_pool(new_pool("bad", enable_auto_scale=True, auto_scale_formula="$x =")),
        "AutoScalingFormulaSyntaxError",
    ),
    "both kinds of scaling": (
        lambda client: client.create_pool(
            new_pool("bad", enable_auto_scale=True, auto_scale_formula="$x = 1;", target_dedicated_nodes=1)
        ),
        "InvalidAutoScalingSettings",
    ),
    "interval": (
        lambda client: client.create_pool(
            new_pool(
                "bad",
                enable_auto_scale=True,
                auto_scale_formula="$x = 1;",
                auto_scale_evaluation_interval=timedelta(minutes=4),
            )
        ),
        "InvalidPropertyValue",
    ),
    "dependencies": (
        lambda client: client.create_task(
            "job", new_task("bad", depends_on=batch.BatchTaskDependencies(task_ids=["a"]))
        ),
        "TaskDependenciesNotSpecifiedOnJob",
    ),
    "priority": (lambda client: client.create_job(new_job("bad", priority=1001)), "InvalidPropertyValue"),
}


@pytest.fixture(scope="module", autouse=True)
def resources(emulator: PrivateEmulator, client: BatchClient) -> None:
    """What the calls above are refused for."""
    client.create_pool(new_pool("pool"))
    client.create_pool(new_pool("scaling", enable_auto_scale=True, auto_scale_formula="$x = 1;"))
    client.create_pool(new_pool("resizing", target_dedicated_nodes=1))
    for job_id in ("job", "done"):
        client.create_job(new_job(job_id))
    for task_id in ("task", "ended"):
        client.create_task("job", new_task(task_id))
    client.terminate_task("job", "ended")
    client.begin_terminate_job("done", options={"terminateReason": "done"}, polling_interval=0).result()


@pytest.mark.parametrize(("call", "code"), MISSING.values(), ids=MISSING)
def test_what_is_not_there(client: BatchClient, call: Call, code: str) -> None:
    with pytest.raises(ResourceNotFoundError) as raised:
        call(client)
    assert (raised.value.status_code, raised.value.model.code) == (404, code)


@pytest.mark.parametrize(("call", "code"), CONFLICTS.values(), ids=CONFLICTS)
def test_what_the_state_forbids(client: BatchClient, call: Call, code: str) -> None:
    with pytest.raises(ResourceExistsError) as raised:  # what the SDK makes of any 409
        call(client)
    assert (raised.value.status_code, raised.value.model.code) == (409, code)


@pytest.mark.parametrize(("call", "code"), INVALID.values(), ids=INVALID)
def test_what_is_wrong_in_itself(client: BatchClient, call: Call, code: str) -> None:
    with pytest.raises(HttpResponseError) as raised:
        call(client)
    assert (raised.value.status_code, raised.value.model.code) == (400, code)
    assert "RequestId:" in raised.value.model.message.value


def test_another_key_is_refused(emulator: PrivateEmulator) -> None:
    wrong = AzureNamedKeyCredential(emulator.account_name, "AAAA")
    with (
        BatchClient(emulator.endpoint, wrong, retry_total=0) as client,
        pytest.raises(HttpResponseError) as raised,
    ):
        client.get_pool("pool")
    assert (raised.value.status_code, raised.value.model.code) == (403, "AuthenticationFailed")


def test_existence_is_asked_without_an_error(client: BatchClient) -> None:
    assert client.pool_exists("POOL")
    with pytest.raises(ResourceNotFoundError):  # a defect of azure-batch 15.1: it should return False
        client.pool_exists("none")


class TestConditions:
    def test_a_change_gives_a_new_etag_and_a_change_of_state_does_not(self, client: BatchClient) -> None:
        client.create_job(new_job("tagged"))
        before = client.get_job("tagged")
        how = batch.BatchJobDisableOptions(disable_tasks=batch.DisableBatchJobOption.REQUEUE)
        client.begin_disable_job("tagged", how, polling_interval=0).result()
        assert client.get_job("tagged").etag == before.etag
        client.update_job("tagged", batch.BatchJobUpdateOptions(priority=1))
        assert client.get_job("tagged").etag != before.etag

    def test_if_match_holds_a_change_to_the_version_that_was_read(self, client: BatchClient) -> None:
        client.create_job(new_job("matched"))
        etag = client.get_job("matched").etag
        change = batch.BatchJobUpdateOptions(priority=5)
        only = MatchConditions.IfNotModified
        client.update_job("matched", change, etag=etag, match_condition=only)
        with pytest.raises(ResourceModifiedError) as raised:
            client.update_job("matched", change, etag=etag, match_condition=only)
        assert raised.value.status_code == 412

    def test_what_has_not_changed_is_not_read_again(self, client: BatchClient) -> None:
        etag = client.get_pool("pool").etag
        with pytest.raises(ResourceModifiedError) as raised:  # what the SDK makes of 304
            client.get_pool("pool", etag=etag, match_condition=MatchConditions.IfModified)
        assert raised.value.status_code == 304
        read = client.get_pool("pool", etag="0x0", match_condition=MatchConditions.IfModified)
        assert read.etag == etag
