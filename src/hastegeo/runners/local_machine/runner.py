"""The local runner: the Runner contract on this machine, for development and small work.

It runs the spec's command as a process of this user, in the directory layout and with the variables of a
Batch node. The image is not used, and nothing confines the task: it is for one's own tasks alone.
"""

from __future__ import annotations

import builtins
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from azure.core.credentials import TokenCredential
from azure.identity import DefaultAzureCredential

from hastegeo.credentials import (
    Grant,
    GrantLedger,
    GrantMinter,
    authorise,
    default_ledger_path,
)
from hastegeo.domain import (
    Attempt,
    Decision,
    GrantKind,
    TaskFile,
    TaskRef,
    TaskSpec,
    TaskStatus,
    Verdict,
    Workload,
)
from hastegeo.errors import HasteError, RunnerError
from hastegeo.runners._definition import StorageAccess, scopes, task_lifetime
from hastegeo.runners._ids import fingerprint, job_id, task_id
from hastegeo.runners._refusals import check_tenant, conflict, not_found, some_failed
from hastegeo.runners._streams import write_whole
from hastegeo.runners.contract import LogStream, Runner, Submission
from hastegeo.runners.local_machine.layout import task_folder
from hastegeo.runners.local_machine.records import POOL_ID, RecordStore, Supervisor, TaskRecord
from hastegeo.runners.local_machine.supervisor import READY, Plan
from hastegeo.runners.local_machine.transfers import Download, Upload
from hastegeo.settings import Settings

_FOLLOW_SECONDS: Final = 0.1
_CHUNK_BYTES: Final = 1024 * 1024
_END_SECONDS: Final = 30.0
_HERE: Final = Decision(POOL_ID, (Attempt(POOL_ID, Verdict.ONLY_CANDIDATE, "this machine"),))


class LocalRunner(Runner):
    """Runs one environment's tasks on this machine, HASTE_LOCAL_SLOTS at once.

    A task goes on when the process that submitted it ends; another runner on the same folder sees it.
    """

    def __init__(
        self,
        settings: Settings,
        credential: TokenCredential | None = None,
        *,
        ledger: GrantLedger | None = None,
    ) -> None:
        self._settings = settings
        self._tenant = settings.tenant
        self._root = Path(settings.local_root) if settings.local_root else _default_root()
        self._store = RecordStore(self._root)
        ledger_path = Path(settings.grant_ledger) if settings.grant_ledger else default_ledger_path()
        self.ledger = ledger or GrantLedger(ledger_path)
        self._minter = GrantMinter(credential or DefaultAzureCredential(), self.ledger)

    def submit(self, spec: TaskSpec) -> Submission:
        """Submit a task once; see `Runner.submit`."""
        check_tenant(spec, self._tenant)
        ref = TaskRef(job_id(spec.tenant, POOL_ID, spec.workload), task_id(spec))
        known = self._store.load(ref)
        if known is not None:
            return _same(known, spec)
        grants = self._grants(spec, ref)
        record = TaskRecord(
            job_id=ref.job_id,
            task_id=ref.task_id,
            key=spec.key,
            tenant=spec.tenant,
            workload=spec.workload,
            fingerprint=fingerprint(spec),
            created=datetime.now(UTC).isoformat(),
            supervisor=Supervisor.this_process(),
        )
        if not self._store.create(record):
            return self.submit(spec)
        try:
            self._start(self._plan(spec, ref, grants))
        except BaseException:
            self._store.delete(ref)
            raise
        return Submission(ref=ref, decision=_HERE, grants=grants)

    def submit_many(self, specs: Sequence[TaskSpec]) -> list[Submission]:
        """Submit several tasks, one after the other; see `Runner.submit_many`."""
        results: builtins.list[Submission] = []
        errors: builtins.list[HasteError] = []
        for spec in specs:
            try:
                results.append(self.submit(spec))
            except HasteError as error:
                errors.append(error)
        if errors:
            raise some_failed(errors, len(specs)) from errors[0]
        return results

    def status(self, ref: TaskRef) -> TaskStatus:
        """Return what is known of a task now; see `Runner.status`."""
        return self._load(ref).status()

    def logs(
        self, ref: TaskRef, stream: LogStream | str = LogStream.STDOUT, *, follow: bool = False
    ) -> Iterator[bytes]:
        """Yield what the program wrote; see `Runner.logs`."""
        path = task_folder(self._root, ref) / f"{LogStream(stream)}.txt"
        sent = 0
        while True:
            # Asked before reading: what was written up to the end is then read.
            ended = self.status(ref).state.is_final
            if path.exists():
                if path.stat().st_size < sent:
                    sent = 0  # the program runs again and writes the log anew
                with path.open("rb") as file:
                    file.seek(sent)
                    while chunk := file.read(_CHUNK_BYTES):
                        sent += len(chunk)
                        yield chunk
            if ended or not follow:
                return
            time.sleep(_FOLLOW_SECONDS)

    def files(self, ref: TaskRef) -> tuple[TaskFile, ...]:
        """Return the files of a task; see `Runner.files`."""
        self._load(ref)
        folder = task_folder(self._root, ref)
        found = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
        return tuple(
            TaskFile(
                path.relative_to(folder).as_posix(),
                path.stat().st_size,
                datetime.fromtimestamp(path.stat().st_mtime, UTC),
            )
            for path in found
        )

    def download(self, ref: TaskRef, path: str, target: Path) -> Path:
        """Write one file of a task to `target`; see `Runner.download`."""
        self._load(ref)
        folder = task_folder(self._root, ref)
        source = folder / path
        if not source.is_file() or not source.resolve().is_relative_to(folder.resolve()):
            raise RunnerError(f"Task {ref} has no file {path} that can be had now.", hint="List its files.")
        with source.open("rb") as file:
            chunks = iter(lambda: file.read(_CHUNK_BYTES), b"")
            return write_whole(chunks, target / source.name if target.is_dir() else target)

    def cancel(self, ref: TaskRef) -> None:
        """End a task; see `Runner.cancel`. Returns when nothing of it runs any more."""
        deadline = time.monotonic() + _END_SECONDS
        while not (record := self._load(ref)).settled().status().state.is_final:
            supervisor = record.supervisor
            if record.taken_over and supervisor is not None and supervisor.lives:
                os.kill(supervisor.pid, signal.SIGTERM)
            if time.monotonic() > deadline:
                raise RunnerError(f"Task {ref} does not end.", hint=f"Look at process {supervisor}.")
            time.sleep(_FOLLOW_SECONDS)

    def cleanup(self, ref: TaskRef) -> None:
        """Forget one task and delete its files; see `Runner.cleanup`. A running task is ended first."""
        if self._store.load(ref) is None:
            return
        self.cancel(ref)
        shutil.rmtree(task_folder(self._root, ref), ignore_errors=True)
        self._store.delete(ref)

    def list(self, *, workload: Workload | None = None) -> Iterator[TaskStatus]:
        """Yield the status of this tenant's tasks; see `Runner.list`."""
        for record in self._store.all():
            if record.tenant == self._tenant.name and workload in {None, record.workload}:
                yield record.status()

    def _load(self, ref: TaskRef) -> TaskRecord:
        record = self._store.load(ref)
        if record is None:
            raise not_found(ref)
        return record

    def _grants(self, spec: TaskSpec, ref: TaskRef) -> tuple[Grant, ...]:
        if not self._settings.use_sas:
            return ()
        needed = [authorise(scope, self._tenant) for scope in scopes(spec, self._settings, ref)]
        lifetime = task_lifetime(spec, self._settings)
        return self._minter.mint(needed, tenant=self._tenant, task=str(ref), lifetime=lifetime)

    def _plan(self, spec: TaskSpec, ref: TaskRef, grants: tuple[Grant, ...]) -> Plan:
        access = StorageAccess(self._settings, {grant.scope: grant for grant in grants})

        def url(
            kind: GrantKind, container_url: str, prefix: str | None = None, blob: str | None = None
        ) -> str:
            return access.url(access.scope(kind, container_url, prefix=prefix, blob=blob))

        variables = {
            item.name: url(item.kind, item.container_url, item.prefix) for item in spec.grant_variables
        }
        limit = spec.max_wall_clock or self._settings.max_wall_clock
        return Plan(
            root=str(self._root.resolve()),
            job_id=ref.job_id,
            task_id=ref.task_id,
            command=spec.command,
            environment={**spec.environment, **variables},
            downloads=tuple(
                Download(
                    url=url(GrantKind.INPUTS, item.container_url, item.prefix, item.blob),
                    is_blob=item.blob is not None,
                    prefix=item.prefix,
                    path=item.path or item.blob,
                )
                for item in spec.inputs
            ),
            uploads=tuple(
                Upload(
                    pattern=item.pattern,
                    url=url(GrantKind.OUTPUTS, item.container_url, item.prefix),
                    path=item.prefix,
                    condition=item.condition,
                )
                for item in spec.outputs
            ),
            wall_clock_seconds=limit.total_seconds(),
            max_retries=spec.max_retries,
            slots=self._settings.local_slots,
        )

    def _start(self, plan: Plan) -> None:
        folder = task_folder(self._root, plan.ref)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        command = [sys.executable, "-m", "hastegeo.runners.local_machine.supervisor"]
        with (folder / "supervisor.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        with process.stdin, process.stdout:
            process.stdin.write(json.dumps(asdict(plan)).encode())
            process.stdin.close()
            if process.stdout.readline() != READY:
                process.kill()
                process.wait()
                raise RunnerError(
                    f"The task {plan.ref} could not be started on this machine.",
                    hint=f"Read {folder / 'supervisor.log'}.",
                )
        # Collects the supervisor's end, so that no zombie is left of it while this process goes on.
        threading.Thread(target=process.wait, daemon=True).start()


def _default_root() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "state") / "haste" / "local"


def _same(record: TaskRecord, spec: TaskSpec) -> Submission:
    if record.fingerprint != fingerprint(spec):
        raise conflict(spec, record.ref)
    return Submission(ref=record.ref, decision=_HERE, created=False)
