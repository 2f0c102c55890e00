"""Waiting for a task, with its state shown as it changes."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from hastegeo.cli._output import length, note, steps
from hastegeo.errors import RunnerError

if TYPE_CHECKING:
    from hastegeo.domain import TaskRef, TaskStatus
    from hastegeo.runners import Runner

_POLL_SECONDS: Final = 2.0


def wait_for(
    runner: Runner, ref: TaskRef, *, timeout: timedelta | None = None, poll: float = _POLL_SECONDS
) -> TaskStatus:
    """Return the status of a task once it has ended.

    Raises `RunnerError` after `timeout`; the task goes on, as it does where the waiting is interrupted.
    """
    deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
    status: TaskStatus | None = None
    try:
        with steps(f"Waiting for {ref}") as progress:
            while True:
                status = runner.status(ref)
                where = f" on {status.pool_id}" if status.pool_id else ""
                progress.say(f"{ref} is {status.state}{where}")
                if status.state.is_final:
                    return status
                if deadline is not None and time.monotonic() >= deadline:
                    raise RunnerError(
                        f"Task {ref} is still {status.state} after {length(timeout or timedelta())}.",
                        hint=f"It goes on. Wait again with `haste status --wait {ref}`, or cancel it.",
                    )
                time.sleep(poll)
    finally:
        if status is None or not status.state.is_final:
            note(f"The task goes on: `haste cancel {ref}` ends it.")
