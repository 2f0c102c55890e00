"""The attack table: what a task of one tenant tries against another, and the control that stands beside it.

A denial alone proves little: a broken probe is denied everything. So each row also names a control, which is
the same operation where it is allowed, and the row holds only if the control succeeds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

Entry = dict[str, Any]

INPUTS = "HASTE_INPUTS_URL"
OUTPUTS = "HASTE_OUTPUTS_URL"
EXPIRED = "ATTACK_EXPIRED_URL"
DELETING = "CONTROL_DELETE_URL"
IDENTITY_HEADER = "ATTACK_IDENTITY_HEADER"
# Variables that hold a key of this machine's services, which no task may see.
SECRET_NAMES = (
    "AZURITE_ACCOUNTS",
    "BATCH_EMULATOR_ACCOUNT_KEY",
    "AZURE_BATCH_ACCOUNT_KEY",
    "IDENTITY_HEADER",
)


class ControlPlace(StrEnum):
    """Where the control of a row is tried.

    `TASK` is the attacking task itself; `WIDENED_TASK` a task on the same node that mounts the whole node;
    `HOST` this machine, outside every sandbox.
    """

    TASK = "same task"
    WIDENED_TASK = "same node, null bind mounts"
    HOST = "outside any task"


@dataclass(frozen=True)
class AttackRow:
    """One row. `needs_sandbox` says that node isolation, not storage, is what denies it."""

    id: str
    title: str
    attack: Entry
    control: Entry
    control_place: ControlPlace
    control_title: str
    needs_sandbox: bool = False


@dataclass(frozen=True, kw_only=True)
class IsolationTargets:
    """What there is to attack. URLs carry no signature, blobs exist, `marker_sha256` is of the victim's."""

    own_container: str
    own_blob: str
    disposable_blob: str
    victim_container: str
    victim_blob: str
    marker_sha256: str
    storage_url: str
    batch_url: str
    token_url: str
    client_id: str
    key_process: int


def attack_rows(targets: IsolationTargets) -> tuple[AttackRow, ...]:
    """Return the table for these targets."""
    victim = targets.victim_container
    own_read = {"kind": "blob-read", "url_env": INPUTS, "blob": targets.own_blob}
    own_write = {"kind": "blob-write", "url_env": OUTPUTS, "blob": "probe/written-by-control.txt"}
    victim_read = own_read | {"container_url": victim, "blob": targets.victim_blob, "exists": True}
    batch = urlsplit(targets.batch_url)
    storage = urlsplit(targets.storage_url)
    token = {
        "kind": "http-reach",
        "service": "token",
        "url": targets.token_url,
        "client_id": targets.client_id,
        "header_env": IDENTITY_HEADER,
    }
    pools = {
        "kind": "http-reach",
        "service": "batch",
        "url": targets.batch_url,
        "client_id": targets.client_id,
    }
    residue = {"kind": "file-read", "marker_sha256": targets.marker_sha256}
    task, host = ControlPlace.TASK, ControlPlace.HOST
    return (
        AttackRow(
            "read-other", "read the other tenant's blob", victim_read, own_read, task, "read its own blob"
        ),
        AttackRow(
            "list-other",
            "list the other tenant's container",
            {"kind": "blob-list", "url_env": INPUTS, "container_url": victim},
            {"kind": "blob-list", "url_env": INPUTS},
            task,
            "list its own container",
        ),
        AttackRow(
            "write-other",
            "write into the other tenant's container",
            own_write | {"container_url": victim, "blob": "probe/planted.txt"},
            own_write,
            task,
            "write into its own container",
        ),
        AttackRow(
            "delete-other",
            "delete the other tenant's blob",
            {
                "kind": "blob-delete",
                "url_env": OUTPUTS,
                "container_url": victim,
                "blob": targets.victim_blob,
                "exists": True,
            },
            {"kind": "blob-delete", "url_env": DELETING, "blob": targets.disposable_blob},
            task,
            "delete its own blob, with a grant made for it",
        ),
        AttackRow(
            "write-with-input-grant",
            "write with a grant for inputs",
            own_write | {"url_env": INPUTS, "blob": "probe/input-grant.txt"},
            own_write | {"blob": "probe/output-grant.txt"},
            task,
            "write with the grant for outputs",
        ),
        AttackRow(
            "tampered-permissions",
            "write with a grant whose permissions were changed",
            own_write | {"url_env": INPUTS, "blob": "probe/tampered.txt", "tamper": "permissions"},
            own_write | {"blob": "probe/untampered.txt"},
            task,
            "write with an unchanged grant",
        ),
        AttackRow(
            "tampered-signature",
            "read with a grant whose signature was changed",
            own_read | {"tamper": "signature"},
            own_read,
            task,
            "read with the unchanged grant",
        ),
        AttackRow(
            "expired",
            "read with an expired grant",
            own_read | {"url_env": EXPIRED},
            own_read | {"url_env": EXPIRED},
            host,
            "read with the same grant before it expired",
        ),
        AttackRow(
            "expired-extended",
            "read with an expired grant whose end was changed",
            own_read | {"url_env": EXPIRED, "tamper": "expiry"},
            own_read,
            task,
            "read with a grant that is valid",
        ),
        AttackRow(
            "residue",
            "read what the other tenant's task left on the node",
            residue,
            residue,
            ControlPlace.WIDENED_TASK,
            "the same read",
            needs_sandbox=True,
        ),
        AttackRow(
            "token-endpoint",
            "get a token from the token endpoint",
            token,
            token,
            host,
            "the same request",
            needs_sandbox=True,
        ),
        AttackRow(
            "batch-api",
            "list pools through the Batch API",
            pools,
            pools,
            host,
            "the same request",
            needs_sandbox=True,
        ),
        AttackRow(
            "other-ports",
            "connect to another service of this machine",
            {"kind": "tcp-reach", "host": batch.hostname, "port": batch.port},
            {"kind": "tcp-reach", "host": storage.hostname, "port": storage.port},
            task,
            "connect to storage",
            needs_sandbox=True,
        ),
        AttackRow(
            "other-environments",
            "read keys in other processes' environments",
            {"kind": "proc-environ", "names": list(SECRET_NAMES)},
            {"kind": "proc-environ", "names": list(SECRET_NAMES), "pids": [targets.key_process]},
            host,
            "the same read",
            needs_sandbox=True,
        ),
    )


def probe_plan(rows: Iterable[AttackRow], place: ControlPlace, *, with_attacks: bool = False) -> str:
    """Return what the probe tries at one place, as JSON: its controls, and the attacks if asked for."""
    attacks: list[Entry] = []
    for row in rows:
        if with_attacks:
            attacks.append({"id": row.id, "expect": "denied", **row.attack})
        if row.control_place is place:
            attacks.append({"id": f"{row.id}/control", "expect": "allowed", **row.control})
    return json.dumps({"attacks": attacks})
