"""From the service's task to the one status that callers see."""

from __future__ import annotations

from typing import Final

from azure.batch import models

from hastegeo.credentials import redact
from hastegeo.domain import TaskFailure, TaskRef, TaskState, TaskStatus
from hastegeo.runners._client import enum_text
from hastegeo.runners._definition import POOL_VARIABLE, SPILLS_VARIABLE

# What is read of a task, by its names on the wire.
STATUS_FIELDS: Final = ("id", "state", "creationTime", "executionInfo", "nodeInfo", "environmentSettings")
_STATES: Final = {
    "active": TaskState.QUEUED,
    "preparing": TaskState.PREPARING,
    "running": TaskState.RUNNING,
}
# The failure that ending a task from outside leaves behind.
_ENDED_CODE: Final = "TaskEnded"


def task_status(job_id: str, task: models.BatchTask) -> TaskStatus:
    """Read a task's status."""
    run = task.execution_info
    failure = _failure(run)
    state = _state(task, failure)
    variables = environment(task)
    pool_id = (task.node_info.pool_id if task.node_info else None) or variables.get(POOL_VARIABLE, "")
    spills = variables.get(SPILLS_VARIABLE, "")
    return TaskStatus(
        ref=TaskRef(job_id, task.id),
        state=state,
        reason=_reason(state, pool_id, run, failure),
        pool_id=pool_id,
        node_id=(task.node_info.node_id if task.node_info else None) or "",
        exit_code=run.exit_code if run else None,
        created=task.creation_time,
        started=run.start_time if run else None,
        ended=run.end_time if run else None,
        retries=run.retry_count or 0 if run else 0,
        requeues=run.requeue_count or 0 if run else 0,
        spills=int(spills) if spills.isdecimal() else 0,
        failure=failure,
    )


def environment(task: models.BatchTask) -> dict[str, str]:
    """Return the environment variables that a task was given. They may hold grants: never show them."""
    return {item.name: item.value or "" for item in task.environment_settings or ()}


def _state(task: models.BatchTask, failure: TaskFailure | None) -> TaskState:
    known = _STATES.get(enum_text(task.state))
    if known is not None:
        return known
    if failure is not None:
        return TaskState.CANCELLED if failure.code == _ENDED_CODE else TaskState.FAILED
    run = task.execution_info
    if run is not None and run.exit_code:
        return TaskState.FAILED
    return TaskState.SUCCEEDED


def _failure(run: models.BatchTaskExecutionInfo | None) -> TaskFailure | None:
    if run is None or run.failure_info is None:
        return None
    info = run.failure_info
    return TaskFailure(
        category=enum_text(info.category),
        code=info.code or "",
        message=redact(info.message or ""),
        details=tuple((item.name or "", redact(item.value or "")) for item in info.details or ()),
    )


def _reason(
    state: TaskState, pool_id: str, run: models.BatchTaskExecutionInfo | None, failure: TaskFailure | None
) -> str:
    if state is TaskState.QUEUED:
        again = run.requeue_count if run else 0
        return (
            f"waits again for a node of {pool_id}: its node was lost"
            if again
            else f"waits for a node of {pool_id}"
        )
    if state is TaskState.CANCELLED:
        return "ended on request"
    if failure is None:
        return (
            "" if state is not TaskState.FAILED or run is None else f"the program exited with {run.exit_code}"
        )
    if run is not None and run.exit_code:
        return f"the program exited with {run.exit_code}"
    return f"{failure.code}: {failure.message}".rstrip(": ")
