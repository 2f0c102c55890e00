"""The process that carries out one local task, and outlives the one that submitted it.

It reads its plan, which may hold grants, from standard input, so that no grant is on a command line or in a
file. It says `ready` once the task's record names it, and from then on the record is its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

from hastegeo.credentials import install_redaction
from hastegeo.domain import OutputCondition, TaskRef, TaskState
from hastegeo.runners.local_machine.layout import task_environment, task_folder
from hastegeo.runners.local_machine.records import RecordStore, Supervisor, TaskRecord
from hastegeo.runners.local_machine.transfers import Download, TransferError, Upload, download, upload

READY: Final = b"ready\n"
_POLL_SECONDS: Final = 0.05
_SET_PARENT_DEATH_SIGNAL: Final = 1
_SET_CHILD_SUBREAPER: Final = 36
_KEPT_VARIABLES: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a supervisor needs. It holds grants: it travels by a pipe and is never written."""

    root: str
    job_id: str
    task_id: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    downloads: tuple[Download, ...]
    uploads: tuple[Upload, ...]
    wall_clock_seconds: float
    max_retries: int
    slots: int

    @property
    def ref(self) -> TaskRef:
        """Where the task lives."""
        return TaskRef(self.job_id, self.task_id)

    @classmethod
    def read(cls, text: str) -> Plan:
        """Read a plan that `json.dumps(asdict(plan))` wrote."""
        values: dict[str, Any] = json.loads(text)
        values["command"] = tuple(values["command"])
        values["downloads"] = tuple(Download(**item) for item in values["downloads"])
        values["uploads"] = tuple(Upload(**item) for item in values["uploads"])
        return cls(**values)


class _Cancelled(Exception):  # noqa: N818 - a request, not an error
    """The task is to end."""


class _Failed(Exception):  # noqa: N818 - how a task ended, not a defect
    def __init__(
        self, code: str, message: str, *, exit_code: int | None = None, category: str = "usererror"
    ) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = exit_code
        self.category = category


class _Run:
    """One task from its place in the queue to its end."""

    def __init__(self, plan: Plan, store: RecordStore, record: TaskRecord) -> None:
        self._plan = plan
        self._store = store
        self._record = record
        self._folder = task_folder(Path(plan.root), plan.ref)
        self._working = self._folder / "wd"
        self._cancelled = False

    def request_cancel(self, _signal: int, _frame: FrameType | None) -> None:
        """Note that the task is to end; the loops that wait look at it."""
        self._cancelled = True

    def carry_out(self) -> None:
        """Run the task and write how it ended."""
        try:
            with self._slot():
                self._run_with_retries()
        except _Cancelled:
            self._finish(TaskState.CANCELLED, code="TaskEnded", message="The task was ended on request.")
        except _Failed as error:
            self._finish(
                TaskState.FAILED,
                code=error.code,
                message=str(error),
                exit_code=error.exit_code,
                category=error.category,
            )
        else:
            self._finish(TaskState.SUCCEEDED, exit_code=0)

    @contextlib.contextmanager
    def _slot(self) -> Iterator[None]:
        """Wait for one of the machine's slots; the kernel frees it however this process ends."""
        folder = Path(self._plan.root) / "slots"
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            files = [
                stack.enter_context((folder / f"{number}.lock").open("w"))
                for number in range(self._plan.slots)
            ]
            while not any(_locked(file.fileno()) for file in files):
                self._pause()
            yield

    def _prepare(self) -> None:
        """Give the run an empty working directory with its inputs, whatever an earlier try left there."""
        self._save(state=TaskState.PREPARING)
        shutil.rmtree(self._working, ignore_errors=True)
        self._working.mkdir(parents=True)
        for item in self._plan.downloads:
            self._stop_if_cancelled()
            try:
                download(item, self._working)
            except TransferError as error:
                raise _Failed(error.code, str(error)) from None

    def _run_with_retries(self) -> None:
        for retry in range(self._plan.max_retries + 1):
            self._prepare()
            self._save(state=TaskState.RUNNING, started=_now(), retries=retry)
            try:
                self._run_once()
            except _Failed as error:
                self._upload_what_is_left()
                if error.exit_code and retry < self._plan.max_retries:
                    continue
                raise
            except _Cancelled:
                self._upload_what_is_left()
                raise
            self._upload(succeeded=True)
            return

    def _run_once(self) -> None:
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        environment |= {**task_environment(Path(self._plan.root), self._plan.ref), **self._plan.environment}
        with (self._folder / "stdout.txt").open("wb") as out, (self._folder / "stderr.txt").open("wb") as err:
            try:
                process = subprocess.Popen(
                    self._plan.command,
                    cwd=self._working,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    # If this process is killed, the program must not go on without anybody who tells of it.
                    preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
                )
            except FileNotFoundError:
                raise _Failed(
                    "CommandProgramNotFound", f"There is no program {self._plan.command[0]}."
                ) from None
            except OSError as error:
                raise _Failed(
                    "CommandLaunchFailed", f"The command cannot be started: {error.strerror}."
                ) from None
            try:
                self._wait(process)
            finally:
                _end_descendants()
                process.wait()
        if process.returncode:
            code = process.returncode if process.returncode > 0 else 128 - process.returncode
            raise _Failed("FailureExitCode", f"The program exited with {code}.", exit_code=code)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._plan.wall_clock_seconds
        while process.poll() is None:
            if time.monotonic() >= deadline:
                raise _Failed("TaskEnded", "The wall-clock limit was reached.")
            self._pause()

    def _upload(self, *, succeeded: bool) -> None:
        wanted = {
            OutputCondition.COMPLETION,
            OutputCondition.SUCCESS if succeeded else OutputCondition.FAILURE,
        }
        for item in self._plan.uploads:
            if item.condition in wanted:
                try:
                    upload(item, self._working)
                except TransferError as error:
                    raise _Failed(error.code, str(error)) from None

    def _upload_what_is_left(self) -> None:
        """Save the outputs of a run that did not succeed; why it did not is the news, not a failed upload."""
        with contextlib.suppress(_Failed):
            self._upload(succeeded=False)

    def _finish(
        self,
        state: TaskState,
        *,
        code: str = "",
        message: str = "",
        exit_code: int | None = None,
        category: str = "usererror",
    ) -> None:
        failure = {"category": category, "code": code, "message": message} if code else None
        self._save(state=state, ended=_now(), exit_code=exit_code, failure=failure)

    def _save(self, **changes: Any) -> None:
        self._record = replace(self._record, **changes)
        self._store.save(self._record)

    def _pause(self) -> None:
        self._stop_if_cancelled()
        time.sleep(_POLL_SECONDS)

    def _stop_if_cancelled(self) -> None:
        if self._cancelled:
            raise _Cancelled


def main() -> int:
    """Carry out the plan on standard input."""
    install_redaction()
    plan = Plan.read(sys.stdin.read())
    store = RecordStore(Path(plan.root))
    record = store.load(plan.ref)
    if record is None:
        return 1
    record = replace(record, supervisor=Supervisor.this_process(), taken_over=True)
    run = _Run(plan, store, record)
    signal.signal(signal.SIGTERM, run.request_cancel)
    # Processes that the program leaves behind become this process's children, so that they can be ended.
    _libc().prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    store.save(record)
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    run.carry_out()
    return 0


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end_descendants() -> None:
    """Kill every process below this one and wait for it; a killed parent's children come to this one."""
    while children := _children(os.getpid()):
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def _die_with_parent() -> None:
    _libc().prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _now() -> str:
    return datetime.now(UTC).isoformat()


if __name__ == "__main__":
    sys.exit(main())
