"""The Runner contract: the docstrings are the promises, and one test suite holds every runner to them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from hastegeo.credentials import Grant
from hastegeo.domain import Decision, TaskFile, TaskRef, TaskSpec, TaskStatus, Workload
from hastegeo.errors import RunnerError


class LogStream(StrEnum):
    """The two streams that a task's program writes."""

    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class Submission:
    """What a submission did. `grants` show their scope and times; their signatures are not in their text.

    `created` is False where the very same task existed already.
    """

    ref: TaskRef
    decision: Decision
    grants: tuple[Grant, ...] = ()
    created: bool = True


class Runner(ABC):
    """Runs tasks. Every method may be called from several threads at once.

    Errors are `HasteError`s: `TaskNotFoundError` for a task that is not known, `RunnerError` where the
    service failed or refused, and those named below. No error text holds a signature or a key.
    """

    @abstractmethod
    def submit(self, spec: TaskSpec) -> Submission:
        """Submit a task once: calling it again with the same key and definition gives the same task.

        Raises `TaskConflictError` if the key was used for another definition, `CapacityError` if no
        candidate pool can ever take it, `GrantRefusedError` for storage outside the tenant's own,
        `InputError` for a spec that this runner cannot carry out. When it raises, no task was left behind
        by this call, or calling it again finds the one that was.
        """

    @abstractmethod
    def submit_many(self, specs: Sequence[TaskSpec]) -> list[Submission]:
        """Submit several tasks, and return a submission for each, in order; each is promised as by `submit`.

        An error of one task does not stop the others: all are tried, then one `RunnerError` says how many
        failed and why the first did.
        """

    @abstractmethod
    def status(self, ref: TaskRef) -> TaskStatus:
        """Return what is known of a task now, by one call to the service."""

    def wait(
        self, ref: TaskRef, *, timeout: timedelta | None = None, poll: timedelta = timedelta(seconds=2)
    ) -> TaskStatus:
        """Return the status of a task once it has ended, asking every `poll`.

        Raises `RunnerError` after `timeout`; the task goes on.
        """
        deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
        while True:
            status = self.status(ref)
            if status.state.is_final:
                return status
            if deadline is not None and time.monotonic() >= deadline:
                raise RunnerError(
                    f"Task {ref} is still {status.state} after {timeout}.",
                    hint="Wait longer, or cancel it; it goes on until then.",
                )
            time.sleep(poll.total_seconds())

    @abstractmethod
    def logs(
        self, ref: TaskRef, stream: LogStream | str = LogStream.STDOUT, *, follow: bool = False
    ) -> Iterator[bytes]:
        """Yield what the program wrote, in chunks of bytes as they are (a character may be split between
        two).

        Without `follow` it ends at what has been written so far; nothing written yet yields nothing. With
        `follow` it goes on until the task has ended. Logs outlive the node where the environment has an
        output container; where they are gone, it raises `RunnerError`.
        """

    @abstractmethod
    def files(self, ref: TaskRef) -> tuple[TaskFile, ...]:
        """Return the files of a task that can be downloaded now, sorted by path."""

    @abstractmethod
    def download(self, ref: TaskRef, path: str, target: Path) -> Path:
        """Write one file of a task to `target` (a file, or an existing folder) by streaming, and return
        where.

        An interrupted download leaves no partial file at the target.
        """

    @abstractmethod
    def cancel(self, ref: TaskRef) -> None:
        """End a task. It becomes `cancelled`, unless it has ended already: then nothing changes."""

    @abstractmethod
    def cleanup(self, ref: TaskRef) -> None:
        """Forget one task and delete its files on the node; results in blob storage stay.

        Other tasks are never touched. A task that is not known is fine: cleaning up twice is no error.
        """

    @abstractmethod
    def list(self, *, workload: Workload | None = None) -> Iterator[TaskStatus]:
        """Yield the status of this tenant's tasks, of one workload or all, in no promised order."""
