"""What a grant may cover: scopes, as plain data. Minting lives in `hastegeo.credentials`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hastegeo.domain.storage import ContainerAddress, check_blob_name
from hastegeo.errors import InputError


class GrantKind(StrEnum):
    """Why a task touches storage, which decides what its grant may do."""

    INPUTS = "inputs"
    OUTPUTS = "outputs"
    STATE = "state"


class Permission(StrEnum):
    """The permissions that a SAS of this library can hold, as in its `sp` field; delete is not among them."""

    READ = "r"
    CREATE = "c"
    WRITE = "w"
    LIST = "l"


@dataclass(frozen=True, slots=True)
class GrantScope:
    """What one grant covers: a container, a prefix of it, or one blob.

    A prefix narrows the grant only where the account has a hierarchical namespace (directory scope);
    elsewhere storage can only grant the whole container, and the prefix records what was meant.
    """

    kind: GrantKind
    container: ContainerAddress
    prefix: str | None = None
    blob: str | None = None

    def __post_init__(self) -> None:
        if self.prefix is not None and self.blob is not None:
            raise InputError("A grant covers either one blob or a prefix, not both.")
        if self.blob is not None:
            check_blob_name(self.blob)
        if self.prefix is not None:
            check_blob_name(self.prefix, what="prefix")
        if self.kind is GrantKind.STATE and self.prefix is None:
            raise InputError(
                "A state grant needs a prefix.",
                hint="State (checkpoints) is kept under the task's own prefix.",
            )

    @property
    def permissions(self) -> frozenset[Permission]:
        """What the kind allows: inputs read (and list, unless one blob), outputs create and write, state
        all four.
        """
        if self.kind is GrantKind.INPUTS:
            one_blob = self.blob is not None
            return frozenset({Permission.READ} if one_blob else {Permission.READ, Permission.LIST})
        if self.kind is GrantKind.OUTPUTS:
            return frozenset({Permission.CREATE, Permission.WRITE})
        return frozenset(Permission)

    @property
    def letters(self) -> str:
        """The permissions as a SAS writes them, in the order that the service demands (`rcwl`)."""
        return "".join(permission.value for permission in Permission if permission in self.permissions)

    def __str__(self) -> str:
        where = self.container.url
        if self.blob is not None:
            where = f"{where}/{self.blob}"
        elif self.prefix is not None:
            where = f"{where}/{self.prefix.rstrip('/')}/*"
        return f"{self.kind} {self.letters} {where}"
