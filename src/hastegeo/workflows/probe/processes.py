"""Attacks on the environments of other processes, where keys are kept."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from hastegeo.workflows.probe.findings import Attack, Finding, allowed, denied, errno_name, failed

_PROC: Final = Path("/proc")
# A key is often one of several in a value, as in `name:key;name:key`.
_PIECES: Final = re.compile(rb"[;:,\s]+")


def attack_environments(attack: Attack) -> Finding:
    """Read `/proc/*/environ` of every process in sight, this one included.

    `names` are variables that no task should see (a `=` at the end is allowed). `marker_sha256` are the
    hashes of values, or of parts between `;`, `:` and `,`. `pids` limits the search, for a control outside a
    sandbox.
    What is found is said by process and variable, never by value.
    """
    names = frozenset(name.rstrip("=").encode() for name in attack.texts("names"))
    markers = frozenset(marker.lower() for marker in attack.texts("marker_sha256"))
    try:
        if not _entries(_PROC / str(os.getpid()) / "environ") and os.environ:
            return failed("this process's own environment reads as empty, so no conclusion can be drawn")
        pids = attack.numbers("pids") or _pids()
    except OSError as error:
        return failed(f"{errno_name(error)} for this process's own environment")
    readable, refused = 0, 0
    for pid in pids:
        try:
            entries = _entries(_PROC / str(pid) / "environ")
        except OSError:
            # Not ours to read, or ended meanwhile.
            refused += 1
            continue
        readable += 1
        for name, value in entries:
            if name in names or _matches(value, markers):
                return allowed(f"process {pid} shows {name.decode(errors='replace')}")
    seen = f"{readable} environment{'' if readable == 1 else 's'} read"
    if refused:
        seen += f", {refused} refused"
    return denied(f"{seen}, none holds what was looked for")


def _pids() -> tuple[int, ...]:
    return tuple(sorted(int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()))


def _entries(path: Path) -> list[tuple[bytes, bytes]]:
    parts = (entry.partition(b"=") for entry in path.read_bytes().split(b"\0") if entry)
    return [(name, value) for name, _, value in parts]


def _matches(value: bytes, markers: frozenset[str]) -> bool:
    if not markers:
        return False
    return any(hashlib.sha256(piece).hexdigest() in markers for piece in (value, *_PIECES.split(value)))
