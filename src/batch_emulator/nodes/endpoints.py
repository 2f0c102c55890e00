"""The endpoints that a sandbox without network may still reach."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Endpoint:
    """A TCP endpoint on a loopback address of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_endpoints(texts: Iterable[str]) -> tuple[Endpoint, ...]:
    """Read `127.0.0.1:10000` or `[::1]:443`. ValueError for what is not a loopback address with a port.

    Only loopback can be offered: a sandbox has no other interface on which the same address would answer.
    """
    return tuple(sorted({_parse(text) for text in texts}))


def _parse(text: str) -> Endpoint:
    host, separator, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        number = int(port)
    except ValueError:
        raise ValueError(f"egress endpoint {text!r} is not ADDRESS:PORT with a numeric address") from None
    if not separator or not address.is_loopback or not 1 <= number <= 65535:
        raise ValueError(f"egress endpoint {text!r} must be a loopback address and a port from 1 to 65535")
    return Endpoint(str(address), number)
