"""Reservations: the submissions of this process that node counts cannot show yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hastegeo.domain import NodeCounts, TaskRef


@dataclass(eq=False, slots=True)
class Reservation:
    """A claim on one node of a pool: an idle one now, or one still to come.

    `submitted_at` is None while the submission is in flight.
    """

    pool_id: str
    made_at: datetime
    submitted_at: datetime | None = None
    ref: TaskRef | None = None


@dataclass(slots=True)
class ReservationBook:
    """The reservations of all pools. Not thread-safe: its owner locks.

    A task that waits for a booting node keeps its reservation, for no count shows it. `settle` (how long
    the service may take to start a task on an idle node and to count it) and `hold` (the longest wait that
    is believed) bound what cannot be known.
    """

    settle_time: timedelta
    hold_time: timedelta
    _held: dict[str, list[Reservation]] = field(default_factory=dict)
    _running: dict[str, int] = field(default_factory=dict)

    def count(self, pool_id: str) -> int:
        """Return the reservations of a pool."""
        return len(self._held.get(pool_id, ()))

    def add(self, pool_id: str, now: datetime) -> Reservation:
        """Make a reservation on a pool."""
        reservation = Reservation(pool_id, now)
        self._held.setdefault(pool_id, []).append(reservation)
        return reservation

    def release(self, reservation: Reservation) -> None:
        """Drop a reservation; one that is gone already is fine."""
        held = self._held.get(reservation.pool_id, [])
        if reservation in held:
            held.remove(reservation)

    def release_task(self, ref: TaskRef) -> None:
        """Drop the reservation of a task that is known to have left the queue."""
        for held in self._held.values():
            for reservation in held:
                if reservation.ref == ref:
                    held.remove(reservation)
                    return

    def settle(self, nodes: Mapping[str, NodeCounts], taken_at: datetime) -> None:
        """Drop what a new snapshot, begun at `taken_at`, shows or makes stale.

        Shown is a task where more nodes run than before: the oldest submissions started. Where a node
        stands idle although tasks were submitted a while ago, these do not wait any more: they ran between
        two snapshots.
        """
        for pool_id, held in self._held.items():
            found = nodes.get(pool_id)
            started = max(found.running - self._running.get(pool_id, 0), 0) if found else 0
            kept = []
            for reservation in held:
                submitted = reservation.submitted_at
                if taken_at - reservation.made_at > self.hold_time:
                    continue
                if submitted is not None and submitted < taken_at:
                    if started:
                        started -= 1
                        continue
                    if found and found.idle and taken_at - submitted >= self.settle_time:
                        continue
                kept.append(reservation)
            held[:] = kept
        self._running = {pool_id: found.running for pool_id, found in nodes.items()}
