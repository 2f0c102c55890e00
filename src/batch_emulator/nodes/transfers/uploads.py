"""Uploads a task's output files after its program has ended."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, BinaryIO, cast

from azure.core.exceptions import AzureError
from azure.storage.blob import ContainerClient

from batch_emulator.nodes.beneath import (
    create_file,
    open_directory,
    open_file,
    open_root,
    opened,
    resolve_links,
    split_relative,
    walk,
)
from batch_emulator.nodes.contract import Failure, OutputFile
from batch_emulator.nodes.failures import user_failure
from batch_emulator.nodes.layout import WORKING_DIRECTORY
from batch_emulator.nodes.transfers.globs import Pattern, PatternError, parse_pattern
from batch_emulator.nodes.transfers.storage import (
    UPLOAD,
    Cancelled,
    Transfers,
    storage_failure,
    without_query,
)

UPLOAD_OUT = "fileuploadout.txt"
UPLOAD_ERR = "fileuploaderr.txt"

_CONDITIONS: Mapping[str, frozenset[bool]] = {
    "tasksuccess": frozenset({True}),
    "taskfailure": frozenset({False}),
    "taskcompletion": frozenset({True, False}),
}


@dataclass
class _Report:
    """What is written to the two upload files in the task's directory; no signature ever gets in."""

    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    failure: Failure | None = None

    def say(self, text: str) -> None:
        self.out.append(f"{_now()} {text}\n")

    def fail(self, failure: Failure) -> None:
        self.err.append(f"{_now()} {failure.code}: {failure.message}\n")
        self.failure = self.failure or failure


def upload_output_files(
    transfers: Transfers, files: Iterable[OutputFile], *, succeeded: bool
) -> Failure | None:
    """Upload every output file whose condition is met; return the first failure, after trying the others too.

    A pattern that matches nothing is no failure. Links are followed only inside of the task's directory.
    """
    due = [file for file in files if succeeded in _CONDITIONS[file.condition.lower()]]
    if not due:
        return None
    report = _Report()
    with (
        opened(open_root(transfers.node_root)) as root,
        opened(open_directory(root, split_relative(transfers.task_path))) as task,
    ):
        try:
            for file in due:
                _upload_matches(transfers, task, file, report)
        except Cancelled:
            report.say("ended by request")
        for name, lines in ((UPLOAD_OUT, report.out), (UPLOAD_ERR, report.err)):
            with os.fdopen(create_file(task, (name,), mode=0o660, owner=transfers.owner), "w") as target:
                target.writelines(lines)
    return report.failure


def _upload_matches(transfers: Transfers, task: int, file: OutputFile, report: _Report) -> None:
    try:
        pattern = parse_pattern(
            file.file_pattern,
            environment=transfers.environment,
            task_directory=transfers.seen_as,
            working_directory=f"{transfers.seen_as}/{WORKING_DIRECTORY}",
        )
        client = ContainerClient.from_container_url(file.container_url, **transfers.client_options())
    except PatternError as error:
        report.fail(_misc_failure(file, str(error)))
        return
    except ValueError:
        report.fail(_misc_failure(file, f"not a URL of a container: {without_query(file.container_url)}"))
        return
    with client:
        matched = list(_matches(transfers, task, pattern, report))
        if not matched:
            report.say(f"{file.file_pattern}: no file matches")
        for path, source in matched:
            transfers.check()
            _upload_one(transfers, task, client, file, pattern, path, source, report)


def _matches(
    transfers: Transfers, task: int, pattern: Pattern, report: _Report
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield (path, path with links followed) of the files that match."""
    candidates = [(pattern.components, True)] if pattern.is_literal else walk(task)
    for path, may_be_link in candidates:
        if not (pattern.is_literal or pattern.matches(path)):
            continue
        if not may_be_link:
            yield path, path
            continue
        try:
            source = resolve_links(task, path, seen_as=transfers.seen_as)
            os.close(open_file(task, source))
        except FileNotFoundError:
            continue
        except OSError as error:
            report.say(f"{'/'.join(path)}: left out: {error.strerror}")
            continue
        yield path, source


def _upload_one(
    transfers: Transfers,
    task: int,
    client: ContainerClient,
    file: OutputFile,
    pattern: Pattern,
    path: Sequence[str],
    source: Sequence[str],
    report: _Report,
) -> None:
    shown = "/".join(path)
    blob = _blob_name(file, pattern, path)
    try:
        with os.fdopen(open_file(task, source), "rb") as content:
            size = os.fstat(content.fileno()).st_size
            # The client only ever calls `read`.
            stream = cast("IO[bytes]", _Stoppable(transfers, content))
            client.upload_blob(blob, stream, length=size, overwrite=True)
    except AzureError as error:
        report.fail(storage_failure(error, UPLOAD, url=file.container_url, path=shown))
    except OSError as error:
        report.fail(_misc_failure(file, f"{shown}: {error.strerror}"))
    else:
        report.say(f"{shown}: uploaded {size} bytes as {blob} to {without_query(file.container_url)}")


def _blob_name(file: OutputFile, pattern: Pattern, path: Sequence[str]) -> str:
    """`path` is the blob's name for one file and a prefix for a pattern; without it the file's name stays."""
    below = path[-1] if pattern.is_literal else pattern.below_base(path)
    prefix = (file.path or "").strip("/")
    if pattern.is_literal:
        return prefix or below
    return f"{prefix}/{below}" if prefix else below


class _Stoppable:
    """A file being uploaded that stops when the run is told to."""

    def __init__(self, transfers: Transfers, content: BinaryIO) -> None:
        self._transfers = transfers
        self._content = content

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        self._transfers.check()
        return self._content.read(size)


def _misc_failure(file: OutputFile, message: str) -> Failure:
    details = (("FilePattern", file.file_pattern),)
    return user_failure("FileUploadMiscError", message, phase="upload", details=details)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
