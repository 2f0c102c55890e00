"""The reference shows what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from batch_emulator.autoscale import METRICS
from batch_emulator.autoscale.functions import FUNCTIONS
from batch_emulator.autoscale.offline import autoscale_command

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "autoscale-language.md"


@pytest.fixture(scope="module")
def reference() -> str:
    return REFERENCE.read_text(encoding="utf-8")


def block(reference: str, language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", reference, re.DOTALL | re.MULTILINE)
    return str(found)


def test_the_example_prints_what_the_reference_shows(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("burst.txt").write_text(block(reference, "text"))
    Path("burst.csv").write_text(block(reference, "csv"))
    command, shown = block(reference, "console").split("\n", 1)
    app = typer.Typer()
    app.command()(autoscale_command)
    result = CliRunner().invoke(app, command.removeprefix("$ batch-emulator autoscale ").split())
    assert result.stdout == shown


def test_the_reference_names_every_metric_and_function(reference: str) -> None:
    assert {name for name in METRICS if f"`{name}`" not in reference} == set()
    (functions,) = re.findall(r"^Functions: `([a-z ]+)`", reference, re.MULTILINE)
    assert functions.split() == sorted({*FUNCTIONS, "rand", "stop", "time"})
