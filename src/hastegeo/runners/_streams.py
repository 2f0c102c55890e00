"""Logs and files of tasks: from blob storage once a task has ended, from its node while it runs."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from azure.batch import BatchClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import ContainerClient

from hastegeo.domain import ContainerAddress, TaskFile, TaskRef, TaskStatus
from hastegeo.errors import InputError, RunnerError
from hastegeo.runners._client import as_runner_error
from hastegeo.runners._definition import log_prefix

_FOLLOW_SECONDS: Final = 1.0
_PAGE: Final = 1000
_PIECE: Final = 4 * 1024 * 1024


class NodeFiles:
    """The files of tasks on their nodes. What is not there (yet, or any more) is None, not an error."""

    def __init__(self, client: BatchClient) -> None:
        self._client = client

    def list(self, ref: TaskRef) -> tuple[TaskFile, ...] | None:
        """Return the files of a task, or None where its node or its directory is gone."""
        try:
            found = list(
                self._client.list_task_files(ref.job_id, ref.task_id, recursive=True, max_results=_PAGE)
            )
        except (ResourceNotFoundError, ResourceExistsError):
            # 404: no such node, task or directory; 409: the node cannot be asked now.
            return None
        except AzureError as error:
            raise as_runner_error(error, f"list the files of {ref}") from None
        return tuple(
            TaskFile(
                path=item.name,
                size=int(item.properties.content_length) if item.properties else 0,
                modified=item.properties.last_modified if item.properties else None,
            )
            for item in sorted(found, key=lambda item: item.name or "")
            if item.name and not item.is_directory
        )

    def size(self, ref: TaskRef, path: str) -> int | None:
        """Return the size of a file in bytes, or None where it cannot be had."""
        try:
            return self._client.get_task_file_properties(ref.job_id, ref.task_id, path).content_length
        except (ResourceNotFoundError, ResourceExistsError):
            return None
        except AzureError as error:
            raise as_runner_error(error, f"read {path} of {ref}") from None

    def read(self, ref: TaskRef, path: str, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of a file from `start` up to, not including, `end`, holding one piece in memory."""
        for begin in range(start, end, _PIECE):
            last = min(begin + _PIECE, end) - 1
            try:
                yield from self._client.download_task_file(
                    ref.job_id, ref.task_id, path, ocp_range=f"bytes={begin}-{last}"
                )
            except HttpResponseError as error:
                # The client takes 200 alone for success, but 206 is what a range is due.
                if error.status_code != 206 or error.response is None:
                    raise as_runner_error(error, f"read {path} of {ref}") from None
                yield getattr(error.response, "content", b"")
            except AzureError as error:
                raise as_runner_error(error, f"read {path} of {ref}") from None


class StoredFiles:
    """What ended tasks left in blob storage. It is read by this process's own identity, not by a grant."""

    def __init__(self, container_url: str, credential: TokenCredential, **client_options: Any) -> None:
        address = ContainerAddress.parse(container_url)
        self._client = ContainerClient(
            address.account_url, address.container, credential=credential, **client_options
        )

    def read(self, blob: str, start: int = 0) -> Iterator[bytes] | None:
        """Return the chunks of a blob from `start` on, or None where there is no such blob."""
        client = self._client.get_blob_client(blob)
        try:
            size = client.get_blob_properties().size
            return client.download_blob(offset=start).chunks() if size > start else iter(())
        except ResourceNotFoundError:
            return None
        except AzureError as error:
            raise RunnerError(f"The stored file {blob} cannot be read: {type(error).__name__}.") from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def logs(self, ref: TaskRef) -> tuple[TaskFile, ...]:
        """Return the stored logs of a task, by the names they had on the node."""
        prefix = f"{log_prefix(ref)}/"
        try:
            found = list(self._client.list_blobs(name_starts_with=prefix))
        except AzureError as error:
            raise RunnerError(f"The stored logs of {ref} cannot be listed: {type(error).__name__}.") from None
        return tuple(
            TaskFile(item.name.removeprefix(prefix), item.size, item.last_modified) for item in found
        )


class TaskStreams:
    """Reads logs and files from where they are.

    `stored` is None in an environment without an output container.
    """

    def __init__(
        self, node: NodeFiles, stored: StoredFiles | None, status: Callable[[TaskRef], TaskStatus]
    ) -> None:
        self._node = node
        self._stored = stored
        self._status = status

    def logs(self, ref: TaskRef, name: str, *, follow: bool) -> Iterator[bytes]:
        """Yield a log; see `Runner.logs`."""
        sent = 0
        while True:
            status = self._status(ref)
            if status.state.is_final:
                yield from self._final(ref, name, sent, started=status.started is not None)
                return
            size = self._node.size(ref, name)
            if size is not None:
                if size < sent:
                    # The task was requeued, and its new run writes the log anew.
                    sent = 0
                for chunk in self._node.read(ref, name, sent, size):
                    sent += len(chunk)
                    yield chunk
            if not follow:
                return
            time.sleep(_FOLLOW_SECONDS)

    def files(self, ref: TaskRef) -> tuple[TaskFile, ...]:
        """Return the files of a task; see `Runner.files`."""
        self._status(ref)  # a task that is not known is an error, not an empty list
        on_node = self._node.list(ref)
        if on_node is not None:
            return on_node
        return self._stored.logs(ref) if self._stored else ()

    def download(self, ref: TaskRef, path: str, target: Path) -> Path:
        """Write a file to `target`; see `Runner.download`."""
        size = self._node.size(ref, path)
        chunks: Iterable[bytes] | None
        if size is not None:
            chunks = self._node.read(ref, path, 0, size)
        else:
            chunks = self._stored.read(f"{log_prefix(ref)}/{path}") if self._stored else None
        if chunks is None:
            raise RunnerError(
                f"Task {ref} has no file {path} that can be had now.",
                hint="List its files; after the node is gone, results are in the task's output container.",
            )
        return write_whole(chunks, target / Path(path).name if target.is_dir() else target)

    def _final(self, ref: TaskRef, name: str, sent: int, *, started: bool) -> Iterator[bytes]:
        stored = self._stored.read(f"{log_prefix(ref)}/{name}", sent) if self._stored else None
        if stored is not None:
            yield from stored
            return
        size = self._node.size(ref, name)
        if size is not None:
            yield from self._node.read(ref, name, sent, size)
        elif started and not sent:
            raise RunnerError(
                f"The log {name} of {ref} is gone with its node.",
                hint="Set AZURE_BATCH_OUTPUT_CONTAINER_URL, so that logs are kept.",
            )


def write_whole(chunks: Iterable[bytes], target: Path) -> Path:
    """Write chunks to a file that appears only when it is whole.

    Raises `InputError` where it cannot be written.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(
            f"{target} cannot be written ({error.strerror}).", hint="Choose another target."
        ) from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(chunks)
        temporary.chmod(0o644)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return target
