"""The state machine of jobs, and what the end of a task means for its job.

Source: https://learn.microsoft.com/rest/api/batchservice/job
"""

from __future__ import annotations

import copy

from batch_emulator.errors import BatchError, invalid_property
from batch_emulator.rules import (
    auto_pools,
    dependencies,
    job_nodes,
    job_schedules,
    launching,
    quotas,
    scheduling,
)
from batch_emulator.rules import tasks as task_rules
from batch_emulator.rules.world import World
from batch_emulator.state import Job, JobState, Json, Task, key

_REFUSALS = {
    JobState.COMPLETED: "JobCompleted",
    JobState.TERMINATING: "JobBeingTerminated",
    JobState.DELETING: "JobBeingDeleted",
}
_REPLACEABLE = (
    "priority",
    "maxParallelTasks",
    "allowTaskPreemption",
    "constraints",
    "metadata",
    "onAllTasksComplete",
)
_PRIORITIES = range(-1000, 1001)


def add(world: World, spec: Json, *, schedule_id: str | None = None) -> Job:
    """Add a job. Its pool need not exist yet: then its tasks wait, as on the service."""
    if key(spec["id"]) in world.account.jobs:
        raise BatchError("JobExists")
    check(spec)
    if schedule_id is None:
        # A schedule has taken its place in the quota already.
        quotas.check_job(world)
    for name, standard in (("jobPreparationTask", "jobpreparation"), ("jobReleaseTask", "jobrelease")):
        if spec.get(name):
            spec[name].setdefault("id", standard)
    now = world.now()
    pool_info: Json = spec["poolInfo"]
    pool_id, auto_pool_id = pool_info.get("poolId"), None
    if pool_id is None:
        pool_id = auto_pool_id = auto_pools.create(world, pool_info["autoPoolSpecification"], schedule_id)
    job = Job(
        id=spec["id"],
        sequence=world.next_number(),
        spec=spec,
        created=now,
        last_modified=now,
        state_since=now,
        started=now,
        etag=world.new_etag(),
        pool_id=pool_id,
        auto_pool_id=auto_pool_id,
        schedule_id=schedule_id,
    )
    world.account.add_job(job)
    _watch_wall_clock(world, job)
    manager = spec.get("jobManagerTask")
    if manager:
        task_rules.add(world, job, _manager_task(manager))
    follow_up(world, job)
    return job


def require_accepting(job: Job) -> None:
    """Raise unless the job takes new tasks; a disabled job does, and runs them once it is enabled."""
    if job.state in _REFUSALS:
        raise BatchError(_REFUSALS[job.state])


def change(world: World, job: Job, changes: Json, *, replace: bool) -> None:
    """Apply what a client may change of a job. Another pool is possible only while it is disabled."""
    require_accepting(job)
    check({**job.spec, **changes})
    new_pool = str((changes.get("poolInfo") or {}).get("poolId", job.pool_id))
    if key(new_pool) != key(job.pool_id):
        if job.state is not JobState.DISABLED:
            raise BatchError("OperationInvalidForCurrentState", "Disable the job to give it another pool.")
        world.account.rebind_job(job, new_pool)
    if replace:
        for name in _REPLACEABLE:
            job.spec.pop(name, None)
    job.spec.update(changes)
    job.etag, job.last_modified = world.new_etag(), world.now()
    _watch_wall_clock(world, job)
    _schedule(world, job)
    follow_up(world, job)


def disable(world: World, job: Job, disable_tasks: str) -> None:
    """Stop running the job's tasks: `requeue` them, `terminate` them, or `wait` for those that run."""
    if job.state in {JobState.DISABLING, JobState.DISABLED}:
        return
    if job.state is not JobState.ACTIVE:
        raise BatchError(_REFUSALS.get(job.state, "JobNotActive"))
    job.move(JobState.DISABLING, world.now())
    for task in job.tasks_on_nodes() if disable_tasks != "wait" else ():
        node = task.node
        if disable_tasks == "terminate":
            task_rules.terminate(world, task)
        else:
            task_rules.requeue(world, task, counts=False)
            if node is not None:
                task_rules.after_node_change(world, node)
    follow_up(world, job)


def enable(world: World, job: Job) -> None:
    """Let a disabled job run again."""
    if job.state is JobState.ACTIVE:
        return
    if job.state not in {JobState.DISABLED, JobState.DISABLING}:
        raise BatchError(_REFUSALS.get(job.state, "JobNotActive"))
    job.move(JobState.ACTIVE, world.now())
    _schedule(world, job)
    follow_up(world, job)


def terminate(world: World, job: Job, reason: str) -> None:
    """End a job: running tasks are ended, and those that wait stay active for ever."""
    require_accepting(job)
    job.terminate_reason = reason
    job.move(JobState.TERMINATING, world.now())
    for task in job.tasks_on_nodes():
        # Ending one task may have ended others with it.
        if task.node is not None and task.ends_by is None:
            task_rules.terminate(world, task)
    job_nodes.stop_preparations(world, job)
    follow_up(world, job)


def delete(world: World, job: Job) -> None:
    """Delete a job with its tasks and their files, whatever their retention."""
    if job.state is JobState.DELETING:
        raise BatchError("JobBeingDeleted")
    job.move(JobState.DELETING, world.now())
    for task in list(job.tasks.values()):
        task_rules.delete(world, task)
    job_nodes.stop_preparations(world, job)
    follow_up(world, job)


def after_completion(world: World, task: Task) -> None:
    """Follow up on a task that has completed: by its job's rules it may end or disable the job."""
    job = task.job
    if job.state is JobState.ACTIVE:
        manager: Json = job.spec.get("jobManagerTask") or {}
        action = dependencies.job_action(task)
        if key(manager.get("id", "")) == key(task.id) and manager.get("killJobOnCompletion", True):
            terminate(world, job, "JMComplete")
        elif action == "terminate":
            terminate(world, job, "TaskFailed")
        elif action == "disable":
            disable(world, job, "requeue")
    follow_up(world, job)


def follow_up(world: World, job: Job) -> None:
    """Take the next step of a job without running tasks: it may be done, disabled, or end by itself."""
    if job.tally.running.tasks:
        return
    if job.state is JobState.DISABLING:
        job.move(JobState.DISABLED, world.now())
    elif job.state in {JobState.TERMINATING, JobState.DELETING}:
        job_nodes.begin_release(world, job)
        if not job_nodes.releasing(job):
            _finish(world, job)
    elif job.state is JobState.ACTIVE and _ends_itself(job):
        terminate(world, job, "AllTasksCompleted")


def _finish(world: World, job: Job) -> None:
    if job.wall_clock_timer:
        job.wall_clock_timer.cancel()
    if job.auto_pool_id is not None:
        auto_pools.job_ended(world, job)
    if job.state is JobState.TERMINATING:
        job.move(JobState.COMPLETED, world.now())
        job.ended = world.now()
    elif world.account.jobs.get(key(job.id)) is job:
        job_nodes.remove_files(world, job)
        world.account.discard_job(job)
    if job.schedule_id is not None:
        job_schedules.job_ended(world, job)


def check(spec: Json) -> None:
    """Check what a job, or a schedule of jobs, asks for. Raises `BatchError`."""
    if int(spec.get("priority", 0)) not in _PRIORITIES:
        raise invalid_property("priority", "It must be from -1000 to 1000.", spec["priority"])
    pool_info = spec["poolInfo"]
    if bool(pool_info.get("poolId")) is bool(pool_info.get("autoPoolSpecification")):
        raise invalid_property("poolInfo", "Give either poolId or autoPoolSpecification.")
    if spec.get("jobReleaseTask") and not spec.get("jobPreparationTask"):
        raise BatchError("JobPreparationTaskNotSpecified")


def _manager_task(manager: Json) -> Json:
    not_of_tasks = {"killJobOnCompletion", "runExclusive", "allowLowPriorityNode"}
    return copy.deepcopy({name: value for name, value in manager.items() if name not in not_of_tasks})


def _watch_wall_clock(world: World, job: Job) -> None:
    if job.wall_clock_timer:
        job.wall_clock_timer.cancel()
        job.wall_clock_timer = None
    limit = launching.wall_clock((job.spec.get("constraints") or {}).get("maxWallClockTime"))
    if limit is None:
        return

    def expired() -> None:
        if job.state not in _REFUSALS:
            terminate(world, job, "MaxWallClockTimeExpiry")

    elapsed = (world.now() - job.started).total_seconds()
    job.wall_clock_timer = world.timers.after_real(limit.total_seconds() - elapsed, expired)


def _ends_itself(job: Job) -> bool:
    wanted = str(job.spec.get("onAllTasksComplete", "noaction")).lower()
    return wanted == "terminatejob" and not job.tally.unfinished


def _schedule(world: World, job: Job) -> None:
    pool = world.account.pool_of(job)
    if pool is not None:
        scheduling.schedule(world, pool)
