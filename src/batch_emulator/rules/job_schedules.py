"""Job schedules: jobs that are created at their time, one at a time.

A schedule has at most one active job. One that is due while the last still runs is created when that ends,
if its `startWindow` has not passed by then. Intervals are service time.

Source: https://learn.microsoft.com/rest/api/batchservice/job-schedule/add#schedule
"""

from __future__ import annotations

import copy
import logging
import math
from datetime import datetime

from batch_emulator.errors import BatchError, invalid_property
from batch_emulator.rules import auto_pools, jobs, quotas
from batch_emulator.rules.world import World
from batch_emulator.state import Job, JobSchedule, JobScheduleState, JobState, Json, key
from batch_emulator.wire.durations import parse_duration
from batch_emulator.wire.times import parse_time

logger = logging.getLogger(__name__)

_SHORTEST_SECONDS = 60.0
_REFUSALS = {
    JobScheduleState.COMPLETED: "JobScheduleCompleted",
    JobScheduleState.TERMINATING: "JobScheduleBeingTerminated",
    JobScheduleState.DELETING: "JobScheduleBeingDeleted",
}


def add(world: World, spec: Json) -> JobSchedule:
    """Add a schedule; its first job is due at once, or at `doNotRunUntil`."""
    if key(spec["id"]) in world.account.schedules:
        raise BatchError("JobScheduleExists")
    _check(spec)
    quotas.check_job(world)
    now = world.now()
    schedule = JobSchedule(
        id=spec["id"],
        sequence=world.next_number(),
        spec=spec,
        created=now,
        last_modified=now,
        state_since=now,
        etag=world.new_etag(),
    )
    world.account.schedules[key(schedule.id)] = schedule
    _plan(world, schedule)
    return schedule


def change(world: World, schedule: JobSchedule, changes: Json, *, replace: bool) -> None:
    """Change when jobs are created, and what they are; a job that is there already stays as it is."""
    _require_open(schedule)
    changed = {**schedule.spec, **changes}
    if replace:
        for name in ("schedule", "metadata"):
            if name not in changes:
                changed.pop(name, None)
    _check(changed)
    schedule.spec = changed
    schedule.etag, schedule.last_modified = world.new_etag(), world.now()
    if replace or "schedule" in changes:
        _plan(world, schedule)


def disable(world: World, schedule: JobSchedule) -> None:
    """Create no jobs until the schedule is enabled; the job that runs goes on."""
    _require_open(schedule)
    if schedule.state is JobScheduleState.ACTIVE:
        schedule.move(JobScheduleState.DISABLED, world.now())


def enable(world: World, schedule: JobSchedule) -> None:
    """Create jobs again. A job that was due meanwhile is created now, if its start window is still open."""
    _require_open(schedule)
    if schedule.state is JobScheduleState.DISABLED:
        schedule.move(JobScheduleState.ACTIVE, world.now())
        _take_opportunity(world, schedule)


def terminate(world: World, schedule: JobSchedule) -> None:
    """End a schedule, and the job that runs under it."""
    _require_open(schedule)
    schedule.cancel_timers()
    schedule.move(JobScheduleState.TERMINATING, world.now())
    job = _active_job(world, schedule)
    if job is not None and job.state is not JobState.TERMINATING:
        jobs.terminate(world, job, "JobScheduleTerminated")
    _follow_up(world, schedule)


def delete(world: World, schedule: JobSchedule) -> None:
    """Delete a schedule with all its jobs."""
    if schedule.state is JobScheduleState.DELETING:
        raise BatchError("JobScheduleBeingDeleted")
    schedule.cancel_timers()
    schedule.move(JobScheduleState.DELETING, world.now())
    for job in jobs_of(world, schedule):
        if job.state is not JobState.DELETING:
            jobs.delete(world, job)
    _follow_up(world, schedule)


def jobs_of(world: World, schedule: JobSchedule) -> list[Job]:
    """Return the jobs that a schedule has created and that still exist, oldest first."""
    return [job for job in world.account.jobs.values() if job.schedule_id == schedule.id]


def job_ended(world: World, job: Job) -> None:
    """Follow up on a job that has completed or is gone: its schedule may be done, or the next job be due."""
    schedule = world.account.schedules.get(key(job.schedule_id or ""))
    if schedule is None:
        return
    if schedule.recent_job is job and schedule.next_due is None and schedule.opportunity_ends is None:
        schedule.expired = True
    _take_opportunity(world, schedule)
    _follow_up(world, schedule)


def _check(spec: Json) -> None:
    times: Json = spec.get("schedule") or {}
    for name in ("recurrenceInterval", "startWindow"):
        if name in times and _seconds(times[name]) < _SHORTEST_SECONDS:
            raise invalid_property(f"schedule.{name}", "It must be at least 1 minute.", times[name])
    until, after = times.get("doNotRunUntil"), times.get("doNotRunAfter")
    if until and after and parse_time(after) <= parse_time(until):
        raise invalid_property("schedule.doNotRunAfter", "It must be after doNotRunUntil.", after)
    jobs.check({**spec["jobSpecification"], "id": spec["id"]})


def _plan(world: World, schedule: JobSchedule) -> None:
    """Set when the next job is due, from the schedule as it now is."""
    schedule.cancel_timers()
    times: Json = schedule.spec.get("schedule") or {}
    if times.get("doNotRunAfter"):
        seconds = _seconds_until(world, times["doNotRunAfter"])
        schedule.expiry_timer = world.timers.after(seconds, lambda: _expire(world, schedule))
    recurs = "recurrenceInterval" in times
    if schedule.jobs_created and not recurs:
        return
    wait = _seconds_until(world, times["doNotRunUntil"]) if times.get("doNotRunUntil") else 0.0
    if schedule.jobs_created and recurs:
        wait = max(wait, _seconds(times["recurrenceInterval"]))
    _set_next(world, schedule, wait)


def _set_next(world: World, schedule: JobSchedule, wait: float) -> None:
    schedule.next_due = world.clock.service_seconds() + wait
    schedule.next_run = _date_in(world, wait)
    schedule.run_timer = world.timers.after(wait, lambda: _due(world, schedule))


def _due(world: World, schedule: JobSchedule) -> None:
    times: Json = schedule.spec.get("schedule") or {}
    due = schedule.next_due or world.clock.service_seconds()
    schedule.run_timer = schedule.next_due = schedule.next_run = None
    interval = _seconds(times["recurrenceInterval"]) if "recurrenceInterval" in times else None
    if interval is not None:
        _set_next(world, schedule, due + interval - world.clock.service_seconds())
    window = _seconds(times["startWindow"]) if "startWindow" in times else math.inf
    schedule.opportunity_ends = due + min(window, interval if interval is not None else math.inf)
    _take_opportunity(world, schedule)


def _take_opportunity(world: World, schedule: JobSchedule) -> None:
    """Create the job that is due, unless the one before still runs, or the schedule does not want it now."""
    ends = schedule.opportunity_ends
    if ends is None or schedule.expired:
        return
    if world.clock.service_seconds() > ends:
        schedule.opportunity_ends = None
        return
    if schedule.state is JobScheduleState.ACTIVE and _active_job(world, schedule) is None:
        schedule.opportunity_ends = None
        _create_job(world, schedule)


def _create_job(world: World, schedule: JobSchedule) -> None:
    schedule.jobs_created += 1
    spec = copy.deepcopy(schedule.spec["jobSpecification"])
    job_id = f"{schedule.id}:job-{schedule.jobs_created}"
    try:
        job = jobs.add(world, {**spec, "id": job_id}, schedule_id=schedule.id)
    except BatchError as error:
        # Nobody waits for an answer here; the schedule goes on with its next job.
        logger.warning("job schedule %s could not create %s: %s", schedule.id, job_id, error)
        return
    schedule.recent_job = job
    if _active_job(world, schedule) is None:
        job_ended(world, job)


def _expire(world: World, schedule: JobSchedule) -> None:
    schedule.cancel_timers()
    schedule.expired = True
    _follow_up(world, schedule)


def _follow_up(world: World, schedule: JobSchedule) -> None:
    """Let a schedule end whose last job has ended."""
    if _active_job(world, schedule) is not None:
        return
    if schedule.state is JobScheduleState.DELETING:
        if not jobs_of(world, schedule) and world.account.schedules.get(key(schedule.id)) is schedule:
            del world.account.schedules[key(schedule.id)]
            _end_pool(world, schedule)
    elif schedule.state is JobScheduleState.TERMINATING or (
        schedule.expired and schedule.state is not JobScheduleState.COMPLETED
    ):
        schedule.cancel_timers()
        schedule.move(JobScheduleState.COMPLETED, world.now())
        schedule.ended = world.now()
        _end_pool(world, schedule)


def _end_pool(world: World, schedule: JobSchedule) -> None:
    job = schedule.recent_job
    if job is not None and job.auto_pool_id is not None:
        auto_pools.schedule_ended(world, job.auto_pool_id, job.spec["poolInfo"]["autoPoolSpecification"])


def _active_job(world: World, schedule: JobSchedule) -> Job | None:
    job = schedule.recent_job
    if job is None or job.state is JobState.COMPLETED or world.account.jobs.get(key(job.id)) is not job:
        return None
    return job


def _require_open(schedule: JobSchedule) -> None:
    if schedule.state in _REFUSALS:
        raise BatchError(_REFUSALS[schedule.state])


def _seconds(text: str) -> float:
    return parse_duration(text).total_seconds()


def _seconds_until(world: World, text: str) -> float:
    return max(0.0, (parse_time(text) - world.now()).total_seconds())


def _date_in(world: World, seconds: float) -> datetime | None:
    """Return the date in so many seconds, or None where no calendar reaches it."""
    try:
        return datetime.fromtimestamp(world.now().timestamp() + seconds, world.now().tzinfo)
    except (OverflowError, ValueError):
        return None
