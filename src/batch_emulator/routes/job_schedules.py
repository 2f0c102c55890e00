"""Operations on job schedules."""

from __future__ import annotations

from batch_emulator.routes.jobs import refuse_unsupported_commands
from batch_emulator.routes.listing import list_answer, one_answer, sequenced, start_after
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.routes.render import job_json, schedule_json
from batch_emulator.rules import job_schedules
from batch_emulator.state import Json


def _checked(call: Call, model: str) -> Json:
    spec = call.body(model)
    if spec.get("jobSpecification"):
        refuse_unsupported_commands(spec["jobSpecification"])
    return spec


@registry.operation("POST", "/jobschedules")
def create_job_schedule(call: Call) -> Answer:
    """Add a job schedule."""
    schedule = job_schedules.add(call.world, _checked(call, "BatchJobScheduleCreateOptions"))
    location = f"{call.world.url}/jobschedules/{schedule.id}"
    return Answer(201, resource=schedule, headers={"Location": location})


@registry.operation("GET", "/jobschedules")
def list_job_schedules(call: Call) -> Answer:
    """List the job schedules."""
    items = sequenced(call.world.account.schedules.values(), start_after(call))
    return list_answer(call, "jobschedules", items, lambda schedule: schedule_json(call.world, schedule))


@registry.operation("GET", "/jobschedules/{jobScheduleId}")
def get_job_schedule(call: Call) -> Answer:
    """Get a job schedule."""
    schedule = call.schedule
    return Answer(
        body=one_answer(call, "jobschedules", schedule_json(call.world, schedule)), resource=schedule
    )


@registry.operation("HEAD", "/jobschedules/{jobScheduleId}")
def job_schedule_exists(call: Call) -> Answer:
    """Tell whether a job schedule exists."""
    return Answer(resource=call.schedule)


@registry.operation("PATCH", "/jobschedules/{jobScheduleId}")
def update_job_schedule(call: Call) -> Answer:
    """Change some properties of a job schedule."""
    schedule = call.schedule
    changes = _checked(call, "BatchJobScheduleUpdateOptions")
    job_schedules.change(call.world, schedule, changes, replace=False)
    return Answer(200, resource=schedule)


@registry.operation("PUT", "/jobschedules/{jobScheduleId}")
def replace_job_schedule(call: Call) -> Answer:
    """Replace the properties of a job schedule that can be replaced."""
    schedule = call.schedule
    job_schedules.change(call.world, schedule, _checked(call, "BatchJobSchedule"), replace=True)
    return Answer(200, resource=schedule)


@registry.operation("DELETE", "/jobschedules/{jobScheduleId}")
def delete_job_schedule(call: Call) -> Answer:
    """Delete a job schedule with all its jobs."""
    job_schedules.delete(call.world, call.schedule)
    return Answer(202)


@registry.operation("POST", "/jobschedules/{jobScheduleId}/disable")
def disable_job_schedule(call: Call) -> Answer:
    """Create no jobs for now."""
    schedule = call.schedule
    job_schedules.disable(call.world, schedule)
    return Answer(204, resource=schedule)


@registry.operation("POST", "/jobschedules/{jobScheduleId}/enable")
def enable_job_schedule(call: Call) -> Answer:
    """Create jobs again."""
    schedule = call.schedule
    job_schedules.enable(call.world, schedule)
    return Answer(204, resource=schedule)


@registry.operation("POST", "/jobschedules/{jobScheduleId}/terminate")
def terminate_job_schedule(call: Call) -> Answer:
    """End a job schedule and its active job."""
    schedule = call.schedule
    job_schedules.terminate(call.world, schedule)
    return Answer(202, resource=schedule)


@registry.operation("GET", "/jobschedules/{jobScheduleId}/jobs")
def list_jobs_from_schedule(call: Call) -> Answer:
    """List the jobs that a schedule has created."""
    jobs = job_schedules.jobs_of(call.world, call.schedule)
    return list_answer(
        call, "jobs", sequenced(jobs, start_after(call)), lambda job: job_json(call.world, job)
    )
