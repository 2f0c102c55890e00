"""`batch-emulator autoscale`: a formula over a table of metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from batch_emulator.autoscale import CurrentTargets, parse
from batch_emulator.autoscale.chart import draw
from batch_emulator.autoscale.offline import autoscale_command
from batch_emulator.autoscale.replay import Run, TraceError, read_trace, replay

FORMULA = """\
$TargetLowPriorityNodes = min(4, max(0, $PendingTasks.GetSample(1)));
$NodeDeallocationOption = taskcompletion;
"""
BURST = """\
time,PendingTasks
2026-03-04T08:00:00Z,0
2026-03-04T08:10:00Z,3
2026-03-04T08:20:00Z,0
2026-03-04T08:30:00Z,0
"""

Command = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "burst.txt").write_text(FORMULA)
    (tmp_path / "burst.csv").write_text(BURST)
    return tmp_path


@pytest.fixture
def command(folder: Path) -> Command:
    app = typer.Typer()
    app.command()(autoscale_command)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments])

    return invoke


def test_the_table_shows_when_targets_change(command: Command) -> None:
    result = command("burst.txt", "--samples", "burst.csv", "--interval", "300")
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines() if "2026-03-04" in line]
    shown = [(row[2], row[4], row[6]) for row in rows]
    # A sample can be read a minute after it was taken: 8:10 has those up to 8:09, 8:15 those up to 8:14.
    assert shown == [("08:00:00", "0", "0"), ("08:15:00", "0", "3"), ("08:25:00", "0", "0")]
    assert "7 evaluations, 3 changes" in result.stdout


def test_all_evaluations_can_be_shown(command: Command) -> None:
    result = command("burst.txt", "--samples", "burst.csv", "--interval", "300", "--all")
    assert sum("2026-03-04" in line for line in result.stdout.splitlines()) == 7


def test_a_plot_is_written(command: Command, folder: Path) -> None:
    result = command("burst.txt", "--samples", "burst.csv", "--interval", "300")
    assert "Plot: burst.svg" in result.stdout
    assert ET.parse(folder / "burst.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"
    command("burst.txt", "--samples", "burst.csv", "--plot", "other.svg")
    assert (folder / "other.svg").exists()


def test_json_has_every_evaluation_and_no_plot(command: Command, folder: Path) -> None:
    result = command("burst.txt", "--samples", "burst.csv", "--json", "--dedicated", "2")
    evaluations = json.loads(result.stdout)["evaluations"]
    assert [entry["time"] for entry in evaluations] == [
        "2026-03-04T08:00:00Z",
        "2026-03-04T08:15:00Z",
        "2026-03-04T08:30:00Z",
    ]
    assert evaluations[1] == {
        "time": "2026-03-04T08:15:00Z",
        "targetDedicatedNodes": 2,
        "targetLowPriorityNodes": 3,
        "nodeDeallocationOption": "taskcompletion",
        "results": "$TargetDedicatedNodes=2;$TargetLowPriorityNodes=3;$NodeDeallocationOption=taskcompletion",
        "error": None,
    }
    assert not list(folder.glob("*.svg"))


def test_a_failed_evaluation_is_shown(command: Command, folder: Path) -> None:
    (folder / "burst.txt").write_text(
        "$TargetDedicatedNodes = avg($PendingTasks.GetSample(TimeInterval_Hour));"
    )
    detail = "Line 1, Col 52: Insufficient data from data set: $PendingTasks wanted 70%, received 0%"
    result = command("burst.txt", "--samples", "burst.csv", "--json", "--plot", "failed.svg")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["evaluations"][0]["error"] == {
        "code": "InsufficientSampleData",
        "message": "Autoscale evaluation failed due to insufficient sample data",
        "values": [{"name": "Message", "value": detail}],
    }
    assert detail in (folder / "failed.svg").read_text()
    assert "Insufficient data" in command("burst.txt", "--samples", "burst.csv").stdout


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"burst.txt": "a = 1;\nb = "}, "burst.txt: Line 2, Col 5: expected an expression"),
        ({"burst.csv": "when,PendingTasks\n"}, "burst.csv: the first column must be called time"),
        ({"burst.csv": ""}, "burst.csv: the first column must be called time"),
        ({"burst.csv": "time\n2026-03-04T08:00:00Z\n"}, "burst.csv: there is no metric"),
        ({"burst.csv": "time,Pending\n"}, "burst.csv: no metric of Azure Batch: $Pending"),
        ({"burst.csv": "time,PendingTasks,$PendingTasks\n"}, "burst.csv: a metric has two columns"),
        ({"burst.csv": "time,PendingTasks\n\n"}, "burst.csv: there are no rows"),
        ({"burst.csv": "time,PendingTasks\n\n2026,1\n"}, "line 3, column time: '2026' is no time"),
        ({"burst.csv": "time,PendingTasks\n2026-03-04\n"}, "line 2: expected 2 cells, found 1"),
        (
            {"burst.csv": "time,PendingTasks\n2026-03-04,many\n"},
            "line 2, column $PendingTasks: 'many' is no number",
        ),
        (
            {"burst.csv": "time,PendingTasks\n2026-03-04,inf\n"},
            "line 2, column $PendingTasks: 'inf' is no number",
        ),
        (
            {"burst.csv": "time,PendingTasks\n2026-03-04,1\n2026-03-04,2\n"},
            "line 3: the time is not later than the one before",
        ),
        (
            {"burst.csv": "time,PendingTasks\n2024-03-04,1\n2026-03-04,2\n"},
            "the rows span more than 366 days",
        ),
        ({"burst.csv": 'time,PendingTasks\n"' + "a" * 140_000}, "line 2: field larger than field limit"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    command: Command, folder: Path, files: dict[str, str], message: str
) -> None:
    assert command("burst.txt", "--samples", "burst.csv").exit_code == 0
    for name, text in files.items():
        (folder / name).write_text(text)
    result = command("burst.txt", "--samples", "burst.csv")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_files_that_cannot_be_used_are_named(command: Command, folder: Path) -> None:
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00")
    missing = command("none.txt", "--samples", "burst.csv")
    assert (missing.exit_code, missing.stderr) == (2, "none.txt: No such file or directory\n")
    binary = command("burst.txt", "--samples", "binary.csv")
    assert (binary.exit_code, binary.stderr) == (2, "binary.csv: is not text in UTF-8\n")
    unwritable = command("burst.txt", "--samples", "burst.csv", "--plot", "none/plot.svg")
    assert (unwritable.exit_code, unwritable.stderr) == (2, "none/plot.svg: No such file or directory\n")


def runs(formula: str, table: str, *, interval: int = 300, dedicated: int = 0) -> list[Run]:
    return list(
        replay(
            parse(formula),
            read_trace(table),
            interval=timedelta(seconds=interval),
            delay=timedelta(seconds=60),
            start=CurrentTargets(dedicated, 0),
        )
    )


def test_names_may_have_a_dollar_and_times_a_zone() -> None:
    trace = read_trace("Time, $PendingTasks\r\n2026-03-04T09:00:00+01:00, 2\r\n")
    assert trace.rows == ((datetime(2026, 3, 4, 8, tzinfo=UTC), {"$PendingTasks": 2}),)
    assert read_trace("time,PendingTasks\n2026-03-04 08:00,2\n").rows == trace.rows


def test_pending_tasks_are_the_sum_where_the_table_has_none() -> None:
    trace = read_trace("time,ActiveTasks,RunningTasks\n2026-03-04,2,3\n2026-03-05,2,\n")
    assert [values.get("$PendingTasks") for _, values in trace.rows] == [5, None]


def test_an_empty_cell_means_no_samples() -> None:
    table = "time,PendingTasks\n2026-03-04T08:00,5\n2026-03-04T08:10,\n2026-03-04T08:30,\n"
    percent = "p = $PendingTasks.GetSamplePercent(TimeInterval_Minute * 5)"
    assert [run.result.variables["p"] for run in runs(percent, table)] == [0, 90, 90, 0, 0, 0, 0]


def test_nodes_follow_the_targets_unless_the_table_counts_them() -> None:
    formula = "$TargetDedicatedNodes = $CurrentDedicatedNodes + 1"
    table = "time,PendingTasks\n2026-03-04T08:00,0\n2026-03-04T08:10,0\n"
    counted = "time,CurrentDedicatedNodes\n2026-03-04T08:00,7\n2026-03-04T08:10,7\n"
    assert [run.result.target_dedicated for run in runs(formula, table, dedicated=2)] == [3, 4, 5]
    assert [run.result.target_dedicated for run in runs(formula, counted, dedicated=2)] == [8, 8, 8]


@pytest.mark.parametrize("peak", [0, 1, 3, 7, 45, 1000, 123456])
def test_the_chart_has_room_for_every_value(peak: int) -> None:
    table = f"time,PendingTasks\n2026-03-04T08:00,0\n2026-03-04T08:10,{peak}\n2026-03-04T08:20,0\n"
    formula = "$TargetDedicatedNodes = max(0, $PendingTasks.GetSample(1))"
    root = ET.fromstring(draw("A <title> & more", runs(formula, table), read_trace(table)))
    svg = "{http://www.w3.org/2000/svg}"
    title = root.find(f"{svg}title")
    assert title is not None
    assert title.text == "A <title> & more"
    ticks = [float(text.text or "") for text in root.iter(f"{svg}text") if text.get("x") == "50"]
    assert 2 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert ticks[-1] >= peak


def test_the_chart_has_a_gap_where_samples_are_missing_and_a_cross_for_a_failure() -> None:
    table = (
        "time,PendingTasks\n2026-03-04T08:00,4\n2026-03-04T08:10,\n2026-03-04T08:20,2\n2026-03-04T08:30,2\n"
    )

    def drawn(formula: str) -> str:
        return draw("gap", runs(formula, table), read_trace(table))

    healthy = drawn("a = 1")
    # Four until 8:10, nothing until 8:20, then two until the end: 56 to 944 is half an hour, 48 is the top.
    assert 'd="M56.0 48.0H352.0M648.0 184.0H944.0V184.0H944.0"' in healthy
    assert "failed evaluation" not in healthy
    assert "failed evaluation" in drawn("a = nothing")


def test_a_chart_of_one_row_is_drawn() -> None:
    table = "time,PendingTasks\n2026-03-04T08:00,4\n"
    assert ET.fromstring(draw("one", runs("a = 1", table), read_trace(table))) is not None


def test_what_cannot_be_read_is_an_error() -> None:
    with pytest.raises(TraceError, match="line 2, column time"):
        read_trace("time,PendingTasks\nnoon,1\n")
