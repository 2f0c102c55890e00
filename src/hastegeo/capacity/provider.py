"""Capacity: one snapshot of all pools for everybody, and what this process has taken of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from azure.batch import BatchClient
from azure.core.exceptions import AzureError

from hastegeo.capacity.reading import POOL_FIELDS, merge, why
from hastegeo.capacity.reservations import Reservation, ReservationBook
from hastegeo.domain import CapacitySnapshot, Decision, TaskRef

# The most that one page may hold. Without it the node counts come ten pools a page.
_PAGE: Final = 1000
SHARED_FOR: Final = timedelta(seconds=5)
SETTLE_TIME: Final = timedelta(seconds=30)
HOLD_TIME: Final = timedelta(minutes=30)
# A submission waits for the answers, and can do without them: few tries and little time.
_TRIES: Final = 2
_PATIENCE_SECONDS: Final = 20
_NOTHING_ASKED: Final = CapacitySnapshot(taken_at=datetime.min.replace(tzinfo=UTC))


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Capacity:
    """The pools of one Batch account, by two calls whatever the number of pools and nodes.

    A snapshot is shared for `shared_for`. All runners of a process that use the same account should share one
    instance, so that two submissions never take the same node. Safe to use from several threads.
    """

    def __init__(
        self,
        client: BatchClient,
        *,
        shared_for: timedelta = SHARED_FOR,
        settle_time: timedelta = SETTLE_TIME,
        hold_time: timedelta = HOLD_TIME,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._client = client
        self._shared_for = shared_for
        self._clock = clock
        self._book = ReservationBook(settle_time=settle_time, hold_time=hold_time)
        self._latest = _NOTHING_ASKED
        # `_asking` is held while the service is asked, so that threads wait for one answer.
        self._asking = threading.Lock()
        self._lock = threading.Lock()

    def snapshot(self, *, fresh: bool = False) -> CapacitySnapshot:
        """Return all pools with the reservations of now; `fresh` asks the service even if an answer is
        shared.

        It never raises for a call that failed: the snapshot then says what is unknown and why.
        """
        self._refresh(fresh=fresh)
        with self._lock:
            return self._reserved()

    def decide(self, choose: Callable[[CapacitySnapshot], Decision]) -> tuple[Decision, Reservation]:
        """Let `choose` pick a pool, and reserve a node of it, with no other decision in between.

        What `choose` raises is passed on, and nothing is reserved then.
        """
        self._refresh(fresh=False)
        with self._lock:
            decision = choose(self._reserved())
            return decision, self._book.add(decision.chosen, self._clock())

    def reserve(self, pool_id: str) -> Reservation:
        """Reserve a node of a pool without asking the service, for a task that has no other candidate."""
        with self._lock:
            return self._book.add(pool_id, self._clock())

    def confirm(self, reservation: Reservation, ref: TaskRef) -> None:
        """Say that the task was submitted. Its reservation is kept until a later snapshot shows the task."""
        with self._lock:
            reservation.submitted_at = self._clock()
            reservation.ref = ref

    def release(self, reservation: Reservation) -> None:
        """Say that no task came of a reservation."""
        with self._lock:
            self._book.release(reservation)

    def left_queue(self, ref: TaskRef) -> None:
        """Say that a task is known to run or to have ended, so that the node counts show it."""
        with self._lock:
            self._book.release_task(ref)

    def _refresh(self, *, fresh: bool) -> None:
        asked_at = self._clock()
        with self._asking:
            latest = self._latest
            # An answer that came while this thread waited is as fresh as one that it would get itself.
            oldest = asked_at if fresh else self._clock() - self._shared_for
            if latest.taken_at > oldest:
                return
            taken = self._take()
            with self._lock:
                self._latest = taken
                if not taken.nodes_error:
                    nodes = {pool.pool_id: pool.nodes for pool in taken.pools.values() if pool.nodes}
                    self._book.settle(nodes, taken.taken_at)

    def _take(self) -> CapacitySnapshot:
        # The time before the calls: what is submitted while they run may not be in their answers.
        taken_at = self._clock()
        counts, nodes_error = None, ""
        try:
            counts = list(
                self._client.list_pool_node_counts(
                    max_results=_PAGE, retry_total=_TRIES, timeout=_PATIENCE_SECONDS
                )
            )
        except AzureError as error:
            nodes_error = why(error)
        pools, details_error = None, ""
        try:
            pools = list(
                self._client.list_pools(
                    select=list(POOL_FIELDS), max_results=_PAGE, retry_total=_TRIES, timeout=_PATIENCE_SECONDS
                )
            )
        except AzureError as error:
            details_error = why(error)
        return CapacitySnapshot(
            taken_at=taken_at,
            pools=merge(counts, pools),
            nodes_error=nodes_error,
            details_error=details_error,
        )

    def _reserved(self) -> CapacitySnapshot:
        latest = self._latest
        pools = {
            pool_id: replace(pool, reserved=self._book.count(pool_id))
            for pool_id, pool in latest.pools.items()
        }
        return replace(latest, pools=pools)
