"""The operations of the API as data: method, path, and the function that answers.

A path is matched on its raw, percent-encoded form, because a file's path arrives as one escaped segment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from batch_emulator.errors import BatchError
from batch_emulator.rules.world import World
from batch_emulator.state import Job, Json, Node, Pool, Resource, Task, key
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


Handler = Callable[[Call], Answer | Awaitable[Answer]]


@dataclass(frozen=True)
class Operation:
    """One operation. `note` says how this emulator deviates from the service, empty where it does not."""

    method: str
    path: str
    name: str
    handler: Handler
    note: str = ""


class Registry:
    """All operations, found by method and raw path."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._tree: dict[str, Any] = {}

    def operation(self, method: str, path: str, *, note: str = "") -> Callable[[Handler], Handler]:
        """Register the decorated function under a method and a path such as `/pools/{poolId}`."""

        def register(handler: Handler) -> Handler:
            operation = Operation(method, path, handler.__name__, handler, note)
            self.operations.append(operation)
            branch = self._tree
            for part in path.strip("/").split("/"):
                branch = branch.setdefault("{}" if part.startswith("{") else part, {})
            branch.setdefault("", {})[method] = operation
            return handler

        return register

    def match(self, method: str, raw_path: str) -> tuple[Operation, dict[str, str]]:
        """Return the operation and the decoded ids of the path. Raises `BatchError` where there is none."""
        branch = self._tree
        values: list[str] = []
        for part in raw_path.strip("/").split("/"):
            if part in branch and part:
                branch = branch[part]
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
        names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
        return operation, dict(zip(names, values, strict=True))


registry = Registry()
