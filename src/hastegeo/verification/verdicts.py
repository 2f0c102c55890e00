"""What the outcomes of an attack and its control mean together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hastegeo.verification.attacks import AttackRow
from hastegeo.workflows.isolation_probe import Outcome, Result


class Verdict(StrEnum):
    """Whether a row holds."""

    DENIED = "denied"
    BROKEN = "BROKEN"
    UNPROVEN = "unproven"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class RowResult:
    """One row of the table with what came of it."""

    row: AttackRow
    verdict: Verdict
    attack_evidence: str
    control_evidence: str


def judge_row(row: AttackRow, attack: Result | None, control: Result | None, *, sandboxed: bool) -> RowResult:
    """Return the verdict of a row.

    A row holds only if the attack was denied on evidence and its control succeeded. An attack that worked is
    `BROKEN`; one that failed for another reason, or whose control failed, is `UNPROVEN`. Without sandboxes,
    what sandboxes deny is `NOT_TESTED`, whatever came of it.
    """
    attack_evidence = attack.evidence if attack else "no result"
    control_evidence = control.evidence if control else "no result"
    if row.needs_sandbox and not sandboxed:
        return RowResult(row, Verdict.NOT_TESTED, "node isolation is not enforced by this driver", "")
    if attack is not None and attack.outcome is Outcome.ALLOWED:
        verdict = Verdict.BROKEN
    elif (
        attack is not None
        and attack.outcome is Outcome.DENIED
        and control is not None
        and control.outcome is Outcome.ALLOWED
    ):
        verdict = Verdict.DENIED
    else:
        verdict = Verdict.UNPROVEN
    return RowResult(row, verdict, attack_evidence, control_evidence)
