"""What the demo prints at its end, and how one looks around with `--keep`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hastegeo.demo.pools import POOLS
from hastegeo.demo.results import PreparedImage, Promise
from hastegeo.demo.state import Road
from hastegeo.local_cloud.cloud import LocalCloud
from hastegeo.verification import RowResult, Verdict

_STYLES = {
    Verdict.DENIED: "green",
    Verdict.BROKEN: "bold red",
    Verdict.UNPROVEN: "bold red",
    Verdict.NOT_TESTED: "yellow",
}


def print_summary(
    console: Console,
    road: Road,
    images: list[PreparedImage],
    pictures: list[Path],
    table: list[RowResult],
    promises: list[Promise],
    output: Path,
) -> None:
    """Print where everything ran and why, what was denied, what came out, and which promises held."""
    console.print(isolation_table(table))
    console.print(images_table(images))
    console.print(pools_summary(road))
    for promise in promises:
        mark = Text("kept   ", "green") if promise.held else Text("BROKEN ", "bold red")
        detail = f" ({promise.detail})" if promise.detail else ""
        console.print(Text.assemble(mark, promise.text, detail))
    console.print(f"\nResults: {output} (images, {len(pictures)} previews, isolation.json, grants.jsonl)")


def isolation_table(table: list[RowResult]) -> Table:
    """Draw the attacks, each with its evidence and its control."""
    drawn = Table(title="A task of dev1 against dev2", title_justify="left", expand=True)
    drawn.add_column("attack", ratio=1)
    drawn.add_column("verdict", no_wrap=True)
    drawn.add_column("control beside it: the same, where it is allowed", ratio=1)
    for result in table:
        verdict = Text(result.verdict.value, style=_STYLES[result.verdict])
        if result.verdict is Verdict.NOT_TESTED:
            drawn.add_row(_with_evidence(result.row.title, result.attack_evidence), verdict, "")
            continue
        control = f"{result.row.control_title} ({result.row.control_place.value})"
        drawn.add_row(
            _with_evidence(result.row.title, result.attack_evidence),
            verdict,
            _with_evidence(control, result.control_evidence),
        )
    return drawn


def _with_evidence(title: str, evidence: str) -> Text:
    return Text.assemble(title, "\n", (f"  {evidence}", "dim"))


def images_table(images: list[PreparedImage]) -> Table:
    """Draw the prepared images."""
    drawn = Table(title="Prepared images", title_justify="left", expand=True)
    drawn.add_column("image", no_wrap=True)
    drawn.add_column("COG", no_wrap=True)
    drawn.add_column("what it is", ratio=1)
    for image in images:
        valid = Text("NO", "bold red") if image.problems else Text("valid", "green")
        drawn.add_row(image.label, valid, " ".join(image.problems) or image.description)
    return drawn


def pools_summary(road: Road) -> Table:
    """Draw what each pool did."""
    drawn = Table(title="Shared pools", title_justify="left", expand=True)
    drawn.add_column("pool", no_wrap=True)
    for heading in ("tasks", "spilled", "most nodes", "now", "node-s"):
        drawn.add_column(heading, justify="right")
    for pool in POOLS:
        tasks = [task for task in road.tasks if task.decision.chosen == pool.pool_id]
        counts = road.pools.get(pool.pool_id)
        drawn.add_row(
            pool.pool_id,
            str(len(tasks)),
            str(sum(task.decision.spills > 0 for task in tasks)),
            f"{road.most_nodes.get(pool.pool_id, 0)} of {pool.max_nodes}",
            str(counts.total + counts.leaving if counts else 0),
            f"{sum(task.node_seconds for task in tasks):.1f}",
        )
    return drawn


def warn_unsandboxed(console: Console, cloud: LocalCloud) -> None:
    """Say that tasks are not confined on this machine."""
    console.print(
        f"[bold yellow]Warning:[/] tasks run as plain processes ({cloud.driver}): node isolation is not "
        "enforced and will not be tested. Install bubblewrap, or allow unprivileged user namespaces."
    )


def explain_untested(console: Console) -> None:
    """Say why the exit code is 3."""
    console.print(
        "\nNode isolation could not be tested on this machine, so this run proves less than it should. "
        "Install bubblewrap (sudo apt install bubblewrap), or pass --allow-unsandboxed to accept that."
    )


def how_to_look_around(console: Console, cloud: LocalCloud) -> None:
    """Print how the servers that were kept are used and stopped. The key is shown: it is this run's own."""
    pids = " ".join(str(process.pid) for process in cloud.processes.values())
    lines = [
        "",
        "The servers are still up. In a shell:",
        "",
        *(f"  export {name}={value}" for name, value in cloud.certificates.client_environment().items()),
        f"  export AZURE_BATCH_ACCOUNT={cloud.batch_account}",
        f"  export AZURE_BATCH_ENDPOINT={cloud.batch_url}",
        f"  export AZURE_BATCH_ACCESS_KEY={cloud.batch_key}",
        "",
        "  az batch pool list --output table",
        "",
        "Or in Python (with the same exports):",
        "",
        "  import os",
        "  from azure.batch import BatchClient",
        "  from azure.core.credentials import AzureNamedKeyCredential",
        "  env = os.environ",
        '  key = AzureNamedKeyCredential(env["AZURE_BATCH_ACCOUNT"], env["AZURE_BATCH_ACCESS_KEY"])',
        '  print([pool.id for pool in BatchClient(env["AZURE_BATCH_ENDPOINT"], key).list_pools()])',
        "",
        f"Stop them with: kill {pids} && rm -rf {cloud.directory}",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
