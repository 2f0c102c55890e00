"""What a grant may be: pure rules, with no clock and no network.

The rule: what is granted lies inside what was requested AND inside the tenant's own containers.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from hastegeo.domain import GrantKind, GrantScope, Tenant
from hastegeo.domain.storage import ContainerAddress
from hastegeo.errors import GrantRefusedError, InputError

# A user-delegation key lives seven days at most, and a SAS never outlives its key.
# https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas
LONGEST_KEY: Final = timedelta(days=7)
# Clocks of client and storage differ; a start 15 minutes back makes a new SAS valid at once.
# https://learn.microsoft.com/azure/storage/common/storage-sas-overview#best-practices-when-using-sas
CLOCK_SKEW: Final = timedelta(minutes=15)
LONGEST_GRANT: Final = LONGEST_KEY - CLOCK_SKEW


def request_scope(
    kind: GrantKind, container_url: str, *, prefix: str | None = None, blob: str | None = None
) -> GrantScope:
    """Return the scope that a task asks for.

    Raises `GrantRefusedError` where the URL is not the one plain form of a container's address.
    """
    try:
        return GrantScope(kind, ContainerAddress.parse(container_url), prefix=prefix, blob=blob)
    except InputError as error:
        raise GrantRefusedError(error.message, hint=error.hint) from None


def authorise(requested: GrantScope, tenant: Tenant) -> GrantScope:
    """Return `requested` if it lies in the tenant's own containers, else raise `GrantRefusedError`."""
    if requested.container not in tenant.containers:
        own = ", ".join(sorted(container.url for container in tenant.containers)) or "none"
        raise GrantRefusedError(
            f"Tenant {tenant.name} asked for {requested.container.url}, "
            f"which is not its own (its own: {own}).",
            hint="Use the tenant's own container, or add it to HASTE_ALLOWED_CONTAINERS if it is one.",
        )
    return requested


def distinct(scopes: Iterable[GrantScope]) -> tuple[GrantScope, ...]:
    """Return the scopes without repetitions, in order: one grant serves every use of the same scope."""
    return tuple(dict.fromkeys(scopes))


def grant_lifetime(
    *,
    queue_allowance: timedelta,
    wall_clock: timedelta,
    retries: int,
    expected_requeues: int,
    upload_margin: timedelta,
) -> timedelta:
    """Return how long a task's grants must live: its time in the queue, its runs, and the last upload.

    Raises `GrantRefusedError`, naming the limit, where storage cannot grant for so long.
    """
    need = queue_allowance + (1 + retries + expected_requeues) * wall_clock + upload_margin
    if need > LONGEST_GRANT:
        raise GrantRefusedError(
            f"The task needs grants for {_hours(need)}: {_hours(queue_allowance)} in the queue, "
            f"{1 + retries + expected_requeues} runs of {_hours(wall_clock)}, "
            f"{_hours(upload_margin)} to upload. "
            f"Storage grants {_hours(LONGEST_GRANT)} at most (7 days less 15 minutes).",
            hint=(
                "Lower the task's wall-clock limit or retries, "
                "or HASTE_QUEUE_ALLOWANCE or HASTE_EXPECTED_REQUEUES."
            ),
        )
    return need


def _hours(value: timedelta) -> str:
    return f"{value.total_seconds() / 3600:g} h"
