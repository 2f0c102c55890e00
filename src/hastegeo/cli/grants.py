"""`haste grants`: what was granted, to whom, until when. The ledger holds no signature."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from hastegeo.cli._environment import EnvFile, load_settings
from hastegeo.cli._output import JsonFlag, print_json, print_table

grants_app = typer.Typer(help="The grants that tasks were given.", no_args_is_help=True)


@grants_app.command("list")
def list_grants(
    tenant: Annotated[str, typer.Option(help="Only this tenant's.")] = "",
    task: Annotated[str, typer.Option(help="Only this task's (JOB/TASK).")] = "",
    live: Annotated[bool, typer.Option("--live", help="Only those that have not expired.")] = False,
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="This ledger. Unset: the environment's.")
    ] = None,
    json: JsonFlag = False,
    env_file: EnvFile = None,
) -> None:
    """List grants from the ledger of this machine, the oldest first."""
    from hastegeo.credentials import GrantLedger, default_ledger_path

    path = ledger
    if path is None:
        configured = load_settings(env_file).grant_ledger
        path = Path(configured) if configured else default_ledger_path()
    now = datetime.now(UTC)
    entries = [
        (entry, entry.is_live(now))
        for entry in GrantLedger(path).entries(tenant=tenant or None, task=task or None)
        if not live or entry.is_live(now)
    ]
    if json:
        records: list[dict[str, Any]] = [{**asdict(entry), "live": alive} for entry, alive in entries]
        print_json(records)
        return
    print_table(
        ("ISSUED", "TENANT", "TASK", "KIND", "MAY", "WHERE", "EXPIRES", "LIVE"),
        [
            (
                _short(entry.issued),
                entry.tenant,
                entry.task,
                entry.kind,
                entry.permissions,
                "/".join(part for part in (entry.account, entry.container, entry.prefix, entry.blob) if part),
                _short(entry.expires),
                "yes" if alive else "no",
            )
            for entry, alive in entries
        ],
        empty=f"There is no such grant in {path}.",
    )


def _short(moment: str) -> str:
    return f"{datetime.fromisoformat(moment):%Y-%m-%dT%H:%M:%SZ}"
