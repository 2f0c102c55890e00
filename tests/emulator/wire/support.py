"""What the tests of the wire share: an account, and the requests that the real SDK would send, caught."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from azure.batch import BatchClient
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.pipeline.transport import HttpTransport

ACCOUNT = "testaccount"
KEY = base64.b64encode(b"not a secret: the key of an account that does not exist").decode()
NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Sent:
    """A request as the emulator's server would see it: raw path and query, lower-case header names."""

    method: str
    path: str
    query: str
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None


class SentError(Exception):
    """Stands for the answer, which no test of this folder needs."""


class CatchingTransport(HttpTransport):  # type: ignore[type-arg]
    """Keeps the last request of an SDK instead of sending it."""

    last: Sent

    def send(self, request: Any, **options: object) -> Any:
        path, _, query = request.url.removeprefix("http://batch.test").partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.last = Sent(request.method, path, query, headers, request.content)
        raise SentError

    def open(self) -> None: ...

    def close(self) -> None: ...

    def __exit__(self, *details: object) -> None: ...


@contextmanager
def catching_client() -> Iterator[tuple[BatchClient, CatchingTransport]]:
    """Yield azure-batch's client with a shared key, and the transport that catches its requests."""
    transport = CatchingTransport()
    credential = AzureNamedKeyCredential(ACCOUNT, KEY)
    with (
        mock.patch("azure.batch._patch.datetime", mock.Mock(utcnow=lambda: NOW.replace(tzinfo=None))),
        BatchClient("http://batch.test", credential, transport=transport, retry_total=0) as client,
    ):
        yield client, transport
