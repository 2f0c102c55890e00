"""The bridge between the rules, which are synchronous, and the node agent, which truly runs things."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from batch_emulator.nodes.contract import (
    BindMount,
    Container,
    NodeAgent,
    OutputFile,
    ResourceFile,
    RunHandle,
    TaskLaunch,
    TaskOutcome,
)
from batch_emulator.rules import tasks as task_rules
from batch_emulator.rules.world import World
from batch_emulator.state.model import Json, Node, Task
from batch_emulator.wire.durations import parse_duration

_NODE_ROOT = "/mnt/batch/tasks"
_UNLIMITED_DAYS = 10_000_000

logger = logging.getLogger(__name__)


class Runs:
    """Carries out what the rules ask for. All of it is called on the event loop and returns at once.

    What concerns the same directory happens in order: a run begins once the run before it has ended and what
    was to be deleted is gone. `world` is set once, before the first call.
    """

    world: World

    def __init__(self, agent: NodeAgent) -> None:
        self._agent = agent
        self._handles: dict[Task, RunHandle] = {}
        self._last_on_node: dict[Path, asyncio.Task[None]] = {}
        self._jobs: set[asyncio.Task[None]] = set()

    def prepare_node(self, node: Node) -> None:
        """Create the directories of a node."""
        self._agent.prepare_node(node.root)

    def start_run(self, task: Task, node: Node) -> None:
        """Begin a run, after whatever still happens in the task's directory."""
        launch = _launch(self.world, task, node)
        before = self._last_on_node.get(node.root / task.path)
        run = self._spawn(self._run(task, task.epoch, launch, before))
        self._remember(node.root / task.path, run)

    def end_run(self, task: Task, *, upload: bool) -> None:
        """End the current run of a task."""
        handle = self._handles.get(task)
        if handle is not None:
            handle.terminate(upload=upload)

    def remove_task_files(self, task: Task, node: Node) -> None:
        """Delete a task's directory once its run has ended."""
        place = node.root / task.path
        before = self._last_on_node.get(place)
        work = self._spawn(self._after([before], lambda: self._agent.remove_task_files(node.root, task.path)))
        self._remember(place, work)

    def remove_node(self, node: Node) -> None:
        """Delete a node's directory once every run on it has ended."""
        before = [work for place, work in self._last_on_node.items() if place.is_relative_to(node.root)]
        work = self._spawn(self._after([*before], lambda: self._agent.remove_node(node.root)))
        self._remember(node.root, work)

    async def close(self) -> None:
        """End everything."""
        for work in list(self._jobs):
            work.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        await self._agent.close()

    async def _run(
        self, task: Task, epoch: int, launch: TaskLaunch, before: asyncio.Task[None] | None
    ) -> None:
        world = self.world
        await _finished([before])
        if task.epoch != epoch:
            return  # it was taken off its node before it began

        def started(at: datetime) -> None:
            task_rules.run_started(world, task, epoch, at)

        handle = self._agent.start(launch, on_started=started)
        self._handles[task] = handle
        if task.terminate_requested:
            handle.terminate()
        try:
            outcome: TaskOutcome = await handle.wait()
        finally:
            if self._handles.get(task) is handle:
                del self._handles[task]
        task_rules.run_ended(world, task, epoch, outcome)

    async def _after(self, before: list[asyncio.Task[None] | None], action: Callable[[], None]) -> None:
        await _finished(before)
        await asyncio.to_thread(action)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        spawned = asyncio.get_running_loop().create_task(work)
        self._jobs.add(spawned)
        spawned.add_done_callback(self._done)
        return spawned

    def _done(self, work: asyncio.Task[None]) -> None:
        self._jobs.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            logger.error("work on a node failed", exc_info=error)

    def _remember(self, place: Path, work: asyncio.Task[None]) -> None:
        self._last_on_node[place] = work

        def forget(finished: asyncio.Task[None]) -> None:
            if self._last_on_node.get(place) is finished:
                del self._last_on_node[place]

        work.add_done_callback(forget)


async def _finished(works: list[asyncio.Task[None] | None]) -> None:
    waiting = [work for work in works if work is not None]
    if waiting:
        await asyncio.wait(waiting)


def _launch(world: World, task: Task, node: Node) -> TaskLaunch:
    spec = task.spec
    constraints: Json = spec.get("constraints") or {}
    auto_user: Json = (spec.get("userIdentity") or {}).get("autoUser") or {}
    return TaskLaunch(
        node_root=node.root,
        task_path=task.path,
        command_line=spec["commandLine"],
        environment={**_own_environment(task), **_service_environment(world, task, node)},
        resource_files=[
            ResourceFile(
                http_url=file.get("httpUrl"),
                storage_container_url=file.get("storageContainerUrl"),
                blob_prefix=file.get("blobPrefix"),
                file_path=file.get("filePath"),
                file_mode=file.get("fileMode"),
            )
            for file in spec.get("resourceFiles", ())
        ],
        output_files=[_output_file(file) for file in spec.get("outputFiles", ())],
        container=_container(spec.get("containerSettings")),
        max_wall_clock=_limit(constraints.get("maxWallClockTime")),
        elevated=str(auto_user.get("elevationLevel", "nonadmin")).lower() == "admin",
        pool_scope_user=str(auto_user.get("scope", "pool")).lower() == "pool",
    )


def _own_environment(task: Task) -> dict[str, str]:
    settings = [
        *task.job.spec.get("commonEnvironmentSettings", ()),
        *task.spec.get("environmentSettings", ()),
    ]
    return {setting["name"]: setting.get("value", "") for setting in settings}


def _service_environment(world: World, task: Task, node: Node) -> dict[str, str]:
    # https://learn.microsoft.com/azure/batch/batch-compute-node-environment-variables
    directory = f"{_NODE_ROOT}/{task.path}"
    return {
        "AZ_BATCH_ACCOUNT_NAME": world.account.name,
        "AZ_BATCH_ACCOUNT_URL": f"{world.url}/",
        "AZ_BATCH_POOL_ID": node.pool.id,
        "AZ_BATCH_JOB_ID": task.job.id,
        "AZ_BATCH_TASK_ID": task.id,
        "AZ_BATCH_NODE_ID": node.id,
        "AZ_BATCH_NODE_IS_DEDICATED": str(node.dedicated).lower(),
        "AZ_BATCH_NODE_ROOT_DIR": _NODE_ROOT,
        "AZ_BATCH_NODE_SHARED_DIR": f"{_NODE_ROOT}/shared",
        "AZ_BATCH_NODE_STARTUP_DIR": f"{_NODE_ROOT}/startup",
        "AZ_BATCH_NODE_MOUNTS_DIR": f"{_NODE_ROOT}/fsmounts",
        "AZ_BATCH_TASK_DIR": directory,
        "AZ_BATCH_TASK_WORKING_DIR": f"{directory}/wd",
    }


def _output_file(file: Json) -> OutputFile:
    container: Json = file["destination"].get("container") or {}
    return OutputFile(
        file_pattern=file["filePattern"],
        container_url=container.get("containerUrl", ""),
        path=container.get("path"),
        condition=file["uploadOptions"]["uploadCondition"],
    )


def _container(settings: Json | None) -> Container | None:
    if settings is None:
        return None
    mounts = settings.get("containerHostBatchBindMounts")
    return Container(
        image_name=settings["imageName"],
        run_options=settings.get("containerRunOptions", ""),
        bind_mounts=None
        if mounts is None
        else tuple((BindMount(mount["source"]), bool(mount.get("isReadOnly", False))) for mount in mounts),
        working_directory=settings.get("workingDirectory", "taskWorkingDirectory"),
    )


def _limit(text: str | None) -> timedelta | None:
    if text is None:
        return None
    limit = parse_duration(text)
    return None if limit.days > _UNLIMITED_DAYS else limit
