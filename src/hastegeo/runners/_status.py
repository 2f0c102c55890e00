"""From the service's task to the one status that callers see."""

from __future__ import annotations

from typing import Final

from azure.batch import models

from hastegeo.credentials import redact
from hastegeo.domain import TaskFailure, TaskRef, TaskState, TaskStatus
from hastegeo.runners._client import enum_text
from hastegeo.runners._definition import POOL_VARIABLE, SPILLS_VARIABLE

# What is read of a task, by its names on the wire.
STATUS_FIELDS: Final = (
    "id",
    "state",
    "creationTime",
    "executionInfo",
    "nodeInfo",
    "constraints",
    "environmentSettings",
)
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
        reason=_reason(task, state, pool_id, failure),
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
        on_request = failure.code == _ENDED_CODE and not _ran_out_of_time(task)
        return TaskState.CANCELLED if on_request else TaskState.FAILED
    run = task.execution_info
    if run is not None and run.exit_code:
        return TaskState.FAILED
    return TaskState.SUCCEEDED


def _ran_out_of_time(task: models.BatchTask) -> bool:
    """Whether the last run took its whole limit; the service tells it from a request by a text alone."""
    run, limits = task.execution_info, task.constraints
    started, ended = (run.start_time, run.end_time) if run else (None, None)
    limit = limits.max_wall_clock_time if limits else None
    return started is not None and ended is not None and limit is not None and ended - started >= limit


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


def _reason(task: models.BatchTask, state: TaskState, pool_id: str, failure: TaskFailure | None) -> str:
    run = task.execution_info
    if state is TaskState.QUEUED:
        if run is not None and run.requeue_count:
            return f"waits again for a node of {pool_id}: its node was lost"
        return f"waits for a node of {pool_id}"
    if state is TaskState.CANCELLED:
        return "ended on request"
    if state is not TaskState.FAILED:
        return ""
    if _ran_out_of_time(task):
        return "the wall-clock limit was reached"
    if run is not None and run.exit_code:
        return f"the program exited with {run.exit_code}"
    return f"{failure.code}: {failure.message}".rstrip(": ") if failure else "no reason is known"
