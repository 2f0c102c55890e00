"""Every promise of the demo holds in a good run, and each can be broken alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from hastegeo.demo.results import PreparedImage, promises, untested
from hastegeo.demo.state import Road
from hastegeo.domain import TaskState
from hastegeo.verification import RowResult, Verdict

from . import builders

SUCCEEDED = "every task succeeded"
SPILLED = "tasks spilled over and queued, for there were more of them than nodes"
REASONS = "every routing decision has its reason"
IMAGES = "every image is a valid cloud-optimised GeoTIFF"
DENIED = "every attack was denied, and every control succeeded"
EMPTY = "the pools went back to zero nodes"


@dataclass
class Run:
    """What the promises are judged by; a good run until something is changed."""

    road: Road = field(default_factory=builders.road)
    images: list[PreparedImage] = field(default_factory=lambda: [builders.image(1), builders.image(2)])
    table: list[RowResult] = field(default_factory=builders.table)
    pools_empty: bool = True

    def judge(self) -> dict[str, tuple[bool, str]]:
        kept = promises(self.road, self.images, self.table, pools_empty=self.pools_empty)
        return {promise.text: (promise.held, promise.detail) for promise in kept}


def test_all_promises_hold_in_a_good_run() -> None:
    judged = Run().judge()
    assert list(judged) == [SUCCEEDED, SPILLED, REASONS, IMAGES, DENIED, EMPTY]
    assert all(held for held, _ in judged.values())


def fail_a_task(run: Run) -> None:
    run.road.record_status(builders.status(4, TaskState.FAILED, reason="exit code 1"))


def leave_a_task_running(run: Run) -> None:
    run.road.record_status(builders.status(4, TaskState.RUNNING))


def spill_nothing(run: Run) -> None:
    run.road.tasks = [
        replace(task, decision=builders.GROWS) if task.decision is builders.SPILLS else task
        for task in run.road.tasks
    ]


def queue_nothing(run: Run) -> None:
    run.road.tasks = [
        replace(task, decision=builders.GROWS) if task.decision.queues else task for task in run.road.tasks
    ]


def lose_a_reason(run: Run) -> None:
    first = run.road.tasks[0]
    silent = replace(first.decision.attempts[0], reason="")
    run.road.tasks[0] = replace(first, decision=replace(first.decision, attempts=(silent,)))


def damage_an_image(run: Run) -> None:
    run.images[1] = builders.image(2, "It has no position.")


def make_no_image(run: Run) -> None:
    run.images.clear()


def let_an_attack_through(run: Run) -> None:
    run.table[3] = replace(run.table[3], verdict=Verdict.BROKEN)


def fail_a_control(run: Run) -> None:
    run.table[3] = replace(run.table[3], verdict=Verdict.UNPROVEN)


def attack_nothing(run: Run) -> None:
    run.table.clear()


def leave_a_node(run: Run) -> None:
    run.pools_empty = False


@pytest.mark.parametrize(
    ("spoil", "broken", "detail"),
    [
        (fail_a_task, SUCCEEDED, "dev1 scene2 pre: exit code 1"),
        (leave_a_task_running, SUCCEEDED, "dev1 scene2 pre"),
        (spill_nothing, SPILLED, "0 spilled, 5 queued"),
        (queue_nothing, SPILLED, "1 spilled, 0 queued"),
        (lose_a_reason, REASONS, ""),
        (damage_an_image, IMAGES, "dev1 scene2 post processed: It has no position."),
        (make_no_image, IMAGES, ""),
        (let_an_attack_through, DENIED, "delete-other: BROKEN"),
        (fail_a_control, DENIED, "delete-other: unproven"),
        (attack_nothing, DENIED, ""),
        (leave_a_node, EMPTY, ""),
    ],
)
def test_each_promise_can_be_broken_alone(spoil: Callable[[Run], None], broken: str, detail: str) -> None:
    run = Run()
    spoil(run)
    judged = run.judge()
    assert [text for text, (held, _) in judged.items() if not held] == [broken]
    assert detail in judged[broken][1]


def test_fewer_tasks_than_nodes_need_not_spill() -> None:
    run = Run()
    run.road.tasks = [task for task in run.road.tasks if task.decision is builders.GROWS]
    judged = run.judge()
    assert SPILLED not in judged
    assert all(held for held, _ in judged.values())


def test_what_was_not_tested_breaks_no_promise_but_is_found() -> None:
    run = Run()
    run.table[9] = replace(run.table[9], verdict=Verdict.NOT_TESTED)
    judged = run.judge()
    assert all(held for held, _ in judged.values())
    assert judged[DENIED] == (True, "residue: not tested")
    assert [result.row.id for result in untested(run.table)] == ["residue"]
    assert untested(builders.table()) == []
