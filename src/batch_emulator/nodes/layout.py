"""The directory layout of a node, and which part of it, and which variables of it, a task gets to see.

The layout and the rule of the bind mounts are Azure's (reference of `containerHostBatchBindMounts`, API
2024-07-01.20.0 and later): a container task sees the whole node root read-write unless it names what it
needs; what it does not name it cannot reach, and the AZ_BATCH_* variables of it are not set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from batch_emulator.nodes.beneath import make_directories, open_root, opened, remove_tree, split_relative
from batch_emulator.nodes.contract import BindMount, Container, TaskLaunch

NODE_ROOT = "/mnt/batch/tasks"
WORKING_DIRECTORY = "wd"
STDOUT = "stdout.txt"
STDERR = "stderr.txt"

_TOP_DIRECTORIES = ("workitems", "shared", "startup", "applications", "fsmounts", "volatile")
_JOB_PREPARATION = "jobpreparation"
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_VARIABLES: Mapping[BindMount, tuple[str, ...]] = {
    BindMount.SHARED: ("AZ_BATCH_NODE_SHARED_DIR",),
    BindMount.STARTUP: ("AZ_BATCH_NODE_STARTUP_DIR",),
    BindMount.VFS_MOUNTS: ("AZ_BATCH_NODE_MOUNTS_DIR",),
    BindMount.TASK: ("AZ_BATCH_TASK_DIR", "AZ_BATCH_TASK_WORKING_DIR"),
    BindMount.JOB_PREP: ("AZ_BATCH_JOB_PREP_DIR", "AZ_BATCH_JOB_PREP_WORKING_DIR"),
    BindMount.APPLICATIONS: (),
}
_APPLICATION_VARIABLE = "AZ_BATCH_APP_PACKAGE_"
_ROOT_VARIABLE = "AZ_BATCH_NODE_ROOT_DIR"


@dataclass(frozen=True, kw_only=True)
class VisiblePath:
    """One directory of the node, by its path relative to the node root ("" is the root itself)."""

    path: str
    read_only: bool


def prepare_node(node_root: Path, *, owner: int | None) -> None:
    """Create the directories of a fresh node; `owner` is the task user, where tasks run as another user.

    Job directories stay the emulator's own: a task may change what is in another task's directory (as on
    Azure, where it is mounted), but cannot put anything in the place of one.
    """
    node_root.mkdir(parents=True, exist_ok=True)
    node_root.chmod(0o755)
    with opened(open_root(node_root)) as root:
        for name in _TOP_DIRECTORIES:
            own = owner if name != "workitems" else None
            os.close(make_directories(root, (name,), mode=0o755, owner=own))


def prepare_task(node_root: Path, task_path: str, *, owner: int | None) -> None:
    """Create the task's directory with an empty working directory, in place of what an earlier run left."""
    parts = split_relative(task_path)
    with (
        opened(open_root(node_root)) as root,
        opened(make_directories(root, parts[:-1], mode=0o755)) as job,
    ):
        remove_tree(job, parts[-1])
        with opened(make_directories(job, parts[-1:], mode=0o770, owner=owner)) as task:
            os.close(make_directories(task, (WORKING_DIRECTORY,), mode=0o770, owner=owner))


def visible_paths(launch: TaskLaunch) -> tuple[VisiblePath, ...]:
    """The parts of the node that the run sees, each mounted at the same place below `NODE_ROOT`."""
    mounts = None if launch.container is None else launch.container.bind_mounts
    if mounts is None:
        return (VisiblePath(path="", read_only=False),)
    paths = {
        BindMount.SHARED: "shared",
        BindMount.STARTUP: "startup",
        BindMount.VFS_MOUNTS: "fsmounts",
        BindMount.TASK: launch.task_path,
        BindMount.JOB_PREP: f"{launch.task_path.rpartition('/')[0]}/{_JOB_PREPARATION}",
        BindMount.APPLICATIONS: "applications",
    }
    return tuple(VisiblePath(path=paths[source], read_only=read_only) for source, read_only in mounts)


def task_environment(
    launch: TaskLaunch, *, image: Mapping[str, str], agent: Mapping[str, str], view: str = NODE_ROOT
) -> dict[str, str]:
    """The program's environment: the task's own variables over the image's, the agent's, and defaults.

    `view` is where the program sees the node root. Where that is not `NODE_ROOT` (plain processes), the
    service's variables are changed to it.
    """
    task_directory = f"{view}/{launch.task_path}"
    working_directory = f"{task_directory}/{WORKING_DIRECTORY}"
    environment = {
        "PATH": _DEFAULT_PATH,
        "LANG": "C.UTF-8",
        "HOME": working_directory,
        _ROOT_VARIABLE: view,
        "AZ_BATCH_NODE_SHARED_DIR": f"{view}/shared",
        "AZ_BATCH_NODE_STARTUP_DIR": f"{view}/startup",
        "AZ_BATCH_NODE_MOUNTS_DIR": f"{view}/fsmounts",
        "AZ_BATCH_TASK_DIR": task_directory,
        "AZ_BATCH_TASK_WORKING_DIR": working_directory,
        **agent,
        **image,
        **{name: _seen_at(name, value, view) for name, value in launch.environment.items()},
    }
    return _without_unselected(environment, launch.container)


def _seen_at(name: str, value: str, view: str) -> str:
    inside = value == NODE_ROOT or value.startswith(NODE_ROOT + "/")
    return view + value[len(NODE_ROOT) :] if name.startswith("AZ_BATCH_") and inside else value


def _without_unselected(environment: Mapping[str, str], container: Container | None) -> dict[str, str]:
    if container is None or container.bind_mounts is None:
        return dict(environment)
    selected = {source for source, _ in container.bind_mounts}
    lost = {_ROOT_VARIABLE}
    for source, names in _VARIABLES.items():
        if source not in selected:
            lost.update(names)
    keep_applications = BindMount.APPLICATIONS in selected
    return {
        name: value
        for name, value in environment.items()
        if name not in lost and (keep_applications or not name.startswith(_APPLICATION_VARIABLE))
    }
