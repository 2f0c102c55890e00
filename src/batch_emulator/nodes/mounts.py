"""What a sandbox's file system is made of, in order, and how it is composed for one run.

The plan is data; the drivers turn it into arguments of bwrap or into mounts of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from batch_emulator.nodes.layout import NODE_ROOT, WORKING_DIRECTORY, VisiblePath

_SKELETON = Path(__file__).parent / "skeleton"
_SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM = ("/usr", *_SYSTEM_LINKS)
_ETC = (
    "alternatives",
    "ca-certificates",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "os-release",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl",
)
_PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108 - inside the sandbox, where they are its own
_DEFAULT_SHM_BYTES = 64 * 1024**2  # as Docker's


class MountError(ValueError):
    """A path cannot be mounted into a sandbox safely."""


@dataclass(frozen=True, kw_only=True)
class Bind:
    """A path of this machine at `target`; `source` holds no links. Never with devices or set-uid programs."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, kw_only=True)
class Symlink:
    """A symbolic link at `target`."""

    target: str
    to: str


@dataclass(frozen=True, kw_only=True)
class Tmpfs:
    """An empty private directory in memory; `size` in bytes, None for the kernel's default."""

    target: str
    mode: int = 0o1777
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class Proc:
    """A fresh /proc of the sandbox's own PID namespace."""

    target: str = "/proc"


@dataclass(frozen=True, kw_only=True)
class Dev:
    """A minimal /dev: null, zero, full, random, urandom, tty, pts."""

    target: str = "/dev"


Mount = Bind | Symlink | Tmpfs | Proc | Dev


@dataclass(frozen=True, kw_only=True)
class SandboxView:
    """What one run shall see: its part of the node, paths of this machine to read, and sizes.

    `shm_size` is in bytes, None for the default.
    """

    node_root: Path
    task_path: str
    visible: Sequence[VisiblePath]
    read_only_paths: Sequence[Path] = ()
    host_network: bool = True
    shm_size: int | None = None


def sandbox_mounts(view: SandboxView) -> tuple[Mount, ...]:
    """The whole file system of one run, in order. MountError if it would show more than it should."""
    machine = (
        *system_mounts(host_network=view.host_network),
        shared_memory(view.shm_size),
        *read_only_mounts((*interpreter_paths(), *view.read_only_paths)),
    )
    root = view.node_root.resolve()
    for mount in machine:
        if isinstance(mount, Bind) and root.is_relative_to(mount.source):
            raise MountError(f"the node directory {root} lies in {mount.source}, which every task can read")
    return (*machine, *task_mounts(view.node_root, view.task_path, view.visible))


def system_mounts(*, host_network: bool) -> tuple[Mount, ...]:
    """The read-only system of this machine, with only those parts of /etc that programs need to run.

    With the host's network the sandbox also gets its name resolution; without, only `localhost`.
    """
    mounts: list[Mount] = [bind("/usr", "/usr")]
    for link in map(Path, _SYSTEM_LINKS):
        if link.is_symlink():
            mounts.append(Symlink(target=str(link), to=str(link.readlink())))
        elif link.is_dir():
            mounts.append(bind(str(link), str(link)))
    mounts += [
        Proc(),
        Dev(),
        *(Tmpfs(target=target) for target in _PRIVATE),
        Tmpfs(target="/run", mode=0o755),
    ]
    mounts += [bind(f"/etc/{name}", f"/etc/{name}") for name in _ETC if Path("/etc", name).exists()]
    mounts += [bind(str(_SKELETON / name), f"/etc/{name}") for name in ("passwd", "group", "nsswitch.conf")]
    hosts = "/etc/hosts" if host_network and Path("/etc/hosts").exists() else str(_SKELETON / "hosts")
    mounts.append(bind(hosts, "/etc/hosts"))
    if host_network and Path("/etc/resolv.conf").exists():
        mounts.append(bind("/etc/resolv.conf", "/etc/resolv.conf"))
    # Numerical libraries ask it for the number of processors and their caches.
    if Path("/sys/devices/system").is_dir():
        mounts.append(bind("/sys/devices/system", "/sys/devices/system"))
    return tuple(mounts)


def interpreter_paths() -> tuple[Path, ...]:
    """What the running Python needs: its prefixes, all links to its binary, and this distribution."""
    paths = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix), Path(sys.base_exec_prefix)]
    hop = Path(sys.executable)
    paths.append(hop)
    while os.path.islink(hop):  # noqa: PTH114 - Path.is_symlink raises where a directory must not be searched
        hop = hop.parent / hop.readlink()
        paths.append(hop)
    paths.append(Path(__file__).parents[2])
    return tuple(paths)


def read_only_mounts(paths: Iterable[Path]) -> tuple[Bind, ...]:
    """Bind paths read-only where they are, and where their links lead; what lies in another one is left out.

    Paths that do not exist or cannot be reached are left out as well: the program that misses one says so.
    """
    targets: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)
        if os.access(real, os.R_OK) and real != "/":
            targets.update((os.path.abspath(path), real))  # noqa: PTH100 - its links are to be kept
    kept: list[Bind] = []
    for target in sorted(targets):
        seen = (*_SYSTEM, *(other.target for other in kept))
        if not any(target == other or target.startswith(other + "/") for other in seen):
            kept.append(Bind(source=os.path.realpath(target), target=target))
    return tuple(kept)


def task_mounts(node_root: Path, task_path: str, visible: Sequence[VisiblePath]) -> tuple[Mount, ...]:
    """The node as one task sees it, below `NODE_ROOT`.

    A directory that was selected and does not exist (no preparation task ran) is left out. Where the task's
    own directory is out of sight, the working directory is an empty private one. MountError if a path below
    the node root has been replaced by a link.
    """
    root = node_root.resolve(strict=True)
    working_directory = f"{NODE_ROOT}/{task_path}/{WORKING_DIRECTORY}"
    mounts: list[Mount] = []
    for part in visible:
        source = root / part.path
        if not source.exists():
            continue
        if source.resolve() != source:
            raise MountError(f"{part.path} on the node is a symbolic link, so it is not mounted")
        target = f"{NODE_ROOT}/{part.path}" if part.path else NODE_ROOT
        mounts.append(Bind(source=str(source), target=target, read_only=part.read_only))
    seen = (mount.target for mount in mounts if isinstance(mount, Bind))
    if not any(working_directory.startswith(target + "/") for target in seen):
        mounts.append(Tmpfs(target=working_directory))
    return tuple(mounts)


def shared_memory(size: int | None) -> Tmpfs:
    """The sandbox's /dev/shm of `size` bytes (64 MiB by default, as a container has)."""
    return Tmpfs(target="/dev/shm", size=size or _DEFAULT_SHM_BYTES)  # noqa: S108 - a path inside the sandbox


def bind(source: str, target: str) -> Bind:
    """Bind a path of this machine read-only, with the links of the source resolved."""
    return Bind(source=str(Path(source).resolve()), target=target)
