"""The commands on tasks, as a user types them."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from .support import H100, T4, Haste

PREPARE = ("submit", "-w", "imageryprep", "--wall-clock", "5m")
COPY = (
    "import pathlib; print(pathlib.Path('in/a.tif').read_text()); pathlib.Path('out.txt').write_text('made')"
)


def python(program: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", program)


def key() -> str:
    return f"k-{uuid.uuid4().hex}"


def submit(haste: Haste, *options: str, program: str = "pass", code: int = 0) -> dict[str, Any]:
    return haste(*PREPARE, *options, "--json", *python(program), code=code).json


def test_a_task_is_submitted_run_shown_and_fetched(haste: Haste, tmp_path: Path) -> None:
    prefix = f"results/{uuid.uuid4().hex}"
    found = submit(
        haste,
        "--input",
        "raw/a.tif=in/a.tif",
        "--output",
        f"out.txt={prefix}/out.txt",
        "--wait",
        program=COPY,
    )
    task = found["task"]
    assert found["created"] is True
    assert found["status"]["state"] == "succeeded"
    assert found["status"]["pool"] == found["decision"]["pool"]
    assert {grant["kind"] for grant in found["grants"]} == {"inputs", "outputs"}
    assert haste("logs", task).out == "pixels\n"
    shown = haste("status", task)
    assert task in shown.out
    assert "succeeded" in shown.out
    assert haste("status", task, "--json").json == found["status"]
    listed = haste("ls", "--json", "-w", "imageryprep", "--state", "succeeded").json
    assert task in {entry["task"] for entry in listed}
    assert task in haste("ls").out
    assert haste("ls", "-w", "training", "--json").json == []

    files = haste("get", task, "--list", "--json").json
    assert {"stdout.txt", "wd/out.txt", "wd/in/a.tif"} <= {entry["path"] for entry in files}
    haste("get", task, "wd/*.txt", "--to", str(tmp_path / "node"))
    assert (tmp_path / "node/wd/out.txt").read_text() == "made"
    assert not (tmp_path / "node/stdout.txt").exists()
    haste("get", task, "--results", "results", "--to", str(tmp_path / "stored"))
    assert (tmp_path / "stored" / prefix / "out.txt").read_text() == "made"

    haste("cancel", task, "--cleanup")
    assert haste("status", task, code=1).err.startswith("haste: There is no task")
    assert haste("get", task, "--list", code=1).out == ""


def test_the_same_key_is_one_task_and_another_definition_is_refused(haste: Haste) -> None:
    name = key()
    first = submit(haste, "--key", name, "--candidates", T4)
    again = submit(haste, "--key", name, "--candidates", T4)
    assert again["task"] == first["task"]
    assert (first["created"], again["created"]) == (True, False)
    refused = haste(*PREPARE, "--key", name, "--candidates", T4, *python("print(1)"), code=1)
    assert "another definition" in refused.err
    assert refused.out == ""


def test_a_dry_run_shows_everything_but_secrets_and_submits_nothing(haste: Haste) -> None:
    before = haste("ls", "--json").json
    options = ("--input", "raw/", "--output", "out/*=results/x", "--env", "TOKEN=hunter2hunter2")
    haste.secrets += ("hunter2hunter2",)
    shown = haste(*PREPARE, *options, "--dry-run", *python("pass"))
    for expected in (T4, H100, "inputs rl", "outputs cw", "--cap-drop=ALL", "TOKEN", "Nothing was submitted"):
        assert expected in shown.out
    found = haste(*PREPARE, *options, "--dry-run", "--json", *python("pass")).json
    assert [attempt["pool"] for attempt in found["decision"]["attempts"]] == [T4, H100]
    assert {grant["kind"] for grant in found["grants"]} == {"inputs", "outputs"}
    assert found["task"]["containerSettings"]["containerHostBatchBindMounts"][0]["source"] == "Task"
    assert haste("ls", "--json").json == before


def test_a_need_for_gpu_memory_and_the_candidates_decide_the_pool(haste: Haste) -> None:
    found = haste(*PREPARE, "--gpu-memory", "40", "--dry-run", "--json", *python("pass")).json
    assert found["decision"]["pool"] == H100
    assert found["decision"]["attempts"][0]["verdict"] == "too small"
    found = haste(*PREPARE, "--candidates", H100, "--dry-run", "--json", *python("pass")).json
    assert found["decision"]["pool"] == H100
    refused = haste(*PREPARE, "--gpus", "8", "--dry-run", *python("pass"), code=1)
    assert "No candidate pool can take the task" in refused.err


def test_waiting_for_a_task_that_fails_exits_with_4_and_explain_says_why(haste: Haste) -> None:
    found = submit(haste, "--wait", program="import sys; print('oh', file=sys.stderr); sys.exit(7)", code=4)
    task = found["task"]
    assert found["status"]["exit_code"] == 7
    assert haste("status", task, "--wait", code=4).out
    assert haste("logs", task, "--stderr").out == "oh\n"
    explained = haste("explain", task, "--json").json
    assert explained["category"] == "user"
    assert "exited with 7" in explained["meaning"]
    assert "exited with 7" in haste("explain", task).out


def test_logs_are_followed_to_the_end_and_what_is_secret_in_them_is_masked(haste: Haste) -> None:
    program = (
        "import time\n"
        "for part in ('one', 'https://x/y?sv=1&sig=canary', 'three'):\n"
        "    print(part, flush=True); time.sleep(0.3)"
    )
    haste.secrets += ("canary",)
    found = submit(haste, program=program)
    assert haste("logs", "-f", found["task"]).out == "one\nhttps://x/y?sv=1&sig=REDACTED\nthree\n"


def test_a_task_is_cancelled(haste: Haste) -> None:
    found = submit(haste, program="import time; time.sleep(120)")
    haste("cancel", found["task"])
    assert haste("status", "--wait", found["task"], "--json", code=4).json["state"] == "cancelled"
    assert "ended on request" in haste("explain", found["task"]).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("status", "nonsense"), "is not a task"),
        (
            (*PREPARE, "--input", "https://dev1store.blob.core.windows.net/data/a?sig=canary", "--", "x"),
            "query",
        ),
        ((*PREPARE, "--output", "out", "--", "x"), "not an output"),
        ((*PREPARE, "--env", "NAME", "--", "x"), "NAME=VALUE"),
        ((*PREPARE, "--tenant", "dev2", "--", "x"), "this environment is dev1"),
        ((*PREPARE, "--run-option=--privileged", "--", "x"), "not allowed"),
        (("submit", "-w", "training", "--", "x"), "AZURE_BATCH_DOCKER_IMAGE"),
        ((*PREPARE, "--dry-run", "--wait", "--", "x"), "nothing to wait for"),
        (("ls", "--env-file", "no-such-file"), "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(
    haste: Haste, arguments: tuple[str, ...], message: str
) -> None:
    haste.secrets += ("canary",)
    refused = haste(*arguments, code=2)
    assert message in refused.err
    assert "What to do" in refused.err
    assert refused.out == ""


def test_storage_of_another_tenant_is_refused_before_anything_is_sent(haste: Haste, storage: Any) -> None:
    foreign = storage.address("dev2store").url
    refused = haste(*PREPARE, "--input", f"{foreign}/raw/a.tif", *python("pass"), code=1)
    assert "not its own" in refused.err


def test_settings_come_from_a_file_where_one_is_given(
    bare_haste: Haste, variables: dict[str, str], write_env: Any
) -> None:
    assert "AZURE_BATCH_URL" in bare_haste("ls", code=2).err
    assert isinstance(bare_haste("ls", "--json", "--env-file", write_env(variables)).json, list)


def test_the_same_commands_work_with_the_local_runner(
    bare_haste: Haste, variables: dict[str, str], write_env: Any, tmp_path: Path
) -> None:
    local = variables | {"RUNNER_TYPE": "local", "HASTE_LOCAL_ROOT": str(tmp_path / "local")}
    file = ("--env-file", write_env(local))
    found = bare_haste(*PREPARE, *file, "--wait", "--json", *python("print('here')")).json
    assert bare_haste("logs", *file, found["task"]).out == "here\n"
    assert json.loads(bare_haste("ls", *file, "--json").out)[0]["task"] == found["task"]
    refused = bare_haste(*PREPARE, *file, "--dry-run", *python("pass"), code=2)
    assert "needs Azure Batch" in refused.err
