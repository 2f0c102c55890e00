"""The state machine of tasks: active → preparing → running → completed, and back to active.

Rules (facts of the service):
- Only a nonzero exit code is retried, `maxTaskRetryCount` times (-1: without limit). Failed downloads and
  uploads are not.
- A task whose node is lost is queued again; that is no retry.
- A completed task keeps its files for `retentionTime`, counted from its end.

Source: https://learn.microsoft.com/rest/api/batchservice/task/add
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from batch_emulator.errors import BatchError
from batch_emulator.nodes.contract import Failure, FailureCategory, TaskOutcome
from batch_emulator.rules import jobs, pools, scheduling
from batch_emulator.rules.world import World
from batch_emulator.state.model import Job, JobState, Json, Task, TaskState, key
from batch_emulator.wire.durations import parse_duration

_DEFAULT_RETENTION_SECONDS = 7 * 24 * 3600.0


def add(world: World, job: Job, spec: Json) -> Task:
    """Add a task to an active job. Raises `BatchError`: TaskExists, JobCompleted and the like."""
    if key(spec["id"]) in job.tasks:
        raise BatchError("TaskExists")
    jobs.require_accepting(job)
    dependencies = spec.get("dependsOn") or {}
    if dependencies and not job.spec.get("usesTaskDependencies"):
        raise BatchError("TaskDependenciesNotSpecifiedOnJob")
    now = world.now()
    job.last_sequence += 1
    task = Task(
        id=spec["id"],
        spec=spec,
        created=now,
        last_modified=now,
        state_since=now,
        etag=world.new_etag(),
        job=job,
        sequence=job.last_sequence,
    )
    job.add(task)
    for needed in _dependency_ids(dependencies):
        other = job.tasks.get(needed)
        if other is None or not _satisfies(other):
            task.unmet.add(needed)
            job.blocked.setdefault(needed, []).append(task)
    if not task.unmet:
        scheduling.enqueue(world, task)
    return task


def run_started(world: World, task: Task, epoch: int, at: datetime) -> None:
    """Take note that the program of a run has started."""
    if task.epoch != epoch or task.node is None:
        return
    task.previous_state, task.state, task.state_since = task.state, TaskState.RUNNING, world.now()
    task.started = at


def run_ended(world: World, task: Task, epoch: int, outcome: TaskOutcome) -> None:
    """Decide what the end of a run means: completion, or another try."""
    if task.epoch != epoch or task.node is None:
        return
    node = scheduling.release(world, task)
    task.exit_code, task.failure = outcome.exit_code, outcome.failure
    task.container_id = outcome.container_id
    task.started = outcome.started or task.started
    if task.terminate_requested:
        failure = Failure(
            category=FailureCategory.USER_ERROR,
            code="TaskEnded",
            message="Task Was Ended by User Request",
            phase="run",
        )
        _complete(world, task, failure, ended=outcome.ended)
    elif _may_retry(task, outcome):
        task.retry_count += 1
        task.last_retry = world.now()
        _back_to_active(world, task)
    else:
        if outcome.failure is None and node is not None:
            node.total_tasks_succeeded += 1
        _complete(world, task, outcome.failure, ended=outcome.ended)
    if node is not None:
        pools.after_task(world, node)


def requeue(world: World, task: Task, *, counts: bool) -> None:
    """Queue a task again whose node was lost or taken. Its run is ended, without saving its output."""
    world.effects.end_run(task, upload=False)
    # The end of the old run may still be told; a new epoch makes that old news.
    task.epoch += 1
    scheduling.release(world, task)
    if counts:
        task.requeue_count += 1
        task.last_requeue = world.now()
    _back_to_active(world, task)


def terminate(world: World, task: Task) -> None:
    """End a task by request. Raises TaskCompleted if it has ended."""
    if task.state is TaskState.COMPLETED:
        raise BatchError("TaskCompleted")
    if task.node is not None:
        task.terminate_requested = True
        world.effects.end_run(task, upload=True)
        return
    failure = Failure(
        category=FailureCategory.USER_ERROR,
        code="TaskEnded",
        message="Task Was Ended by User Request",
        phase="run",
    )
    _complete(world, task, failure, ended=world.now())


def reactivate(world: World, task: Task) -> None:
    """Let a failed task run again, with its retries counted anew."""
    if task.state is not TaskState.COMPLETED:
        raise BatchError("TaskNotCompleted")
    if task.failure is None and task.exit_code == 0:
        raise BatchError("TaskSucceeded")
    jobs.require_accepting(task.job)
    task.retry_count = 0
    task.terminate_requested = False
    task.etag, task.last_modified = world.new_etag(), world.now()
    if task.retention_timer:
        task.retention_timer.cancel()
    _back_to_active(world, task)


def delete(world: World, task: Task) -> None:
    """Delete a task with its files; a run in progress is ended."""
    task.job.discard(task)
    if task.node is not None:
        node = task.node
        world.effects.end_run(task, upload=False)
        task.epoch += 1
        scheduling.release(world, task)
        pools.after_task(world, node)
    _remove_files(world, task)
    jobs.after_task(world, task.job)


def _complete(world: World, task: Task, failure: Failure | None, *, ended: datetime) -> None:
    task.previous_state, task.state, task.state_since = task.state, TaskState.COMPLETED, world.now()
    task.ended = ended
    task.failure = failure
    task.result = "failure" if failure else "success"
    pool = world.pool_of(task.job)
    if pool is not None:
        if failure:
            pool.failed_tasks += 1
        else:
            pool.succeeded_tasks += 1
    if task.last_node is not None:
        task.retention_timer = world.timers.after(
            _retention_seconds(task), lambda: _remove_files(world, task)
        )
    jobs.unblock(world, task, satisfied=_satisfies(task))
    jobs.after_task(world, task.job)


def _back_to_active(world: World, task: Task) -> None:
    task.previous_state, task.state, task.state_since = task.state, TaskState.ACTIVE, world.now()
    task.started = None
    if task.job.state is JobState.ACTIVE:
        scheduling.enqueue(world, task)


def _may_retry(task: Task, outcome: TaskOutcome) -> bool:
    if outcome.exit_code in {0, None} or outcome.failure is None or outcome.failure.phase != "run":
        return False
    limit = int((task.spec.get("constraints") or {}).get("maxTaskRetryCount", 0))
    return limit < 0 or task.retry_count < limit


def _retention_seconds(task: Task) -> float:
    text = (task.spec.get("constraints") or {}).get("retentionTime")
    return parse_duration(text).total_seconds() if text else _DEFAULT_RETENTION_SECONDS


def _remove_files(world: World, task: Task) -> None:
    if task.last_node is not None and not task.files_removed:
        task.files_removed = True
        world.effects.remove_task_files(task, task.last_node)


def _satisfies(task: Task) -> bool:
    """Whether a task has ended so that those depending on it may run (its dependency action included)."""
    if task.state is not TaskState.COMPLETED:
        return False
    if task.failure is None:
        return True
    return _dependency_action(task) == "satisfy"


def _dependency_action(task: Task) -> str:
    conditions: Any = task.spec.get("exitConditions") or {}
    failure = task.failure
    found: Json | None = None
    if failure is not None and failure.phase == "preprocessing":
        found = conditions.get("preProcessingError")
    elif failure is not None and failure.phase == "upload":
        found = conditions.get("fileUploadError")
    elif task.exit_code is not None:
        found = next(
            (c["exitOptions"] for c in conditions.get("exitCodes", ()) if c["code"] == task.exit_code), None
        ) or next(
            (
                c["exitOptions"]
                for c in conditions.get("exitCodeRanges", ())
                if c["start"] <= task.exit_code <= c["end"]
            ),
            None,
        )
    options = found or conditions.get("default") or {}
    return str(options.get("dependencyAction", "block")).lower()


def _dependency_ids(dependencies: Json) -> list[str]:
    # A range names the ids that are these integers: https://learn.microsoft.com/azure/batch/batch-task-dependencies
    ids = [key(identifier) for identifier in dependencies.get("taskIds", ())]
    for span in dependencies.get("taskIdRanges", ()):
        ids += [str(number) for number in range(int(span["start"]), int(span["end"]) + 1)]
    return ids
