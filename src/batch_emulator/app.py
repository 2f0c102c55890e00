"""The HTTP application: authentication, versions, conditions, routing, and answers in the service's form."""

from __future__ import annotations

import inspect
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

from batch_emulator.errors import BatchError
from batch_emulator.routes.all_operations import registry
from batch_emulator.routes.registry import Answer, Call, Operation
from batch_emulator.rules.world import World
from batch_emulator.state import Resource
from batch_emulator.wire.auth import Authenticator
from batch_emulator.wire.times import format_http_time, format_time, parse_http_time

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# https://learn.microsoft.com/rest/api/batchservice/batch-service-rest-api-versioning
API_VERSIONS: Final = frozenset(
    {
        "2022-01-01.15.0",
        "2022-10-01.16.0",
        "2023-05-01.17.0",
        "2023-11-01.18.0",
        "2024-02-01.19.0",
        "2024-07-01.20.0",
        "2025-06-01",
    }
)
_LARGEST_BODY: Final = 1024 * 1024

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Request:
    method: str
    raw_path: str
    raw_query: str
    headers: Mapping[str, str]
    url: str
    query: Mapping[str, str]


class Application:
    """The ASGI application of one account."""

    def __init__(self, world: World, authenticator: Authenticator) -> None:
        self._world = world
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError(f"unexpected scope {scope['type']}")
        began = time.perf_counter()
        request = _read_scope(scope)
        request_id = str(uuid.uuid4())
        try:
            body = await _read_body(receive)
            answer = await self._answer(request, body)
        except BatchError as error:
            answer = self._refuse(error, request_id)
        except Exception:
            logger.exception("request %s failed", request_id)
            answer = self._refuse(BatchError("InternalError"), request_id)
        await self._send(request, answer, request_id, send)
        logger.info(
            "%s %s %d request-id=%s %.1f ms",
            request.method,
            request.raw_path,
            answer.status,
            request_id,
            (time.perf_counter() - began) * 1000,
        )

    async def _answer(self, request: _Request, body: bytes) -> Answer:
        self._authenticator.authenticate(request.method, request.raw_path, request.raw_query, request.headers)
        operation, path = registry.match(request.method, request.raw_path)
        if not operation.path.startswith("/emulator"):
            _check_version(request.query)
        call = Call(
            world=self._world,
            method=request.method,
            url=request.url,
            path=path,
            query=request.query,
            headers=request.headers,
            json=_parse(body),
        )
        _check_conditions(call, operation)
        answer = operation.handler(call)
        return await answer if inspect.isawaitable(answer) else answer

    def _refuse(self, error: BatchError, request_id: str) -> Answer:
        text = f"{error.message}\nRequestId:{request_id}\nTime:{format_time(self._world.now())}"
        body: dict[str, Any] = {
            "odata.metadata": f"{self._world.url}/$metadata#Microsoft.Azure.Batch.Protocol.Entities.Container"
            ".errors/@Element",
            "code": error.code,
            "message": {"lang": "en-US", "value": text},
        }
        if error.values:
            body["values"] = [{"key": name, "value": value} for name, value in error.values]
        return Answer(error.status, body=None if error.status == 304 else body)

    async def _send(self, request: _Request, answer: Answer, request_id: str, send: Send) -> None:
        content = answer.content if answer.content is not None else b""
        headers = {
            "DataServiceVersion": "3.0",
            "request-id": request_id,
            "Date": format_http_time(self._world.now()),
        }
        if request.headers.get("return-client-request-id", "").lower() == "true":
            headers["client-request-id"] = request.headers.get("client-request-id", "")
        if answer.body is not None:
            content = json.dumps(answer.body, separators=(",", ":")).encode()
            headers["Content-Type"] = "application/json;odata=minimalmetadata"
        if answer.resource is not None:
            headers["ETag"] = answer.resource.etag
            headers["Last-Modified"] = format_http_time(answer.resource.last_modified)
            headers["DataServiceId"] = request.url.partition("?")[0]
        headers.setdefault("Content-Length", str(len(content)))
        headers |= answer.headers
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [
                    (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
                ],
            }
        )
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else content})


def _read_scope(scope: Scope) -> _Request:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    raw_path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
    raw_query = scope["query_string"].decode("latin-1")
    return _Request(
        method=scope["method"],
        raw_path=raw_path,
        raw_query=raw_query,
        headers=headers,
        url=f"{scope['scheme']}://{headers.get('host', 'localhost')}{raw_path}",
        query=dict(parse_qsl(raw_query, keep_blank_values=True)),
    )


async def _read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BatchError("InvalidRequestBody", "The connection ended before the body did.")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > _LARGEST_BODY:
            raise BatchError("RequestBodyTooLarge")
        if not message.get("more_body"):
            return b"".join(parts)


def _parse(body: bytes) -> object:
    if not body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BatchError("InvalidRequestBody", values=(("Reason", "The body is not JSON."),)) from None


def _check_version(query: Mapping[str, str]) -> None:
    version = query.get("api-version")
    if version is None:
        raise BatchError("InvalidQueryParameterValue", values=(("QueryParameterName", "api-version"),))
    if version not in API_VERSIONS:
        raise BatchError(
            "UnsupportedRequestVersion",
            values=(("QueryParameterValue", version), ("Supported", ", ".join(sorted(API_VERSIONS)))),
        )


def _check_conditions(call: Call, operation: Operation) -> None:
    """Hold a request to its If-… headers. Both SDKs' forms of an ETag are accepted: quoted and bare."""
    headers = call.headers
    names = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since")
    if not any(name in headers for name in names):
        return
    resource = _resource(call, operation)
    if resource is None:
        return
    read = call.method in {"GET", "HEAD"}
    modified = resource.last_modified.replace(microsecond=0)
    try:
        since = headers.get("if-unmodified-since")
        changed = since is not None and modified > parse_http_time(since)
        since = headers.get("if-modified-since")
        unchanged = since is not None and modified <= parse_http_time(since)
    except (ValueError, TypeError):
        raise BatchError("InvalidHeaderValue") from None
    wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
    if changed or (wanted is not None and not _matches(wanted, resource.etag)):
        raise BatchError("ConditionNotMet")
    if unchanged or (unwanted is not None and _matches(unwanted, resource.etag)):
        raise BatchError("NotModified" if read else "ConditionNotMet")


def _matches(header: str, etag: str) -> bool:
    tags = {tag.strip().removeprefix("W/").strip('"') for tag in header.split(",")}
    return "*" in tags or etag in tags


def _resource(call: Call, operation: Operation) -> Resource | None:
    if "{filePath}" in operation.path or "{nodeId}" in operation.path:
        return None
    if "{taskId}" in operation.path:
        return call.task
    if "{jobId}" in operation.path:
        return call.job
    if "{jobScheduleId}" in operation.path:
        return call.schedule
    return call.pool if "{poolId}" in operation.path else None
