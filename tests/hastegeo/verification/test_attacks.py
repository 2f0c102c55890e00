"""The attack table: each attack has a control, and the plans say what the probe understands."""

from __future__ import annotations

import json

import pytest

from hastegeo.verification import AttackRow, ControlPlace, IsolationTargets, attack_rows, probe_plan
from hastegeo.verification.attacks import DELETING, EXPIRED, SECRET_NAMES
from hastegeo.workflows.isolation_probe import ATTACKS, Outcome, parse_plan

TARGETS = IsolationTargets(
    own_container="https://127.0.0.1:1/hastedev1/imagery",
    own_blob="probe/own.txt",
    disposable_blob="probe/disposable.txt",
    victim_container="https://127.0.0.1:1/hastedev2/imagery",
    victim_blob="private/notes.txt",
    marker_sha256="ab" * 32,
    storage_url="https://127.0.0.1:1",
    batch_url="https://127.0.0.1:2",
    token_url="http://127.0.0.1:3/msi/token",
    client_id="11111111-1111-1111-1111-111111111111",
    key_process=4242,
)
ROWS = attack_rows(TARGETS)


def row(name: str) -> AttackRow:
    (found,) = (row for row in ROWS if row.id == name)
    return found


def test_ids_are_unique_and_all_kinds_are_known_to_the_probe() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) == 14
    assert {entry["kind"] for row in ROWS for entry in (row.attack, row.control)} <= ATTACKS.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_control_is_the_same_operation_where_it_is_allowed(row: AttackRow) -> None:
    assert row.control["kind"] == row.attack["kind"]
    assert row.control_title
    if row.control_place is ControlPlace.TASK:
        assert row.control != row.attack, "in the same task, the same operation would be denied too"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_no_control_in_the_attacking_task_touches_the_victim(row: AttackRow) -> None:
    if row.control_place is ControlPlace.TASK:
        assert TARGETS.victim_container not in json.dumps(row.control)


def test_what_the_node_denies_is_marked_as_such() -> None:
    assert {row.id for row in ROWS if row.needs_sandbox} == {
        "residue",
        "token-endpoint",
        "batch-api",
        "other-ports",
        "other-environments",
    }


def test_attacks_on_the_victim_name_its_container_and_blobs_that_exist() -> None:
    for name in ("read-other", "list-other", "write-other", "delete-other"):
        assert row(name).attack["container_url"] == TARGETS.victim_container
    for name in ("read-other", "delete-other"):
        # A missing blob would be refused too, and prove nothing.
        assert row(name).attack["exists"] is True


def test_the_expired_grant_is_tried_before_its_end_and_the_deleting_one_deletes_only_its_own() -> None:
    assert row("expired").attack == row("expired").control
    assert row("expired").attack["url_env"] == EXPIRED
    assert row("expired").control_place is ControlPlace.HOST
    assert row("delete-other").control["url_env"] == DELETING
    assert row("delete-other").control["blob"] == TARGETS.disposable_blob


def test_the_port_attack_aims_at_batch_and_its_control_at_storage() -> None:
    other_ports = row("other-ports")
    assert (other_ports.attack["host"], other_ports.attack["port"]) == ("127.0.0.1", 2)
    assert (other_ports.control["host"], other_ports.control["port"]) == ("127.0.0.1", 1)


def test_the_search_for_keys_names_the_ones_that_this_machine_has() -> None:
    assert set(row("other-environments").attack["names"]) == set(SECRET_NAMES)
    assert row("other-environments").control["pids"] == [TARGETS.key_process]


def test_the_plans_of_all_places_hold_every_attack_and_every_control_once() -> None:
    attacking = parse_plan(probe_plan(ROWS, ControlPlace.TASK, with_attacks=True))
    widened = parse_plan(probe_plan(ROWS, ControlPlace.WIDENED_TASK))
    here = parse_plan(probe_plan(ROWS, ControlPlace.HOST))
    everything = [*attacking, *widened, *here]
    denied = [entry.id for entry in everything if entry.expect is Outcome.DENIED]
    allowed = [entry.id for entry in everything if entry.expect is Outcome.ALLOWED]
    assert sorted(denied) == sorted(row.id for row in ROWS)
    assert sorted(allowed) == sorted(f"{row.id}/control" for row in ROWS)
    assert {entry.id for entry in widened} == {"residue/control"}
    assert {entry.id for entry in here} == {
        f"{name}/control" for name in ("expired", "token-endpoint", "batch-api", "other-environments")
    }


def test_a_plan_carries_no_signature() -> None:
    for place in ControlPlace:
        plan = probe_plan(ROWS, place, with_attacks=True)
        assert "sig=" not in plan
        assert "?" not in plan
