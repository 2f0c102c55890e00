"""What is known of pools at one moment, and the routing answer that is drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from hastegeo.domain.skus import Sku


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCounts:
    """Nodes of a pool by what they mean for routing, dedicated and low-priority together.

    `starting` are on their way to idle (creating, starting, waiting for the start task, rebooting,
    reimaging); `preempted` stay listed and keep their place while the service tries to restore them;
    `unusable` are those that never run a task without help (unusable, start task failed, offline, unknown,
    deallocated).
    """

    idle: int = 0
    running: int = 0
    starting: int = 0
    preempted: int = 0
    unusable: int = 0
    leaving: int = 0

    @property
    def total(self) -> int:
        """All nodes that hold a place in the pool; those leaving it are not counted."""
        return self.idle + self.running + self.starting + self.preempted + self.unusable


@dataclass(frozen=True, slots=True)
class AllocationFailure:
    """A resize error of a pool. `at` is when the failed resize ended: the service dates no error itself."""

    code: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDetails:
    """What the pool itself says. `max_nodes` is None where no limit is known (autoscaled, without metadata).

    `queued` is the number of waiting tasks that the last autoscale run saw, at `queued_at`; None if it says
    none.
    """

    deleting: bool = False
    allocation_state: str = "steady"
    vm_size: str = ""
    sku: Sku | None = None
    tier: str = ""
    autoscaled: bool = False
    max_nodes: int | None = None
    queued: int | None = None
    queued_at: datetime | None = None
    failures: tuple[AllocationFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """One pool at the moment of the snapshot.

    `nodes` or `details` is None where the call that tells it failed. `reserved` counts this process's own
    submissions that the node counts cannot show yet.
    """

    pool_id: str
    nodes: NodeCounts | None
    details: PoolDetails | None
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class CapacitySnapshot:
    """All pools of the account at one moment.

    `nodes_error` and `details_error` say why a call failed, and are empty where it succeeded. A pool that
    is not in `pools` does not exist, unless `details_error` is set: then nothing is known of it.
    """

    taken_at: datetime
    pools: Mapping[str, PoolSnapshot] = field(default_factory=dict)
    nodes_error: str = ""
    details_error: str = ""


class Verdict(StrEnum):
    """What routing made of a candidate.

    The skipping verdicts are `MISSING`, `DELETING`, `UNUSABLE`, `TOO_SMALL`.
    """

    ONLY_CANDIDATE = "only candidate"
    FREE_NODE = "free node"
    CAN_GROW = "can grow"
    BUSY = "busy"
    ALLOCATION_FAILED = "allocation failed"
    UNKNOWN = "unknown"
    MISSING = "missing"
    DELETING = "deleting"
    UNUSABLE = "unusable"
    TOO_SMALL = "too small"

    @property
    def skips(self) -> bool:
        """Whether a candidate with this verdict is never chosen, not even to queue on."""
        return self in {Verdict.MISSING, Verdict.DELETING, Verdict.UNUSABLE, Verdict.TOO_SMALL}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One candidate that was looked at, with a reason that a person can read."""

    pool_id: str
    verdict: Verdict
    reason: str

    def __str__(self) -> str:
        return f"{self.pool_id}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The routing answer: the chosen pool, and every candidate that was looked at, in order.

    `queues` says that no candidate had room, so that the task waits on the chosen pool.
    """

    chosen: str
    attempts: tuple[Attempt, ...]
    queues: bool = False

    @property
    def reason(self) -> str:
        """Why the chosen pool was chosen."""
        return next(attempt.reason for attempt in self.attempts if attempt.pool_id == self.chosen)

    @property
    def spills(self) -> int:
        """How many candidates that could have run the task were passed over; 0 where the preferred one was
        taken.
        """
        usable = [attempt.pool_id for attempt in self.attempts if not attempt.verdict.skips]
        return usable.index(self.chosen)

    def __str__(self) -> str:
        return f"{self.chosen} ({'; '.join(map(str, self.attempts))})"
