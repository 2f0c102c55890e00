"""The `haste` command."""

from hastegeo.cli.app import main

__all__ = ["main"]
