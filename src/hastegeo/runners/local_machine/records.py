"""What the local runner knows of its tasks: one file each, replaced whole, that outlives every process.

While a task is under way its supervisor process alone writes its record. A record whose supervisor is gone
tells of a crash; it is never read as a task that runs.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from hastegeo.domain import TaskFailure, TaskRef, TaskState, TaskStatus

POOL_ID: Final = "local"
LOST_CODE: Final = "SupervisorLost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """A process, named so that another process of the same id is not taken for it."""

    pid: int
    born: str

    @classmethod
    def this_process(cls) -> Supervisor:
        """Return the calling process."""
        return cls(pid=os.getpid(), born=_born(os.getpid()))

    @property
    def lives(self) -> bool:
        """Whether the process still runs."""
        return bool(self.born) and _born(self.pid) == self.born


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task. Times are ISO 8601 in UTC. No secret is in it.

    Until `taken_over`, `supervisor` is the process that submits the task, which answers for it so long.
    """

    job_id: str
    task_id: str
    key: str
    tenant: str
    workload: str
    fingerprint: str
    created: str
    state: str = TaskState.QUEUED
    started: str | None = None
    ended: str | None = None
    exit_code: int | None = None
    retries: int = 0
    failure: dict[str, str] | None = None
    supervisor: Supervisor | None = None
    taken_over: bool = False

    @property
    def ref(self) -> TaskRef:
        """Where the task lives."""
        return TaskRef(self.job_id, self.task_id)

    def settled(self) -> TaskRecord:
        """Return the record as it is to be believed: a task whose supervisor is gone has failed."""
        if TaskState(self.state).is_final or (self.supervisor is not None and self.supervisor.lives):
            return self
        lost = {
            "category": "servererror",
            "code": LOST_CODE,
            "message": "The process that ran the task on this machine is gone.",
        }
        return replace(self, state=TaskState.FAILED, failure=lost)

    def status(self) -> TaskStatus:
        """Return the record as the status that callers see."""
        record = self.settled()
        failure = _failure(record.failure)
        return TaskStatus(
            ref=record.ref,
            state=TaskState(record.state),
            reason=_reason(record, failure),
            pool_id=POOL_ID,
            node_id=POOL_ID if record.started else "",
            exit_code=record.exit_code,
            created=datetime.fromisoformat(record.created),
            started=datetime.fromisoformat(record.started) if record.started else None,
            ended=datetime.fromisoformat(record.ended) if record.ended else None,
            retries=record.retries,
            failure=failure,
        )


class RecordStore:
    """The records below a folder."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "records"

    def create(self, record: TaskRecord) -> bool:
        """Write a record unless the task has one, and say whether it was written; one caller wins."""
        path = self._path(record.ref)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._write(record)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def save(self, record: TaskRecord) -> None:
        """Replace a task's record."""
        self._write(record).replace(self._path(record.ref))

    def load(self, ref: TaskRef) -> TaskRecord | None:
        """Return a task's record, or None where it has none."""
        try:
            return _read(json.loads(self._path(ref).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def delete(self, ref: TaskRef) -> None:
        """Forget a task; one that is not known is fine."""
        self._path(ref).unlink(missing_ok=True)

    def all(self) -> Iterator[TaskRecord]:
        """Yield every record."""
        for path in sorted(self._folder.glob("*/*.json")):
            record = self.load(TaskRef(path.parent.name, path.stem))
            if record is not None:
                yield record

    def _path(self, ref: TaskRef) -> Path:
        return self._folder / ref.job_id / f"{ref.task_id}.json"

    def _write(self, record: TaskRecord) -> Path:
        path = self._path(record.ref)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        temporary.write_text(json.dumps(asdict(record)), encoding="utf-8")
        return temporary


def _read(values: dict[str, Any]) -> TaskRecord:
    supervisor = values.pop("supervisor")
    return TaskRecord(**values, supervisor=Supervisor(**supervisor) if supervisor else None)


def _born(pid: int) -> str:
    """Return when a process was started, in the kernel's ticks; empty if it is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name in parentheses may hold spaces; the fields after it are counted from the third (the state).
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X"} else fields[19]


def _failure(values: dict[str, str] | None) -> TaskFailure | None:
    return TaskFailure(values["category"], values["code"], values["message"]) if values else None


def _reason(record: TaskRecord, failure: TaskFailure | None) -> str:
    if record.state == TaskState.QUEUED:
        return "waits for its turn on this machine"
    if record.state == TaskState.CANCELLED:
        return "ended on request"
    if record.state != TaskState.FAILED:
        return ""
    if record.exit_code:
        return f"the program exited with {record.exit_code}"
    return f"{failure.code}: {failure.message}" if failure else ""
