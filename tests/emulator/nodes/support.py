"""Helpers for tests that run real tasks on this machine."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from batch_emulator.nodes import Image, ImageTable, LocalNodeAgent, probe_drivers
from batch_emulator.nodes.contract import BindMount, Container, RunHandle, TaskLaunch, TaskOutcome

IMAGE = "test/shell:latest"
IMAGES = ImageTable({IMAGE: Image(command=("/bin/sh", "-c"))})
PYTHON = sys.executable


@dataclass(frozen=True)
class Result:
    """What a run left: its outcome, its output, and when `on_started` was called."""

    outcome: TaskOutcome
    directory: Path
    started: list[datetime]

    @property
    def stdout(self) -> str:
        return (self.directory / "stdout.txt").read_text()

    @property
    def stderr(self) -> str:
        return (self.directory / "stderr.txt").read_text()

    @property
    def code(self) -> str:
        assert self.outcome.failure is not None
        return self.outcome.failure.code


@dataclass
class Node:
    """One node and the agent that serves it, driven from a synchronous test."""

    agent: LocalNodeAgent
    root: Path
    runner: asyncio.Runner
    started: dict[str, list[datetime]] = field(default_factory=dict)

    def task_path(self, task: str, job: str = "job") -> str:
        return f"workitems/{job}/job-1/{task}"

    def start(self, command_line: str, *, task: str = "task", job: str = "job", **launch: Any) -> RunHandle:
        """Start a run; call it on the event loop."""
        path = self.task_path(task, job)
        self.started[path] = []
        environment = {"AZ_BATCH_TASK_ID": task, **launch.pop("environment", {})}
        return self.agent.start(
            TaskLaunch(
                node_root=self.root,
                task_path=path,
                command_line=command_line,
                environment=environment,
                **launch,
            ),
            on_started=self.started[path].append,
        )

    def run(self, command_line: str, *, task: str = "task", job: str = "job", **launch: Any) -> Result:
        """Carry out a run to its end."""

        async def carry_out() -> TaskOutcome:
            return await self.start(command_line, task=task, job=job, **launch).wait()

        outcome = self.runner.run(carry_out())
        path = self.task_path(task, job)
        return Result(outcome, self.root / path, self.started[path])

    def shell(self, script: str, **launch: Any) -> Result:
        """Carry out a shell script."""
        return self.run(f"/bin/sh -c {quote(script)}", **launch)

    def python(self, script: str, **launch: Any) -> Result:
        """Carry out a Python script."""
        return self.run(f"{PYTHON} -c {quote(script)}", **launch)


MakeNode = Callable[..., Node]


def quote(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def container(
    *mounts: tuple[BindMount, bool] | BindMount, image: str = IMAGE, options: str = ""
) -> Container:
    """Container settings that mount exactly these, read-write unless said otherwise."""
    pairs = tuple(mount if isinstance(mount, tuple) else (mount, False) for mount in mounts)
    return Container(image_name=image, run_options=options, bind_mounts=pairs)


def whole_node(image: str = IMAGE) -> Container:
    """Container settings without bind mounts: the service's default."""
    return Container(image_name=image)


@functools.cache
def problem_of(driver: str) -> str:
    return probe_drivers([driver])[0].problem


def require(driver: str) -> str:
    if problem := problem_of(driver):
        pytest.skip(f"the {driver} driver does not work here: {problem}")
    return driver


def processes_with(mark: str) -> list[int]:
    """The processes of this machine with `mark` as one of their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def wait_until(condition: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Poll a real process until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


async def until(condition: Callable[[], bool], *, seconds: float = 20.0) -> None:
    """Poll a real process on the event loop until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        await asyncio.sleep(0.02)


def is_root() -> bool:
    return os.geteuid() == 0
