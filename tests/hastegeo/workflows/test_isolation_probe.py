"""The probe's frame: plans, results, the report, the exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hastegeo.errors import InputError
from hastegeo.workflows import WORKFLOWS, isolation_probe, load_workflow
from hastegeo.workflows.isolation_probe import Attack, Outcome, parse_plan, read_report, run_attack


def plan(*attacks: dict[str, object]) -> str:
    return json.dumps({"attacks": list(attacks)})


READ_OWN = {"id": "own", "kind": "file-read", "expect": "allowed", "path": "/proc/self/status"}
READ_MISSING = {"id": "missing", "kind": "file-read", "expect": "denied", "path": "/nowhere/secret.txt"}


def test_every_workflow_is_found_by_its_name() -> None:
    for name in WORKFLOWS:
        assert callable(load_workflow(name))
    with pytest.raises(InputError, match="isolation_probe, prepare_imagery"):
        load_workflow("make_coffee")


def test_the_probe_runs_without_loading_imagery_or_cloud_libraries() -> None:
    code = (
        "import sys, hastegeo.workflows.isolation_probe; "
        "print([name for name in ('numpy', 'rasterio', 'azure', 'requests') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_plan_from_the_variable_gives_a_report_and_a_line_for_each_attack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HASTE_PROBE_PLAN", plan(READ_OWN, READ_MISSING))
    monkeypatch.setenv("AZ_BATCH_NODE_ID", "tvm-1")
    assert isolation_probe.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "ok  missing: denied (ENOENT)"
    assert lines[0].startswith("ok  own: allowed (read ")
    report = read_report((tmp_path / "outputs/probe_report.json").read_text())
    assert report.as_expected
    assert report.place["node"] == "tvm-1"
    assert [(result.id, result.outcome) for result in report.results] == [
        ("own", Outcome.ALLOWED),
        ("missing", Outcome.DENIED),
    ]


def test_an_unexpected_outcome_shows_in_the_report_and_in_the_exit_code_if_asked(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan(READ_OWN | {"expect": "denied"}))
    report = tmp_path / "report.json"
    assert isolation_probe.main([str(file), "--report", str(report)]) == 0
    assert not read_report(report.read_text()).as_expected
    assert isolation_probe.main([str(file), "--report", str(report), "--strict"]) == 3
    file.write_text(plan(READ_OWN))
    assert isolation_probe.main([str(file), "--report", str(report), "--strict"]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no list of attacks"),
        ('{"attacks": []}', "no list of attacks"),
        (plan(READ_OWN, READ_OWN), "more than one attack own"),
        (plan(READ_OWN | {"kind": "hammer"}), "no kind 'hammer'"),
        (plan(READ_OWN | {"expect": "error"}), "'allowed' or 'denied'"),
        (plan(READ_OWN | {"id": ""}), "has no id"),
        ('{"attacks": ["x"]}', "a JSON object"),
    ],
)
def test_a_plan_that_is_none_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_plan(text)


def test_no_plan_is_said_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HASTE_PROBE_PLAN", raising=False)
    assert isolation_probe.main([]) == 2
    assert "HASTE_PROBE_PLAN is not set" in capsys.readouterr().err
    assert isolation_probe.main(["no-such-plan.json"]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "blob-read"},
        {"kind": "tcp-reach", "host": "127.0.0.1"},
        {"kind": "tcp-reach", "host": "127.0.0.1", "port": "80"},
        {"kind": "http-reach", "service": "plain", "url": "file:///etc/passwd"},
        {"kind": "http-reach", "service": "tea", "url": "http://127.0.0.1:1"},
        {"kind": "proc-environ", "names": "KEY"},
        {"kind": "file-read", "path": 3},
    ],
)
def test_wrong_parameters_are_an_error_and_never_a_denial(parameters: dict[str, object]) -> None:
    (attack,) = parse_plan(plan({"id": "a", "expect": "denied", **parameters}))
    result = run_attack(attack)
    assert result.outcome is Outcome.ERROR
    assert not result.as_expected


def test_a_probe_that_breaks_is_an_error_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(attack: Attack) -> None:
        raise RuntimeError("sig=secret")

    monkeypatch.setattr(isolation_probe, "ATTACKS", {**isolation_probe.ATTACKS, "tcp-reach": broken})
    attacks = parse_plan(plan({"id": "b", "kind": "tcp-reach", "expect": "denied"}, READ_MISSING))
    report = isolation_probe.run_plan(attacks)
    assert [result.outcome for result in report.results] == [Outcome.ERROR, Outcome.DENIED]
    assert report.results[0].evidence == "the probe broke (RuntimeError)"


def test_a_report_of_another_kind_is_refused() -> None:
    for text in ("{}", "[]", '{"schema": "other/1"}', '{"schema": "haste.probe/1", "results": [{}]}'):
        with pytest.raises(InputError, match="report"):
            read_report(text)
