"""Which tasks wait for which, and what the way a task ended means for them and for its job.

Source: https://learn.microsoft.com/azure/batch/batch-task-dependencies
"""

from __future__ import annotations

import bisect
from typing import Any

from batch_emulator.errors import BatchError, invalid_property
from batch_emulator.state import Job, Json, Task, TaskState, key


def check(job: Job, spec: Json) -> None:
    """Check what a new task says of its dependencies. Raises `BatchError`."""
    dependencies = spec.get("dependsOn")
    if not dependencies:
        return
    if not job.spec.get("usesTaskDependencies"):
        raise BatchError("TaskDependenciesNotSpecifiedOnJob")
    for span in dependencies.get("taskIdRanges", ()):
        if not 0 <= span["start"] <= span["end"]:
            raise invalid_property("dependsOn.taskIdRanges", "start must not be below zero or above end.")


def block(task: Task) -> None:
    """Let a new task wait for the tasks that it depends on, whether or not they exist yet."""
    job, dependencies = task.job, task.spec.get("dependsOn") or {}
    for needed in {key(identifier) for identifier in dependencies.get("taskIds", ())}:
        other = job.tasks.get(needed)
        if other is None or not satisfies(other):
            task.unmet += 1
            job.blocked.setdefault(needed, []).append(task)
    for span in dependencies.get("taskIdRanges", ()):
        needed_numbers = range(span["start"], span["end"] + 1)
        if not _all_satisfied(job, needed_numbers):
            task.unmet += 1
            job.blocked_by_range.append((needed_numbers, task))


def unblock(task: Task) -> list[Task]:
    """Return the tasks that wait for nothing any more because this one has ended as they need."""
    if not satisfies(task):
        return []
    job, freed = task.job, []
    for dependent in job.blocked.pop(key(task.id), ()):
        dependent.unmet -= 1
        freed.append(dependent)
    number = _number(task.id)
    if number is not None and not _all_satisfied(job, range(number, number + 1)):
        bisect.insort(job.satisfied_numbers, number)
        still: list[tuple[range, Task]] = []
        for needed, dependent in job.blocked_by_range:
            if number in needed and _all_satisfied(job, needed):
                dependent.unmet -= 1
                freed.append(dependent)
            else:
                still.append((needed, dependent))
        job.blocked_by_range = still
    return [
        dependent
        for dependent in freed
        if not dependent.unmet and dependent.state is TaskState.ACTIVE and job.holds(dependent)
    ]


def satisfies(task: Task) -> bool:
    """Whether a task has ended so that those depending on it may run."""
    if task.state is not TaskState.COMPLETED:
        return False
    if task.failure is None:
        return True
    # By default a failed task blocks, whatever kind of failure it was.
    return str(exit_options(task).get("dependencyAction", "block")).lower() == "satisfy"


def job_action(task: Task) -> str:
    """Return what the end of a task asks of its job: `none`, `disable` or `terminate`.

    It counts only where the job's `onTaskFailure` says so. A failure without exit options terminates the job.
    """
    wanted = str(task.job.spec.get("onTaskFailure", "noaction")).lower()
    if wanted != "performexitoptionsjobaction":
        return "none"
    standard = "none" if task.failure is None else "terminate"
    return str(exit_options(task).get("jobAction", standard)).lower()


def exit_options(task: Task) -> Json:
    """Return the options that a task's `exitConditions` give for the way it ended."""
    conditions: Any = task.spec.get("exitConditions") or {}
    failure = task.failure
    found: Json | None = None
    if failure is not None and failure.phase == "preprocessing":
        found = conditions.get("preProcessingError")
    elif failure is not None and failure.phase == "upload":
        found = conditions.get("fileUploadError")
    elif task.exit_code is not None:
        found = _for_exit_code(conditions, task.exit_code)
    options: Json = found or (conditions.get("default") if failure is not None else None) or {}
    return options


def _for_exit_code(conditions: Any, code: int) -> Json | None:
    exact = (entry for entry in conditions.get("exitCodes", ()) if entry["code"] == code)
    spans = (
        entry for entry in conditions.get("exitCodeRanges", ()) if entry["start"] <= code <= entry["end"]
    )
    found = next(exact, None) or next(spans, None)
    return None if found is None else found["exitOptions"]


def _number(identifier: str) -> int | None:
    # The range 1 to 10 means the ids "1" to "10", and not "01".
    plain = identifier.isascii() and identifier.isdigit() and (identifier == "0" or identifier[0] != "0")
    return int(identifier) if plain else None


def _all_satisfied(job: Job, numbers: range) -> bool:
    first = bisect.bisect_left(job.satisfied_numbers, numbers.start)
    after = bisect.bisect_left(job.satisfied_numbers, numbers.stop)
    return after - first == len(numbers)
