"""Puts the compute commands into the command tree, in the order in which help shows them."""

from __future__ import annotations

import typer

from hastegeo.cli import pools, submit, tasks
from hastegeo.cli.config import config_app
from hastegeo.cli.grants import grants_app

_TASKS = "Tasks"
_SHARED = "Pools, grants and settings"


def register(app: typer.Typer) -> None:
    """Add the compute commands to `app`."""
    app.command("submit", rich_help_panel=_TASKS)(submit.submit)
    app.command("ls", rich_help_panel=_TASKS)(tasks.list_tasks)
    app.command("status", rich_help_panel=_TASKS)(tasks.status)
    app.command("logs", rich_help_panel=_TASKS)(tasks.logs)
    app.command("get", rich_help_panel=_TASKS)(tasks.get)
    app.command("cancel", rich_help_panel=_TASKS)(tasks.cancel)
    app.command("explain", rich_help_panel=_TASKS)(tasks.explain)
    app.command("pools", rich_help_panel=_SHARED)(pools.pools)
    app.add_typer(grants_app, name="grants", rich_help_panel=_SHARED)
    app.add_typer(config_app, name="config", rich_help_panel=_SHARED)
