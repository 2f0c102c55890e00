"""`haste demo`: two tenants, two shared pools, one machine; from nothing to images and back to zero."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from azure.batch import BatchClient
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import AzureError
from rich.console import Console

from hastegeo.capacity import Capacity
from hastegeo.credentials import install_redaction, redact
from hastegeo.demo import summary
from hastegeo.demo.display import display_for
from hastegeo.demo.imagery import (
    PreparationJob,
    Scene,
    generated_scenes,
    interleaved,
    upload_tiles,
    user_scene,
)
from hastegeo.demo.images import write_images_file
from hastegeo.demo.isolation import IsolationAttack, save_table
from hastegeo.demo.pools import POOLS, create_pools
from hastegeo.demo.results import PreparedImage, collect, previews, promises, untested
from hastegeo.demo.state import Road, TrackedTask
from hastegeo.demo.tenants import DemoTenant, sign_in
from hastegeo.domain import NodeCounts
from hastegeo.errors import HasteError, InputError, LocalCloudError, RunnerError
from hastegeo.local_cloud.cloud import LocalCloud, LocalCloudOptions, running_cloud
from hastegeo.runners import Submission
from hastegeo.verification import RowResult

TENANTS = ("dev1", "dev2")
EXIT_BROKEN = 1
EXIT_NOT_TESTED = 3
_POLL_SECONDS = 0.4
_LONGEST_WAIT_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """What the user asked for. `imagery` None means generated scenes."""

    imagery: Path | None = None
    output: Path = Path("demo-results")
    keep: bool = False
    seed: int = 1
    driver: str = "auto"
    allow_unsandboxed: bool = False
    blob_port: int | None = None
    batch_port: int | None = None


def run_demo(options: DemoOptions, *, console: Console | None = None) -> int:
    """Run the demo and return its exit code: 0 only if every promise held.

    1 where one was broken; 3 where node isolation could not be tested on this machine, unless allowed.
    Raises `HasteError` where the demo could not be carried out.
    """
    console = console or Console()
    if options.imagery is not None and not options.imagery.is_dir():
        raise InputError(
            f"{options.imagery} is not a folder.",
            hint="Give a folder of GeoTIFFs, or one with pre/ and post/.",
        )
    own = user_scene(options.imagery) if options.imagery else None
    install_redaction()
    _make_folder(options.output)
    with tempfile.TemporaryDirectory(prefix="haste-demo-") as temporary:
        folder = Path(temporary)
        cloud_options = LocalCloudOptions(
            tenants=TENANTS,
            images_file=write_images_file(folder / "images.toml"),
            driver=options.driver,
            blob_port=options.blob_port,
            batch_port=options.batch_port,
            keep=options.keep,
        )
        console.print("Starting Azurite, the token endpoint and the local Azure Batch …")
        with running_cloud(cloud_options) as cloud, _environment(cloud.client_environment()):
            if not cloud.isolated:
                summary.warn_unsandboxed(console, cloud)
            demo = _Demo(options, cloud, console, folder)
            code = demo.run(own)
            if options.keep:
                summary.how_to_look_around(console, cloud)
            return code


class _Demo:
    """One run of the demo against a local cloud that is up."""

    def __init__(self, options: DemoOptions, cloud: LocalCloud, console: Console, folder: Path) -> None:
        self._options = options
        self._cloud = cloud
        self._console = console
        self._folder = folder
        self._road = Road(started=datetime.now(UTC))
        self._admin = BatchClient(
            cloud.batch_url, AzureNamedKeyCredential(cloud.batch_account, cloud.batch_key)
        )
        self._capacity = Capacity(self._admin)
        self._tenants: list[DemoTenant] = []
        self._display = display_for(console)
        self._last_look = 0.0

    def run(self, own: Scene | None) -> int:
        """Go the whole road and print the summary."""
        try:
            with self._display:
                images, table, pools_empty = self._go(own)
        except (HasteError, AzureError) as error:
            # A server that has ended is the cause, not the call that met it.
            self._cloud.check()
            if isinstance(error, HasteError):
                raise
            raise RunnerError(
                f"A call to the local cloud failed: {redact(error.message)}", hint="Run the demo again."
            ) from error
        finally:
            for tenant in self._tenants:
                tenant.close()
            self._admin.close()
        save_table(table, self._options.output / "isolation.json")
        pictures = previews(images, self._options.output)
        kept = promises(self._road, images, table, pools_empty=pools_empty)
        summary.print_summary(self._console, self._road, images, pictures, table, kept, self._options.output)
        if not all(promise.held for promise in kept):
            return EXIT_BROKEN
        if untested(table) and not self._options.allow_unsandboxed:
            summary.explain_untested(self._console)
            return EXIT_NOT_TESTED
        return 0

    def _go(self, own: Scene | None) -> tuple[list[PreparedImage], list[RowResult], bool]:
        self._step("creating the shared pools, with no node in them")
        create_pools(self._admin)
        ledger = self._options.output / "grants.jsonl"
        for of_an_earlier_run in (ledger, self._options.output / "isolation.json"):
            of_an_earlier_run.unlink(missing_ok=True)
        self._tenants = sign_in(self._cloud, TENANTS, ledger_file=ledger)
        jobs = self._upload(own)
        self._step("submitting: T4 preferred, H100 second")
        submitted = [(job, self._submit(job)) for job in jobs]
        self._step("preparing imagery on the shared pools")
        self._wait_for_tasks()
        # A pool on its way to zero may take a node from under the next task; from zero all three tasks of the
        # attack share one fresh node.
        self._step("waiting for the pools to go back to zero nodes")
        pools_empty = self._wait_for_empty_pools()
        self._step("attacking: a task of dev1 against dev2")
        attacker, victim = self._tenants
        victim_job = next(job for job in jobs if job.tenant is victim)
        attack = IsolationAttack(self._cloud, attacker, victim, victim_job)
        table = attack.run(watch=self._watch, tick=self._tick)
        self._tick(force=True)
        self._step("downloading and checking the results")
        images = [image for job, _ in submitted for image in collect(job, self._options.output / "images")]
        self._step("waiting for the pools to go back to zero nodes again")
        pools_empty = self._wait_for_empty_pools() and pools_empty
        self._step("done")
        return images, table, pools_empty

    def _upload(self, own: Scene | None) -> list[PreparationJob]:
        by_tenant: list[list[PreparationJob]] = []
        for tenant in self._tenants:
            self._step(f"uploading raw imagery of {tenant.name}")
            scenes = [own] if own else generated_scenes(self._folder, tenant.name, seed=self._options.seed)
            for scene in scenes:
                upload_tiles(tenant, scene)
                self._tick()
            by_tenant.append(
                [PreparationJob(tenant, scene, event) for scene in scenes for event in scene.events]
            )
        return list(interleaved(by_tenant))

    def _submit(self, job: PreparationJob) -> Submission:
        submission = job.tenant.runner.submit(job.spec())
        self._watch(job.tenant.name, job.label, submission)
        return submission

    def _watch(self, tenant: str, label: str, submission: Submission) -> None:
        self._road.add(TrackedTask(tenant, label, submission.ref, submission.decision))
        self._tick(force=True)

    def _step(self, text: str) -> None:
        self._road.step = text
        self._tick(force=True)

    def _tick(self, *, force: bool = False) -> None:
        """Look at the servers, the pools and the tasks, and redraw; at most a few times a second."""
        self._cloud.check()
        now = time.monotonic()
        if not force and now - self._last_look < _POLL_SECONDS:
            return
        self._last_look = now
        snapshot = self._capacity.snapshot(fresh=True)
        for pool in POOLS:
            found = snapshot.pools.get(pool.pool_id)
            if found is not None and found.nodes is not None:
                self._road.record_nodes(pool.pool_id, found.nodes)
        runners = {tenant.name: tenant.runner for tenant in self._tenants}
        for task in self._road.unfinished:
            self._road.record_status(runners[task.tenant].status(task.ref))
        self._display.update(self._road)

    def _wait_for_tasks(self) -> None:
        if not self._wait(lambda: not self._road.unfinished):
            raise LocalCloudError(
                f"The tasks took more than {_LONGEST_WAIT_SECONDS / 60:.0f} minutes.",
                hint="The machine may be overloaded; run the demo again.",
            )

    def _wait_for_empty_pools(self) -> bool:
        return self._wait(self._pools_are_empty)

    def _pools_are_empty(self) -> bool:
        counts = [self._road.pools.get(pool.pool_id, NodeCounts()) for pool in POOLS]
        return all(count.total + count.leaving == 0 for count in counts)

    def _wait(self, condition: Callable[[], bool]) -> bool:
        """Wait, looking at everything meanwhile, and return whether the condition came true in time."""
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        self._tick(force=True)
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS / 2)
            self._tick()
        return True


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A folder that is there may still refuse new files, which is better known now than after the work.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"The results cannot be written to {folder} ({error.strerror}).", hint="Choose another --output."
        ) from None


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables of this process, where the cloud SDKs look for them, and put the former ones back."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
