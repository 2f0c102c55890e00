"""What all resources of an account have in common."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

Json = dict[str, Any]


def key(identifier: str) -> str:
    """Return what two ids that mean the same resource have in common: ids are case-insensitive."""
    return identifier.lower()


@dataclass(kw_only=True, eq=False, slots=True)
class Resource:
    """What every resource has: what the client sent (`spec`, as validated JSON) and what the service adds.

    `id` keeps the case it was created with. `sequence` rises in the order of creation, and lists go by it.
    `etag` changes when a client changes the resource, not when its state does.
    """

    id: str
    sequence: int
    spec: Json
    created: datetime
    last_modified: datetime
    etag: str
    state_since: datetime
