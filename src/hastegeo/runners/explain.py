"""Explaining a task: what its end means, and what to do.

Pure: from a status and the grants that it was given.

Codes: https://learn.microsoft.com/rest/api/batchservice/task/get#taskfailureinformation
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

from hastegeo.credentials import LedgerEntry
from hastegeo.domain import GrantKind, TaskState, TaskStatus


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened in one sentence, and what to do about it (empty where nothing is to be done).

    `category` is `user`, `service`, or empty where nothing failed; `code` is the service's, or `ExitCode`.
    """

    category: str
    code: str
    meaning: str
    action: str = ""


_UPLOADS: Final = frozenset({"FileUploadAccessDenied"})
_DENIALS: Final = frozenset({"BlobAccessDenied", "ResourceContainerAccessDenied", *_UPLOADS})
_CODES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "BlobNotFound": (
            "an input blob does not exist",
            "Check the input's name, then submit the task again.",
        ),
        "FileUploadContainerNotFound": (
            "the output container does not exist",
            "Create it, or correct the output's container, then submit the task again.",
        ),
        "ResourceContainerListMiscError": (
            "the input container could not be listed with the pool's identity",
            "Attach the identity to the pool, or set AZURE_BATCH_USE_SAS=true.",
        ),
        "CommandProgramNotFound": (
            "the command's program is not in the image",
            "Correct the command, or use the image that holds the program.",
        ),
        "CommandLaunchFailed": (
            "the command could not be started",
            "Check that the image can run as any user and that the program is executable.",
        ),
        "BlobDownloadMiscError": ("an input could not be downloaded", "Submit the task again."),
        "BlobDownloadTimedOut": (
            "an input took too long to download",
            "Submit the task again, or split the input.",
        ),
        "ResourceFileWriteFailed": ("an input could not be written on the node", "Submit the task again."),
        "DiskFull": ("the node's disk is full", "Use smaller inputs, or a pool with a larger disk."),
        "ContainerInvalidImage": (
            "the image could not be pulled",
            "Check its name and the registry's identity.",
        ),
    }
)
_EXITS: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        125: ("the container could not be started", "Check the image and the container options."),
        126: ("the program is not executable", "Correct the image's file modes."),
        127: ("the program was not found", "Correct the command, or use the image that holds it."),
        137: ("the program was killed, most likely for lack of memory", "Use a larger pool, or less memory."),
        139: ("the program crashed (segmentation fault)", "Read its stderr."),
        143: ("the program was told to end", "Read its stderr; the node may have been taken away."),
    }
)


def explain(status: TaskStatus, grants: Iterable[LedgerEntry] = ()) -> Explanation:
    """Explain a task from its status and the ledger's entries of it."""
    if status.state is TaskState.SUCCEEDED:
        return Explanation("", "", "the task succeeded")
    if status.state is TaskState.CANCELLED:
        return Explanation("user", "TaskEnded", "the task was ended on request")
    if status.state is not TaskState.FAILED:
        return _waiting(status, tuple(grants))
    code = status.failure.code if status.failure else ""
    category = "service" if status.failure and status.failure.category == "servererror" else "user"
    if code in _DENIALS:
        return Explanation(category, code, *_denied(status, code, tuple(grants)))
    if code in _CODES:
        return Explanation(category, code, *_CODES[code])
    if status.exit_code:
        meaning, action = _EXITS.get(
            status.exit_code,
            (f"the program exited with {status.exit_code}", "Read its stderr with `haste logs --stderr`."),
        )
        return Explanation("user", code or "ExitCode", meaning, action)
    if code == "TaskEnded":
        return Explanation(
            "user",
            code,
            "the task reached its wall-clock limit",
            "Raise its max_wall_clock, or give it less to do.",
        )
    message = status.failure.message if status.failure else "the service gives no reason"
    return Explanation(category, code or "Unknown", message, "Submit the task again.")


def _waiting(status: TaskStatus, grants: tuple[LedgerEntry, ...]) -> Explanation:
    if status.state is TaskState.QUEUED and grants:
        soonest = min(entry.expires for entry in grants)
        return Explanation("", "", f"the task {status.reason}; its grants last until {soonest}")
    return Explanation("", "", status.reason or f"the task is {status.state}")


def _denied(status: TaskStatus, code: str, grants: tuple[LedgerEntry, ...]) -> tuple[str, str]:
    """Tell an expired grant from a wrong one: the ledger knows until when each lived."""
    kind = GrantKind.OUTPUTS if code in _UPLOADS else GrantKind.INPUTS
    what = "an upload" if code in _UPLOADS else "an input"
    when = status.ended
    of_kind = [entry for entry in grants if entry.kind == kind]
    expired = [entry for entry in of_kind if when and datetime.fromisoformat(entry.expires) <= when]
    if expired:
        ended = max(entry.expires for entry in expired)
        cause = "it was requeued" if status.requeues else "it waited in the queue or ran"
        return (
            f"storage denied {what}: its grant expired at {ended}, while {cause}",
            "Raise HASTE_QUEUE_ALLOWANCE or HASTE_EXPECTED_REQUEUES, then submit the task again.",
        )
    if of_kind:
        return (
            f"storage denied {what} although its grant was valid: it lies outside the grant's scope, "
            "the account's network rules refuse the node, or the delegation keys were revoked",
            "Compare the grant (`haste grants list`) with the task, and check the account's network.",
        )
    return (
        f"storage denied {what}, and no grant for it is in the ledger",
        "With AZURE_BATCH_USE_SAS=false, give the pool's identity a role on the container.",
    )
