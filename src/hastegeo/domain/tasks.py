"""Tasks: what a caller asks for, and what became of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from hastegeo.domain.grants import GrantKind
from hastegeo.domain.skus import GpuNeed
from hastegeo.domain.storage import ContainerAddress, check_blob_name
from hastegeo.domain.tenants import check_tenant_name
from hastegeo.domain.workloads import Workload
from hastegeo.errors import InputError

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_PREFIXES: Final = ("AZ_BATCH_", "HASTE_TASK_")
_MAX_KEY_LENGTH: Final = 256


class OutputCondition(StrEnum):
    """When an output is uploaded, by how the task ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    COMPLETION = "completion"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobInput:
    """Blobs to place in the task's working directory before it starts.

    Either one `blob`, stored at `path` (default: the blob's own name), or all blobs under `prefix` (the whole
    container if None), stored under `path` with their full names kept below it.
    """

    container_url: str
    blob: str | None = None
    prefix: str | None = None
    path: str | None = None

    def __post_init__(self) -> None:
        ContainerAddress.parse(self.container_url)
        if self.blob is not None and self.prefix is not None:
            raise InputError("An input is either one blob or a prefix, not both.")
        for value, what in (
            (self.blob, "input blob"),
            (self.prefix, "input prefix"),
            (self.path, "input path"),
        ):
            if value is not None:
                check_blob_name(value, what=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobOutput:
    """Files to upload when the task has ended.

    `pattern` is relative to the task's working directory and may hold wildcards (`out/**/*.tif`). `prefix` is
    where they go: the blob's name if the pattern has no wildcard, else the prefix of their names.
    """

    pattern: str
    container_url: str
    prefix: str | None = None
    condition: OutputCondition = OutputCondition.SUCCESS

    def __post_init__(self) -> None:
        ContainerAddress.parse(self.container_url)
        check_blob_name(self.pattern, what="output pattern")
        if self.prefix is not None:
            check_blob_name(self.prefix, what="output prefix")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantVariable:
    """An environment variable that gives the task's program a container URL with its own grant.

    This is how a program that talks to storage itself gets a credential. `prefix` is required for state, and
    otherwise narrows the grant only where storage can scope to a directory.
    """

    name: str
    kind: GrantKind
    container_url: str
    prefix: str | None = None

    def __post_init__(self) -> None:
        _check_variable(self.name)
        ContainerAddress.parse(self.container_url)
        if self.prefix is not None:
            check_blob_name(self.prefix, what="grant prefix")
        if self.kind is GrantKind.STATE and self.prefix is None:
            raise InputError(
                f"The state variable {self.name} needs a prefix: the place of the task's checkpoints."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One run of a container command.

    `key` is the caller's own name for the task, at most 256 characters: submitting the same key and
    definition again gives the same task, and the same key with another definition is refused.
    `max_wall_clock` limits one run; None takes the environment's default. `max_retries` counts reruns after
    the program failed; reruns after a lost node are not counted against it. `retention` is how long the
    node keeps the task's files; None takes the environment's default. `run_options` are extra container
    options, held to an allow-list by the runner. `candidates` overrides the environment's list of pools.
    """

    key: str
    tenant: str
    workload: Workload
    image: str
    command: tuple[str, ...]
    inputs: tuple[BlobInput, ...] = ()
    outputs: tuple[BlobOutput, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    grant_variables: tuple[GrantVariable, ...] = ()
    gpu: GpuNeed = field(default_factory=GpuNeed)
    max_wall_clock: timedelta | None = None
    max_retries: int = 0
    retention: timedelta | None = None
    run_options: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.key or len(self.key) > _MAX_KEY_LENGTH:
            raise InputError(f"A task key has 1 to {_MAX_KEY_LENGTH} characters.")
        check_tenant_name(self.tenant)
        if not self.image or any(character.isspace() for character in self.image):
            raise InputError(f"Task {self.key}: the image {self.image!r} is not an image name.")
        if not self.command or not self.command[0]:
            raise InputError(f"Task {self.key} has no command.")
        if self.max_wall_clock is not None and self.max_wall_clock <= timedelta(0):
            raise InputError(f"Task {self.key}: the wall-clock limit must be above zero.")
        if self.max_retries < 0:
            raise InputError(
                f"Task {self.key}: retries cannot be unlimited.",
                hint="A grant must outlive the task, so give a number of retries.",
            )
        for name in self.environment:
            _check_variable(name)
        names = [*self.environment, *(variable.name for variable in self.grant_variables)]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"Task {self.key} sets {', '.join(repeated)} more than once.")


@dataclass(frozen=True, slots=True, order=True)
class TaskRef:
    """Where a submitted task lives. Written as `job/task`."""

    job_id: str
    task_id: str

    @classmethod
    def parse(cls, text: str) -> TaskRef:
        """Read `job/task`. Raises `InputError` for anything else."""
        job_id, separator, task_id = text.partition("/")
        if not (job_id and separator and task_id) or "/" in task_id:
            raise InputError(
                f"{text!r} is not a task.", hint="Write it as JOB/TASK, as `haste ls` prints it."
            )
        return cls(job_id=job_id, task_id=task_id)

    def __str__(self) -> str:
        return f"{self.job_id}/{self.task_id}"


class TaskState(StrEnum):
    """The one set of states that callers see."""

    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether the task has ended."""
        return self in {TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED}


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why a task failed, in the compute service's words. `category` is `usererror` or `servererror`."""

    category: str
    code: str
    message: str
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """What became of a task.

    `reason` is one readable sentence, empty while nothing needs explaining. `retries` counts reruns after
    the program failed, `requeues` reruns after a lost node, `spills` the preferred pools passed over at
    submission. Times are UTC, and None while they have not come.
    """

    ref: TaskRef
    state: TaskState
    reason: str = ""
    pool_id: str = ""
    node_id: str = ""
    exit_code: int | None = None
    created: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    retries: int = 0
    requeues: int = 0
    spills: int = 0
    failure: TaskFailure | None = None


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A file of a task. `path` is relative to the task's directory, such as `stdout.txt` or `wd/a.tif`."""

    path: str
    size: int
    modified: datetime | None = None


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A blob that a task uploaded, in bytes. Its name is its place below the container."""

    container: ContainerAddress
    blob: str
    size: int
    modified: datetime | None = None


def _check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise InputError(f"{name!r} is not the name of an environment variable.")
    if name.upper().startswith(_RESERVED_PREFIXES):
        raise InputError(
            f"The variable {name} is reserved.", hint="Names in AZ_BATCH_ and HASTE_TASK_ are set for you."
        )
