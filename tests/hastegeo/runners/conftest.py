"""A Batch and a storage account in memory, spoken to by the real clients, signing and retries included."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import requests
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import BaseAdapter

from hastegeo.domain import BlobInput, BlobOutput, TaskSpec, Workload
from hastegeo.runners import AzureBatchRunner
from hastegeo.settings import Settings

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
CONTAINER = "https://dev1store.blob.core.windows.net/data"
Answer = tuple[int, dict[str, str], bytes]


class QuietTransport(RequestsTransport):
    """Remembers the waits between tries in place of waiting."""

    def __init__(self, session: requests.Session) -> None:
        super().__init__(session=session, session_owner=False)
        self.waits: list[float] = []

    def sleep(self, duration: float) -> None:
        self.waits.append(duration)


@dataclass
class FakeAzure(BaseAdapter):
    """Keeps pools, jobs and tasks as the JSON that was sent. `faults` answer before or after the work."""

    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    tasks: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    files: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str, Answer | Exception]] = field(default_factory=list)
    range_status: int = 200

    def fail(
        self, operation: str, answer: Answer | Exception, *, when: str = "before", times: int = 1
    ) -> None:
        self.faults += [(operation, when, answer)] * times

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:
        url = urlsplit(request.url or "")
        operation, work = self._route(
            request.method or "", url.netloc, url.path, parse_qs(url.query), request
        )
        self.calls[operation] += 1
        early = self._fault(operation, "before")
        if early is not None:
            return _respond(request, early)
        answer = work()
        late = self._fault(operation, "after")
        return _respond(request, late if late is not None else answer)

    def close(self) -> None:
        pass

    def _fault(self, operation: str, when: str) -> Answer | None:
        for index, (wanted, moment, answer) in enumerate(self.faults):
            if (wanted, moment) == (operation, when):
                del self.faults[index]
                if isinstance(answer, Exception):
                    raise answer
                return answer
        return None

    def _route(
        self,
        method: str,
        host: str,
        path: str,
        query: dict[str, list[str]],
        request: requests.PreparedRequest,
    ) -> tuple[str, Callable[[], Answer]]:
        if ".blob." in host:
            return self._route_storage(method, path, query, request)
        body = json.loads(request.body) if request.body else {}
        table: list[tuple[str, str, str, Callable[..., Answer]]] = [
            ("GET", r"/nodecounts", "node_counts", self._node_counts),
            ("GET", r"/pools", "list_pools", lambda: _json({"value": list(self.pools.values())})),
            ("GET", r"/pools/([^/]+)", "get_pool", lambda pool: _found(self.pools.get(pool), "PoolNotFound")),
            ("POST", r"/pools", "create_pool", lambda: self._create_pool(body)),
            ("POST", r"/pools/([^/]+)/resize", "resize_pool", lambda pool: self._resize_pool(pool, body)),
            ("POST", r"/jobs", "create_job", lambda: self._create_job(body)),
            ("GET", r"/jobs", "list_jobs", lambda: _json({"value": list(self.jobs.values())})),
            ("GET", r"/jobs/([^/]+)", "get_job", lambda job: _found(self.jobs.get(job), "JobNotFound")),
            ("POST", r"/jobs/([^/]+)/tasks", "create_task", lambda job: self._create_task(job, body)),
            ("GET", r"/jobs/([^/]+)/tasks", "list_tasks", self._list_tasks),
            (
                "POST",
                r"/jobs/([^/]+)/addtaskcollection",
                "add_collection",
                lambda job: self._add_collection(job, body),
            ),
            ("GET", r"/jobs/([^/]+)/tasks/([^/]+)", "get_task", self._get_task),
            ("DELETE", r"/jobs/([^/]+)/tasks/([^/]+)", "delete_task", self._delete_task),
            ("POST", r"/jobs/([^/]+)/tasks/([^/]+)/terminate", "terminate_task", self._terminate_task),
            ("GET", r"/jobs/([^/]+)/tasks/([^/]+)/files", "list_files", self._list_files),
            ("HEAD", r"/jobs/([^/]+)/tasks/([^/]+)/files/(.+)", "file_properties", self._head_file),
            (
                "GET",
                r"/jobs/([^/]+)/tasks/([^/]+)/files/(.+)",
                "read_file",
                lambda *at: self._read_file(*at, request.headers["ocp-range"]),
            ),
        ]
        for verb, pattern, operation, work in table:
            if verb == method and (match := re.fullmatch(pattern, path)):
                return operation, functools.partial(work, *(unquote(part) for part in match.groups()))
        raise AssertionError(f"unexpected call {method} {path}")

    def _route_storage(
        self, method: str, path: str, query: dict[str, list[str]], request: requests.PreparedRequest
    ) -> tuple[str, Callable[[], Answer]]:
        if query.get("comp") == ["userdelegationkey"]:
            return "delegation_key", lambda: (200, {"Content-Type": "application/xml"}, _key(request.body))
        blob = self.blobs.get(unquote(path))
        if query.get("comp") == ["list"]:
            raise AssertionError("not needed here")
        return f"blob_{method.lower()}", lambda: self._blob(method, blob, request)

    def _blob(self, method: str, blob: bytes | None, request: requests.PreparedRequest) -> Answer:
        if blob is None:
            return 404, {"x-ms-error-code": "BlobNotFound"}, b""
        if method == "HEAD":
            return 200, {"Content-Length": str(len(blob))}, b""
        start, end = _range(request.headers.get("x-ms-range", "bytes=0-"), len(blob))
        part = blob[start:end]
        headers = {
            "Content-Range": f"bytes {start}-{end - 1}/{len(blob)}",
            "Content-Length": str(len(part)),
            "ETag": '"1"',
            "x-ms-blob-type": "BlockBlob",
        }
        return 206, headers, part

    def _node_counts(self) -> Answer:
        names = (
            *("creating", "idle", "offline", "preempted", "rebooting", "reimaging", "running", "starting"),
            *("startTaskFailed", "leavingPool", "unknown", "unusable", "waitingForStartTask", "total"),
        )
        zero = dict.fromkeys(names, 0)
        value = [
            {"poolId": pool, "dedicated": zero, "lowPriority": {**zero, **counts}}
            for pool, counts in self.nodes.items()
        ]
        return _json({"value": value})

    def _create_pool(self, body: dict[str, Any]) -> Answer:
        if body["id"] in self.pools:
            return _error(409, "PoolExists")
        self.pools[body["id"]] = {**body, "state": "active", "allocationState": "steady"}
        return 201, {}, b""

    def _resize_pool(self, pool: str, body: dict[str, Any]) -> Answer:
        self.pools[pool] |= body
        return 202, {}, b""

    def _create_job(self, body: dict[str, Any]) -> Answer:
        if body["id"] in self.jobs:
            return _error(409, "JobExists")
        self.jobs[body["id"]] = {**body, "state": "active"}
        return 201, {}, b""

    def _create_task(self, job: str, body: dict[str, Any]) -> Answer:
        if job not in self.jobs:
            return _error(404, "JobNotFound")
        if self.jobs[job]["state"] != "active":
            return _error(409, "JobCompleted")
        if (job, body["id"]) in self.tasks:
            return _error(409, "TaskExists")
        self.tasks[job, body["id"]] = {**body, "state": "active", "creationTime": NOW.isoformat()}
        return 201, {}, b""

    def _add_collection(self, job: str, body: dict[str, Any]) -> Answer:
        results = []
        for task in body["value"]:
            status, _, content = self._create_task(job, task)
            result = {"taskId": task["id"], "status": "Success"}
            if status != 201:
                error = json.loads(content)
                result = {"taskId": task["id"], "status": "clienterror", "error": error}
            results.append(result)
        return _json({"value": results})

    def _get_task(self, job: str, task: str) -> Answer:
        return _found(self.tasks.get((job, task)), "TaskNotFound")

    def _list_tasks(self, job: str) -> Answer:
        return _json({"value": [task for (owner, _), task in self.tasks.items() if owner == job]})

    def _delete_task(self, job: str, task: str) -> Answer:
        return (200, {}, b"") if self.tasks.pop((job, task), None) else _error(404, "TaskNotFound")

    def _terminate_task(self, job: str, task: str) -> Answer:
        found = self.tasks.get((job, task))
        if found is None:
            return _error(404, "TaskNotFound")
        if found["state"] == "completed":
            return _error(409, "TaskCompleted")
        failure = {"category": "UserError", "code": "TaskEnded", "message": "The task was ended."}
        found |= {"state": "completed", "executionInfo": {"failureInfo": failure, "result": "failure"}}
        return 204, {}, b""

    def _list_files(self, job: str, task: str) -> Answer:
        value = [
            {
                "name": name,
                "isDirectory": False,
                "properties": {"contentLength": str(len(content)), "lastModified": NOW.isoformat()},
            }
            for (owner, owned, name), content in self.files.items()
            if (owner, owned) == (job, task)
        ]
        return _json({"value": value}) if value else _error(404, "FileNotFound")

    def _head_file(self, job: str, task: str, name: str) -> Answer:
        content = self.files.get((job, task, name))
        if content is None:
            return _error(404, "FileNotFound")
        headers = {"Content-Length": str(len(content)), "Last-Modified": "Sun, 01 Mar 2026 12:00:00 GMT"}
        return 200, headers, b""

    def _read_file(self, job: str, task: str, name: str, wanted: str) -> Answer:
        content = self.files[job, task, name]
        start, end = _range(wanted, len(content))
        return self.range_status, {"Content-Type": "application/octet-stream"}, content[start:end]


class FakeCredential:
    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        return AccessToken("a-token", 4102444800)


@pytest.fixture
def azure() -> FakeAzure:
    return FakeAzure()


@pytest.fixture
def transport(azure: FakeAzure) -> QuietTransport:
    session = requests.Session()
    session.mount("https://", azure)
    return QuietTransport(session)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.load(environment(tmp_path))


def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "AZURE_BATCH_URL": "https://account.region.batch.azure.com",
        "AZURE_BATCH_USE_SAS": "true",
        "AZURE_BATCH_MANAGE_POOLS": "false",
        "AZURE_BATCH_OUTPUT_CONTAINER_URL": CONTAINER,
        "AZURE_BATCH_IMAGERYPREP_POOL_IDS": "t4-pool,h100-pool",
        "HASTE_TENANT": "dev1",
        "HASTE_GRANT_LEDGER": str(tmp_path / "grants.jsonl"),
    }


@pytest.fixture
def make_runner(
    azure: FakeAzure, transport: QuietTransport, settings: Settings, tmp_path: Path
) -> Callable[..., AzureBatchRunner]:
    def make(**changes: str) -> AzureBatchRunner:
        chosen = Settings.load({**environment(tmp_path), **changes}) if changes else settings
        options = {"transport": transport}
        return AzureBatchRunner(
            chosen,
            FakeCredential(),
            clock=lambda: NOW,
            batch_options=options,
            storage_options=options,
        )

    return make


@pytest.fixture
def runner(azure: FakeAzure, make_runner: Callable[..., AzureBatchRunner]) -> AzureBatchRunner:
    azure.pools = {
        name: {
            "id": name,
            "state": "active",
            "allocationState": "steady",
            "enableAutoScale": True,
            "vmSize": size,
            "metadata": [{"name": "haste_max_nodes", "value": str(most)}],
        }
        for name, size, most in (
            ("t4-pool", "Standard_NC16as_T4_v3", 2),
            ("h100-pool", "Standard_NC40ads_H100_v5", 1),
        )
    }
    azure.nodes = {"t4-pool": {}, "h100-pool": {}}
    return make_runner()


@pytest.fixture
def make_spec() -> Callable[..., TaskSpec]:
    def make(key: str = "scene-1", **changes: Any) -> TaskSpec:
        values: dict[str, Any] = {
            "key": key,
            "tenant": "dev1",
            "workload": Workload.IMAGERYPREP,
            "image": "haste/imageryprep:1",
            "command": ("prepare", "--scene", "a b"),
            "inputs": (BlobInput(container_url=CONTAINER, prefix="raw/pre", path="in"),),
            "outputs": (BlobOutput(pattern="out/**/*", container_url=CONTAINER, prefix="results/scene-1"),),
        }
        return TaskSpec(**(values | changes))

    return make


def _respond(request: requests.PreparedRequest, answer: Answer) -> requests.Response:
    response = requests.Response()
    response.status_code, headers, content = answer
    response.headers.update(headers)
    response.request = request
    response.url = request.url or ""
    response.reason = "fake"
    response._content = content
    response.raw = _Raw(content)
    return response


class _Raw:
    """As much of urllib3's response as azure-core's streaming asks for."""

    enforce_content_length = True
    version = 11

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, size: int, decode_content: bool = True) -> Any:
        for start in range(0, len(self._content), size):
            yield self._content[start : start + size]

    def read(self, *_: Any, **__: Any) -> bytes:
        return self._content

    def close(self) -> None:
        pass


def _json(value: dict[str, Any], status: int = 200) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _error(status: int, code: str) -> Answer:
    return _json({"code": code, "message": {"lang": "en", "value": f"{code} happened\nRequestId:1"}}, status)


def _found(value: dict[str, Any] | None, code: str) -> Answer:
    return _error(404, code) if value is None else _json(value)


def _range(text: str, size: int) -> tuple[int, int]:
    start, _, last = text.removeprefix("bytes=").partition("-")
    return int(start), min(int(last) + 1 if last else size, size)


def _key(body: Any) -> bytes:
    text = body.decode() if isinstance(body, bytes) else str(body)
    start = re.search(r"<Start>(.*?)</Start>", text)
    expiry = re.search(r"<Expiry>(.*?)</Expiry>", text)
    assert start
    assert expiry
    value = base64.b64encode(b"k" * 32).decode()
    return (
        "<?xml version='1.0' encoding='utf-8'?><UserDelegationKey>"
        "<SignedOid>oid</SignedOid><SignedTid>tid</SignedTid>"
        f"<SignedStart>{start[1]}</SignedStart><SignedExpiry>{expiry[1]}</SignedExpiry>"
        f"<SignedService>b</SignedService><SignedVersion>2025-07-05</SignedVersion><Value>{value}</Value>"
        "</UserDelegationKey>"
    ).encode()
