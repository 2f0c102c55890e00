"""Attacks on what other tasks left on the node."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hastegeo.workflows.probe.findings import (
    Attack,
    Finding,
    allowed,
    denied,
    errno_name,
    failed,
    no_file_or_failed,
)

_NODE_ROOT: Final = "/mnt/batch/tasks"
_MAX_FILES: Final = 20_000
_MAX_BYTES: Final = 1024 * 1024


def attack_file(attack: Attack) -> Finding:
    """Read one file, or look for those of other tasks.

    With `path` (absolute, or below the node's root) that file is read. Without, every task directory under
    the node's root but this task's own is searched. `marker_sha256` is the hash of a line that the victim
    wrote; the line itself is not in the plan, so that the plan cannot be mistaken for it.
    """
    marker = attack.optional_text("marker_sha256")
    path = attack.optional_text("path")
    if path is not None:
        return _read_one(Path(os.environ.get("AZ_BATCH_NODE_ROOT_DIR", _NODE_ROOT)) / path, marker)
    root = attack.optional_text("root") or os.environ.get("AZ_BATCH_NODE_ROOT_DIR") or _NODE_ROOT
    own = os.environ.get("AZ_BATCH_TASK_DIR")
    return _search(Path(root) / "workitems", None if own is None else Path(own), marker)


def _read_one(path: Path, marker: str | None) -> Finding:
    try:
        content = _read(path)
    except OSError as error:
        return no_file_or_failed(error)
    if marker is not None and not _holds(content, marker):
        return failed(f"read {len(content)} bytes, and the marker is not among them")
    return allowed(f"read {len(content)} bytes")


def _search(root: Path, own: Path | None, marker: str | None) -> Finding:
    own_real = None if own is None else own.resolve()
    if own_real is not None and root.resolve() not in own_real.parents:
        return failed(f"this task's own directory is not below {root}, so this is the wrong place to look")
    try:
        directories = list(_task_directories(root))
    except OSError as error:
        return no_file_or_failed(error)
    readable = [path for path in directories if os.access(path, os.R_OK | os.X_OK)]
    others = [path for path in readable if path.resolve() != own_real]
    seen = f"{len(readable)} readable task {'directory' if len(readable) == 1 else 'directories'}"
    if not others:
        return denied(f"marker not found in {seen}, this task's own" if own else f"nothing in {seen}")
    refusals: set[str] = set()
    contents = 0
    for path in _files(others):
        try:
            content = _read(path)
        except OSError as error:
            refusals.add(errno_name(error))
            continue
        contents += 1
        if marker is None or _holds(content, marker):
            return allowed(f"read {path.relative_to(root)} of another task")
    if contents:
        # The victim's directory may be gone or on another node. That others can be read is no denial, and
        # that the marker was not found is no success.
        return failed(f"read {contents} files of other tasks, and the marker was not among them")
    if refusals:
        return denied(
            f"{', '.join(sorted(refusals))} for every file in {len(others)} directories of other tasks"
        )
    return failed(f"listed {len(others)} empty directories of other tasks")


def _task_directories(root: Path) -> Iterator[Path]:
    """Yield `{root}/{job}/{job-1}/{task}`; only the root itself must be readable."""
    for job in sorted(root.iterdir()):
        for run in _subdirectories(job):
            yield from _subdirectories(run)


def _subdirectories(path: Path) -> list[Path]:
    try:
        return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink())
    except OSError:
        return []


def _files(directories: list[Path]) -> Iterator[Path]:
    count = 0
    for directory in directories:
        for folder, _, names in os.walk(directory):
            for name in names:
                count += 1
                if count > _MAX_FILES:
                    return
                yield Path(folder) / name


def _read(path: Path) -> bytes:
    # Neither waiting for a pipe nor following a link that the victim did not write.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise IsADirectoryError(21, "not a file")
        return stream.read(_MAX_BYTES)


def _holds(content: bytes, marker_sha256: str) -> bool:
    return any(
        hashlib.sha256(line.strip()).hexdigest() == marker_sha256.lower()
        for line in (content, *content.splitlines())
    )
