"""The snapshot of pools, shared and reserved, that routing decides from."""

from hastegeo.capacity.provider import HOLD_TIME, SETTLE_TIME, SHARED_FOR, Capacity
from hastegeo.capacity.reading import (
    MAX_NODES_METADATA,
    PENDING_VARIABLE,
    QUEUED_VARIABLE,
    TIER_METADATA,
)
from hastegeo.capacity.reservations import Reservation

__all__ = [
    "HOLD_TIME",
    "MAX_NODES_METADATA",
    "PENDING_VARIABLE",
    "QUEUED_VARIABLE",
    "SETTLE_TIME",
    "SHARED_FOR",
    "TIER_METADATA",
    "Capacity",
    "Reservation",
]
