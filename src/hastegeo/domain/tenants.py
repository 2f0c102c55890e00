"""Tenants: the environments that share the pools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hastegeo.domain.storage import ContainerAddress
from hastegeo.errors import InputError

LONGEST_TENANT_NAME: Final = 40
_NAME: Final = re.compile(rf"(?=.{{1,{LONGEST_TENANT_NAME}}}\Z)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


def check_tenant_name(name: str) -> str:
    """Return `name` if it is a legal tenant name, else raise `InputError`."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"The tenant name {name!r} is not legal.",
            hint="Use 1 to 40 lower-case letters, digits and inner hyphens, such as dev1.",
        )
    return name


@dataclass(frozen=True, slots=True)
class Tenant:
    """One environment: its name, and the containers that are its own.

    No grant is ever given outside `containers`. `weight` is its share of the pools relative to other tenants.
    """

    name: str
    containers: frozenset[ContainerAddress]
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_tenant_name(self.name)
        if not self.weight > 0:
            raise InputError(f"The weight of tenant {self.name} must be above zero.")
