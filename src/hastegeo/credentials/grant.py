"""A grant: a short-lived signed URL, and what it covers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from hastegeo.domain import GrantScope


class SignedUrl:
    """A URL with its signature. Its text and repr leave the signature out; `reveal` alone gives it."""

    __slots__ = ("_url",)

    def __init__(self, url: str) -> None:
        self._url = url

    def reveal(self) -> str:
        """Return the whole URL, for the one place that needs it."""
        return self._url

    @property
    def digest(self) -> str:
        """A SHA-256 (hex) of the whole URL: tells whether a URL found somewhere is this one."""
        return hashlib.sha256(self._url.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SignedUrl) and self._url == other._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __str__(self) -> str:
        return f"{self._url.partition('?')[0]}?<signature>"

    def __repr__(self) -> str:
        return f"SignedUrl('{self}')"

    def __reduce__(self) -> str:
        raise TypeError("a signed URL is not to be serialised")


@dataclass(frozen=True, slots=True)
class Grant:
    """What was given to one task. `key_id` names the delegation key that signed it, never its value.

    `starts` and `expires` are UTC.
    """

    scope: GrantScope
    tenant: str
    starts: datetime
    expires: datetime
    key_id: str
    url: SignedUrl

    def __str__(self) -> str:
        return f"{self.scope} until {self.expires:%Y-%m-%dT%H:%M:%SZ}"
