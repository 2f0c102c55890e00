"""The node agent: carries out runs of tasks on the simulated nodes of this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from batch_emulator.nodes import layout
from batch_emulator.nodes.beneath import open_directory, open_root, opened, remove_tree, split_relative
from batch_emulator.nodes.contract import RunHandle, TaskLaunch
from batch_emulator.nodes.drivers import AUTO, Driver, choose_driver
from batch_emulator.nodes.endpoints import parse_endpoints
from batch_emulator.nodes.images import ImageTable
from batch_emulator.nodes.run import Run, RunContext
from batch_emulator.nodes.transfers.storage import ca_bundle

logger = logging.getLogger(__name__)

_TRANSFER_THREADS = 8
_CA_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class LocalNodeAgent:
    """A `NodeAgent` that runs tasks with a driver. Start runs from the event loop that shall watch them."""

    def __init__(self, driver: Driver, context: RunContext, executor: ThreadPoolExecutor) -> None:
        self._driver = driver
        self._context = context
        self._executor = executor
        self._runs: dict[Run, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def driver_name(self) -> str:
        """Which driver runs the tasks."""
        return self._driver.name

    @property
    def enforces_isolation(self) -> bool:
        """See `NodeAgent.enforces_isolation`."""
        return self._driver.enforces_isolation

    def prepare_node(self, node_root: Path) -> None:
        """See `NodeAgent.prepare_node`."""
        layout.prepare_node(node_root, owner=self._driver.task_user)

    def start(self, launch: TaskLaunch, *, on_started: Callable[[datetime], None]) -> RunHandle:
        """See `NodeAgent.start`. RuntimeError after `close`."""
        if self._closed:
            raise RuntimeError("the node agent is closed")
        run = Run(self._context, launch, on_started)
        task = asyncio.get_running_loop().create_task(run.carry_out())
        self._runs[run] = task
        task.add_done_callback(lambda _: self._runs.pop(run, None))
        return run

    def remove_task_files(self, node_root: Path, task_path: str) -> None:
        """See `NodeAgent.remove_task_files`. It may take long for a large tree: call it from a thread."""
        *parents, name = split_relative(task_path)
        try:
            with opened(open_root(node_root)) as root, opened(open_directory(root, parents)) as job:
                remove_tree(job, name)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            # A task with the whole node mounted put a file or link in the place of the job's directory.
            logger.warning("the directory of task %s has been replaced; nothing was removed", task_path)

    def remove_node(self, node_root: Path) -> None:
        """See `NodeAgent.remove_node`. It may take long for a large tree: call it from a thread."""
        try:
            parent = open_root(node_root.parent)
        except FileNotFoundError:
            return
        with opened(parent):
            remove_tree(parent, node_root.name)

    async def close(self) -> None:
        """See `NodeAgent.close`."""
        self._closed = True
        tasks = list(self._runs.values())
        for run in list(self._runs):
            run.terminate(upload=False)
        await asyncio.gather(*tasks, return_exceptions=True)
        self._executor.shutdown(wait=False, cancel_futures=True)


def create_agent(
    driver: str = AUTO,
    images: ImageTable | None = None,
    egress: Iterable[str] | None = None,
    environment: Mapping[str, str] | None = None,
    read_only_paths: Iterable[Path] = (),
) -> LocalNodeAgent:
    """Make the node agent.

    `driver` is `bubblewrap`, `unshare`, `process`, or `auto` for the first that works here (in that order).
    `images` maps container images to local commands. `egress` None gives tasks this machine's network; a
    list of loopback endpoints (`127.0.0.1:10000`) gives each task a network of its own in which only those
    answer. `environment` is set in every task, below the task's own variables; the certificate files it
    names are readable in the sandboxes and are what transfers trust. `read_only_paths` are readable in them
    as well.

    DriverUnavailableError if the driver does not work here; ValueError for an unknown driver or a bad
    endpoint.
    """
    variables = dict(environment or {})
    chosen = choose_driver(driver)
    endpoints = None if egress is None else parse_endpoints(egress)
    for endpoint in endpoints or ():
        if endpoint.port < chosen.lowest_port:
            raise ValueError(
                f"egress endpoint {endpoint}: as an ordinary user the {chosen.name} driver cannot offer "
                f"ports below {chosen.lowest_port}; use a higher port, or the unshare driver"
            )
    executor = ThreadPoolExecutor(_TRANSFER_THREADS, thread_name_prefix="node-transfers")
    certificates = [
        Path(variables[name]) for name in _CA_VARIABLES if variables.get(name, "").startswith("/")
    ]
    context = RunContext(
        driver=chosen,
        images=images or ImageTable(),
        egress=endpoints,
        environment=variables,
        read_only_paths=(*read_only_paths, *certificates),
        ca_bundle=ca_bundle(variables),
        executor=executor,
    )
    return LocalNodeAgent(chosen, context, executor)
