"""The storage client's settings, and how its errors become the service's failure codes."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ServiceRequestTimeoutError,
    ServiceResponseTimeoutError,
)
from azure.storage.blob import ExponentialRetry

from batch_emulator.nodes.contract import Failure, FailureCategory

_SIGNATURE = re.compile(r"(?i)(\bsig=)[^&\s\"']+")
_CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class TransferError(Exception):
    """A transfer failed for good; `failure` says it in the service's words, and never holds a signature."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Cancelled(Exception):  # noqa: N818 - not an error: the run was told to stop
    """The run was ended while it transferred files."""


@dataclass(frozen=True, kw_only=True)
class Transfers:
    """What every transfer of one run needs: where, for whom, with which trust, and whether to go on.

    `owner` is the user that downloaded files belong to, None for the emulator's own. `environment` is the
    task's, for patterns; `ca_bundle` a file of certificate authorities, None for this machine's defaults.
    """

    node_root: Path
    task_path: str
    seen_as: str
    environment: Mapping[str, str]
    owner: int | None = None
    ca_bundle: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments for storage clients: few and quick retries, for a task is waiting."""
        options: dict[str, Any] = {
            "retry_policy": _StoppableRetry(self.stop),
            "connection_timeout": 10,
            "read_timeout": 30,
        }
        if self.ca_bundle is not None:
            options["connection_verify"] = self.ca_bundle
        return options

    def check(self) -> None:
        """Raise `Cancelled` if the run was ended."""
        if self.stop.is_set():
            raise Cancelled


class _StoppableRetry(ExponentialRetry):
    """Three retries after one, two and four seconds or so, given up at once when the run is ended."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__(initial_backoff=1, increment_base=2, retry_total=3, random_jitter_range=1)
        self._stop = stop

    def sleep(self, settings: dict[str, Any], transport: object) -> None:  # noqa: ARG002 - the client's signature
        """Wait before the next try."""
        if self._stop.wait(self.get_backoff_time(settings)):
            raise Cancelled


def ca_bundle(environment: Mapping[str, str]) -> str | None:
    """The file of certificate authorities that the environment names, in the order in which clients ask."""
    return next((environment[name] for name in _CA_VARIABLES if environment.get(name)), None)


def without_signature(text: str) -> str:
    """The text with the signature of every SAS in it blotted out."""
    return _SIGNATURE.sub(r"\1REDACTED", text)


def without_query(url: str) -> str:
    """A URL that is safe to show: its query holds the SAS, its user information may hold a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True, kw_only=True)
class Codes:
    """The failure codes of one kind of transfer."""

    phase: str
    denied: str
    missing: str
    timed_out: str
    other: str


BLOB_DOWNLOAD = Codes(
    phase="preprocessing",
    denied="BlobAccessDenied",
    missing="BlobNotFound",
    timed_out="BlobDownloadTimedOut",
    other="BlobDownloadMiscError",
)
CONTAINER_DOWNLOAD = Codes(
    phase="preprocessing",
    denied="ResourceContainerAccessDenied",
    missing="ResourceContainerListMiscError",
    timed_out="BlobDownloadTimedOut",
    other="BlobDownloadMiscError",
)
UPLOAD = Codes(
    phase="upload",
    denied="FileUploadAccessDenied",
    missing="FileUploadContainerNotFound",
    timed_out="FileUploadMiscError",
    other="FileUploadMiscError",
)


def storage_failure(error: AzureError, codes: Codes, *, url: str, path: str) -> Failure:
    """Say a storage error in the service's codes. 401, 403 and 404 are the user's, the rest is not."""
    status = error.status_code if isinstance(error, HttpResponseError) else None
    reason = getattr(error, "error_code", None) or type(error).__name__
    category = FailureCategory.USER_ERROR
    if status in {401, 403} or (status == 409 and reason == "PublicAccessNotPermitted"):
        code, message = codes.denied, "access was denied by the storage service"
    elif status == 404:
        code, message = codes.missing, "it was not found"
    else:
        category = FailureCategory.SERVER_ERROR
        if isinstance(error, ServiceRequestTimeoutError | ServiceResponseTimeoutError):
            code, message = codes.timed_out, "it took too long"
        else:
            code, message = codes.other, _cause(error)
    return Failure(
        category=category,
        code=code,
        message=f"{path}: {message} ({without_query(url)})",
        phase=codes.phase,
        details=(("FilePath", path), ("Url", without_query(url)), ("StorageError", str(reason))),
    )


def _cause(error: AzureError) -> str:
    """What happened, in our words: the client's own messages can hold the whole URL, signature included."""
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        return f"the storage service answered {error.status_code}"
    if isinstance(error.inner_exception, ssl.SSLError) or "certificate" in str(error).lower():
        return "the storage service's certificate is not trusted"
    return "the storage service could not be reached"
