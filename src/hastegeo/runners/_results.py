"""What tasks uploaded: found by the outputs in their definitions, read by this process's own identity."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from azure.batch import BatchClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobProperties, ContainerClient

from hastegeo.domain import ContainerAddress, ResultFile, TaskRef
from hastegeo.errors import CredentialError, RunnerError
from hastegeo.runners._client import as_runner_error
from hastegeo.runners._refusals import not_found
from hastegeo.runners._streams import write_whole

_WILDCARDS: Final = frozenset("*?[")


class StoredResults:
    """The uploaded outputs of tasks. Safe to use from several threads."""

    def __init__(self, client: BatchClient, credential: TokenCredential, **client_options: Any) -> None:
        self._client = client
        self._credential = credential
        self._client_options = client_options

    def list(self, ref: TaskRef) -> tuple[ResultFile, ...]:
        """Return what lies now where the task's outputs go, its logs included, sorted.

        An output without a prefix goes to the root of its container, where it cannot be told from anything
        else: it is left out.
        """
        found: dict[tuple[str, str], ResultFile] = {}
        for address, path, is_prefix in self._places(ref):
            for blob in self._blobs(address, path, is_prefix=is_prefix):
                item = ResultFile(address, blob.name, blob.size, blob.last_modified)
                found[address.url, blob.name] = item
        return tuple(found[place] for place in sorted(found))

    def download(self, result: ResultFile, target: Path) -> Path:
        """Write a result to `target` by streaming, and return where; no partial file is left."""
        with self._container(result.container) as container:
            try:
                chunks = container.get_blob_client(result.blob).download_blob().chunks()
                return write_whole(chunks, target / Path(result.blob).name if target.is_dir() else target)
            except AzureError as error:
                raise _unreadable(error, result.container, result.blob) from None

    def _places(self, ref: TaskRef) -> Iterator[tuple[ContainerAddress, str, bool]]:
        try:
            task = self._client.get_task(ref.job_id, ref.task_id, select=["id", "outputFiles"])
        except ResourceNotFoundError:
            raise not_found(ref) from None
        except AzureError as error:
            raise as_runner_error(error, f"read the outputs of {ref}") from None
        for output in task.output_files or ():
            container = output.destination.container if output.destination else None
            if container is not None and container.path:
                # The service answers the URL as it was sent, with its signature.
                address = ContainerAddress.parse(container.container_url.partition("?")[0])
                yield address, container.path, bool(_WILDCARDS.intersection(output.file_pattern))

    def _blobs(self, address: ContainerAddress, path: str, *, is_prefix: bool) -> Iterator[BlobProperties]:
        with self._container(address) as container:
            try:
                if is_prefix:
                    yield from container.list_blobs(name_starts_with=f"{path.rstrip('/')}/")
                else:
                    yield container.get_blob_client(path).get_blob_properties()
            except ResourceNotFoundError:
                return
            except AzureError as error:
                raise _unreadable(error, address, path) from None

    def _container(self, address: ContainerAddress) -> ContainerClient:
        return ContainerClient(
            address.account_url, address.container, credential=self._credential, **self._client_options
        )


def _unreadable(error: AzureError, address: ContainerAddress, path: str) -> CredentialError | RunnerError:
    if isinstance(error, HttpResponseError) and error.status_code in {401, 403}:
        return CredentialError(
            f"This identity may not read {path} in {address.url} (HTTP {error.status_code}).",
            hint=f"Give it the role Storage Blob Data Reader on the account {address.account}.",
        )
    return RunnerError(
        f"{path} in {address.url} cannot be read: {type(error).__name__}.",
        hint="Check the network and the account's rules, then try again.",
    )
