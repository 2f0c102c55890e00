"""`haste config`: is an environment's configuration right, what is it, and does a deployment match it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hastegeo.cli._environment import EnvFile, load_settings, read_variables
from hastegeo.cli._output import JsonFlag, note, print_facts, print_json, print_line, print_table
from hastegeo.domain import Workload

if TYPE_CHECKING:
    from hastegeo.settings import Settings

config_app = typer.Typer(help="The settings of an environment.", no_args_is_help=True)


@config_app.command("check")
def check(json: JsonFlag = False, env_file: EnvFile = None) -> None:
    """Check the settings, all at once and without a call; say which mode they give and what they widen.

    Exits with 2 where something is wrong; each problem is said with its setting and what to put there.
    """
    settings = load_settings(env_file)
    tenant = settings.tenant
    if json:
        print_json(
            {
                "ok": True,
                "tenant": tenant.name,
                "containers": sorted(container.url for container in tenant.containers),
                "runner": settings.runner_type,
                "credentials": _credentials(settings),
                "manages_pools": settings.manage_pools,
                "candidates": {workload: settings.candidates(workload) for workload in Workload},
                "widened": settings.widened,
            }
        )
        return
    print_facts(
        {
            "tenant": tenant.name,
            "containers": ", ".join(sorted(container.url for container in tenant.containers)) or "none",
            "runner": str(settings.runner_type),
            "storage by": _credentials(settings),
            "pools are": "managed by the runner" if settings.manage_pools else "shared, and never touched",
            **{f"{workload}": ", then ".join(settings.candidates(workload)) for workload in Workload},
        }
    )
    for name in settings.widened:
        print_line(f"warn  {name} weakens the isolation of tasks")
    print_line("ok    the settings can work together")


@config_app.command("show")
def show(
    only_set: Annotated[bool, typer.Option("--set", help="Only those that are set.")] = False,
    json: JsonFlag = False,
    env_file: EnvFile = None,
) -> None:
    """Show every setting with its value; a key is not shown."""
    from hastegeo.settings import report

    rows = [row for row in report(load_settings(env_file)) if not (only_set and row.is_default)]
    if json:
        print_json(
            [
                {"name": row.name, "value": row.value, "default": row.is_default, "meaning": row.meaning}
                for row in rows
            ]
        )
        return
    print_table(
        ("SETTING", "VALUE", "FROM"),
        [(row.name, row.value or "-", "default" if row.is_default else "set") for row in rows],
        empty="Every setting has its default.",
    )


@config_app.command("drift")
def drift(
    env_file: Annotated[
        Path, typer.Option("--env-file", metavar="FILE", help="What a deployment emits: NAME=value lines.")
    ],
    json: JsonFlag = False,
) -> None:
    """Compare what a deployment emits with the settings that are read.

    Exits with 1 where it emits a setting that nobody reads: a wrong or an outdated name.
    """
    from hastegeo.settings import drift as compare

    found = compare(read_variables(env_file))
    if json:
        print_json({"read_by_nobody": found.read_by_nobody, "not_emitted": found.not_emitted})
    else:
        for name in found.read_by_nobody:
            print_line(f"{name}: emitted, and read by nobody")
        for name in found.not_emitted:
            note(f"{name}: not emitted, so its default holds")
        if not found.read_by_nobody:
            print_line("Every setting that is emitted is read.")
    if found.read_by_nobody:
        raise typer.Exit(1)


def _credentials(settings: Settings) -> str:
    return "a grant for each task" if settings.use_sas else "the pool's identity"
