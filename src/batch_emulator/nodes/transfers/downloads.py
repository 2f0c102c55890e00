"""Downloads a task's resource files into its working directory, before the program starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from azure.core.exceptions import AzureError
from azure.storage.blob import BlobClient, ContainerClient

from batch_emulator.nodes.beneath import (
    create_file,
    make_directories,
    open_directory,
    open_root,
    opened,
    split_relative,
)
from batch_emulator.nodes.contract import Failure, ResourceFile
from batch_emulator.nodes.failures import file_failure, user_failure
from batch_emulator.nodes.layout import WORKING_DIRECTORY
from batch_emulator.nodes.transfers.storage import (
    BLOB_DOWNLOAD,
    CONTAINER_DOWNLOAD,
    Codes,
    TransferError,
    Transfers,
    storage_failure,
    without_query,
)

_DEFAULT_MODE = "0770"
_DIRECTORY_MODE = 0o770


def download_resource_files(transfers: Transfers, files: Iterable[ResourceFile]) -> None:
    """Download every resource file. TransferError on the first that fails, `Cancelled` when told to stop.

    A file goes to its `file_path`, a container's blobs keep their names below it. Whatever a blob is called,
    it is written below the working directory or not at all.
    """
    parts = (*split_relative(transfers.task_path), WORKING_DIRECTORY)
    with (
        opened(open_root(transfers.node_root)) as root,
        opened(open_directory(root, parts)) as working_directory,
    ):
        for file in files:
            transfers.check()
            if file.http_url is not None:
                _download_url(transfers, working_directory, file, file.http_url)
            elif file.storage_container_url is not None:
                _download_container(transfers, working_directory, file, file.storage_container_url)
            else:
                raise TransferError(_invalid(file.file_path or "", "the resource file names no source"))


def _download_url(transfers: Transfers, directory: int, file: ResourceFile, url: str) -> None:
    path = file.file_path or ""
    parts = _checked(path)
    try:
        client = BlobClient.from_blob_url(url, **transfers.client_options())
    except ValueError:
        raise TransferError(_invalid(path, f"not a URL of a blob: {without_query(url)}")) from None
    with client:
        _save(transfers, directory, client, parts, file, codes=BLOB_DOWNLOAD, url=url)


def _download_container(transfers: Transfers, directory: int, file: ResourceFile, url: str) -> None:
    below = _checked(file.file_path) if file.file_path not in {None, "", ".", "./"} else ()
    try:
        container = ContainerClient.from_container_url(url, **transfers.client_options())
    except ValueError:
        raise TransferError(
            _invalid(file.file_path or "", f"not a URL of a container: {without_query(url)}")
        ) from None
    with container:
        try:
            names = [
                blob.name
                for blob in container.list_blobs(name_starts_with=file.blob_prefix)
                if not blob.name.endswith("/")  # the marker of an empty directory
            ]
        except AzureError as error:
            path = file.blob_prefix or "."
            raise TransferError(storage_failure(error, CONTAINER_DOWNLOAD, url=url, path=path)) from None
        for name in names:
            transfers.check()
            parts = (*below, *_checked(name))
            _save(
                transfers,
                directory,
                container.get_blob_client(name),
                parts,
                file,
                codes=CONTAINER_DOWNLOAD,
                url=url,
            )


def _checked(path: str | None) -> tuple[str, ...]:
    try:
        return split_relative(path or "")
    except ValueError:
        message = "a resource file must lie below the task's working directory"
        raise TransferError(_invalid(path or "", message)) from None


def _invalid(path: str, message: str) -> Failure:
    return user_failure(
        "ResourceFileWriteFailed",
        f"{path!r}: {message}",
        phase="preprocessing",
        details=(("FilePath", path),),
    )


def _save(
    transfers: Transfers,
    directory: int,
    client: BlobClient,
    parts: Sequence[str],
    file: ResourceFile,
    *,
    codes: Codes,
    url: str,
) -> None:
    path = "/".join(parts)
    try:
        mode = int(file.file_mode or _DEFAULT_MODE, 8) & 0o777
    except ValueError:
        raise TransferError(_invalid(path, f"file mode {file.file_mode!r} is not octal")) from None
    try:
        chunks = client.download_blob().chunks()
        os.close(make_directories(directory, parts[:-1], mode=_DIRECTORY_MODE, owner=transfers.owner))
        descriptor = create_file(directory, parts, mode=mode, owner=transfers.owner)
        with os.fdopen(descriptor, "wb") as target:
            for chunk in chunks:
                transfers.check()
                target.write(chunk)
    except AzureError as error:
        raise TransferError(storage_failure(error, codes, url=url, path=path)) from None
    except OSError as error:
        raise TransferError(file_failure(error, path=path)) from error
