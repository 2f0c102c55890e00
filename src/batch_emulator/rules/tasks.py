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

from batch_emulator.errors import BatchError
from batch_emulator.nodes.contract import Failure, FailureCategory, TaskOutcome
from batch_emulator.rules import dependencies, jobs, launching, nodes, scheduling
from batch_emulator.rules.world import World
from batch_emulator.state import Job, Json, Node, Run, Task, TaskState, key
from batch_emulator.wire.durations import parse_duration

_DEFAULT_RETENTION_SECONDS = 7 * 24 * 3600.0


def add(world: World, job: Job, spec: Json) -> Task:
    """Add a task to a job that accepts some. Raises `BatchError`: TaskExists, JobCompleted and the like."""
    if key(spec["id"]) in job.tasks:
        raise BatchError("TaskExists")
    jobs.require_accepting(job)
    dependencies.check(job, spec)
    now = world.now()
    task = Task(
        id=spec["id"],
        spec=spec,
        created=now,
        last_modified=now,
        state_since=now,
        etag=world.new_etag(),
        job=job,
        sequence=world.next_number(),
    )
    dependencies.block(task)
    job.add(task)
    if not task.unmet:
        scheduling.enqueue(world, task)
    return task


def begin(world: World, task: Task) -> None:
    """Begin a run of a task on the node that it holds."""
    assert task.node is not None  # noqa: S101 - the scheduler has just placed it
    task.run = Run(
        node=task.node,
        launch=launching.task_launch(world, task, task.node),
        on_started=lambda run, at: _started(world, task, run, at),
        on_ended=lambda run, outcome: _ended(world, task, run, outcome),
    )
    world.effects.start_run(task.run)


def requeue(world: World, task: Task, *, counts: bool) -> None:
    """Queue a task again whose node was lost or taken. Its run is ended, without saving its output."""
    if task.ends_by is not None:
        # It was being ended: the node was lost first, and it is not run again.
        _stop_run(world, task)
        _complete(world, task, task.ends_by, ended=world.now())
        return
    _stop_run(world, task)
    if counts:
        task.requeue_count += 1
        task.last_requeue = world.now()
    _back_to_active(world, task)


def terminate(world: World, task: Task) -> None:
    """End a task by request. Raises TaskCompleted if it has ended."""
    if task.state is TaskState.COMPLETED:
        raise BatchError("TaskCompleted")
    failure = Failure(
        category=FailureCategory.USER_ERROR,
        code="TaskEnded",
        message="Task Was Ended by User Request",
        phase="run",
    )
    if task.run is not None:
        task.ends_by = failure
        world.effects.end_run(task.run, upload=True)
        return
    node = task.node
    scheduling.release(world, task)
    _complete(world, task, failure, ended=world.now())
    if node is not None:
        after_node_change(world, node)


def reactivate(world: World, task: Task) -> None:
    """Let a failed task run again, with its retries counted anew."""
    if task.state is not TaskState.COMPLETED:
        raise BatchError("TaskNotCompleted")
    if task.failure is None:
        raise BatchError("TaskSucceeded")
    jobs.require_accepting(task.job)
    task.retry_count = 0
    task.etag, task.last_modified = world.new_etag(), world.now()
    if task.retention_timer:
        task.retention_timer.cancel()
    _back_to_active(world, task)


def delete(world: World, task: Task) -> None:
    """Delete a task with its files; a run in progress is ended."""
    node = task.node
    _stop_run(world, task)
    task.waits = False
    task.job.discard(task)
    if task.retention_timer:
        task.retention_timer.cancel()
    _remove_files(world, task)
    if node is not None:
        after_node_change(world, node)
    jobs.follow_up(world, task.job)


def after_node_change(world: World, node: Node) -> None:
    """Follow up on a task that left a node."""
    nodes.after_task(world, node)


def _started(world: World, task: Task, run: Run, at: datetime) -> None:
    if task.run is run:
        task.started = at
        task.move(TaskState.RUNNING, world.now())


def _ended(world: World, task: Task, run: Run, outcome: TaskOutcome) -> None:
    """Decide what the end of a run means: completion, or another try."""
    if task.run is not run:
        return
    scheduling.release(world, task)
    task.exit_code, task.failure = outcome.exit_code, outcome.failure
    task.container_id = outcome.container_id
    task.started = outcome.started or task.started
    if task.ends_by is not None:
        _complete(world, task, task.ends_by, ended=outcome.ended)
    elif _may_retry(task, outcome):
        task.retry_count += 1
        task.last_retry = world.now()
        _back_to_active(world, task)
    else:
        if outcome.failure is None:
            run.node.total_tasks_succeeded += 1
        _complete(world, task, outcome.failure, ended=outcome.ended)
    after_node_change(world, run.node)


def _stop_run(world: World, task: Task) -> None:
    if task.run is not None:
        world.effects.end_run(task.run, upload=False)
    scheduling.release(world, task)


def _complete(world: World, task: Task, failure: Failure | None, *, ended: datetime) -> None:
    task.ended, task.failure, task.ends_by, task.waits = ended, failure, None, False
    task.move(TaskState.COMPLETED, world.now())
    pool = world.account.pool_of(task.job)
    if pool is not None:
        if failure:
            pool.failed_tasks += 1
        else:
            pool.succeeded_tasks += 1
    if task.last_node is not None:
        task.retention_timer = world.timers.after(
            _retention_seconds(task), lambda: _remove_files(world, task)
        )
    for freed in dependencies.unblock(task):
        freed.job.tally.note(freed)
        scheduling.enqueue(world, freed)
    jobs.after_completion(world, task)


def _back_to_active(world: World, task: Task) -> None:
    task.started = None
    task.move(TaskState.ACTIVE, world.now())
    if not task.unmet:
        scheduling.enqueue(world, task)
    # A job that is being disabled may have waited for just this.
    jobs.follow_up(world, task.job)


def _may_retry(task: Task, outcome: TaskOutcome) -> bool:
    if outcome.exit_code in {0, None} or outcome.failure is None or outcome.failure.phase != "run":
        return False
    for spec in (task.spec, task.job.spec):
        limit = (spec.get("constraints") or {}).get("maxTaskRetryCount")
        if limit is not None:
            return limit < 0 or task.retry_count < int(limit)
    return False


def _retention_seconds(task: Task) -> float:
    text = (task.spec.get("constraints") or {}).get("retentionTime")
    return parse_duration(text).total_seconds() if text else _DEFAULT_RETENTION_SECONDS


def _remove_files(world: World, task: Task) -> None:
    if task.last_node is not None and not task.files_removed:
        task.files_removed = True
        world.effects.remove_files(task.last_node, task.path)
