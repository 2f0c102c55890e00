"""Choosing and probing drivers."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from batch_emulator.nodes import DRIVERS, DriverUnavailableError, create_agent, probe_drivers

from .support import problem_of


def test_every_driver_is_probed_in_the_order_of_preference() -> None:
    probes = probe_drivers()
    assert [probe.name for probe in probes] == list(DRIVERS) == ["bubblewrap", "unshare", "process"]
    assert [probe.enforces_isolation for probe in probes] == [True, True, False]
    assert probes[-1].usable


def test_auto_takes_the_first_that_works() -> None:
    usable = next(name for name in DRIVERS if not problem_of(name))
    assert create_agent("auto").driver_name == usable


def _without_tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *names: str) -> None:
    """Make a PATH with only these tools."""
    for name in names:
        for directory in os.environ["PATH"].split(os.pathsep):
            if (place := Path(directory, name)).exists():
                (tmp_path / name).symlink_to(place)
                break
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_the_tools_plain_processes_remain_with_a_clear_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _without_tools(monkeypatch, tmp_path)
    with caplog.at_level(logging.WARNING):
        agent = create_agent("auto")
    assert agent.driver_name == "process"
    assert not agent.enforces_isolation
    assert "isolation is NOT enforced" in caplog.text
    assert "bwrap is not installed" in caplog.text


def test_a_tool_that_fails_is_not_usable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on systems that do not let ordinary users make namespaces: the tool is there, and says no."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (probe,) = probe_drivers(["bubblewrap"])
    assert not probe.usable
    assert probe.problem == "bwrap: setting up uid map: Permission denied"
    with pytest.raises(DriverUnavailableError, match="uid map"):
        create_agent("bubblewrap")


def test_an_unknown_driver_is_refused() -> None:
    with pytest.raises(ValueError, match="docker"):
        create_agent("docker")
