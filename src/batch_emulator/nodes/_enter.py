"""Builds a sandbox's file system and becomes another program; what bwrap does, for the `unshare` driver.

Run as `python -I -S _enter.py PROGRAM ARGUMENT...` inside fresh mount, PID, IPC, UTS (and network)
namespaces, with the capabilities to mount in them. The plan is JSON on standard input, which the program
finds rewound: `{"sandbox": {"hostname", "loopback", "mounts": [...]}, ...}`, where each mount is one of

    {"kind": "bind", "source", "target", "read_only"}    {"kind": "symlink", "target", "to"}
    {"kind": "tmpfs", "target", "mode", "size"}          {"kind": "proc" or "dev", "target"}

Mounts are made in order, on an empty root. Nothing of the old root can be reached afterwards, and the new
root directory itself is read-only.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 0x2, 0x4, 0x8
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 0x1, 0x2, 0x4
_SYS_MOUNT_SETATTR = 442  # the same on every architecture of Linux 5.12 and later
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1

# Any directory that exists everywhere: a tmpfs covers it for as long as the new root is being built.
_BASE = Path("/tmp")  # noqa: S108 - a mount point in this process's own namespace, no file is made in /tmp
_OLD = Path("/old")
_NEW = Path("/new")

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Build the file system of the plan, then `exec` the given program."""
    with os.fdopen(0, encoding="utf-8", closefd=False) as source:
        plan = json.load(source)["sandbox"]
    os.lseek(0, 0, os.SEEK_SET)
    socket.sethostname(plan["hostname"])
    if plan["loopback"]:
        _raise_loopback()
    _build(plan["mounts"])
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - becoming another program is the purpose


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _build(mounts: list[dict[str, Any]]) -> None:
    _mount(None, Path("/"), None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", _BASE, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    (_BASE / "old").mkdir()
    (_BASE / "new").mkdir()
    _pivot_root(_BASE, _BASE / "old")
    os.chdir("/")
    _mount("tmpfs", _NEW, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    for mount in mounts:
        _KINDS[mount["kind"]](mount, _NEW / mount["target"].lstrip("/"))
    _restrict(_NEW, _ATTR_RDONLY, recursive=False)
    os.chdir(_NEW)
    # The old root ends up mounted on the new one, from where it is taken away.
    _pivot_root(Path(), Path())
    _check(_libc.umount2(b".", _MNT_DETACH), "umount of the old root")
    os.chdir("/")


def _bind(mount: dict[str, Any], target: Path) -> None:
    attributes = _ATTR_NOSUID | _ATTR_NODEV | (_ATTR_RDONLY if mount["read_only"] else 0)
    _bind_path(_OLD / mount["source"].lstrip("/"), target, attributes)


def _bind_path(source: Path, target: Path, attributes: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    _mount(str(source), target, None, _MS_BIND | _MS_REC)
    _restrict(target, attributes, recursive=True)


def _symlink(mount: dict[str, Any], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(mount["to"])


def _tmpfs(mount: dict[str, Any], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    options = f"mode={mount['mode']:o}" + (f",size={mount['size']}" if mount["size"] else "")
    _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def _proc(_: dict[str, Any], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    _mount("proc", target, "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _dev(_: dict[str, Any], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NOEXEC, "mode=0755")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        _bind_path(_OLD / "dev" / name, target / name, _ATTR_NOSUID)
    for name, to in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (target / name).symlink_to(f"/proc/self/{to}")
    (target / "pts").mkdir()
    _mount("devpts", target / "pts", "devpts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    (target / "ptmx").symlink_to("pts/ptmx")
    (target / "shm").mkdir()
    _restrict(target, _ATTR_RDONLY, recursive=False)


_KINDS = {"bind": _bind, "symlink": _symlink, "tmpfs": _tmpfs, "proc": _proc, "dev": _dev}


def _mount(
    source: str | None, target: Path, kind: str | None, flags: int, options: str | None = None
) -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, str(target), kind)]
    data = None if options is None else options.encode()
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), data)
    _check(result, f"mount of {source or target} on {target}")


def _restrict(target: Path, attributes: int, *, recursive: bool) -> None:
    """Add mount attributes; `recursive` covers mounts that lie below, which a plain remount would miss."""
    request = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE if recursive else 0),
        request,
        ctypes.c_size_t(ctypes.sizeof(request)),
    )
    _check(result, f"mount attributes of {target}")


def _pivot_root(new: Path, put_old: Path) -> None:
    _check(_libc.pivot_root(os.fsencode(new), os.fsencode(put_old)), f"pivot_root to {new}")


def _check(result: int, call: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{call}: {os.strerror(code)}")


if __name__ == "__main__":
    main()
