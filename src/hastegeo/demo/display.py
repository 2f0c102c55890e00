"""Two ways to show a run as it goes: a live view in a terminal, and plain lines where there is none."""

from __future__ import annotations

from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from hastegeo.demo.state import Road
from hastegeo.demo.view import render, short_pool, tasks_table, why
from hastegeo.domain import TaskRef, TaskState


class Display(Protocol):
    """Shows a run while the block lasts."""

    def update(self, road: Road) -> None:
        """Show the latest state."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None: ...


def display_for(console: Console) -> Display:
    """Return the live view for a terminal, and plain lines for a pipe or a file."""
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)


class LiveDisplay:
    """Tables that are redrawn in place. At the end the tasks stay, with their reasons in full."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._road: Road | None = None

    def update(self, road: Road) -> None:
        """Redraw."""
        self._road = road
        self._live.update(render(road, now=datetime.now(UTC)), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.stop()
        if self._road is not None and self._road.tasks:
            self._console.print(tasks_table(self._road, why))


class PlainDisplay:
    """A line for each step, each routing decision and each change of a task's state."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step = ""
        self._states: dict[TaskRef, TaskState] = {}

    def update(self, road: Road) -> None:
        """Print what has changed."""
        if road.step != self._step:
            self._step = road.step
            self._print(road, f"== {road.step}")
        for task in road.tasks:
            name = f"{task.tenant} {task.label}"
            pool = short_pool(task.decision.chosen)
            if task.ref not in self._states:
                self._print(road, f"{name} -> {pool} ({why(task.decision)})")
            elif task.state is not self._states[task.ref]:
                self._print(road, f"{name} on {pool}: {task.state}")
            self._states[task.ref] = task.state

    def _print(self, road: Road, text: str) -> None:
        elapsed = (datetime.now(UTC) - road.started).total_seconds()
        self._console.print(f"{elapsed:5.0f} s  {text}", markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        return None
