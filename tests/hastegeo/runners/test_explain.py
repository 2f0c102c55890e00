"""Every failure is explained by what happened and what to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hastegeo.credentials import LedgerEntry
from hastegeo.domain import TaskFailure, TaskRef, TaskState, TaskStatus
from hastegeo.runners import explain

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def failed(code: str = "", category: str = "usererror", **changes: Any) -> TaskStatus:
    failure = TaskFailure(category, code, "as the service says") if code else None
    values: dict[str, Any] = {"ref": TaskRef("job", "task"), "state": TaskState.FAILED, "ended": NOON}
    return TaskStatus(**(values | {"failure": failure} | changes))


def grant(kind: str, expires: datetime) -> LedgerEntry:
    return LedgerEntry(
        issued=NOON.isoformat(),
        tenant="dev1",
        task="job/task",
        kind=kind,
        permissions="rl",
        account="https://a.blob.core.windows.net",
        container="data",
        prefix=None,
        blob=None,
        starts=NOON.isoformat(),
        expires=expires.isoformat(),
        key_id="k",
        digest="d",
    )


@pytest.mark.parametrize(
    ("code", "kind", "other"),
    [
        ("BlobAccessDenied", "inputs", "outputs"),
        ("ResourceContainerAccessDenied", "inputs", "outputs"),
        ("FileUploadAccessDenied", "outputs", "inputs"),
    ],
)
def test_a_denial_tells_an_expired_grant_from_a_wrong_one(code: str, kind: str, other: str) -> None:
    past, future = NOON - timedelta(minutes=1), NOON + timedelta(hours=1)
    expired = explain(failed(code), [grant(kind, past), grant(other, future)])
    assert f"expired at {past.isoformat()}" in expired.meaning
    assert "HASTE_QUEUE_ALLOWANCE" in expired.action
    assert "requeued" in explain(failed(code, requeues=1), [grant(kind, past)]).meaning
    valid = explain(failed(code), [grant(kind, future), grant(other, past)])
    assert "outside the grant's scope" in valid.meaning
    assert "no grant for it" in explain(failed(code), []).meaning


@pytest.mark.parametrize(
    ("status", "category", "said"),
    [
        (failed("BlobNotFound"), "user", "does not exist"),
        (failed("DiskFull", "servererror"), "service", "disk is full"),
        (failed("FailureExitCode", exit_code=137), "user", "lack of memory"),
        (failed("FailureExitCode", exit_code=3), "user", "exited with 3"),
        (failed("TaskEnded"), "user", "wall-clock limit"),
        (failed("SomethingNew", "servererror"), "service", "as the service says"),
        (failed(), "user", "gives no reason"),
    ],
)
def test_a_failure_has_a_category_a_meaning_and_an_action(
    status: TaskStatus, category: str, said: str
) -> None:
    explanation = explain(status)
    assert explanation.category == category
    assert said in explanation.meaning
    assert explanation.action.endswith(".")


def test_what_has_not_failed_is_explained_too() -> None:
    queued = failed(state=TaskState.QUEUED, reason="waits for a node of t4-pool")
    later = NOON + timedelta(hours=1)
    assert explain(queued, [grant("inputs", later)]).meaning == (
        f"the task waits for a node of t4-pool; its grants last until {later.isoformat()}"
    )
    assert explain(failed(state=TaskState.RUNNING)).meaning == "the task is running"
    assert explain(failed("TaskEnded", state=TaskState.CANCELLED)).meaning == "the task was ended on request"
    assert explain(failed(state=TaskState.SUCCEEDED)).action == ""
