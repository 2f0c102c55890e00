"""Tasks, decisions and grants as people and programs read them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hastegeo.cli._output import ago, length, note, print_facts, print_line, print_table
from hastegeo.domain import Decision, GrantScope, TaskRef, TaskState, TaskStatus

if TYPE_CHECKING:
    from hastegeo.runners import DryRun, Explanation, Submission

EXIT_TASK_FAILED = 4
_HIDDEN = "(set, not shown)"


def status_record(status: TaskStatus) -> dict[str, Any]:
    """Return a status for programs."""
    failure = status.failure
    return {
        "task": str(status.ref),
        "state": status.state,
        "reason": status.reason,
        "pool": status.pool_id,
        "node": status.node_id,
        "exit_code": status.exit_code,
        "created": status.created,
        "started": status.started,
        "ended": status.ended,
        "retries": status.retries,
        "requeues": status.requeues,
        "spills": status.spills,
        "failure": None
        if failure is None
        else {
            "category": failure.category,
            "code": failure.code,
            "message": failure.message,
            "details": dict(failure.details),
        },
    }


def print_status(status: TaskStatus) -> None:
    """Print a status for people."""
    ran = (
        length(status.ended - status.started)
        if status.ended is not None and status.started is not None
        else ""
    )
    print_facts(
        {
            "task": str(status.ref),
            "state": str(status.state),
            "reason": status.reason,
            "pool": status.pool_id,
            "node": status.node_id,
            "exit code": "" if status.exit_code is None else str(status.exit_code),
            "created": _moment(status.created),
            "started": _moment(status.started),
            "ended": _moment(status.ended),
            "ran for": ran,
            "retries": str(status.retries or ""),
            "requeues": str(status.requeues or ""),
            "spills": str(status.spills or ""),
        }
    )


def print_statuses(statuses: Iterable[TaskStatus]) -> None:
    """Print tasks as a table."""
    print_table(
        ("TASK", "STATE", "POOL", "AGE", "REASON"),
        [
            (str(status.ref), str(status.state), status.pool_id, ago(status.created), status.reason)
            for status in statuses
        ],
        empty="There is no such task.",
    )


def decision_record(decision: Decision) -> dict[str, Any]:
    """Return a routing decision for programs."""
    return {
        "pool": decision.chosen,
        "queues": decision.queues,
        "attempts": [
            {"pool": attempt.pool_id, "verdict": attempt.verdict, "reason": attempt.reason}
            for attempt in decision.attempts
        ],
    }


def scope_record(scope: GrantScope) -> dict[str, Any]:
    """Return what a grant covers, for programs."""
    return {
        "kind": scope.kind,
        "permissions": scope.letters,
        "container": scope.container.url,
        "prefix": scope.prefix,
        "blob": scope.blob,
    }


def submission_record(submission: Submission) -> dict[str, Any]:
    """Return what a submission did, for programs."""
    return {
        "task": str(submission.ref),
        "created": submission.created,
        "decision": decision_record(submission.decision),
        "grants": [
            {**scope_record(grant.scope), "starts": grant.starts, "expires": grant.expires}
            for grant in submission.grants
        ],
    }


def note_submission(submission: Submission) -> None:
    """Say on standard error what a submission did: the result on standard output is the task alone."""
    for attempt in submission.decision.attempts:
        sign = "->" if attempt.pool_id == submission.decision.chosen else "  "
        note(f"{sign} {attempt}")
    for grant in submission.grants:
        note(f"   grant: {grant}")
    if not submission.created:
        note("The same task had been submitted before; nothing new was made.")


def print_dry_run(found: DryRun, *, hidden: Container[str]) -> None:
    """Print what a submission would do, for people; see `task_definition` for `hidden`."""
    import json

    print_line("Decision:")
    for attempt in found.decision.attempts:
        sign = "->" if attempt.pool_id == found.decision.chosen else "  "
        print_line(f"  {sign} {attempt}")
    print_line("Grants:")
    for scope in found.scopes:
        print_line(f"  {scope}")
    if not found.scopes:
        print_line("  none: the task uses the pool's identity")
    print_line("Task definition:")
    print_line(json.dumps(task_definition(found, hidden=hidden), indent=2))
    print_line("Nothing was submitted.")


def dry_run_record(found: DryRun, *, hidden: Container[str]) -> dict[str, Any]:
    """Return what a submission would do, for programs; see `task_definition` for `hidden`."""
    return {
        "decision": decision_record(found.decision),
        "grants": [scope_record(scope) for scope in found.scopes],
        "task": task_definition(found, hidden=hidden),
    }


def task_definition(found: DryRun, *, hidden: Container[str]) -> dict[str, Any]:
    """Return the definition that Batch would be sent.

    `hidden` names the caller's own variables: their values may be secrets, and are left out.
    """
    definition: dict[str, Any] = found.task.as_dict()
    for variable in definition.get("environmentSettings", []):
        if variable["name"] in hidden:
            variable["value"] = _HIDDEN
    return definition


def explanation_record(ref: TaskRef, state: TaskState, found: Explanation) -> Mapping[str, Any]:
    """Return an explanation for programs."""
    return {
        "task": str(ref),
        "state": state,
        "category": found.category,
        "code": found.code,
        "meaning": found.meaning,
        "action": found.action,
    }


def exit_code_of(status: TaskStatus) -> int:
    """Return the exit code of a command that waited for a task."""
    return 0 if status.state is TaskState.SUCCEEDED else EXIT_TASK_FAILED


def _moment(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if value else ""
