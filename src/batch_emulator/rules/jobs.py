"""The state machine of jobs, and what the end of a task means for its job.

Source: https://learn.microsoft.com/rest/api/batchservice/job
"""

from __future__ import annotations

from batch_emulator.errors import BatchError
from batch_emulator.rules import scheduling
from batch_emulator.rules import tasks as task_rules
from batch_emulator.rules.world import World
from batch_emulator.state.model import Job, JobState, Json, Task, TaskState, key

_REFUSALS = {
    JobState.COMPLETED: "JobCompleted",
    JobState.TERMINATING: "JobBeingTerminated",
    JobState.DELETING: "JobBeingDeleted",
}


def add(world: World, spec: Json) -> Job:
    """Add a job. Its pool need not exist yet: then its tasks wait, as on the service."""
    if key(spec["id"]) in world.account.jobs:
        raise BatchError("JobExists")
    now = world.now()
    job = Job(
        id=spec["id"],
        spec=spec,
        created=now,
        last_modified=now,
        state_since=now,
        started=now,
        etag=world.new_etag(),
        pool_id=str(spec["poolInfo"].get("poolId", "")),
    )
    world.account.jobs[key(job.id)] = job
    return job


def require_accepting(job: Job) -> None:
    """Raise unless the job takes new tasks; a disabled job does, and runs them once it is enabled."""
    if job.state in _REFUSALS:
        raise BatchError(_REFUSALS[job.state])


def change(world: World, job: Job, changes: Json, *, replace: bool) -> None:
    """Apply what a client may change of a job. Another pool is possible only while it is disabled."""
    if job.state in {JobState.COMPLETED, JobState.TERMINATING, JobState.DELETING}:
        raise BatchError(_REFUSALS[job.state])
    new_pool = str((changes.get("poolInfo") or {}).get("poolId", job.pool_id))
    if key(new_pool) != key(job.pool_id) and job.state is not JobState.DISABLED:
        raise BatchError(
            "JobNotActive" if job.state is not JobState.ACTIVE else "OperationInvalidForCurrentState"
        )
    if replace:
        for name in ("priority", "maxParallelTasks", "allowTaskPreemption", "constraints", "metadata"):
            job.spec.pop(name, None)
    job.spec.update({name: value for name, value in changes.items() if value is not None})
    job.pool_id = new_pool
    job.etag, job.last_modified = world.new_etag(), world.now()
    after_task(world, job)


def disable(world: World, job: Job, disable_tasks: str) -> None:
    """Stop running the job's tasks: `requeue` them, `terminate` them, or `wait` for those that run."""
    if job.state in {JobState.DISABLING, JobState.DISABLED}:
        return
    if job.state is not JobState.ACTIVE:
        raise BatchError("JobNotActive")
    _move(world, job, JobState.DISABLING)
    for task in [task for task in job.tasks.values() if task.node is not None]:
        if disable_tasks == "requeue":
            node = task.node
            task_rules.requeue(world, task, counts=False)
            pool = world.pool_of(job)
            if node is not None and pool is not None:
                scheduling.schedule(world, pool)
        elif disable_tasks == "terminate":
            task_rules.terminate(world, task)
    after_task(world, job)


def enable(world: World, job: Job) -> None:
    """Let a disabled job run again."""
    if job.state is JobState.ACTIVE:
        return
    if job.state not in {JobState.DISABLED, JobState.DISABLING}:
        raise BatchError("JobNotActive")
    _move(world, job, JobState.ACTIVE)
    scheduling.enqueue_job(world, job)


def terminate(world: World, job: Job, reason: str) -> None:
    """End a job: running tasks are ended, and those that wait stay active for ever."""
    if job.state in _REFUSALS:
        raise BatchError(_REFUSALS[job.state])
    job.terminate_reason = reason
    _move(world, job, JobState.TERMINATING)
    for task in [task for task in job.tasks.values() if task.node is not None]:
        task_rules.terminate(world, task)
    after_task(world, job)


def delete(world: World, job: Job) -> None:
    """Delete a job with its tasks and their files, whatever their retention."""
    if job.state is JobState.DELETING:
        raise BatchError("JobBeingDeleted")
    _move(world, job, JobState.DELETING)
    for task in list(job.tasks.values()):
        task_rules.delete(world, task)
    world.account.jobs.pop(key(job.id), None)


def unblock(world: World, task: Task, *, satisfied: bool) -> None:
    """Let the tasks run that waited for this one, if it ended as they need."""
    if not satisfied:
        return
    for dependent in task.job.blocked.pop(key(task.id), ()):
        dependent.unmet.discard(key(task.id))
        if not dependent.unmet and dependent.state is TaskState.ACTIVE:
            scheduling.enqueue(world, dependent)


def after_task(world: World, job: Job) -> None:
    """Follow up on a task's end or removal: the job may be done, disabled, or end by its own rules."""
    if job.running:
        return
    if job.state is JobState.DISABLING:
        _move(world, job, JobState.DISABLED)
    elif job.state is JobState.TERMINATING:
        _move(world, job, JobState.COMPLETED)
        job.ended = world.now()
    elif job.state is JobState.ACTIVE and _ends_itself(job):
        terminate(world, job, "AllTasksCompleted")


def _ends_itself(job: Job) -> bool:
    if str(job.spec.get("onAllTasksComplete", "noaction")).lower() != "terminatejob":
        return False
    return all(task.state is TaskState.COMPLETED for task in job.tasks.values())


def _move(world: World, job: Job, state: JobState) -> None:
    job.previous_state, job.state, job.state_since = job.state, state, world.now()
