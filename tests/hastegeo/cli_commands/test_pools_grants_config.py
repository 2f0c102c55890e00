"""`haste pools`, `haste grants` and `haste config`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from .support import H100, IMAGE, T4, Haste

WriteEnv = Callable[..., str]
OLDER = {
    "AZURE_BATCH_URL": "https://account.region.batch.azure.com",
    "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": "/ids/pool",
}


def test_pools_are_shown_with_what_they_are_candidates_for(haste: Haste) -> None:
    shown = haste("pools").out.splitlines()
    assert shown[0].split() == [
        *("POOL", "TIER", "IDLE", "RUN", "START", "PREEMPT", "BAD", "LEAVE", "QUEUED", "ROOM", "FOR", "ERROR")
    ]
    assert {line.split()[0]: line.split()[1] for line in shown[1:]} == {T4: "t4", H100: "h100"}
    found = {pool["pool"]: pool for pool in haste("pools", "--json").json["pools"]}
    assert found[T4]["candidate_for"] == {"imageryprep": 1, "artifacts": 1}
    assert found[H100]["candidate_for"] == {"imageryprep": 2, "artifacts": 2}
    assert sum(found[T4]["nodes"].values()) == 1
    assert found[T4]["headroom"] == 0
    assert found[T4]["exists"] is True


def test_a_candidate_that_does_not_exist_is_shown_as_such(
    haste: Haste, variables: dict[str, str], write_env: WriteEnv
) -> None:
    file = write_env(variables | {"AZURE_BATCH_IMAGERYPREP_POOL_IDS": f"{T4},no-such-pool"})
    found = {pool["pool"]: pool for pool in haste("pools", "--json", "--env-file", file).json["pools"]}
    assert found["no-such-pool"]["exists"] is False
    line = next(line for line in haste("pools", "--env-file", file).out.splitlines() if "no-such" in line)
    assert "does not exist" in line


def test_an_account_that_cannot_be_reached_is_one_sentence(
    bare_haste: Haste, variables: dict[str, str], write_env: WriteEnv
) -> None:
    file = write_env(variables | {"AZURE_BATCH_URL": "http://127.0.0.1:9"})
    refused = bare_haste("pools", "--env-file", file, code=1)
    assert "cannot connect" in refused.err
    assert "haste doctor" in refused.err


def test_grants_are_listed_from_the_ledger_without_signatures(haste: Haste) -> None:
    assert haste("grants", "list").err.startswith("There is no such grant")
    assert haste("grants", "list", "--json").json == []
    task = haste(
        *("submit", "-w", "imageryprep", "--image", IMAGE, "--wall-clock", "5m", "--input", "raw/a.tif"),
        *("--json", "--", sys.executable, "-c", "pass"),
    ).json["task"]
    listed = haste("grants", "list", "--live", "--task", task, "--json").json
    assert {(entry["kind"], entry["permissions"]) for entry in listed} == {("inputs", "r"), ("outputs", "cw")}
    assert all(entry["live"] and entry["tenant"] == "dev1" for entry in listed)
    assert haste("grants", "list", "--tenant", "dev2", "--json").json == []
    assert "data/raw/a.tif" in haste("grants", "list").out


def test_check_says_the_mode_and_what_is_widened(
    bare_haste: Haste, variables: dict[str, str], write_env: WriteEnv
) -> None:
    shared = bare_haste("config", "check", "--json", "--env-file", write_env(variables)).json
    assert shared["credentials"] == "a grant for each task"
    assert shared["manages_pools"] is False
    assert shared["candidates"]["imageryprep"] == [T4, H100]
    assert shared["widened"] == []
    older = bare_haste("config", "check", "--json", "--env-file", write_env(OLDER)).json
    assert older["credentials"] == "the pool's identity"
    assert older["manages_pools"] is True
    assert older["candidates"]["imageryprep"] == ["imageryprep-pool"]
    widened = bare_haste(
        "config", "check", "--env-file", write_env(variables | {"HASTE_TASK_MOUNTS_ALL": "yes"})
    )
    assert "HASTE_TASK_MOUNTS_ALL weakens the isolation" in widened.out


def test_check_reports_every_problem_at_once(bare_haste: Haste, write_env: WriteEnv) -> None:
    file = write_env({"AZURE_BATCH_USE_SAS": "perhaps", "AZURE_BATCH_URL": "<your account>"})
    refused = bare_haste("config", "check", "--env-file", file, code=2)
    assert "AZURE_BATCH_USE_SAS" in refused.err
    assert "<your account>" in refused.err
    assert refused.out == ""


def test_an_old_name_is_warned_of_without_a_traceback(
    bare_haste: Haste, variables: dict[str, str], write_env: WriteEnv
) -> None:
    file = write_env(variables | {"AZURE_BATCH_REGISTRY_SERVER_URL": "https://r.azurecr.io/"})
    found = bare_haste("config", "check", "--env-file", file)
    assert found.err.splitlines() == [
        "haste: AZURE_BATCH_REGISTRY_SERVER_URL is the old name of AZURE_BATCH_REGISTRY_SERVER."
    ]


def test_show_tells_what_is_set_and_no_key(haste: Haste) -> None:
    rows = {row["name"]: row for row in haste("config", "show", "--json").json}
    assert rows["HASTE_TENANT"]["value"] == "dev1"
    assert rows["AZURE_BATCH_ACCOUNT_KEY"]["value"] == "(set, not shown)"
    assert rows["HASTE_SHM_SIZE"]["default"] is True
    only_set = haste("config", "show", "--set").out
    assert "HASTE_TENANT" in only_set
    assert "HASTE_SHM_SIZE" not in only_set


@pytest.mark.parametrize(("name", "code"), [("AZURE_BATCH_POOL", 1), ("HASTE_TENANT", 0), ("PATH", 0)])
def test_drift_is_a_setting_that_nobody_reads(
    bare_haste: Haste, write_env: WriteEnv, name: str, code: int
) -> None:
    file = write_env({name: "x"})
    found: Any = bare_haste("config", "drift", "--json", "--env-file", file, code=code).json
    assert found["read_by_nobody"] == ([name] if code else [])
    assert ("HASTE_TENANT" in found["not_emitted"]) is (name != "HASTE_TENANT")
    assert ("read by nobody" in bare_haste("config", "drift", "--env-file", file, code=code).out) is bool(
        code
    )
