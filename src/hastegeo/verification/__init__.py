"""Proof that tenants are isolated: attacks from inside tasks, each beside a control."""

from hastegeo.verification.attacks import (
    AttackRow,
    ControlPlace,
    IsolationTargets,
    attack_rows,
    probe_plan,
)
from hastegeo.verification.verdicts import RowResult, Verdict, judge_row

__all__ = [
    "AttackRow",
    "ControlPlace",
    "IsolationTargets",
    "RowResult",
    "Verdict",
    "attack_rows",
    "judge_row",
    "probe_plan",
]
