"""What the rules ask of a node, and what a node answers: the only words the two rooms share.

The rules (state machines, scheduling) decide WHEN a task runs and what its end means. A node agent only
carries out one run of one task, and reports facts. It never retries, never changes states, and knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class BindMount(StrEnum):
    """The parts of the node root that `containerHostBatchBindMounts` can name (`source`), as on the wire."""

    SHARED = "Shared"
    STARTUP = "Startup"
    VFS_MOUNTS = "VfsMounts"
    TASK = "Task"
    JOB_PREP = "JobPrep"
    APPLICATIONS = "Applications"


@dataclass(frozen=True, kw_only=True)
class ResourceFile:
    """One file or container prefix to download before the task starts; exactly one source is set."""

    http_url: str | None = None
    storage_container_url: str | None = None
    blob_prefix: str | None = None
    file_path: str | None = None
    file_mode: str | None = None


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """One pattern of files to upload when the task ends.

    `container_url` carries its SAS. `path` is the blob name where `file_pattern` has no wildcard, else the
    prefix. `condition` is `taskSuccess`, `taskFailure` or `taskCompletion`.
    """

    file_pattern: str
    container_url: str
    path: str | None = None
    condition: str = "taskCompletion"


@dataclass(frozen=True, kw_only=True)
class Container:
    """The container settings of a task. `bind_mounts` None mounts the whole node root, () mounts nothing.

    Each bind mount is (source, read-only).
    """

    image_name: str
    run_options: str = ""
    bind_mounts: tuple[tuple[BindMount, bool], ...] | None = None
    working_directory: str = "taskWorkingDirectory"


@dataclass(frozen=True, kw_only=True)
class TaskLaunch:
    """One run of one task on one node.

    `node_root` is the directory on this machine that the task sees as `/mnt/batch/tasks`. `task_path` is the
    task's directory below it, such as `workitems/{job}/job-1/{task}`. `environment` is what the task sees,
    the service's own AZ_BATCH_* variables included. `slot` is the first task slot the run holds (0-based).
    """

    node_root: Path
    task_path: str
    command_line: str
    environment: Mapping[str, str] = field(default_factory=dict)
    resource_files: Sequence[ResourceFile] = ()
    output_files: Sequence[OutputFile] = ()
    container: Container | None = None
    max_wall_clock: timedelta | None = None
    elevated: bool = False
    pool_scope_user: bool = False
    slot: int = 0


class FailureCategory(StrEnum):
    """Whose fault a failure is, as `failureInfo.category` says it."""

    USER_ERROR = "usererror"
    SERVER_ERROR = "servererror"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a run failed, in the service's own codes (`BlobAccessDenied`, `FailureExitCode`, ...).

    `phase` says where: `preprocessing` (downloads), `run`, or `upload`.
    """

    category: FailureCategory
    code: str
    message: str
    phase: str
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TaskOutcome:
    """How a run ended. `exit_code` is None when the program never started or was ended from outside.

    `started` and `ended` bound the program itself; `started` is None when it never started.
    """

    exit_code: int | None
    failure: Failure | None
    started: datetime | None
    ended: datetime
    container_id: str | None = None
    terminated: bool = False


class RunHandle(Protocol):
    """A run in progress."""

    async def wait(self) -> TaskOutcome:
        """Return when the run has ended, its outputs are uploaded and every process of it is gone."""
        ...

    def terminate(self, *, upload: bool = True) -> None:
        """End the run's whole process tree now; `wait` then returns an outcome with `terminated` set.

        With `upload` false (the node was lost) output files are not uploaded.
        """
        ...


class NodeAgent(Protocol):
    """Carries out runs on the simulated nodes of this machine. One agent serves all nodes."""

    @property
    def enforces_isolation(self) -> bool:
        """Whether a task is confined (files, processes, network); false for plain processes."""
        ...

    def prepare_node(self, node_root: Path) -> None:
        """Create a fresh node's directories: workitems, shared, startup, applications, fsmounts, volatile."""
        ...

    def start(self, launch: TaskLaunch, *, on_started: Callable[[datetime], None]) -> RunHandle:
        """Begin a run. `on_started` is called on the event loop when the program itself starts."""
        ...

    def remove_task_files(self, node_root: Path, task_path: str) -> None:
        """Delete the task's directory (retention has passed, or the task was deleted)."""
        ...

    def remove_node(self, node_root: Path) -> None:
        """Delete everything of a node that has left or was reimaged."""
        ...

    async def close(self) -> None:
        """End every run and leave no process behind."""
        ...
