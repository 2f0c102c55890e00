"""What is particular to the local runner: crashes, slots, secrets, and the glob rules of outputs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from hastegeo.domain import TaskSpec, TaskState, Workload
from hastegeo.runners import LocalRunner
from hastegeo.runners.local_machine.records import RecordStore
from hastegeo.runners.local_machine.transfers import matches
from hastegeo.settings import Settings

PATIENCE = timedelta(seconds=60)
POLL = timedelta(seconds=0.05)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.load(
        {
            "RUNNER_TYPE": "local",
            "HASTE_TENANT": "dev1",
            "HASTE_LOCAL_ROOT": str(tmp_path / "local"),
            "HASTE_GRANT_LEDGER": str(tmp_path / "grants.jsonl"),
        }
    )


@pytest.fixture
def runner(settings: Settings) -> Iterator[LocalRunner]:
    made = LocalRunner(settings)
    yield made
    for status in list(made.list()):
        made.cleanup(status.ref)


def spec(key: str, program: str, **changes: object) -> TaskSpec:
    return TaskSpec(
        key=key,
        tenant="dev1",
        workload=Workload.TRAINING,
        image="unused",
        command=(sys.executable, "-c", program),
        **changes,  # type: ignore[arg-type]
    )


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + PATIENCE.total_seconds()
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline
        time.sleep(POLL.total_seconds())
    return path.read_text().strip()


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE.total_seconds()
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(POLL.total_seconds())
    return False


def test_a_killed_supervisor_is_a_failed_task_and_its_program_is_gone(
    runner: LocalRunner, settings: Settings, tmp_path: Path
) -> None:
    mark = tmp_path / "pid"
    program = f"import os, time; open({str(mark)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(300)"
    ref = runner.submit(spec("a", program)).ref
    pid = int(wait_for(mark))
    record = RecordStore(Path(settings.local_root)).load(ref)
    assert record is not None
    assert record.supervisor is not None
    assert LocalRunner(settings).status(ref).state is TaskState.RUNNING
    os.kill(record.supervisor.pid, signal.SIGKILL)
    assert gone(pid)
    for found in (runner, LocalRunner(settings)):
        status = found.wait(ref, timeout=PATIENCE, poll=POLL)
        assert status.state is TaskState.FAILED
        assert status.failure is not None
        assert status.failure.code == "SupervisorLost"


def test_tasks_wait_for_a_slot(runner: LocalRunner, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    first = runner.submit(
        spec("a", f"import time; print(1, file=open({str(mark)!r}, 'w')); time.sleep(300)")
    ).ref
    wait_for(mark)
    second = runner.submit(spec("b", "pass")).ref
    assert runner.status(second).state is TaskState.QUEUED
    third = runner.submit(spec("c", "pass")).ref
    runner.cancel(third)
    assert runner.status(third).state is TaskState.CANCELLED
    runner.cancel(first)
    assert runner.wait(second, timeout=PATIENCE, poll=POLL).state is TaskState.SUCCEEDED


def test_processes_left_behind_are_ended_with_the_task(runner: LocalRunner, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    child = f"import os, time; open({str(mark)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(300)"
    program = (
        "import pathlib, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        f"while not pathlib.Path({str(mark)!r}).exists(): time.sleep(0.05)\n"
    )
    assert runner.wait(runner.submit(spec("a", program)).ref, timeout=PATIENCE, poll=POLL).state.is_final
    assert gone(int(wait_for(mark)))


def test_a_program_sees_no_variable_of_the_submitter(
    runner: LocalRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_BATCH_ACCOUNT_KEY", "c2VjcmV0LWtleQ==")
    monkeypatch.setenv("IDENTITY_HEADER", "a-secret-header")
    ref = runner.submit(spec("a", "import os; print(sorted(os.environ))", environment={"MINE": "1"})).ref
    runner.wait(ref, timeout=PATIENCE, poll=POLL)
    shown = b"".join(runner.logs(ref)).decode()
    assert "'MINE'" in shown
    assert "AZURE_BATCH_ACCOUNT_KEY" not in shown
    assert "IDENTITY_HEADER" not in shown


@pytest.mark.parametrize(
    ("pattern", "path", "names"),
    [
        ("*.tif", "r", {"r/a.tif"}),
        ("**/*.tif", "r", {"r/a.tif", "r/out/b.tif", "r/out/deep/c.tif"}),
        ("out/**/*", "r", {"r/b.tif", "r/deep/c.tif", "r/deep/c1.txt", "r/deep/c2.txt"}),
        ("out/**", None, {"b.tif", "deep/c.tif", "deep/c1.txt", "deep/c2.txt"}),
        ("out/*/c?.txt", "r/", {"r/deep/c1.txt", "r/deep/c2.txt"}),
        ("out/deep/c[2-9].txt", "r", {"r/c2.txt"}),
        ("out/deep/c[!2].txt", "r", {"r/c1.txt"}),
        ("a.tif", "r/renamed.tif", {"r/renamed.tif"}),
        ("a.tif", None, {"a.tif"}),
        ("none.tif", "r", set()),
        ("none/**/*", "r", set()),
    ],
)
def test_output_patterns(tmp_path: Path, pattern: str, path: str | None, names: set[str]) -> None:
    working = tmp_path / "wd"
    for name in ("a.tif", ".hidden.tif", "out/b.tif", "out/deep/c.tif", "out/deep/c1.txt", "out/deep/c2.txt",
                 "out/.secret/d.tif"):  # fmt: skip
        (working / name).parent.mkdir(parents=True, exist_ok=True)
        (working / name).write_text("x")
    (tmp_path / "outside.tif").write_text("not the task's")
    (working / "out" / "link.tif").symlink_to(tmp_path / "outside.tif")
    assert {name for _, name in matches(pattern, path, working)} == names
