"""The `batch-emulator` command."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from batch_emulator import __version__
from batch_emulator.autoscale.offline import autoscale_command
from batch_emulator.clock import SystemClock
from batch_emulator.nodes import ImageTable, load_images
from batch_emulator.rules.world import Behaviour, Quotas
from batch_emulator.server import DEFAULT_ACCOUNT, Options, new_key, running, write_ready_file

_KEY_VARIABLE = "BATCH_EMULATOR_ACCOUNT_KEY"
# What lets a task's program trust the same servers as the emulator does.
_PASSED_ON = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")

app = typer.Typer(
    name="batch-emulator",
    help="A local Azure Batch: the data-plane API on one machine, with nodes that truly run tasks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command("autoscale")(autoscale_command)


@app.command()
def version() -> None:
    """Show the version."""
    typer.echo(f"batch-emulator {__version__}")


@app.command()
def start(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes a free one.")] = 0,
    cert: Annotated[Path | None, typer.Option(help="PEM certificate: serve HTTPS.")] = None,
    key: Annotated[Path | None, typer.Option(help="PEM private key of the certificate.")] = None,
    account: Annotated[str, typer.Option(help="The name of the Batch account.")] = DEFAULT_ACCOUNT,
    time_scale: Annotated[
        float, typer.Option(help="How many times faster the service's own waiting goes.")
    ] = 1.0,
    boot_time: Annotated[
        float, typer.Option(help="Seconds of service time that a node takes to boot.")
    ] = 120.0,
    driver: Annotated[
        str, typer.Option(help="How tasks are confined: auto, bubblewrap, unshare or process.")
    ] = "auto",
    images: Annotated[
        Path | None, typer.Option(help="TOML table of container images and their commands here.")
    ] = None,
    egress: Annotated[
        list[str] | None,
        typer.Option(
            help="HOST:PORT that tasks may reach, and nothing else. Repeatable. Unset: the host's network."
        ),
    ] = None,
    token_jwks: Annotated[
        Path | None, typer.Option(help="JSON Web Key Set whose keys sign acceptable Entra ID tokens.")
    ] = None,
    work_dir: Annotated[
        Path | None, typer.Option(help="Where the nodes' files are; unset: temporary, deleted at the end.")
    ] = None,
    pool_quota: Annotated[int, typer.Option(min=0, help="How many pools the account may have.")] = 100,
    job_quota: Annotated[
        int, typer.Option(min=0, help="How many active jobs and job schedules the account may have.")
    ] = 300,
    dedicated_core_quota: Annotated[
        int | None, typer.Option(min=0, help="Cores of all dedicated nodes; unset: no limit.")
    ] = None,
    low_priority_core_quota: Annotated[
        int | None, typer.Option(min=0, help="Cores of all low-priority nodes; unset: no limit.")
    ] = None,
    ready_file: Annotated[
        Path | None, typer.Option(help="Written as JSON once the emulator listens: endpoint, pid, driver.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every request.")] = False,
) -> None:
    """Start the emulator.

    The account key is read from BATCH_EMULATOR_ACCOUNT_KEY; without it a new one is made and printed.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    if (cert is None) is not (key is None):
        raise typer.BadParameter("--cert and --key go together.")
    # Taken out of the environment, so that nothing that is started later inherits it.
    account_key = os.environ.pop(_KEY_VARIABLE, "")
    options = Options(
        host=host,
        port=port,
        account=account,
        key=account_key or new_key(),
        certificate=cert,
        certificate_key=key,
        token_keys=json.loads(token_jwks.read_text()) if token_jwks else None,
        driver=driver,
        images=load_images(images) if images else ImageTable(),
        egress=tuple(egress) if egress else None,
        task_environment={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        work_dir=work_dir,
        behaviour=Behaviour(boot_seconds=boot_time),
        quotas=Quotas(
            pools=pool_quota,
            active_jobs_and_schedules=job_quota,
            dedicated_cores=dedicated_core_quota,
            low_priority_cores=low_priority_core_quota,
        ),
    )
    # A page of a listing makes some ten thousand objects that live for milliseconds. With Python's own
    # threshold they outlive a few collections, and now and then a page waits for one over the whole state.
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(options, time_scale, ready_file, show_key=not account_key))


async def _serve(options: Options, time_scale: float, ready_file: Path | None, *, show_key: bool) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with running(options, SystemClock(time_scale)) as emulator:
        if ready_file is not None:
            write_ready_file(ready_file, emulator)
        confined = "confined" if emulator.agent.enforces_isolation else "NOT confined"
        typer.echo(f"Azure Batch (local) listens on {emulator.endpoint}")
        typer.echo(f"  account      {options.account}")
        typer.echo(f"  account key  {options.key if show_key else f'(from {_KEY_VARIABLE})'}")
        typer.echo(f"  tasks run by {emulator.driver}, {confined}")
        typer.echo("  Python:      from azure.batch import BatchClient")
        typer.echo("               from azure.core.credentials import AzureNamedKeyCredential")
        typer.echo(f'               key = AzureNamedKeyCredential("{options.account}", KEY)')
        typer.echo(f'               client = BatchClient("{emulator.endpoint}", key)')
        typer.echo("Stop it with Ctrl-C.")
        sys.stdout.flush()
        await ended.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; what a user can mend is one sentence, never a traceback."""
    try:
        app(args=arguments, prog_name="batch-emulator")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except (OSError, ValueError, RuntimeError) as error:
        with contextlib.suppress(BrokenPipeError):
            print(f"batch-emulator: {error}", file=sys.stderr)
        return 1
    return 0
