"""What an attack found, and what counts as a denial.

A denial is claimed only on specific evidence: an answer of the service that refuses, or an error of the
system that means "you may not" or "there is nothing for you". Whatever else goes wrong (a name that does not
resolve, a certificate that is not trusted, a server error) proves nothing and is an `error`.
"""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
import urllib.error
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hastegeo.errors import InputError

_UNREACHABLE: Final = frozenset(
    {errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.EPERM, errno.EACCES}
)
_NO_FILE: Final = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM})


class Outcome(StrEnum):
    """What became of an attack."""

    ALLOWED = "allowed"
    DENIED = "denied"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of an attack and the evidence for it, as a short phrase without secrets."""

    outcome: Outcome
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One line of a plan: what to try, with which parameters, and what should come of it."""

    id: str
    kind: str
    expect: Outcome
    parameters: dict[str, object]

    def text(self, name: str, default: str | None = None) -> str:
        """Return a parameter that is a string. Raises `InputError` where it is missing or is not one."""
        value = self.parameters.get(name, default)
        if not isinstance(value, str):
            raise InputError(f"Attack {self.id} needs the text {name!r}.")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a parameter that is a string, or None where it is not given."""
        return None if self.parameters.get(name) is None else self.text(name)

    def number(self, name: str, default: float) -> float:
        """Return a parameter that is a number. Raises `InputError` where it is none."""
        value = self.parameters.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"Attack {self.id} needs a number {name!r}.")
        return value

    def flag(self, name: str) -> bool:
        """Return a parameter that is true or false; false where it is not given."""
        value = self.parameters.get(name, False)
        if not isinstance(value, bool):
            raise InputError(f"Attack {self.id}: {name!r} is true or false.")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a parameter that is a list of strings; none where it is not given."""
        value = self.parameters.get(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise InputError(f"Attack {self.id}: {name!r} is a list of texts.")
        return tuple(value)

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Return a parameter that is a list of whole numbers, or None where it is not given."""
        value = self.parameters.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(entry) is int for entry in value):
            raise InputError(f"Attack {self.id}: {name!r} is a list of whole numbers.")
        return tuple(value)


def allowed(evidence: str) -> Finding:
    """Say that the attack worked."""
    return Finding(Outcome.ALLOWED, evidence)


def denied(evidence: str) -> Finding:
    """Say that the attack was refused, with the proof of that."""
    return Finding(Outcome.DENIED, evidence)


def failed(evidence: str) -> Finding:
    """Say that the attack proved nothing."""
    return Finding(Outcome.ERROR, evidence)


def unreachable_or_failed(error: Exception) -> Finding:
    """Judge why a server could not be reached: refused, no route and no answer are denials."""
    reason = root_cause(error)
    if isinstance(reason, socket.gaierror):
        return failed("the name does not resolve")
    if isinstance(reason, TimeoutError):
        return denied("timeout")
    if isinstance(reason, OSError) and reason.errno in _UNREACHABLE:
        return denied(errno_name(reason))
    return failed(describe(reason))


def no_file_or_failed(error: OSError) -> Finding:
    """Judge why a file could not be read: not there for us, and not for us, are denials."""
    return denied(errno_name(error)) if error.errno in _NO_FILE else failed(errno_name(error))


def root_cause(error: Exception) -> Exception:
    """Return the error inside the wrapper that urllib puts around it."""
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        return error.reason
    return error


def describe(error: Exception) -> str:
    """Return what an error was, in words that hold no address and no secret."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the server's certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason})"
    if isinstance(error, http.client.HTTPException):
        return f"no HTTP answer ({type(error).__name__})"
    if isinstance(error, OSError) and error.errno is not None:
        return errno_name(error)
    return type(error).__name__


def errno_name(error: OSError) -> str:
    """Return the system's name of an error, such as `ENOENT`."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)
