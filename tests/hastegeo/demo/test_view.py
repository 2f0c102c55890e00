"""What a terminal and a pipe are shown: whole words, whole names, a line a task."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from hastegeo.demo import summary
from hastegeo.demo.display import LiveDisplay, PlainDisplay, display_for
from hastegeo.demo.pools import POOL_IDS
from hastegeo.demo.results import promises
from hastegeo.demo.state import Road
from hastegeo.demo.view import briefly, render, short_pool, tasks_table, why
from hastegeo.domain import Decision, NodeCounts, TaskState
from hastegeo.verification import Verdict

from . import builders

WIDTHS = (80, 120)


def screen(width: int = 80, *, terminal: bool = False) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(width=width, height=24, file=text, force_terminal=terminal, color_system=None), text


def drawn(what: object, width: int = 80) -> str:
    console, text = screen(width)
    console.print(what)
    return text.getvalue()


def words(text: str) -> str:
    """The text of a table's cells without its lines, so that a wrapped sentence is found."""
    return " ".join("".join(" " if c in "│┃" else c for c in text).split())


@pytest.mark.parametrize("width", WIDTHS)
def test_the_live_view_fits_into_a_terminal_and_cuts_nothing(width: int) -> None:
    text = drawn(render(builders.road(), now=builders.STARTED + timedelta(seconds=42)), width)
    lines = text.splitlines()
    assert len(lines) < 24, "a view that is higher than the terminal cannot be redrawn in place"
    assert max(map(len, lines)) <= width
    assert "…" not in text
    assert lines[0].split() == ["42", "s", "done"]
    for pool_id in POOL_IDS:
        assert pool_id in text
    assert text.count("succeeded") == 11


def test_nodes_are_told_by_state() -> None:
    road = Road(started=builders.STARTED)
    assert drawn(render(road, now=builders.STARTED)).count("none") == 2
    road.record_nodes(builders.T4, NodeCounts(starting=1, idle=2, running=3, preempted=4, leaving=5))
    text = drawn(render(road, now=builders.STARTED))
    assert "1 starting, 2 idle, 3 running, 4" in text
    assert "preempted, 5 leaving" in text


@pytest.mark.parametrize(
    ("decision", "short", "full"),
    [
        (builders.GROWS, "t4: can grow", "t4: can grow to 2 nodes, 1 of its growth reserved"),
        (
            builders.SPILLS,
            "t4: busy; h100: can grow",
            "t4: full: 2 nodes of 2, 0 idle, 2 reserved; h100: can grow to 1 node",
        ),
        (
            builders.QUEUES,
            "t4: busy; h100: busy; queues",
            "t4: full: 2 nodes of 2, 0 idle, 2 reserved; h100: full: 1 node of 1, 0 idle, 1 reserved; queues",
        ),
        # What comes after the chosen pool did not decide anything.
        (
            Decision(builders.H100, (builders.SPILLS.attempts[1], builders.SPILLS.attempts[0])),
            "h100: can grow",
            "h100: can grow to 1 node",
        ),
    ],
)
def test_a_decision_is_told_with_the_pools_that_were_passed_over(
    decision: Decision, short: str, full: str
) -> None:
    assert briefly(decision) == short
    assert why(decision) == full


def test_pools_of_others_keep_their_names() -> None:
    assert [short_pool(pool_id) for pool_id in (*POOL_IDS, "my-pool")] == ["t4", "h100", "my-pool"]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_tasks_keep_their_reasons_in_full(width: int) -> None:
    text = drawn(tasks_table(builders.road(), why), width)
    assert "…" not in text
    assert "isolation control" in text


def summary_text(width: int, *, verdict: Verdict = Verdict.DENIED, problems: tuple[str, ...] = ()) -> str:
    console, text = screen(width)
    road, table = builders.road(), builders.table(verdict)
    images = [builders.image(1), builders.image(2, *problems)]
    kept = promises(road, images, table, pools_empty=True)
    summary.print_summary(console, road, images, [Path("a.png")], table, kept, Path("demo-results"))
    return text.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_summary_cuts_nothing(width: int) -> None:
    text = summary_text(width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for pool_id in POOL_IDS:
        assert pool_id in text
    assert "AuthorizationPermissionMismatch" in text
    assert text.count("denied") == len(builders.table()) + 1  # and the promise
    assert "BROKEN" not in text
    assert text.count("kept ") == 6


@pytest.mark.parametrize("verdict", [Verdict.BROKEN, Verdict.UNPROVEN])
def test_the_summary_shows_what_was_broken(verdict: Verdict) -> None:
    text = words(summary_text(80, verdict=verdict, problems=("It has no position.",)))
    assert "BROKEN every image is a valid cloud-optimised GeoTIFF" in text
    assert "It has no position." in text
    assert f"read-other: {verdict}" in text


def test_what_was_not_tested_has_no_control() -> None:
    text, _, promised = summary_text(80, verdict=Verdict.NOT_TESTED).partition("Prepared images")
    assert text.count("not tested") == len(builders.table())
    assert "residue: not tested" in words(promised)
    assert "read its own blob" not in text


def test_a_summary_of_a_run_without_nodes_counts_zero() -> None:
    text = drawn(summary.pools_summary(Road(started=builders.STARTED)))
    assert "0 of 2" in text
    assert "0 of 1" in text


def test_a_pipe_gets_plain_lines_once_for_each_change() -> None:
    console, text = screen()
    display = display_for(console)
    assert isinstance(display, PlainDisplay)
    road = Road(started=builders.STARTED, step="preparing imagery")
    road.add(builders.task(0, builders.QUEUES, TaskState.QUEUED))
    with display:
        display.update(road)
        display.update(road)
        road.record_status(builders.status(0, TaskState.RUNNING))
        display.update(road)
        display.update(road)
    assert "\x1b" not in text.getvalue()
    said = [line.partition(" s  ")[2] for line in text.getvalue().splitlines()]
    assert said == [
        "== preparing imagery",
        f"dev1 scene1 pre -> t4 ({why(builders.QUEUES)})",
        "dev1 scene1 pre on t4: running",
    ]


def test_a_terminal_keeps_the_tasks_with_their_reasons() -> None:
    console, text = screen(terminal=True)
    display = display_for(console)
    assert isinstance(display, LiveDisplay)
    with display:
        display.update(builders.road())
    shown, _, kept = text.getvalue().rpartition("\x1b")
    assert "shared pool" in shown
    assert "shared pool" not in kept
    assert "why this pool" in kept
    assert "full: 2 nodes of 2" in kept


def test_a_terminal_is_shown_no_empty_table() -> None:
    console, text = screen(terminal=True)
    with display_for(console):
        pass
    assert "why this pool" not in text.getvalue()
