"""Submitting: one hardened task, on the right pool, whatever gets lost on the way."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import requests

from hastegeo.domain import BlobInput, GpuNeed, GrantKind, GrantVariable, TaskSpec, Workload
from hastegeo.errors import (
    CapacityError,
    CredentialError,
    GrantRefusedError,
    InputError,
    RunnerError,
    TaskConflictError,
)
from hastegeo.runners import AzureBatchRunner

Specs = Callable[..., TaskSpec]
CONTAINER = "https://dev1store.blob.core.windows.net/data"
BUSY = (503, {}, b"{}")


def sent(azure: Any) -> dict[str, Any]:
    (task,) = azure.tasks.values()
    return task


def test_a_task_is_hardened(azure: Any, runner: AzureBatchRunner, make_spec: Specs) -> None:
    runner.submit(make_spec())
    task = sent(azure)
    container = task["containerSettings"]
    assert container["containerHostBatchBindMounts"] == [{"source": "Task", "isReadOnly": False}]
    assert container["containerRunOptions"] == (
        "--cap-drop=ALL --security-opt=no-new-privileges --shm-size=2g"
    )
    assert task["userIdentity"] == {"autoUser": {"scope": "task", "elevationLevel": "nonadmin"}}
    assert task["constraints"] == {
        "maxWallClockTime": "PT08H00M00S",
        "retentionTime": "PT01H00M00S",
        "maxTaskRetryCount": 0,
    }
    assert task["commandLine"] == "prepare --scene 'a b'"


@pytest.mark.parametrize(
    "option",
    ["--privileged", "--network=host", "--pid=host", "-v=/:/host", "--gpus=all", "--shm-size=1g --privileged",
     "--cap-add=ALL", "--mount=type=bind"],
)  # fmt: skip
def test_a_container_option_that_widens_is_refused(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs, option: str
) -> None:
    with pytest.raises(InputError, match="not allowed"):
        runner.submit(make_spec(run_options=(option,)))
    assert not azure.tasks


def test_a_container_option_on_the_list_is_kept(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    runner.submit(make_spec(run_options=("--shm-size=8g", "--init")))
    assert sent(azure)["containerSettings"]["containerRunOptions"].endswith("--shm-size=8g --init")


def test_each_widening_needs_its_own_setting(
    azure: Any, runner: AzureBatchRunner, make_runner: Callable[..., AzureBatchRunner], make_spec: Specs
) -> None:
    widened = make_runner(
        HASTE_TASK_MOUNTS_ALL="true", HASTE_TASK_POOL_USER="true", HASTE_TASK_CAPABILITIES="CHOWN"
    )
    widened.submit(make_spec())
    task = sent(azure)
    assert "containerHostBatchBindMounts" not in task["containerSettings"]
    assert task["userIdentity"]["autoUser"] == {"scope": "pool", "elevationLevel": "nonadmin"}
    assert "--cap-drop=ALL --cap-add=CHOWN" in task["containerSettings"]["containerRunOptions"]


def test_inputs_and_outputs_carry_their_own_grants(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    submission = runner.submit(make_spec())
    task = sent(azure)
    (resource,) = task["resourceFiles"]
    assert (resource["blobPrefix"], resource["filePath"]) == ("raw/pre", "in")
    assert resource["storageContainerUrl"].startswith(f"{CONTAINER}?")
    assert "&sp=rl&" in resource["storageContainerUrl"]
    result, *logs = task["outputFiles"]
    assert result["filePattern"] == "out/**/*"
    assert "&sp=cw&" in result["destination"]["container"]["containerUrl"]
    assert result["destination"]["container"]["path"] == "results/scene-1"
    assert [log["filePattern"] for log in logs] == ["../stdout.txt", "../stderr.txt"]
    assert [str(grant.scope) for grant in submission.grants] == [
        f"inputs rl {CONTAINER}",
        f"outputs cw {CONTAINER}",
    ]


def test_a_single_blob_is_granted_alone(azure: Any, runner: AzureBatchRunner, make_spec: Specs) -> None:
    runner.submit(make_spec(inputs=(BlobInput(container_url=CONTAINER, blob="raw/a b.tif"),)))
    (resource,) = sent(azure)["resourceFiles"]
    assert resource["httpUrl"].startswith(f"{CONTAINER}/raw/a%20b.tif?")
    assert "sp=r&" in resource["httpUrl"]
    assert "sr=b&" in resource["httpUrl"]
    assert resource["filePath"] == "raw/a b.tif"


def test_a_program_gets_its_grants_by_environment(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    variables = (
        GrantVariable(name="RESULTS_URL", kind=GrantKind.OUTPUTS, container_url=CONTAINER),
        GrantVariable(
            name="STATE_URL", kind=GrantKind.STATE, container_url=CONTAINER, prefix="state/scene-1"
        ),
    )
    runner.submit(make_spec(environment={"LEVEL": "3"}, grant_variables=variables))
    values = {item["name"]: item["value"] for item in sent(azure)["environmentSettings"]}
    assert values["LEVEL"] == "3"
    assert "sp=cw&" in values["RESULTS_URL"]
    assert "sp=rcwl&" in values["STATE_URL"]
    assert (values["HASTE_TASK_TENANT"], values["HASTE_TASK_POOL"]) == ("dev1", "t4-pool")


def test_without_grants_the_pool_identity_is_used(
    azure: Any, runner: AzureBatchRunner, make_runner: Callable[..., AzureBatchRunner], make_spec: Specs
) -> None:
    older = make_runner(AZURE_BATCH_USE_SAS="false", AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID="/ids/pool")
    submission = older.submit(make_spec())
    (resource,) = sent(azure)["resourceFiles"]
    assert resource["storageContainerUrl"] == CONTAINER
    assert resource["identityReference"] == {"resourceId": "/ids/pool"}
    assert submission.grants == ()
    assert azure.calls["delegation_key"] == 0


def test_storage_of_another_tenant_is_refused_before_any_call(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    foreign = BlobInput(container_url="https://dev2store.blob.core.windows.net/data", prefix="raw")
    with pytest.raises(GrantRefusedError, match="dev1"):
        runner.submit(make_spec(inputs=(foreign,)))
    assert not azure.calls
    runner.submit(make_spec())
    assert len(azure.tasks) == 1


def test_a_task_of_another_tenant_is_refused(runner: AzureBatchRunner, make_spec: Specs) -> None:
    with pytest.raises(InputError, match="dev2"):
        runner.submit(make_spec(tenant="dev2"))


def test_a_need_longer_than_storage_grants_is_refused_at_submit(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    with pytest.raises(GrantRefusedError, match="7 days less 15 minutes"):
        runner.submit(make_spec(max_wall_clock=timedelta(days=3)))
    assert not azure.calls


def test_the_ledger_has_every_grant_and_no_signature(runner: AzureBatchRunner, make_spec: Specs) -> None:
    submission = runner.submit(make_spec())
    entries = list(runner.ledger.entries(task=str(submission.ref)))
    assert [entry.digest for entry in entries] == [grant.url.digest for grant in submission.grants]
    text = runner.ledger.path.read_text()
    for grant in submission.grants:
        signature = grant.url.reveal().partition("sig=")[2].partition("&")[0]
        assert signature
        assert signature not in text
        assert signature not in repr(submission)


def test_tasks_fill_the_preferred_pool_then_spill_then_queue(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    submissions = [runner.submit(make_spec(f"scene-{number}")) for number in range(5)]
    assert [submission.decision.chosen for submission in submissions] == [
        *("t4-pool", "t4-pool", "h100-pool", "t4-pool", "t4-pool")
    ]
    assert [submission.decision.spills for submission in submissions] == [0, 0, 1, 0, 0]
    assert [submission.decision.queues for submission in submissions] == [False, False, False, True, True]
    assert azure.calls["node_counts"] == azure.calls["list_pools"] == 1
    assert runner.status(submissions[2].ref).spills == 1


def test_concurrent_submissions_never_take_the_same_idle_node(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    azure.nodes = {"t4-pool": {"idle": 1, "running": 1}, "h100-pool": {"idle": 1}}
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(runner.submit, [make_spec("a"), make_spec("b")]))
    assert {submission.decision.chosen for submission in found} == {"t4-pool", "h100-pool"}


def test_one_candidate_needs_no_capacity_call(azure: Any, runner: AzureBatchRunner, make_spec: Specs) -> None:
    runner.submit(make_spec(candidates=("t4-pool",)))
    assert azure.calls["node_counts"] == azure.calls["list_pools"] == 0


def test_a_pool_too_small_for_the_task_is_passed_over(runner: AzureBatchRunner, make_spec: Specs) -> None:
    submission = runner.submit(make_spec(gpu=GpuNeed(count=1, memory_gib=40)))
    assert submission.decision.chosen == "h100-pool"
    with pytest.raises(CapacityError, match=r"16 GiB a GPU.*94 GiB a GPU"):
        runner.submit(make_spec("larger", gpu=GpuNeed(count=1, memory_gib=200)))


def test_a_failing_capacity_call_does_not_fail_the_submission(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    azure.fail("list_pools", (403, {}, b"{}"))
    azure.fail("node_counts", BUSY, times=20)
    submission = runner.submit(make_spec())
    assert submission.decision.chosen == "t4-pool"
    assert "HTTP 403" in submission.decision.reason


def test_jobs_are_per_tenant_pool_and_workload(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    for number in range(3):
        runner.submit(make_spec(f"scene-{number}"))
    runner.submit(make_spec("artifact", workload=Workload.ARTIFACTS))
    assert sorted(job["poolInfo"]["poolId"] for job in azure.jobs.values()) == [
        *("h100-pool", "t4-pool", "t4-pool")
    ]
    assert all(len(job) <= 64 for job in azure.jobs)


def test_the_older_way_names_the_job_by_its_setting(
    azure: Any, runner: AzureBatchRunner, make_runner: Callable[..., AzureBatchRunner], make_spec: Specs
) -> None:
    older = {"AZURE_BATCH_IMAGERYPREP_POOL_IDS": "", "AZURE_BATCH_IMAGERYPREP_POOL_ID": "t4-pool"}
    make_runner(**older).submit(make_spec())
    make_runner(**older, IMAGERYPREP_BATCH_JOB_ID="My_Job").submit(make_spec())
    assert set(azure.jobs) == {"t4-pool", "My_Job"}


@pytest.mark.parametrize("state", ["completed", "disabled", "deleting", "terminating"])
def test_a_job_that_takes_no_tasks_is_followed_by_a_fresh_one(
    azure: Any,
    make_runner: Callable[..., AzureBatchRunner],
    runner: AzureBatchRunner,
    make_spec: Specs,
    state: str,
) -> None:
    first = runner.submit(make_spec("a")).ref
    azure.jobs[first.job_id]["state"] = state
    for found in (runner, make_runner()):
        second = found.submit(make_spec(f"b-{id(found)}", candidates=("t4-pool",))).ref
        assert second.job_id != first.job_id
    assert len(azure.jobs) == 2


@pytest.mark.parametrize("operation", ["create_job", "create_task"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "fault",
    [BUSY, (429, {"Retry-After": "3"}, b"{}"), (500, {}, b"{}"), requests.exceptions.ReadTimeout("lost"),
     requests.exceptions.ConnectionError("cut")],
    ids=["503", "429", "500", "timeout", "cut"],
)  # fmt: skip
def test_a_call_that_fails_once_ends_in_one_task(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs, operation: str, when: str, fault: Any
) -> None:
    azure.fail(operation, fault, when=when)
    submission = runner.submit(make_spec())
    assert submission.created
    assert list(azure.tasks) == [(submission.ref.job_id, submission.ref.task_id)]
    assert azure.calls[operation] == 2


def test_retry_after_is_honoured_but_not_beyond_the_budget(
    azure: Any, runner: AzureBatchRunner, transport: Any, make_spec: Specs
) -> None:
    azure.fail("create_task", (429, {"Retry-After": "7"}, b"{}"))
    runner.submit(make_spec("a"))
    assert transport.waits == [7]
    azure.fail("create_task", (429, {"Retry-After": "3600"}, b"{}"))
    with pytest.raises(RunnerError, match="429"):
        runner.submit(make_spec("b"))
    assert transport.waits == [7]


def test_a_call_that_keeps_failing_is_one_clear_error_and_frees_its_reservation(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    azure.fail("create_task", BUSY, times=50)
    with pytest.raises(RunnerError, match="HTTP 503"):
        runner.submit(make_spec())
    assert azure.calls["create_task"] <= 7
    assert runner.capacity.snapshot().pools["t4-pool"].reserved == 0


def test_a_refused_call_names_the_role_not_the_request(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    azure.fail("create_task", (403, {}, b"{}"))
    with pytest.raises(CredentialError, match="HTTP 403") as caught:
        runner.submit(make_spec())
    assert "sig=" not in str(caught.value)
    assert azure.calls["create_task"] == 1


def test_a_second_submission_gives_the_same_task(
    azure: Any, runner: AzureBatchRunner, make_runner: Callable[..., AzureBatchRunner], make_spec: Specs
) -> None:
    first = runner.submit(make_spec())
    again = runner.submit(make_spec())
    elsewhere = make_runner().submit(make_spec())
    assert first.ref == again.ref == elsewhere.ref
    assert (first.created, again.created, elsewhere.created) == (True, False, False)
    assert len(azure.tasks) == 1


def test_the_same_key_with_another_definition_is_refused(
    azure: Any, runner: AzureBatchRunner, make_runner: Callable[..., AzureBatchRunner], make_spec: Specs
) -> None:
    runner.submit(make_spec())
    changed = dataclasses.replace(make_spec(), command=("other",))
    for found in (runner, make_runner()):
        with pytest.raises(TaskConflictError, match="scene-1"):
            found.submit(changed)
    assert len(azure.tasks) == 1


def test_a_missing_delegator_role_is_one_sentence_with_the_command(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    azure.fail("delegation_key", (403, {"x-ms-error-code": "AuthorizationPermissionMismatch"}, b""))
    with pytest.raises(CredentialError, match=r"Storage Blob Delegator.*az role assignment create"):
        runner.submit(make_spec())
    assert not azure.tasks


def test_many_tasks_go_by_hundreds(azure: Any, runner: AzureBatchRunner, make_spec: Specs) -> None:
    specs = [make_spec(f"scene-{number}", candidates=("t4-pool",)) for number in range(250)]
    submissions = runner.submit_many(specs)
    assert [submission.ref.task_id for submission in submissions] == [
        runner.submit(spec).ref.task_id for spec in specs
    ]
    assert azure.calls["add_collection"] == 3
    assert azure.calls["create_task"] == 0
    assert azure.calls["delegation_key"] == 1


def test_one_bad_task_among_many_does_not_stop_the_others(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    specs = [make_spec("a"), make_spec("b", tenant="dev2"), make_spec("c")]
    with pytest.raises(RunnerError, match="1 of 3 tasks"):
        runner.submit_many(specs)
    assert len(azure.tasks) == 2


def test_a_collection_that_is_too_large_is_split(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    too_large = (413, {}, json.dumps({"code": "RequestBodyTooLarge"}).encode())
    azure.fail("add_collection", too_large)
    specs = [make_spec(f"scene-{number}", candidates=("t4-pool",)) for number in range(4)]
    assert len(runner.submit_many(specs)) == 4
    assert azure.calls["add_collection"] == 3


def test_a_lost_answer_to_a_collection_ends_in_one_task_each(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    azure.fail("add_collection", requests.exceptions.ReadTimeout("lost"), when="after")
    submissions = runner.submit_many([make_spec("a"), make_spec("b")])
    assert all(submission.created for submission in submissions)
    assert len(azure.tasks) == 2


def test_a_dry_run_shows_the_task_without_grants_and_sends_nothing(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    dry = runner.dry_run(make_spec())
    assert dry.decision.chosen == "t4-pool"
    assert [str(scope) for scope in dry.scopes] == [f"inputs rl {CONTAINER}", f"outputs cw {CONTAINER}"]
    assert "sig=" not in json.dumps(dry.task.as_dict())
    assert not azure.tasks
    assert not azure.jobs
    assert runner.capacity.snapshot().pools["t4-pool"].reserved == 0
