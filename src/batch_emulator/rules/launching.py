"""What is launched on a node for a task: its command, files, limits and environment, from what the client
sent.

Sources: https://learn.microsoft.com/azure/batch/batch-compute-node-environment-variables and, for the
directories, https://learn.microsoft.com/azure/batch/files-and-directories
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from batch_emulator.nodes.contract import BindMount, Container, OutputFile, ResourceFile, TaskLaunch
from batch_emulator.rules.world import World
from batch_emulator.state import Job, Json, Node, Task
from batch_emulator.wire.durations import parse_duration

START_TASK_PATH = "startup"

_NODE_ROOT = "/mnt/batch/tasks"
_UNLIMITED_DAYS = 10_000_000


def preparation_path(job: Job) -> str:
    """Return the directory of a job's preparation task, below the root of any node."""
    return f"{job.directory}/jobpreparation"


def release_path(job: Job) -> str:
    """Return the directory of a job's release task, below the root of any node."""
    return f"{job.directory}/jobrelease"


def task_launch(world: World, task: Task, node: Node) -> TaskLaunch:
    """Return what a task launches on a node."""
    environment = {
        **_settings(task.job.spec.get("commonEnvironmentSettings")),
        **_settings(task.spec.get("environmentSettings")),
        **_environment(world, node, task.path, job_id=task.job.id, task_id=task.id),
    }
    if task.job.spec.get("jobPreparationTask"):
        environment |= _preparation_environment(task.job)
    return _launch(node, task.path, task.spec, environment, slot=task.slots[0] if task.slots else 0)


def start_task_launch(world: World, node: Node, spec: Json) -> TaskLaunch:
    """Return what a start task launches."""
    environment = _settings(spec.get("environmentSettings"))
    return _launch(node, START_TASK_PATH, spec, environment | _environment(world, node, START_TASK_PATH))


def job_task_launch(world: World, job: Job, node: Node, spec: Json, path: str) -> TaskLaunch:
    """Return what the preparation or release task of a job launches."""
    environment = {
        **_settings(job.spec.get("commonEnvironmentSettings")),
        **_settings(spec.get("environmentSettings")),
        **_environment(world, node, path, job_id=job.id, task_id=spec["id"]),
    }
    if job.spec.get("jobPreparationTask"):
        environment |= _preparation_environment(job)
    return _launch(node, path, spec, environment)


def _launch(
    node: Node, path: str, spec: Json, environment: Mapping[str, str], *, slot: int = 0
) -> TaskLaunch:
    limits: Json = spec.get("constraints") or {}
    auto_user: Json = (spec.get("userIdentity") or {}).get("autoUser") or {}
    return TaskLaunch(
        node_root=node.root,
        task_path=path,
        command_line=spec["commandLine"],
        environment=environment,
        resource_files=[_resource_file(file) for file in spec.get("resourceFiles", ())],
        output_files=[_output_file(file) for file in spec.get("outputFiles", ())],
        container=_container(spec.get("containerSettings")),
        max_wall_clock=wall_clock(limits.get("maxWallClockTime") or spec.get("maxWallClockTime")),
        elevated=str(auto_user.get("elevationLevel", "nonadmin")).lower() == "admin",
        pool_scope_user=str(auto_user.get("scope", "pool")).lower() == "pool",
        slot=slot,
    )


def wall_clock(text: str | None) -> timedelta | None:
    """Return a limit as a client sent it; None for no limit, which the service writes as a very long one."""
    if text is None:
        return None
    limit = parse_duration(text)
    return None if limit.days > _UNLIMITED_DAYS else limit


def _settings(settings: list[Json] | None) -> dict[str, str]:
    return {setting["name"]: setting.get("value", "") for setting in settings or ()}


def _environment(
    world: World, node: Node, path: str, *, job_id: str | None = None, task_id: str | None = None
) -> dict[str, str]:
    directory = f"{_NODE_ROOT}/{path}"
    environment = {
        "AZ_BATCH_ACCOUNT_NAME": world.account.name,
        "AZ_BATCH_ACCOUNT_URL": f"{world.url}/",
        "AZ_BATCH_POOL_ID": node.pool.id,
        "AZ_BATCH_NODE_ID": node.id,
        "AZ_BATCH_NODE_IS_DEDICATED": str(node.dedicated).lower(),
        "AZ_BATCH_NODE_ROOT_DIR": _NODE_ROOT,
        "AZ_BATCH_NODE_SHARED_DIR": f"{_NODE_ROOT}/shared",
        "AZ_BATCH_NODE_STARTUP_DIR": f"{_NODE_ROOT}/startup",
        "AZ_BATCH_NODE_MOUNTS_DIR": f"{_NODE_ROOT}/fsmounts",
        "AZ_BATCH_TASK_DIR": directory,
        "AZ_BATCH_TASK_WORKING_DIR": f"{directory}/wd",
    }
    if job_id is not None:
        environment["AZ_BATCH_JOB_ID"] = job_id
    if task_id is not None:
        environment["AZ_BATCH_TASK_ID"] = task_id
    return environment


def _preparation_environment(job: Job) -> dict[str, str]:
    directory = f"{_NODE_ROOT}/{preparation_path(job)}"
    return {
        "AZ_BATCH_JOB_PREP_DIR": directory,
        "AZ_BATCH_JOB_PREP_WORKING_DIR": f"{directory}/wd",
    }


def _resource_file(file: Json) -> ResourceFile:
    return ResourceFile(
        http_url=file.get("httpUrl"),
        storage_container_url=file.get("storageContainerUrl"),
        blob_prefix=file.get("blobPrefix"),
        file_path=file.get("filePath"),
        file_mode=file.get("fileMode"),
    )


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
