"""What keeps one task from another on a shared node: the container's options.

A Linux container task mounts the whole node root by default, with every retained task's directory in it.
https://learn.microsoft.com/azure/batch/batch-docker-container-workloads
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from azure.batch import models

from hastegeo.errors import InputError
from hastegeo.settings import Settings

_ALLOWED_FLAGS: Final = frozenset({"--init", "--read-only"})
_ALLOWED_VALUES: Final = frozenset(
    {
        "--cpus",
        "--hostname",
        "--memory",
        "--memory-swap",
        "--pids-limit",
        "--shm-size",
        "--stop-timeout",
        "--ulimit",
    }
)
_VALUE: Final = re.compile(r"[A-Za-z0-9._:=-]+")


def run_options(settings: Settings, extra: Iterable[str]) -> str:
    """Return the container run options: the hardening, and the caller's own from an allow-list.

    Raises `InputError` for an option that is not on the list: it could undo the isolation. GPUs need none,
    for Batch adds them itself.
    """
    options = ["--cap-drop=ALL", *(f"--cap-add={name}" for name in settings.task_capabilities)]
    options.append("--security-opt=no-new-privileges")
    chosen = [_checked(option) for option in extra]
    if not any(option.startswith("--shm-size=") for option in chosen):
        options.append(f"--shm-size={settings.shm_size}")
    return " ".join([*options, *chosen])


def bind_mounts(settings: Settings) -> list[models.ContainerHostBatchBindMountEntry] | None:
    """Return what of the node the container sees: the task's own directory.

    None (widened) is the whole node root.
    """
    if settings.task_mounts_all:
        return None
    return [
        models.ContainerHostBatchBindMountEntry(source=models.ContainerHostDataPath.TASK, is_read_only=False)
    ]


def user_identity(settings: Settings) -> models.UserIdentity:
    """Return the user a task runs as: without administrator rights, and its own unless widened."""
    scope = models.AutoUserScope.POOL if settings.task_pool_user else models.AutoUserScope.TASK
    return models.UserIdentity(
        auto_user=models.AutoUserSpecification(scope=scope, elevation_level=models.ElevationLevel.NON_ADMIN)
    )


def _checked(option: str) -> str:
    name, separator, value = option.partition("=")
    if option in _ALLOWED_FLAGS or (separator and name in _ALLOWED_VALUES and _VALUE.fullmatch(value)):
        return option
    raise InputError(
        f"The container option {option!r} is not allowed.",
        hint=(
            f"Allowed are {', '.join(sorted(_ALLOWED_FLAGS))}, "
            f"and with =VALUE: {', '.join(sorted(_ALLOWED_VALUES))}."
        ),
    )
