"""File operations below a directory that a task may have filled with anything.

A task can leave symbolic links, deep trees, unreadable directories and special files behind. These functions
open every path component by itself and never follow a link out of the root, so that they cannot be led
elsewhere, not even while another task is changing the tree.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Appending, so that a program which opens its standard output again does not write over what is there.
_CREATE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40


def split_relative(path: str) -> tuple[str, ...]:
    """Split a relative path into components; ValueError if it is absolute, empty, or leads upwards."""
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    if path.startswith("/") or not parts or ".." in parts or "\0" in path:
        raise ValueError(f"not a path below the directory: {path!r}")
    return parts


@contextmanager
def opened(descriptor: int) -> Iterator[int]:
    """Close the descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_root(root: Path) -> int:
    """Open a directory of the agent's own; links in `root` itself are the owner's business and followed."""
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_directory(root: int, parts: Sequence[str]) -> int:
    """Open the directory at `parts` below `root`. OSError where a component is a link or a file."""
    current = os.open(".", _DIRECTORY, dir_fd=root)
    for part in parts:
        with opened(current):
            current = os.open(part, _DIRECTORY, dir_fd=current)
    return current


def make_directories(root: int, parts: Sequence[str], *, mode: int, owner: int | None = None) -> int:
    """Like `open_directory`, creating what is missing with `mode` and, if given, `owner` (user and group)."""
    current = os.open(".", _DIRECTORY, dir_fd=root)
    for part in parts:
        with opened(current):
            created = False
            with suppress(FileExistsError):
                os.mkdir(part, mode, dir_fd=current)
                created = True
            current = os.open(part, _DIRECTORY, dir_fd=current)
        if created:
            # mkdir's mode is cut by the umask.
            os.fchmod(current, mode)
            if owner is not None:
                os.fchown(current, owner, owner)
    return current


def create_file(root: int, parts: Sequence[str], *, mode: int, owner: int | None = None) -> int:
    """Create a file in an existing directory, replacing a file or link, and open it for writing."""
    with opened(open_directory(root, parts[:-1])) as directory:
        with suppress(FileNotFoundError):
            os.unlink(parts[-1], dir_fd=directory)
        descriptor = os.open(parts[-1], _CREATE, 0o600, dir_fd=directory)
    try:
        if owner is not None:
            os.fchown(descriptor, owner, owner)
        os.fchmod(descriptor, mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def open_file(root: int, parts: Sequence[str]) -> int:
    """Open a regular file for reading. OSError for anything else (a link, a directory, a pipe, a device)."""
    with opened(open_directory(root, parts[:-1])) as directory:
        descriptor = os.open(parts[-1], _READ, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", "/".join(parts))
    return descriptor


def resolve_links(root: int, parts: Sequence[str], *, seen_as: str) -> tuple[str, ...]:
    """Follow the links in `parts` while they stay below `root`, which the task sees as the path `seen_as`.

    OSError ELOOP if a link leads out of the root, or round in a circle.
    """
    pending = list(reversed(parts))
    resolved: list[str] = []
    links = 0
    while pending:
        part = pending.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            if not resolved:
                raise OSError(errno.ELOOP, "the link leads out of the task's directory", "/".join(parts))
            resolved.pop()
            continue
        with opened(open_directory(root, resolved)) as directory:
            if not stat.S_ISLNK(os.lstat(part, dir_fd=directory).st_mode):
                resolved.append(part)
                continue
            target = os.readlink(part, dir_fd=directory)
        links += 1
        if target.startswith("/"):
            inside = target == seen_as or target.startswith(seen_as + "/")
            resolved.clear()
            target = target[len(seen_as) :]
        else:
            inside = True
        if not inside or links > _MAX_LINKS:
            raise OSError(errno.ELOOP, "the link leads out of the task's directory", "/".join(parts))
        pending.extend(reversed(target.split("/")))
    return tuple(resolved)


def walk(root: int) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield every file and link below `root`, in sorted order, as (path components, whether it is a link).

    Directories that cannot be read are skipped, special files too.
    """
    stack: list[tuple[str, ...]] = [()]
    while stack:
        here = stack.pop()
        try:
            directory = open_directory(root, here)
        except OSError:
            continue
        with opened(directory), os.scandir(directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
            for entry in found:
                if entry.is_symlink() or entry.is_file(follow_symlinks=False):
                    yield (*here, entry.name), entry.is_symlink()
            stack.extend((*here, e.name) for e in reversed(found) if e.is_dir(follow_symlinks=False))


def remove_tree(parent: int, name: str) -> None:
    """Delete `name` in the directory `parent`, whatever it is and however deep; nothing if it is not there.

    Deep trees are flattened first (each directory is moved up into the top one), so that neither the stack
    nor the number of open files grows with the depth.
    """
    try:
        if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
            os.unlink(name, dir_fd=parent)
            return
    except FileNotFoundError:
        return
    with opened(_open_to_empty(parent, name)) as top:
        numbers = itertools.count()
        while directories := _empty_of_files(top):
            for directory in directories:
                with opened(_open_to_empty(top, directory)) as child:
                    for grandchild in _empty_of_files(child):
                        _make_movable(child, grandchild)
                        os.rename(grandchild, _free_name(top, numbers), src_dir_fd=child, dst_dir_fd=top)
                os.rmdir(directory, dir_fd=top)
    os.rmdir(name, dir_fd=parent)


def _empty_of_files(directory: int) -> list[str]:
    """Delete everything in the directory except the directories, whose names are returned."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if not is_directory:
            os.unlink(name, dir_fd=directory)
    return [name for name, is_directory in found if is_directory]


def _open_to_empty(parent: int, name: str) -> int:
    """Open a directory, giving its owner the rights to empty it where they are missing."""
    _make_movable(parent, name)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _make_movable(parent: int, name: str) -> None:
    """Give a directory mode 0700: moving it to another parent needs the right to write in it."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    with opened(handle):
        if stat.S_IMODE(os.fstat(handle).st_mode) & 0o700 != 0o700:
            # By the descriptor, for a path could be replaced by a link in the meantime.
            Path(f"/proc/self/fd/{handle}").chmod(0o700)


def _free_name(directory: int, numbers: Iterator[int]) -> str:
    while True:
        name = f".removing-{next(numbers)}"
        try:
            os.lstat(name, dir_fd=directory)
        except FileNotFoundError:
            return name
