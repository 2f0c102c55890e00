"""The commands on tasks that were submitted: ls, status, logs, get, cancel, explain."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hastegeo.cli import _views
from hastegeo.cli._downloads import chosen, fetch_all, files_of, print_remotes, results_of
from hastegeo.cli._environment import EnvFile, on_batch, open_runner
from hastegeo.cli._output import JsonFlag, note, print_facts, print_json
from hastegeo.cli._redacted_stream import redacted_lines
from hastegeo.cli._waiting import wait_for
from hastegeo.domain import TaskRef, TaskState, Workload
from hastegeo.errors import InputError

Task = Annotated[str, typer.Argument(metavar="TASK", help="JOB/TASK, as `haste ls` prints it.")]


def list_tasks(
    workload: Annotated[Workload | None, typer.Option("--workload", "-w", help="Of one workload.")] = None,
    state: Annotated[
        list[TaskState] | None, typer.Option(help="Only tasks in this state. Repeatable.")
    ] = None,
    json: JsonFlag = False,
    env_file: EnvFile = None,
) -> None:
    """List this tenant's tasks, the newest first."""
    with open_runner(env_file) as (_, runner):
        found = [status for status in runner.list(workload=workload) if not state or status.state in state]
    found.sort(key=lambda status: (status.created is not None, status.created, status.ref), reverse=True)
    if json:
        print_json([_views.status_record(status) for status in found])
    else:
        _views.print_statuses(found)


def status(
    task: Task,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end; exit with 4 unless it succeeds.")
    ] = False,
    json: JsonFlag = False,
    env_file: EnvFile = None,
) -> None:
    """Show what became of a task."""
    ref = TaskRef.parse(task)
    with open_runner(env_file) as (_, runner):
        found = wait_for(runner, ref) if wait else runner.status(ref)
    if json:
        print_json(_views.status_record(found))
    else:
        _views.print_status(found)
    if wait:
        raise typer.Exit(_views.exit_code_of(found))


def logs(
    task: Task,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the task has ended.")] = False,
    stderr: Annotated[bool, typer.Option("--stderr", help="Standard error, not standard output.")] = False,
    env_file: EnvFile = None,
) -> None:
    """Print what a task wrote. Signatures and keys in it are masked."""
    ref = TaskRef.parse(task)
    with open_runner(env_file) as (_, runner):
        chunks = runner.logs(ref, "stderr" if stderr else "stdout", follow=follow)
        for piece in redacted_lines(chunks):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def get(
    task: Task,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATTERN", help="Which files, such as 'wd/out/*'. Unset: all."),
    ] = None,
    to: Annotated[Path, typer.Option(help="The folder that they go to.")] = Path(),
    listing: Annotated[bool, typer.Option("--list", help="Only list them.")] = False,
    results: Annotated[
        bool, typer.Option("--results", help="What the task uploaded, from its output containers.")
    ] = False,
    json: JsonFlag = False,
    env_file: EnvFile = None,
) -> None:
    """Download a task's files from its node, or with --results what it uploaded to storage.

    Files on a node go with it; results stay.
    """
    ref = TaskRef.parse(task)
    with open_runner(env_file) as (_, runner):
        everything = results_of(on_batch(runner), ref) if results else files_of(runner, ref)
        files = chosen(everything, paths or ())
        if not files:
            raise InputError(
                f"Task {ref} has no such file.",
                hint="Look with --list; once the node is gone, use --results.",
            )
        targets = [] if listing else fetch_all(files, to)
    print_remotes(files, targets, as_json=json)


def cancel(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK", help="JOB/TASK, as `haste ls` prints it.")],
    cleanup: Annotated[
        bool, typer.Option("--cleanup", help="Forget them too, with their files on the node.")
    ] = False,
    json: JsonFlag = False,
    env_file: EnvFile = None,
) -> None:
    """End tasks. One that has ended already stays as it is; results in storage stay."""
    refs = [TaskRef.parse(task) for task in tasks]
    with open_runner(env_file) as (_, runner):
        for ref in refs:
            runner.cancel(ref)
            if cleanup:
                runner.cleanup(ref)
            note(f"{ref} {'ended and forgotten' if cleanup else 'ended'}")
    if json:
        print_json([{"task": str(ref), "forgotten": cleanup} for ref in refs])


def explain(task: Task, json: JsonFlag = False, env_file: EnvFile = None) -> None:
    """Explain a task: what its state or its failure means, and what to do."""
    ref = TaskRef.parse(task)
    with open_runner(env_file) as (_, runner):
        from hastegeo.runners import explain as explain_task

        found = runner.status(ref)
        explanation = explain_task(found, runner.ledger.entries(task=str(ref)))
    if json:
        print_json(_views.explanation_record(ref, found.state, explanation))
        return
    print_facts(
        {
            "task": str(ref),
            "state": str(found.state),
            "category": explanation.category,
            "code": explanation.code,
            "meaning": explanation.meaning,
            "what to do": explanation.action,
        }
    )
