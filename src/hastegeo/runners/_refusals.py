"""What every runner refuses, in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from hastegeo.domain import TaskRef, TaskSpec, Tenant
from hastegeo.errors import HasteError, InputError, RunnerError, TaskConflictError, TaskNotFoundError


def check_tenant(spec: TaskSpec, tenant: Tenant) -> None:
    """Raise `InputError` for a task of another tenant than the environment's."""
    if spec.tenant != tenant.name:
        raise InputError(
            f"Task {spec.key} is of tenant {spec.tenant}, but this environment is {tenant.name}.",
            hint="Submit it from its own environment, or set HASTE_TENANT.",
        )


def conflict(spec: TaskSpec, ref: TaskRef) -> TaskConflictError:
    """Return the error for a key that was used for another definition."""
    return TaskConflictError(
        f"The task {ref} exists with another definition than the key {spec.key!r} has now.",
        hint="Give the new task another key, or clean up the old one first.",
    )


def not_found(ref: TaskRef) -> TaskNotFoundError:
    """Return the error for a task that is not known."""
    return TaskNotFoundError(
        f"There is no task {ref}.", hint="It may have been cleaned up; `haste ls` shows what there is."
    )


def some_failed(errors: Sequence[HasteError], total: int) -> RunnerError:
    """Return the error for a submission of `total` tasks of which some failed."""
    return RunnerError(
        f"{len(errors)} of {total} tasks were not submitted; the first: {errors[0].message}",
        hint=errors[0].hint,
    )
