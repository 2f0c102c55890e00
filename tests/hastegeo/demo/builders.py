"""A run of the demo as data: eight tasks on two pools, an attack, and images."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hastegeo.demo.pools import POOL_IDS
from hastegeo.demo.results import PreparedImage
from hastegeo.demo.state import Road, TrackedTask
from hastegeo.domain import Attempt, Decision, NodeCounts, TaskRef, TaskState, TaskStatus, Verdict
from hastegeo.verification import IsolationTargets, RowResult, attack_rows
from hastegeo.verification import Verdict as RowVerdict

T4, H100 = POOL_IDS
STARTED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TARGETS = IsolationTargets(
    own_container="https://127.0.0.1:1/hastedev1/imagery",
    own_blob="probe/own.txt",
    disposable_blob="probe/disposable.txt",
    victim_container="https://127.0.0.1:1/hastedev2/imagery",
    victim_blob="private/notes.txt",
    marker_sha256="ab" * 32,
    storage_url="https://127.0.0.1:1",
    batch_url="https://127.0.0.1:2",
    token_url="http://127.0.0.1:3/msi/token",
    client_id="11111111-1111-1111-1111-111111111111",
    key_process=4242,
)

GROWS = Decision(
    chosen=T4, attempts=(Attempt(T4, Verdict.CAN_GROW, "can grow to 2 nodes, 1 of its growth reserved"),)
)
SPILLS = Decision(
    chosen=H100,
    attempts=(
        Attempt(T4, Verdict.BUSY, "full: 2 nodes of 2, 0 idle, 2 reserved"),
        Attempt(H100, Verdict.CAN_GROW, "can grow to 1 node"),
    ),
)
QUEUES = Decision(
    chosen=T4,
    attempts=(
        Attempt(T4, Verdict.BUSY, "full: 2 nodes of 2, 0 idle, 2 reserved"),
        Attempt(H100, Verdict.BUSY, "full: 1 node of 1, 0 idle, 1 reserved"),
    ),
    queues=True,
)


def status(number: int, state: TaskState, *, seconds: float = 8.0, reason: str = "") -> TaskStatus:
    started = STARTED + timedelta(seconds=10)
    return TaskStatus(
        ref=TaskRef("job", f"task-{number}"),
        state=state,
        reason=reason,
        started=started,
        ended=started + timedelta(seconds=seconds) if state.is_final else None,
    )


def task(
    number: int,
    decision: Decision,
    state: TaskState = TaskState.SUCCEEDED,
    *,
    label: str | None = None,
    reason: str = "",
) -> TrackedTask:
    return TrackedTask(
        tenant=f"dev{number % 2 + 1}",
        label=label or f"scene{number // 4 + 1} {'post' if number // 2 % 2 else 'pre'}",
        ref=TaskRef("job", f"task-{number}"),
        decision=decision,
        status=status(number, state, reason=reason),
    )


def road() -> Road:
    """The whole run, when all has ended well."""
    made = Road(started=STARTED, step="done")
    for number, decision in enumerate((GROWS, GROWS, SPILLS, *[QUEUES] * 5)):
        made.add(task(number, decision))
    for number, name in enumerate(("victim", "attack", "control"), start=8):
        made.add(task(number, Decision(H100, SPILLS.attempts[1:]), label=f"isolation {name}"))
    made.record_nodes(T4, NodeCounts(running=2))
    made.record_nodes(H100, NodeCounts(running=1))
    made.record_nodes(T4, NodeCounts())
    made.record_nodes(H100, NodeCounts())
    return made


def table(verdict: RowVerdict = RowVerdict.DENIED) -> list[RowResult]:
    attack = "403 AuthorizationPermissionMismatch from storage"
    return [RowResult(row, verdict, attack, "201 Created by storage") for row in attack_rows(TARGETS)]


def image(number: int = 1, *problems: str) -> PreparedImage:
    return PreparedImage(
        label=f"dev1 scene{number} post processed",
        path=Path(f"images/{number}.tif"),
        preview=None,
        description="1024 x 1024 x 3 uint8, EPSG:32615, 3 overviews, mask",
        problems=problems,
    )
