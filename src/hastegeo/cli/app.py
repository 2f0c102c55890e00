"""The command tree, and the one place where errors become words and exit codes.

Commands import what they need when they run: `haste workload …` starts once per task, and must not pay for
the cloud SDKs that it never uses.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from hastegeo import __version__
from hastegeo.cli._output import redact
from hastegeo.cli._registration import register
from hastegeo.errors import HasteError, InputError

EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="haste",
    help="Damage maps after disasters: many environments share a few GPU pools, each with its own data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
sample_app = typer.Typer(help="Generated imagery to try things with.", no_args_is_help=True)
app.add_typer(sample_app, name="sample")
register(app)


class Driver(StrEnum):
    """The sandboxes of the local Azure Batch."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    UNSHARE = "unshare"
    PROCESS = "process"


class _Interrupted(BaseException):
    """Ctrl-C or SIGTERM: not an Exception, so that nothing on the way takes it for a failure and goes on."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    A `HasteError` becomes its sentence and hint on stderr and its own exit code; Ctrl-C and SIGTERM end in
    order, with every `finally` run, and give 130.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    console = Console(stderr=True)
    try:
        app(args=arguments, prog_name="haste")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except HasteError as error:
        console.print(f"[bold red]haste:[/] {escape(redact(error.message))}", highlight=False, soft_wrap=True)
        if error.hint:
            console.print(
                f"[bold]What to do:[/] {escape(redact(error.hint))}", highlight=False, soft_wrap=True
            )
        return error.exit_code
    except _Interrupted:
        console.print("haste: interrupted.")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # `haste … | head`: the reader has left, which is no error. Keep Python from flushing into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return 0


def _interrupt(*_: object) -> None:
    raise _Interrupted


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"haste {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
)
def workload(context: typer.Context, name: str) -> None:
    """Run one of the programs that run inside tasks: `haste workload NAME --help` shows its options."""
    from importlib import import_module

    from hastegeo.workflows import WORKFLOWS

    if name not in WORKFLOWS:
        raise InputError(f"There is no workload {name!r}.", hint=f"Choose one of: {', '.join(WORKFLOWS)}.")
    raise typer.Exit(import_module(WORKFLOWS[name]).main(context.args))


@sample_app.command("make")
def make_sample(
    directory: Annotated[Path, typer.Argument(help="A new or empty folder for the scene.")],
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same scene.")] = 1,
) -> None:
    """Make a scene before and after a disaster: GeoTIFF tiles, building footprints and the true damage."""
    from shlex import quote

    from hastegeo.samples import make_scene

    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory} exists and is not an empty folder.", hint="Name a new folder.")
    made = make_scene(directory, seed=seed)
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        typer.echo(f"{path.stat().st_size:>12,} bytes  {path}")
    damage = ", ".join(f"{level} {count}" for level, count in made.damage.items())
    place = quote(str(directory))
    typer.echo(
        f"\nA town of {sum(made.damage.values())} buildings before and after a tornado. Damage: {damage}."
        "\n\nNext, take it through the shared pools, or prepare it without them:"
        f"\n\n  haste demo --imagery {place}"
        f"\n  haste workload prepare_imagery --inputs {place} --outputs out --project sample --layer town"
    )


@app.command()
def demo(
    imagery: Annotated[
        Path | None,
        typer.Option(
            help="Your own GeoTIFFs: a folder, or one with pre/ and post/. Without it scenes are generated."
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="Where the results go.")] = Path("demo-results"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the servers up and print how to use them.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the generated scenes.")] = 1,
    driver: Annotated[Driver, typer.Option(help="How nodes confine tasks.")] = Driver.AUTO,
    allow_unsandboxed: Annotated[
        bool, typer.Option("--allow-unsandboxed", help="Exit 0 although node isolation could not be tested.")
    ] = False,
    blob_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port of the storage emulator.")
    ] = None,
    batch_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port of the local Azure Batch.")
    ] = None,
) -> None:
    """Run two tenants through two shared GPU pools on this machine, and try to break their isolation."""
    from hastegeo.demo import DemoOptions, run_demo

    options = DemoOptions(
        imagery=imagery,
        output=output,
        keep=keep,
        seed=seed,
        driver=driver.value,
        allow_unsandboxed=allow_unsandboxed,
        blob_port=blob_port,
        batch_port=batch_port,
    )
    raise typer.Exit(run_demo(options))
