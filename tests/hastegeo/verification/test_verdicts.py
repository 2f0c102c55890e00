"""A row holds only where the attack was denied on evidence, and the same worked where it is allowed."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from hastegeo.verification import AttackRow, ControlPlace, Verdict, judge_row
from hastegeo.workflows.isolation_probe import Outcome, Result

STORAGE_ROW = AttackRow(
    id="read-other",
    title="read the other tenant's blob",
    attack={"kind": "blob-read"},
    control={"kind": "blob-read"},
    control_place=ControlPlace.TASK,
    control_title="read its own blob",
)
NODE_ROW = replace(STORAGE_ROW, id="residue", needs_sandbox=True)
OUTCOMES = (*Outcome, None)
PAIRS = list(itertools.product(OUTCOMES, OUTCOMES))


def result(outcome: Outcome | None, evidence: str) -> Result | None:
    if outcome is None:
        return None
    return Result(
        id="read-other",
        kind="blob-read",
        expect=Outcome.DENIED,
        outcome=outcome,
        as_expected=outcome is Outcome.DENIED,
        evidence=evidence,
        seconds=0.1,
    )


def judge(row: AttackRow, attack: Outcome | None, control: Outcome | None, *, sandboxed: bool) -> Verdict:
    attacked, controlled = result(attack, "403"), result(control, "200")
    return judge_row(row, attacked, controlled, sandboxed=sandboxed).verdict


def expected(attack: Outcome | None, control: Outcome | None) -> Verdict:
    if attack is Outcome.ALLOWED:
        return Verdict.BROKEN
    if (attack, control) == (Outcome.DENIED, Outcome.ALLOWED):
        return Verdict.DENIED
    return Verdict.UNPROVEN


@pytest.mark.parametrize(("attack", "control"), PAIRS)
def test_the_verdict_of_every_combination(attack: Outcome | None, control: Outcome | None) -> None:
    for row in (STORAGE_ROW, NODE_ROW):
        assert judge(row, attack, control, sandboxed=True) is expected(attack, control)
    # Storage denies by itself, whatever confines the task.
    assert judge(STORAGE_ROW, attack, control, sandboxed=False) is expected(attack, control)
    assert judge(NODE_ROW, attack, control, sandboxed=False) is Verdict.NOT_TESTED


def test_exactly_one_combination_holds() -> None:
    holding = [pair for pair in PAIRS if judge(NODE_ROW, *pair, sandboxed=True) is Verdict.DENIED]
    assert holding == [(Outcome.DENIED, Outcome.ALLOWED)]


def test_the_row_keeps_both_evidences() -> None:
    judged = judge_row(
        STORAGE_ROW, result(Outcome.DENIED, "403"), result(Outcome.ALLOWED, "200"), sandboxed=True
    )
    assert (judged.attack_evidence, judged.control_evidence) == ("403", "200")


def test_a_missing_result_is_said_and_proves_nothing() -> None:
    judged = judge_row(STORAGE_ROW, result(Outcome.DENIED, "403"), None, sandboxed=True)
    assert (judged.verdict, judged.control_evidence) == (Verdict.UNPROVEN, "no result")
    judged = judge_row(STORAGE_ROW, None, result(Outcome.ALLOWED, "200"), sandboxed=True)
    assert (judged.verdict, judged.attack_evidence) == (Verdict.UNPROVEN, "no result")
