"""Inputs from and outputs to blob storage, by the rules of Batch's resource and output files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobClient, ContainerClient

_WILDCARDS: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One input. `url` is of a blob if `is_blob`, else of a container; it may hold a signature."""

    url: str
    is_blob: bool
    prefix: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One output pattern.

    `url` is of a container and may hold a signature. `condition` is an `OutputCondition`.
    """

    pattern: str
    url: str
    path: str | None
    condition: str


class TransferError(Exception):
    """A transfer that failed, with the code that Batch gives for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def download(item: Download, target: Path) -> None:
    """Fetch an input below `target`. Raises `TransferError`."""
    try:
        if item.is_blob:
            with BlobClient.from_blob_url(item.url, credential=_credential(item.url)) as blob:
                _fetch(blob, _inside(target, item.path or blob.blob_name))
            return
        with ContainerClient.from_container_url(item.url, credential=_credential(item.url)) as container:
            for name in container.list_blob_names(name_starts_with=item.prefix):
                if not name.endswith("/"):
                    _fetch(container.get_blob_client(name), _inside(target, f"{item.path or '.'}/{name}"))
    except ResourceNotFoundError:
        raise TransferError("BlobNotFound", "The input does not exist.") from None
    except HttpResponseError as error:
        if error.status_code in {401, 403}:
            code = "BlobAccessDenied" if item.is_blob else "ResourceContainerAccessDenied"
            raise TransferError(code, "Access to the input was denied.") from None
        raise TransferError("BlobDownloadMiscError", f"The input failed: HTTP {error.status_code}.") from None
    except AzureError as error:
        raise TransferError("BlobDownloadMiscError", f"The input failed: {type(error).__name__}.") from None


def upload(item: Upload, working_directory: Path) -> None:
    """Send the files that match. No match is no error. Raises `TransferError`."""
    try:
        with ContainerClient.from_container_url(item.url, credential=_credential(item.url)) as container:
            for file, name in matches(item.pattern, item.path, working_directory):
                with file.open("rb") as data:
                    container.upload_blob(name, data, overwrite=True)
    except ResourceNotFoundError:
        raise TransferError("FileUploadContainerNotFound", "The output container does not exist.") from None
    except HttpResponseError as error:
        if error.status_code in {401, 403}:
            raise TransferError("FileUploadAccessDenied", "Access to the output was denied.") from None
        raise TransferError("FileUploadMiscError", f"The upload failed: HTTP {error.status_code}.") from None
    except AzureError as error:
        raise TransferError("FileUploadMiscError", f"The upload failed: {type(error).__name__}.") from None


def matches(pattern: str, path: str | None, working_directory: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files that a pattern matches, each with the name of its blob, sorted.

    Wildcards are `*`, `**` (any folders), `?`, `[abc]` and `[!abc]`; files and folders whose names start
    with a dot are left out. Without a wildcard `path` is the blob's name; with one, it comes before the
    file's path below the part of the pattern that has none.
    """
    parts = PurePosixPath(pattern).parts
    fixed = next((at for at, part in enumerate(parts) if _WILDCARDS.intersection(part)), len(parts))
    root = working_directory.resolve()
    if fixed == len(parts):
        file = working_directory / pattern
        if file.is_file() and file.resolve().is_relative_to(root):
            yield file, path or pattern
        return
    base = working_directory.joinpath(*parts[:fixed])
    wanted = re.compile(_expression(parts[fixed:]))
    for file in sorted(base.rglob("*")):
        name = file.relative_to(base).as_posix()
        hidden = any(part.startswith(".") for part in PurePosixPath(name).parts)
        # A link out of the working directory would upload what is not the task's.
        if not hidden and file.is_file() and file.resolve().is_relative_to(root) and wanted.fullmatch(name):
            yield file, f"{path.rstrip('/')}/{name}" if path else name


def _expression(parts: tuple[str, ...]) -> str:
    folders = ("(?:[^/]+/)*" if part == "**" else f"{_segment(part)}/" for part in parts[:-1])
    return "".join(folders) + (".*" if parts[-1] == "**" else _segment(parts[-1]))


def _segment(part: str) -> str:
    """Translate one path segment; `**` inside a longer segment means the same as `*`."""
    result, at = "", 0
    while at < len(part):
        character = part[at]
        end = part.find("]", at + 2)
        if character == "*":
            result += "[^/]*"
        elif character == "?":
            result += "[^/]"
        elif character == "[" and end > 0:
            inner = part[at + 1 : end].replace("\\", "\\\\")
            result += f"[^/{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
            at = end
        else:
            result += re.escape(character)
        at += 1
    return result


def _fetch(blob: BlobClient, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as sink:
        blob.download_blob().readinto(sink)


def _inside(folder: Path, name: str) -> Path:
    target = folder / name
    if not target.resolve().is_relative_to(folder.resolve()):
        raise TransferError(
            "ResourceFileWriteFailed", f"The input {name!r} would leave the working directory."
        )
    return target


def _credential(url: str) -> DefaultAzureCredential | None:
    """A signed URL is its own credential; a plain one is opened by this machine's identity."""
    return None if "?" in url else DefaultAzureCredential()
