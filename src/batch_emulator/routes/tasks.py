"""Operations on tasks."""

from __future__ import annotations

from batch_emulator.errors import BatchError
from batch_emulator.routes.listing import list_answer, one_answer, start_after
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.routes.render import task_json, task_url
from batch_emulator.rules import tasks
from batch_emulator.state import Job, Json

_MOST_TASKS_A_CALL = 100
_UNSUPPORTED_SOURCES = ("identityReference", "autoStorageContainerName")
_STRICT_NO = (
    ("multiInstanceSettings", "Multi-instance tasks are not run."),
    ("applicationPackageReferences", "Application packages are not deployed."),
    ("authenticationTokenSettings", "Tasks get no token for the Batch service."),
)


@registry.operation("POST", "/jobs/{jobId}/tasks")
def create_task(call: Call) -> Answer:
    """Add a task."""
    job, spec = call.job, call.body("BatchTaskCreateOptions")
    refuse_unsupported_task(spec)
    task = tasks.add(call.world, job, spec)
    return Answer(201, resource=task, headers={"Location": task_url(call.world, task)})


@registry.operation("POST", "/jobs/{jobId}/addtaskcollection")
def create_task_collection(call: Call) -> Answer:
    """Add up to 100 tasks; each succeeds or fails for itself."""
    job, group = call.job, call.body("BatchTaskGroup")
    specs = group["value"]
    if len(specs) > _MOST_TASKS_A_CALL:
        raise BatchError("RequestBodyTooLarge", f"A call adds at most {_MOST_TASKS_A_CALL} tasks.")
    return Answer(
        body={
            "odata.metadata": f"{call.world.url}/$metadata#taskaddresult",
            "value": [_add_one(call, job, spec) for spec in specs],
        }
    )


def refuse_unsupported(spec: Json, properties: tuple[tuple[str, str], ...]) -> None:
    """Answer an error for a property that this emulator would have to ignore."""
    for name, why in properties:
        if spec.get(name):
            raise BatchError("NotSupportedByEmulator", f"This emulator does not support {name}: {why}")


def refuse_unsupported_task(spec: Json) -> None:
    """Refuse what this emulator would have to ignore in a task of any kind."""
    refuse_unsupported(spec, _STRICT_NO)
    places = [*spec.get("resourceFiles", ())]
    places += [output["destination"].get("container") or {} for output in spec.get("outputFiles", ())]
    for place in places:
        for name in _UNSUPPORTED_SOURCES:
            if place.get(name):
                raise BatchError(
                    "NotSupportedByEmulator",
                    f"This emulator does not support {name} of files yet; give URLs with a SAS.",
                )


def _add_one(call: Call, job: Job, spec: Json) -> Json:
    try:
        refuse_unsupported_task(spec)
        task = tasks.add(call.world, job, spec)
    except BatchError as error:
        return {
            "status": "clienterror" if error.status < 500 else "servererror",
            "taskId": spec["id"],
            "error": {
                "code": error.code,
                "message": {"lang": "en-US", "value": error.message},
                "values": [{"key": name, "value": value} for name, value in error.values],
            },
        }
    return {
        "status": "success",
        "taskId": task.id,
        "eTag": task.etag,
        "lastModified": task_json(call.world, task)["lastModified"],
        "location": task_url(call.world, task),
    }


@registry.operation("GET", "/jobs/{jobId}/tasks")
def list_tasks(call: Call) -> Answer:
    """List the tasks of a job."""
    items = ((task.sequence, task) for task in call.job.tasks_after(start_after(call)))
    return list_answer(call, "tasks", items, lambda task: task_json(call.world, task))


@registry.operation("GET", "/jobs/{jobId}/tasks/{taskId}")
def get_task(call: Call) -> Answer:
    """Get a task."""
    task = call.task
    return Answer(body=one_answer(call, "tasks", task_json(call.world, task)), resource=task)


@registry.operation("PUT", "/jobs/{jobId}/tasks/{taskId}")
def replace_task(call: Call) -> Answer:
    """Change the constraints of a task."""
    task = call.task
    task.spec["constraints"] = call.body("BatchTask").get("constraints") or {}
    task.etag, task.last_modified = call.world.new_etag(), call.world.now()
    return Answer(200, resource=task)


@registry.operation("DELETE", "/jobs/{jobId}/tasks/{taskId}")
def delete_task(call: Call) -> Answer:
    """Delete a task with its files."""
    tasks.delete(call.world, call.task)
    return Answer(200)


@registry.operation("POST", "/jobs/{jobId}/tasks/{taskId}/terminate")
def terminate_task(call: Call) -> Answer:
    """End a task."""
    task = call.task
    tasks.terminate(call.world, task)
    return Answer(204, resource=task)


@registry.operation("POST", "/jobs/{jobId}/tasks/{taskId}/reactivate")
def reactivate_task(call: Call) -> Answer:
    """Let a failed task run again."""
    task = call.task
    tasks.reactivate(call.world, task)
    return Answer(204, resource=task)


@registry.operation(
    "GET", "/jobs/{jobId}/tasks/{taskId}/subtasksinfo", note="Only multi-instance tasks have subtasks."
)
def list_subtasks(call: Call) -> Answer:
    """List the subtasks of a task: none, for multi-instance tasks are refused."""
    call.task  # noqa: B018 - a task that does not exist is an error
    return list_answer(call, "subtasks", (), lambda subtask: subtask)
