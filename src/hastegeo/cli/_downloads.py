"""Downloading what tasks left: which files, where to, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hastegeo.cli._output import print_json, print_line, print_table, steps
from hastegeo.errors import InputError

if TYPE_CHECKING:
    from hastegeo.domain import TaskRef
    from hastegeo.runners import AzureBatchRunner, Runner


@dataclass(frozen=True, slots=True)
class Remote:
    """A file that can be fetched: its path (on the node, or in the container) and its size in bytes."""

    path: str
    size: int
    modified: datetime | None
    fetch: Callable[[Path], Path]


def files_of(runner: Runner, ref: TaskRef) -> list[Remote]:
    """Return the files on the task's node, or its stored logs where the node is gone."""
    return [
        Remote(item.path, item.size, item.modified, partial(runner.download, ref, item.path))
        for item in runner.files(ref)
    ]


def results_of(runner: AzureBatchRunner, ref: TaskRef) -> list[Remote]:
    """Return what the task uploaded to storage."""
    return [
        Remote(item.blob, item.size, item.modified, partial(runner.download_result, item))
        for item in runner.results(ref)
    ]


def chosen(found: Sequence[Remote], patterns: Sequence[str]) -> list[Remote]:
    """Return the files that match a pattern, or lie below a folder of that name; all without patterns."""
    return [
        item
        for item in found
        if not patterns
        or any(
            fnmatchcase(item.path, pattern) or item.path.startswith(f"{pattern.rstrip('/')}/")
            for pattern in patterns
        )
    ]


def fetch_all(found: Sequence[Remote], folder: Path) -> list[Path]:
    """Download files into a folder, below which they keep their paths, and return where each is.

    Raises `InputError` for a path that would leave the folder, before anything is fetched.
    """
    root = folder.resolve()
    targets = [_inside(root, item.path) for item in found]
    total = sum(item.size for item in found)
    done = 0
    with steps("Downloading", total=total, in_bytes=True) as progress:
        for item, target in zip(found, targets, strict=True):
            progress.say(f"Downloading {item.path}", done=done)
            _make_folder(target.parent)
            item.fetch(target)
            done += item.size
            progress.say(f"Downloaded {item.path} ({item.size:,} bytes)", done=done)
    return targets


def print_remotes(found: Sequence[Remote], targets: Sequence[Path], *, as_json: bool) -> None:
    """Print the files, with where they were put if they were."""
    if as_json:
        places: list[str | None] = [str(target) for target in targets] or [None] * len(found)
        print_json(
            [
                {"path": item.path, "bytes": item.size, "modified": item.modified, "saved": place}
                for item, place in zip(found, places, strict=True)
            ]
        )
    elif targets:
        for target in targets:
            print_line(str(target))
    else:
        print_table(("BYTES", "PATH"), [(f"{item.size:>12,}", item.path) for item in found])


def _inside(root: Path, path: str) -> Path:
    target = (root / path).resolve()
    if not target.is_relative_to(root) or target == root:
        raise InputError(
            f"The task's file {path!r} would be written outside {root}.", hint="Name the files to fetch."
        )
    return target


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The folder {folder} cannot be made ({error.strerror}).", hint="Choose another --to."
        ) from None
