"""The attacker that runs inside a task, and reports what it could do.

It reads a plan of attacks, tries each with nothing but the standard library (an attacker brings no SDK), and
writes `probe_report.json`. It judges strictly: a denial needs specific evidence, and whatever else goes wrong
is an `error`, which proves nothing. Outside a sandbox, with what the attacker should not have, the same probe
is the positive control: the same operation, where it is allowed.

The plan is JSON, in the variable HASTE_PROBE_PLAN or in a file:

    {"attacks": [{"id": "read-other-tenant", "kind": "blob-read", "expect": "denied",
                  "url_env": "HASTE_INPUTS_URL", "container_url": "https://…/data", "blob": "secret.txt"}]}

Kinds: blob-read, blob-list, blob-write, blob-delete (`probe.blobs`), file-read (`probe.files`), http-reach,
tcp-reach, identity-metadata (`probe.network`), proc-environ (`probe.processes`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from hastegeo.errors import HasteError, InputError
from hastegeo.workflows.probe.blobs import attack_blob
from hastegeo.workflows.probe.files import attack_file
from hastegeo.workflows.probe.findings import Attack, Finding, Outcome, failed
from hastegeo.workflows.probe.network import attack_http, attack_metadata, attack_tcp
from hastegeo.workflows.probe.processes import attack_environments

PLAN_VARIABLE: Final = "HASTE_PROBE_PLAN"
DEFAULT_REPORT: Final = "outputs/probe_report.json"
SCHEMA: Final = "haste.probe/1"
UNEXPECTED_EXIT_CODE: Final = 3

ATTACKS: Final[Mapping[str, Callable[[Attack], Finding]]] = MappingProxyType(
    {
        "blob-read": attack_blob,
        "blob-list": attack_blob,
        "blob-write": attack_blob,
        "blob-delete": attack_blob,
        "file-read": attack_file,
        "http-reach": attack_http,
        "tcp-reach": attack_tcp,
        "proc-environ": attack_environments,
        "identity-metadata": attack_metadata,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one attack. `as_expected` compares the outcome with the plan's expectation."""

    id: str
    kind: str
    expect: Outcome
    outcome: Outcome
    as_expected: bool
    evidence: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """All results, and where they were obtained (`place`: node, pool, job, task, user id)."""

    schema: str
    started: str
    place: dict[str, str]
    as_expected: bool
    results: tuple[Result, ...]


def parse_plan(text: str) -> tuple[Attack, ...]:
    """Read a plan. Raises `InputError` where it is not one; parameters are checked when they are used."""
    try:
        document = json.loads(text)
    except ValueError:
        raise InputError("The probe's plan is not JSON.") from None
    entries = document.get("attacks") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise InputError("The probe's plan has no list of attacks.")
    attacks = tuple(_parse_attack(entry) for entry in entries)
    ids = [attack.id for attack in attacks]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise InputError(f"The probe's plan has more than one attack {', '.join(repeated)}.")
    return attacks


def run_attack(attack: Attack) -> Result:
    """Try one attack. Nothing is raised: what goes wrong is the result `error`."""
    started = time.monotonic()
    try:
        finding = ATTACKS[attack.kind](attack)
    except InputError as error:
        finding = failed(error.message)
    except Exception as error:  # noqa: BLE001 - one attack that breaks must not hide the results of the others
        finding = failed(f"the probe broke ({type(error).__name__})")
    return Result(
        id=attack.id,
        kind=attack.kind,
        expect=attack.expect,
        outcome=finding.outcome,
        as_expected=finding.outcome is attack.expect,
        evidence=finding.evidence,
        seconds=round(time.monotonic() - started, 3),
    )


def run_plan(attacks: Sequence[Attack], *, on_result: Callable[[Result], None] | None = None) -> ProbeReport:
    """Try attacks one after the other, and tell `on_result` of each as it comes."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    results: list[Result] = []
    for attack in attacks:
        results.append(run_attack(attack))
        if on_result is not None:
            on_result(results[-1])
    return ProbeReport(
        schema=SCHEMA,
        started=started,
        place=_place(),
        as_expected=all(result.as_expected for result in results),
        results=tuple(results),
    )


def read_report(text: str) -> ProbeReport:
    """Read a report back. Raises `InputError` where it is not one."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise InputError(f"The probe's report is of another kind: {document['schema']!r}.")
        results = tuple(
            Result(**entry | {"expect": Outcome(entry["expect"]), "outcome": Outcome(entry["outcome"])})
            for entry in document["results"]
        )
        return ProbeReport(**document | {"results": results})
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"The probe's report cannot be read ({type(error).__name__}).") from None


def write_report(report: ProbeReport, path: Path) -> None:
    """Put a report into a file, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.partial")
    unfinished.write_text(json.dumps(asdict(report), indent=2) + "\n", encoding="utf-8")
    unfinished.replace(path)


def _parse_attack(entry: object) -> Attack:
    if not isinstance(entry, dict):
        raise InputError("An attack of the probe's plan is a JSON object.")
    name, kind, expect = entry.get("id"), entry.get("kind"), entry.get("expect")
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InputError("An attack of the probe's plan has no id.")
    if not isinstance(kind, str) or kind not in ATTACKS:
        raise InputError(f"Attack {name}: there is no kind {kind!r}.", hint=f"Kinds: {', '.join(ATTACKS)}.")
    if expect not in {Outcome.ALLOWED, Outcome.DENIED}:
        raise InputError(f"Attack {name} expects 'allowed' or 'denied', not {expect!r}.")
    parameters = {key: value for key, value in entry.items() if key not in {"id", "kind", "expect"}}
    return Attack(id=name, kind=kind, expect=Outcome(expect), parameters=parameters)


def _place() -> dict[str, str]:
    named = {key: f"AZ_BATCH_{key.upper()}_ID" for key in ("node", "pool", "job", "task")}
    return {key: os.environ.get(variable, "") for key, variable in named.items()} | {"uid": str(os.getuid())}


def _print(result: Result) -> None:
    sign = "ok " if result.as_expected else "NOT"
    print(f"{sign} {result.id}: {result.outcome.value} ({result.evidence})", flush=True)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="isolation_probe", description="Try to break out of a task, and report what was possible."
    )
    parser.add_argument(
        "plan", nargs="?", type=Path, help=f"file with the plan (default: the variable {PLAN_VARIABLE})"
    )
    parser.add_argument(
        "--report", type=Path, default=Path(DEFAULT_REPORT), help="where the report goes (%(default)s)"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help=f"exit with {UNEXPECTED_EXIT_CODE} where an outcome is not the expected one",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the plan, print a line for each attack, and write the report.

    The exit code says whether the probe ran, not what it found, unless `--strict` is given: a task that
    failed would not upload its report.
    """
    options = build_parser().parse_args(arguments)
    try:
        attacks = parse_plan(_plan_text(options.plan))
    except HasteError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    report = run_plan(attacks, on_result=_print)
    try:
        write_report(report, options.report)
    except OSError as error:
        print(f"Error: The report could not be written ({error.strerror}).", file=sys.stderr)
        return 1
    return UNEXPECTED_EXIT_CODE if options.strict and not report.as_expected else 0


def _plan_text(path: Path | None) -> str:
    if path is None:
        text = os.environ.get(PLAN_VARIABLE, "")
        if not text:
            raise InputError(f"There is no plan: {PLAN_VARIABLE} is not set, and no file was given.")
        return text
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        raise InputError(f"The plan {path} cannot be read.") from None


__all__ = [
    "ATTACKS",
    "DEFAULT_REPORT",
    "PLAN_VARIABLE",
    "Attack",
    "Outcome",
    "ProbeReport",
    "Result",
    "build_parser",
    "main",
    "parse_plan",
    "read_report",
    "run_attack",
    "run_plan",
    "write_report",
]

if __name__ == "__main__":
    sys.exit(main())
