"""`haste submit`: one task, from words to a task on a pool."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from hastegeo.cli import _specs, _views
from hastegeo.cli._environment import EnvFile, on_batch, open_runner
from hastegeo.cli._output import JsonFlag, note, print_json, print_line
from hastegeo.cli._waiting import wait_for
from hastegeo.domain import GpuNeed, OutputCondition, TaskSpec, Workload
from hastegeo.errors import InputError

if TYPE_CHECKING:
    from hastegeo.runners import AzureBatchRunner, Runner
    from hastegeo.settings import Settings

_IN = "Where it comes from, what it makes"
_RUN = "How it runs"


def submit(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The command, after two hyphens.")],
    workload: Annotated[
        Workload, typer.Option("--workload", "-w", help="What the task does: it decides the candidate pools.")
    ],
    image: Annotated[
        str, typer.Option(help="The container image. Unset: the environment's image of the workload.")
    ] = "",
    key: Annotated[
        str,
        typer.Option(
            help="Your own name for the task: submitting it again finds the same task. Unset: a new one."
        ),
    ] = "",
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="SOURCE[=PATH]",
            rich_help_panel=_IN,
            help="A blob (raw/a.tif), a prefix (raw/pre/) or a URL, and where it goes. Repeatable.",
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="PATTERN=PREFIX",
            rich_help_panel=_IN,
            help="Files to upload, and where to: 'out/**/*.tif=results/s1'. Repeatable.",
        ),
    ] = None,
    output_when: Annotated[
        OutputCondition, typer.Option(rich_help_panel=_IN, help="When outputs are uploaded.")
    ] = OutputCondition.SUCCESS,
    grants: Annotated[
        list[str] | None,
        typer.Option(
            "--grant",
            metavar="NAME=KIND[:PREFIX]",
            rich_help_panel=_IN,
            help="A variable with a signed URL for the program itself; KIND is inputs, outputs or state.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", rich_help_panel=_RUN, help="A variable. Repeatable."),
    ] = None,
    gpus: Annotated[int, typer.Option(min=0, rich_help_panel=_RUN, help="How many GPUs it needs.")] = 0,
    gpu_memory: Annotated[
        float, typer.Option(min=0, metavar="GIB", rich_help_panel=_RUN, help="Memory of each GPU, in GiB.")
    ] = 0.0,
    candidates: Annotated[
        str,
        typer.Option(
            metavar="POOL,POOL",
            rich_help_panel=_RUN,
            help="Candidate pools, preferred first. Unset: the environment's.",
        ),
    ] = "",
    tenant: Annotated[
        str, typer.Option(rich_help_panel=_RUN, help="Refuse unless this is the environment's tenant.")
    ] = "",
    wall_clock: Annotated[
        str, typer.Option(metavar="TIME", rich_help_panel=_RUN, help="Limit of one run, such as 30m or 4h.")
    ] = "",
    retries: Annotated[
        int, typer.Option(min=0, rich_help_panel=_RUN, help="Reruns after the program has failed.")
    ] = 0,
    run_options: Annotated[
        list[str] | None,
        typer.Option("--run-option", rich_help_panel=_RUN, help="A container option that is allowed."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the decision, the grants and the task definition; submit none."
        ),
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end; exit with 4 unless it succeeds.")
    ] = False,
    json: JsonFlag = False,
    env_file: EnvFile = None,
) -> None:
    """Submit a task: `haste submit -w imageryprep --input raw/pre/=in -- prepare_imagery in out`."""
    if dry_run and wait:
        raise InputError("A dry run submits nothing to wait for.", hint="Use --dry-run or --wait.")
    with open_runner(env_file) as (settings, runner):
        own = settings.output_container_url
        spec = TaskSpec(
            key=key or f"{workload}-{uuid.uuid4().hex[:12]}",
            tenant=tenant or settings.tenant.name,
            workload=workload,
            image=image or _image(settings, workload),
            command=tuple(command),
            inputs=tuple(_specs.parse_input(text, own) for text in inputs or ()),
            outputs=tuple(_specs.parse_output(text, own, output_when) for text in outputs or ()),
            environment=_specs.parse_environment(env or ()),
            grant_variables=tuple(_specs.parse_grant(text, own) for text in grants or ()),
            gpu=GpuNeed(count=gpus or int(gpu_memory > 0), memory_gib=gpu_memory),
            max_wall_clock=_specs.parse_duration(wall_clock) if wall_clock else None,
            max_retries=retries,
            run_options=tuple(run_options or ()),
            candidates=_specs.split_names(candidates),
        )
        if dry_run:
            _dry_run(on_batch(runner), spec, as_json=json)
        else:
            _submit(runner, spec, wait=wait, as_json=json)


def _image(settings: Settings, workload: Workload) -> str:
    image = settings.image(workload)
    if image:
        return image
    if settings.runner_type == "local":
        return "local"  # the local runner uses no image
    preparation = workload in {Workload.IMAGERYPREP, Workload.ARTIFACTS}
    name = "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE" if preparation else "AZURE_BATCH_DOCKER_IMAGE"
    raise InputError("The task has no image.", hint=f"Give --image, or set {name}.")


def _dry_run(runner: AzureBatchRunner, spec: TaskSpec, *, as_json: bool) -> None:
    found = runner.dry_run(spec)
    hidden = spec.environment.keys()
    if as_json:
        print_json(_views.dry_run_record(found, hidden=hidden))
    else:
        _views.print_dry_run(found, hidden=hidden)


def _submit(runner: Runner, spec: TaskSpec, *, wait: bool, as_json: bool) -> None:
    submission = runner.submit(spec)
    record = _views.submission_record(submission)
    if not as_json:
        _views.note_submission(submission)
        print_line(str(submission.ref))
    status = wait_for(runner, submission.ref) if wait else None
    if as_json:
        print_json(record if status is None else {**record, "status": _views.status_record(status)})
    elif status is not None:
        note(f"{status.ref} {status.state}{f': {status.reason}' if status.reason else ''}")
    if status is not None:
        raise typer.Exit(_views.exit_code_of(status))
