"""Container images as local commands: the table that says what an image runs on this machine.

A sandbox has no image of its own; it sees this machine's system read-only. So each image that tasks may name
is mapped to a command (its entry point), in a TOML file:

    ["haste/imageryprep:latest"]
    command = ["/opt/haste/bin/python", "-m", "hastegeo.workflows.imageryprep"]
    environment = { GDAL_CACHEMAX = "256" }
    read_only_paths = ["/opt/haste"]

The task's command line is split into words and appended, as an entry point takes it. There is no shell, as in
Batch: variables are expanded only by a shell that the command line itself calls.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_KEYS = {"command", "environment", "read_only_paths", "working_directory"}
_SIZE = re.compile(r"(\d+)([bkmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


class ImageTableError(ValueError):
    """The image table cannot be read or is not well formed; the message names the file and the key."""


class RunOptionsError(ValueError):
    """Container run options ask for something that a sandbox does not give."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """What an image is on this machine: its entry point, its variables, and paths it needs to read.

    `working_directory` is used by tasks that ask for `containerImageDefault`.
    """

    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    read_only_paths: tuple[Path, ...] = ()
    working_directory: str = "/"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The container run options that have an effect in a sandbox. `shm_size` is in bytes."""

    shm_size: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImageTable:
    """The images that tasks may name, by name."""

    images: Mapping[str, Image] = field(default_factory=dict)

    def find(self, name: str) -> Image | None:
        """The image of that name; a name without tag or digest means `:latest`."""
        image = self.images.get(name)
        if image is None and ":" not in name.rpartition("/")[2] and "@" not in name:
            image = self.images.get(f"{name}:latest")
        return image


def load_images(path: Path) -> ImageTable:
    """Read an image table; paths in it are relative to the file. ImageTableError says what is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImageTableError(f"cannot read the image table {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ImageTableError(f"the image table {path} is not valid TOML: {error}") from error
    return ImageTable({name: _image(path, name, entry) for name, entry in document.items()})


def _image(path: Path, name: str, entry: object) -> Image:
    where = f'image table {path}, ["{name}"]'
    if not isinstance(entry, dict):
        raise ImageTableError(f"{where}: must be a table")
    if unknown := sorted(set(entry) - _KEYS):
        raise ImageTableError(f"{where}: unknown key {unknown[0]!r} (known: {', '.join(sorted(_KEYS))})")
    environment = entry.get("environment", {})
    if not isinstance(environment, dict) or not all(isinstance(v, str) for v in environment.values()):
        raise ImageTableError(f"{where}: environment must be a table of strings")
    working_directory = entry.get("working_directory", "/")
    if not isinstance(working_directory, str) or not working_directory.startswith("/"):
        raise ImageTableError(f"{where}: working_directory must be an absolute path")
    return Image(
        command=_strings(where, entry, "command"),
        environment=environment,
        read_only_paths=tuple(path.parent.absolute() / p for p in _strings(where, entry, "read_only_paths")),
        working_directory=working_directory,
    )


def _strings(where: str, entry: dict[str, Any], key: str) -> tuple[str, ...]:
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ImageTableError(f"{where}: {key} must be a list of strings")
    return tuple(value)


def parse_run_options(text: str) -> RunOptions:
    """Understand `containerRunOptions`, or refuse them.

    What only takes rights away is accepted, for a sandbox never gives them (`--cap-drop`, `--rm`, `--init`,
    `no-new-privileges`); `--shm-size` and `--env` have their effect. Everything else raises RunOptionsError:
    privileges, host namespaces, mounts, limits that would not be enforced. The service is less strict.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RunOptionsError(f"container run options cannot be split into words: {error}") from error
    shm_size: int | None = None
    environment: dict[str, str] = {}
    while words:
        option, separator, value = words.pop(0).partition("=")
        if option in {"--rm", "--init"} and not separator:
            continue
        if option not in {"--cap-drop", "--security-opt", "--shm-size", "--env", "-e"}:
            raise RunOptionsError(_refusal(option))
        if not separator:
            if not words:
                raise RunOptionsError(f"container run option {option} needs a value")
            value = words.pop(0)
        if option == "--security-opt" and value not in {"no-new-privileges", "no-new-privileges:true"}:
            raise RunOptionsError(_refusal(f"{option}={value}"))
        if option == "--shm-size":
            shm_size = _size(value)
        elif option in {"--env", "-e"}:
            name, has_value, content = value.partition("=")
            if not name or not has_value:
                raise RunOptionsError(f"container run option {option} must be NAME=VALUE")
            environment[name] = content
    return RunOptions(shm_size=shm_size, environment=environment)


def _refusal(option: str) -> str:
    return (
        f"container run option {option} is not given by this emulator's sandboxes; accepted are --cap-drop, "
        "--security-opt=no-new-privileges, --shm-size, --env, --rm and --init"
    )


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise RunOptionsError(f"container run option --shm-size: {text!r} is not a size such as 64m or 2g")
    return int(match[1]) * _UNITS[match[2].lower()]
