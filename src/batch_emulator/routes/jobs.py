"""Operations on jobs."""

from __future__ import annotations

from batch_emulator.errors import BatchError
from batch_emulator.routes.listing import list_answer, one_answer, sequenced, start_after
from batch_emulator.routes.pools import refuse_unsupported_pool
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.routes.render import job_json, job_on_node_json
from batch_emulator.routes.tasks import refuse_unsupported_task
from batch_emulator.rules import jobs
from batch_emulator.state import Json


def refuse_unsupported_commands(spec: Json) -> None:
    """Refuse what this emulator would have to ignore in a job's own tasks and its automatic pool."""
    for name in ("jobManagerTask", "jobPreparationTask", "jobReleaseTask"):
        if spec.get(name):
            refuse_unsupported_task(spec[name])
    pool = ((spec.get("poolInfo") or {}).get("autoPoolSpecification") or {}).get("pool")
    if pool:
        refuse_unsupported_pool(pool)


@registry.operation("POST", "/jobs")
def create_job(call: Call) -> Answer:
    """Add a job."""
    spec = call.body("BatchJobCreateOptions")
    refuse_unsupported_commands(spec)
    job = jobs.add(call.world, spec)
    return Answer(201, resource=job, headers={"Location": f"{call.world.url}/jobs/{job.id}"})


@registry.operation("GET", "/jobs")
def list_jobs(call: Call) -> Answer:
    """List the jobs."""
    items = sequenced(call.world.account.jobs.values(), start_after(call))
    return list_answer(call, "jobs", items, lambda job: job_json(call.world, job))


@registry.operation("GET", "/jobs/{jobId}")
def get_job(call: Call) -> Answer:
    """Get a job."""
    job = call.job
    return Answer(body=one_answer(call, "jobs", job_json(call.world, job)), resource=job)


@registry.operation("PATCH", "/jobs/{jobId}")
def update_job(call: Call) -> Answer:
    """Change some properties of a job."""
    job = call.job
    changes = call.body("BatchJobUpdateOptions")
    refuse_unsupported_commands(changes)
    jobs.change(call.world, job, changes, replace=False)
    return Answer(200, resource=job)


@registry.operation("PUT", "/jobs/{jobId}")
def replace_job(call: Call) -> Answer:
    """Replace the properties of a job that can be replaced."""
    job = call.job
    jobs.change(call.world, job, call.body("BatchJob"), replace=True)
    return Answer(200, resource=job)


@registry.operation("DELETE", "/jobs/{jobId}")
def delete_job(call: Call) -> Answer:
    """Delete a job with its tasks."""
    jobs.delete(call.world, call.job)
    return Answer(202)


@registry.operation("POST", "/jobs/{jobId}/disable")
def disable_job(call: Call) -> Answer:
    """Stop running the tasks of a job."""
    job = call.job
    jobs.disable(call.world, job, str(call.body("BatchJobDisableOptions")["disableTasks"]).lower())
    return Answer(202, resource=job)


@registry.operation("POST", "/jobs/{jobId}/enable")
def enable_job(call: Call) -> Answer:
    """Let a disabled job run again."""
    job = call.job
    jobs.enable(call.world, job)
    return Answer(202, resource=job)


@registry.operation("POST", "/jobs/{jobId}/terminate")
def terminate_job(call: Call) -> Answer:
    """End a job."""
    job = call.job
    request = call.optional_body("BatchJobTerminateOptions")
    jobs.terminate(call.world, job, request.get("terminateReason", "UserTerminate"))
    return Answer(202, resource=job)


@registry.operation("GET", "/jobs/{jobId}/jobpreparationandreleasetaskstatus")
def list_job_preparation_and_release_task_status(call: Call) -> Answer:
    """List what a job's preparation and release tasks have done on each node."""
    job = call.job
    if not job.spec.get("jobPreparationTask"):
        raise BatchError("JobPreparationTaskNotSpecified")
    items = ((here.node.sequence, here) for here in job.on_nodes.values())
    after = start_after(call)
    return list_answer(
        call,
        "jobpreparationandreleasetaskstatuslist",
        (item for item in items if item[0] > after),
        lambda here: job_on_node_json(call.world, here),
    )


@registry.operation("GET", "/jobs/{jobId}/taskcounts")
def get_job_task_counts(call: Call) -> Answer:
    """Count the tasks of a job by state."""
    tally = call.job.tally
    kinds = {
        "active": (tally.active, tally.blocked),
        "running": (tally.running,),
        "completed": (tally.succeeded, tally.failed),
        "succeeded": (tally.succeeded,),
        "failed": (tally.failed,),
    }
    counts = {name: sum(count.tasks for count in kind) for name, kind in kinds.items()}
    slots = {name: sum(count.slots for count in kind) for name, kind in kinds.items()}
    return Answer(
        body={
            "odata.metadata": f"{call.world.url}/$metadata#taskcountsresult/@Element",
            "taskCounts": counts,
            "taskSlotCounts": slots,
        }
    )
