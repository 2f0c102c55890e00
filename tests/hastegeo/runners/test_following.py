"""After submission: status, logs, files, cancelling, cleaning up, listing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hastegeo.domain import TaskRef, TaskSpec, TaskState, Workload
from hastegeo.errors import InputError, RunnerError, TaskNotFoundError
from hastegeo.runners import AzureBatchRunner

Specs = Callable[..., TaskSpec]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
UNKNOWN = TaskRef("no-job", "no-task")


def become(azure: Any, ref: TaskRef, state: str, **run: Any) -> None:
    azure.tasks[ref.job_id, ref.task_id] |= {
        "state": state,
        "executionInfo": {"retryCount": 0, "requeueCount": 0, **run},
        "nodeInfo": {"poolId": "t4-pool", "nodeId": "tvm-1"},
    }


def failure(code: str, category: str = "UserError") -> dict[str, Any]:
    return {
        "category": category,
        "code": code,
        "message": "it went wrong at https://a/b?sv=1&sig=abcDEF%2B12",
    }


@pytest.mark.parametrize(
    ("wire", "run", "state"),
    [
        ("active", {}, TaskState.QUEUED),
        ("Preparing", {}, TaskState.PREPARING),
        ("running", {}, TaskState.RUNNING),
        ("completed", {"exitCode": 0, "result": "success"}, TaskState.SUCCEEDED),
        ("completed", {"exitCode": 3, "failureInfo": failure("FailureExitCode")}, TaskState.FAILED),
        ("completed", {"failureInfo": failure("BlobAccessDenied")}, TaskState.FAILED),
        # The program succeeded and its output could not be uploaded: the task failed all the same.
        ("completed", {"exitCode": 0, "failureInfo": failure("FileUploadAccessDenied")}, TaskState.FAILED),
        ("completed", {"failureInfo": failure("TaskEnded")}, TaskState.CANCELLED),
    ],
)
def test_each_state_of_the_service_is_one_of_ours(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs, wire: str, run: dict[str, Any], state: TaskState
) -> None:
    ref = runner.submit(make_spec()).ref
    become(azure, ref, wire, **run)
    calls = azure.calls.total()
    assert runner.status(ref).state is state
    assert azure.calls.total() == calls + 1


@pytest.mark.parametrize(
    ("minutes", "state"), [(479, TaskState.CANCELLED), (480, TaskState.FAILED), (481, TaskState.FAILED)]
)
def test_a_run_ended_at_its_limit_has_failed_and_was_not_cancelled(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs, minutes: int, state: TaskState
) -> None:
    ref = runner.submit(make_spec()).ref
    start, end = NOON, NOON + timedelta(minutes=minutes)
    become(
        azure,
        ref,
        "completed",
        failureInfo=failure("TaskEnded"),
        startTime=start.isoformat(),
        endTime=end.isoformat(),
    )
    assert runner.status(ref).state is state


def test_a_status_keeps_the_counts_apart_and_hides_signatures(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    ref = runner.submit(make_spec()).ref
    become(azure, ref, "completed", retryCount=2, requeueCount=1, failureInfo=failure("BlobAccessDenied"))
    status = runner.status(ref)
    assert (status.retries, status.requeues, status.spills) == (2, 1, 0)
    assert (status.pool_id, status.node_id) == ("t4-pool", "tvm-1")
    assert status.reason.startswith("BlobAccessDenied: it went wrong")
    assert "abcDEF" not in repr(status)


def test_a_requeued_task_says_that_its_node_was_lost(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    ref = runner.submit(make_spec()).ref
    assert runner.status(ref).reason == "waits for a node of t4-pool"
    become(azure, ref, "active", requeueCount=1)
    assert runner.status(ref).reason == "waits again for a node of t4-pool: its node was lost"


@pytest.mark.parametrize("call", ["status", "cancel", "logs", "files"])
def test_an_unknown_task_is_an_error_of_its_own(runner: AzureBatchRunner, call: str) -> None:
    with pytest.raises(TaskNotFoundError):
        list(getattr(runner, call)(UNKNOWN))


def test_a_running_task_gives_its_node_back_to_the_counts(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    ref = runner.submit(make_spec()).ref
    assert runner.capacity.snapshot().pools["t4-pool"].reserved == 1
    runner.status(ref)
    assert runner.capacity.snapshot().pools["t4-pool"].reserved == 1
    become(azure, ref, "running")
    runner.status(ref)
    assert runner.capacity.snapshot().pools["t4-pool"].reserved == 0


def test_waiting_ends_with_the_task_or_the_deadline(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    ref = runner.submit(make_spec()).ref
    with pytest.raises(RunnerError, match="still queued"):
        runner.wait(ref, timeout=timedelta(0))
    become(azure, ref, "completed", exitCode=0)
    assert runner.wait(ref, timeout=timedelta(0)).state is TaskState.SUCCEEDED


@pytest.mark.parametrize("status", [200, 206])
def test_the_log_of_a_running_task_comes_from_its_node_as_it_is(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr("hastegeo.runners._streams._PIECE", 4096)
    azure.range_status = status
    ref = runner.submit(make_spec()).ref
    assert list(runner.logs(ref)) == []
    become(azure, ref, "running")
    content = "füße".encode() + b"\xff\x00" * 5000
    azure.files[ref.job_id, ref.task_id, "stdout.txt"] = content
    assert b"".join(runner.logs(ref, "stdout")) == content
    assert b"".join(runner.logs(ref, "stderr")) == b""


def test_the_log_of_an_ended_task_comes_from_storage_first(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    ref = runner.submit(make_spec()).ref
    become(azure, ref, "completed", exitCode=0)
    azure.files[ref.job_id, ref.task_id, "stdout.txt"] = b"from the node"
    assert b"".join(runner.logs(ref)) == b"from the node"
    azure.blobs[f"/data/logs/{ref.job_id}/{ref.task_id}/stdout.txt"] = b"from storage"
    assert b"".join(runner.logs(ref)) == b"from storage"


def test_a_lost_log_is_said_to_be_lost(azure: Any, runner: AzureBatchRunner, make_spec: Specs) -> None:
    ref = runner.submit(make_spec()).ref
    become(azure, ref, "completed", exitCode=0, startTime="2026-03-01T12:00:00Z")
    with pytest.raises(RunnerError, match="gone with its node"):
        list(runner.logs(ref))


def test_following_a_log_misses_and_repeats_nothing(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = runner.submit(make_spec()).ref
    at = (ref.job_id, ref.task_id, "stdout.txt")
    become(azure, ref, "running")

    def later() -> Iterator[None]:
        azure.files[at] = b"one,"
        yield
        azure.files[at] = b"one,two,"
        yield
        become(azure, ref, "active", requeueCount=1)
        azure.files[at] = b"again,"
        yield
        become(azure, ref, "completed", exitCode=0)
        azure.files[at] = b"again,done"
        yield

    story = later()
    monkeypatch.setattr("hastegeo.runners._streams.time.sleep", lambda _: next(story))
    assert b"".join(runner.logs(ref, follow=True)) == b"one,two,again,done"


def test_files_are_downloaded_whole_or_not_at_all(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs, tmp_path: Path
) -> None:
    ref = runner.submit(make_spec()).ref
    become(azure, ref, "completed", exitCode=0)
    azure.files[ref.job_id, ref.task_id, "wd/out/a b.tif"] = b"x" * 10_000
    assert [(file.path, file.size) for file in runner.files(ref)] == [("wd/out/a b.tif", 10_000)]
    target = runner.download(ref, "wd/out/a b.tif", tmp_path)
    assert target == tmp_path / "a b.tif"
    assert target.read_bytes() == b"x" * 10_000
    with pytest.raises(RunnerError, match="no file"):
        runner.download(ref, "wd/other.tif", tmp_path / "other")
    azure.fail("read_file", (404, {}, b"{}"))
    with pytest.raises(RunnerError):
        runner.download(ref, "wd/out/a b.tif", tmp_path / "broken")
    with pytest.raises(InputError):
        runner.download(ref, "wd/out/a b.tif", tmp_path / "missing" / "folder")
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".jsonl"] == ["a b.tif"]


def test_a_lost_node_is_no_failed_task(azure: Any, runner: AzureBatchRunner, make_spec: Specs) -> None:
    ref = runner.submit(
        make_spec(),
    ).ref
    become(azure, ref, "running")
    azure.fail("file_properties", (409, {}, b""))
    assert list(runner.logs(ref)) == []


def test_cancelling_ends_a_task_once(azure: Any, runner: AzureBatchRunner, make_spec: Specs) -> None:
    ref = runner.submit(make_spec()).ref
    other = runner.submit(make_spec("scene-2")).ref
    runner.cancel(ref)
    runner.cancel(ref)
    assert runner.status(ref).state is TaskState.CANCELLED
    assert runner.status(other).state is TaskState.QUEUED


def test_cancelling_leaves_an_ended_task_as_it_is(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    ref = runner.submit(make_spec()).ref
    become(azure, ref, "completed", exitCode=0)
    runner.cancel(ref)
    assert runner.status(ref).state is TaskState.SUCCEEDED


def test_cleaning_up_touches_one_task_and_may_be_repeated(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    ref = runner.submit(make_spec()).ref
    other = runner.submit(make_spec("scene-2")).ref
    jobs = dict(azure.jobs)
    runner.cleanup(ref)
    runner.cleanup(ref)
    assert list(azure.tasks) == [(other.job_id, other.task_id)]
    assert azure.jobs == jobs


def test_a_list_shows_this_tenants_tasks_alone(
    azure: Any, runner: AzureBatchRunner, make_spec: Specs
) -> None:
    first = runner.submit(make_spec()).ref
    second = runner.submit(make_spec("artifact", workload=Workload.ARTIFACTS)).ref
    azure.jobs["foreign"] = {"id": "foreign", "metadata": [{"name": "haste_tenant", "value": "dev2"}]}
    azure.tasks["foreign", "task"] = {"id": "task", "state": "active"}
    assert {status.ref for status in runner.list()} == {first, second}
    assert {status.ref for status in runner.list(workload=Workload.ARTIFACTS)} == {second}
