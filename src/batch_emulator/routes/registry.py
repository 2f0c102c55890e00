"""The operations of the API as data: method, path, and the function that answers.

A path is matched on its raw, percent-encoded form, because a file's path arrives as one escaped segment. A
segment is fixed text, one id (`{poolId}`), or a name with ids in brackets (`certificates(thumbprint={…})`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from batch_emulator.errors import BatchError
from batch_emulator.rules.world import World
from batch_emulator.state import Job, JobSchedule, Json, Node, Pool, Resource, Task, key
from batch_emulator.wire.validation import validate


@dataclass(frozen=True)
class Answer:
    """What an operation answers. `resource` gives the ETag and Last-Modified headers."""

    status: int = 200
    body: Json | None = None
    resource: Resource | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True)
class Call:
    """One request: `path` holds the decoded ids of the path, `json` the decoded body or None."""

    world: World
    method: str
    url: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    json: object = None

    def body(self, model: str) -> Json:
        """Return the body checked against a model of the API. Raises `BatchError`."""
        return validate(model, self.json)

    def optional_body(self, model: str) -> Json:
        """Return the body as `body` does, or nothing where none was sent."""
        return {} if self.json is None else self.body(model)

    @property
    def pool(self) -> Pool:
        """The pool of the path. Raises PoolNotFound."""
        found = self.world.account.pools.get(key(self.path["poolId"]))
        if found is None:
            raise BatchError("PoolNotFound")
        return found

    @property
    def node(self) -> Node:
        """The node of the path. Raises NodeNotFound."""
        found = self.pool.nodes.get(self.path["nodeId"].lower())
        if found is None:
            raise BatchError("NodeNotFound")
        return found

    @property
    def schedule(self) -> JobSchedule:
        """The job schedule of the path. Raises JobScheduleNotFound."""
        found = self.world.account.schedules.get(key(self.path["jobScheduleId"]))
        if found is None:
            raise BatchError("JobScheduleNotFound")
        return found

    @property
    def job(self) -> Job:
        """The job of the path. Raises JobNotFound."""
        found = self.world.account.jobs.get(key(self.path["jobId"]))
        if found is None:
            raise BatchError("JobNotFound")
        return found

    @property
    def task(self) -> Task:
        """The task of the path. Raises TaskNotFound."""
        found = self.job.tasks.get(key(self.path["taskId"]))
        if found is None:
            raise BatchError("TaskNotFound")
        return found


_NAME: Final = re.compile(r"\{(\w+)\}")
_BRACKETED: Final = re.compile(r"(\w+)\(([^()]+)\)")
_VALUE: Final = re.compile(r"=([^,]*)")

Handler = Callable[[Call], Answer | Awaitable[Answer]]


@dataclass(frozen=True)
class Operation:
    """One operation. `note` says how this emulator deviates from the service, empty where it does not.

    One that is not `supported` answers NotSupportedByEmulator.
    """

    method: str
    path: str
    name: str
    handler: Handler
    note: str = ""
    supported: bool = True


class Registry:
    """All operations, found by method and raw path."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._tree: dict[str, Any] = {}

    def operation(self, method: str, path: str, *, note: str = "") -> Callable[[Handler], Handler]:
        """Register the decorated function under a method and a path such as `/pools/{poolId}`."""

        def register(handler: Handler) -> Handler:
            self.add(Operation(method, path, handler.__name__, handler, note))
            return handler

        return register

    def add(self, operation: Operation) -> None:
        """Register an operation."""
        self.operations.append(operation)
        branch = self._tree
        for part in _parts(operation.path):
            branch = branch.setdefault(_shape(part), {})
        branch.setdefault("", {})[operation.method] = operation

    def has(self, method: str, path: str) -> bool:
        """Whether an operation is registered under exactly this method and path."""
        return any(known.method == method and known.path == path for known in self.operations)

    def match(self, method: str, raw_path: str) -> tuple[Operation, dict[str, str]]:
        """Return the operation and the decoded ids of the path. Raises `BatchError` where there is none."""
        branch = self._tree
        values: list[str] = []
        for part in _parts(raw_path):
            found = _bracketed(part)
            if part in branch and part:
                branch = branch[part]
            elif found is not None and found[0] in branch:
                values += found[1]
                branch = branch[found[0]]
            elif "{}" in branch and part:
                values.append(unquote(part))
                branch = branch["{}"]
            else:
                raise BatchError("ResourceNotFound")
        methods: dict[str, Operation] = branch.get("", {})
        if not methods:
            raise BatchError("ResourceNotFound")
        if method not in methods:
            raise BatchError("UnsupportedHttpVerb")
        operation = methods[method]
        names = _NAME.findall(operation.path)
        if len(names) != len(values):
            raise BatchError("ResourceNotFound")
        return operation, dict(zip(names, values, strict=True))


def _parts(path: str) -> list[str]:
    return path.strip("/").split("/")


def _shape(part: str) -> str:
    """Return what a segment of an operation's path is found by."""
    if part.startswith("{"):
        return "{}"
    return f"{part.partition('(')[0]}()" if "(" in part else part


def _bracketed(part: str) -> tuple[str, list[str]] | None:
    """Return the shape and the ids of a segment such as `certificates(thumbprint=ab)`, else None."""
    match = _BRACKETED.fullmatch(unquote(part))
    return None if match is None else (f"{match[1]}()", _VALUE.findall(match[2]))


registry = Registry()
