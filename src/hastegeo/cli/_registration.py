"""Puts the compute commands into the command tree, in the order in which help shows them."""

from __future__ import annotations

import typer

from hastegeo.cli import submit, tasks

_TASKS = "Tasks"


def register(app: typer.Typer) -> None:
    """Add the compute commands to `app`."""
    app.command("submit", rich_help_panel=_TASKS)(submit.submit)
    app.command("ls", rich_help_panel=_TASKS)(tasks.list_tasks)
    app.command("status", rich_help_panel=_TASKS)(tasks.status)
    app.command("logs", rich_help_panel=_TASKS)(tasks.logs)
    app.command("get", rich_help_panel=_TASKS)(tasks.get)
    app.command("cancel", rich_help_panel=_TASKS)(tasks.cancel)
    app.command("explain", rich_help_panel=_TASKS)(tasks.explain)
