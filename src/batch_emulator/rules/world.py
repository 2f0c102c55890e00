"""What the rules act on, and what they ask of the outside."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from batch_emulator.clock import Clock, Timers
from batch_emulator.state import Account, Node, Run


class Effects(Protocol):
    """What the rules cause outside the account's state. All of it returns at once."""

    def prepare_node(self, node: Node) -> None:
        """Create the directories of a node that has come up."""
        ...

    def remove_node(self, node: Node) -> None:
        """Delete everything of a node that has gone."""
        ...

    def start_run(self, run: Run) -> None:
        """Begin a run on its node; its callbacks tell its fate, later and never from within this call."""
        ...

    def end_run(self, run: Run, *, upload: bool) -> None:
        """End a run now; without `upload` (the node is lost) no output is saved."""
        ...

    def remove_files(self, node: Node, path: str) -> None:
        """Delete a task's directory on a node, once no run uses it."""
        ...


@dataclass(frozen=True)
class Behaviour:
    """What differs from account to account, or is not told by the service's documentation.

    Times are seconds of service time. `requeue_counts_preemption`: whether a task's `requeueCount` rises when
    its node is preempted.
    """

    boot_seconds: float = 120.0
    allocation_seconds: float = 30.0
    restore_seconds: float = 300.0
    requeue_counts_preemption: bool = True


@dataclass(frozen=True)
class Quotas:
    """What an account may have at most; None for no limit. The cores are those of all pools' nodes."""

    pools: int | None = 100
    active_jobs_and_schedules: int | None = 300
    dedicated_cores: int | None = None
    low_priority_cores: int | None = None


@dataclass
class World:
    """The account with its clock, timers and outside."""

    account: Account
    clock: Clock
    timers: Timers
    effects: Effects
    nodes_root: Path
    url: str = ""
    behaviour: Behaviour = field(default_factory=Behaviour)
    quotas: Quotas = field(default_factory=Quotas)
    _etags: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def now(self) -> datetime:
        """Return the wall time."""
        return self.clock.now()

    def new_etag(self) -> str:
        """Return an ETag that no resource has had, in the service's form."""
        return f"0x{0x8DD000000000000 + next(self._etags):X}"

    def next_number(self) -> int:
        """Return a number that is higher than any before: for the order of creation, and of arrival."""
        return next(self._numbers)
