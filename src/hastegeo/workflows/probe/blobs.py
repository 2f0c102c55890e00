"""Attacks on blob storage with a grant: on what it does not cover, or with the grant changed."""

from __future__ import annotations

import http.client
import os
import re
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

from hastegeo.errors import InputError
from hastegeo.workflows.probe.findings import Attack, Finding, allowed, denied, describe, failed, root_cause
from hastegeo.workflows.probe.web import Answer, send

_TIMEOUT: Final = 15.0
_VERSION: Final = {"x-ms-version": "2023-11-03"}
_CONTENT: Final = b"written by the isolation probe\n"
# The codes by which storage says "you may not"; see
# https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes
REFUSALS: Final = frozenset(
    {
        "AuthenticationFailed",
        "AuthorizationFailure",
        "AuthorizationPermissionMismatch",
        "AuthorizationProtocolMismatch",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationServiceMismatch",
        "AuthorizationSourceIPMismatch",
        "InsufficientAccountPermissions",
        "NoAuthenticationInformation",
        "UnauthorizedBlobOverwrite",
    }
)
TAMPERINGS: Final = frozenset({"permissions", "expiry", "signature"})


def attack_blob(attack: Attack) -> Finding:
    """Read, list, write or delete with the grant in an environment variable.

    Parameters: `url_env` names the variable with a container URL and its SAS; `container_url` puts the SAS to
    another container or account; `blob` is the blob; `tamper` changes the SAS (`permissions`, `expiry` or
    `signature`); `anonymous` leaves it away; `exists` says that the blob is known to be there.
    """
    method, query, body = _REQUESTS[attack.kind]
    url = build_url(
        _from_environment(attack),
        container_url=attack.optional_text("container_url"),
        blob=None if attack.kind == "blob-list" else attack.optional_text("blob"),
        extra_query=query,
        tampering=attack.optional_text("tamper"),
        anonymous=attack.flag("anonymous"),
    )
    headers = dict(_VERSION)
    if body is not None:
        headers |= {"x-ms-blob-type": "BlockBlob", "Content-Type": "text/plain"}
    try:
        answer = send(method, url, headers=headers, body=body, timeout=attack.number("timeout", _TIMEOUT))
    except (OSError, http.client.HTTPException) as error:
        # Storage must be in reach of every task, so that being out of reach is no denial.
        return failed(f"storage did not answer: {describe(root_cause(error))}")
    return judge(answer, exists=attack.flag("exists"), anonymous=attack.flag("anonymous"))


def judge(answer: Answer, *, exists: bool, anonymous: bool) -> Finding:
    """Say what storage's answer means."""
    if 200 <= answer.status < 300:
        return allowed(answer.evidence)
    if answer.status in {401, 403} and answer.code in REFUSALS:
        return denied(answer.evidence)
    if anonymous and (
        (answer.status == 409 and answer.code == "PublicAccessNotPermitted")
        # Without a signature, storage hides private containers: what is there for others is not there for us.
        or (answer.status == 404 and answer.code == "ResourceNotFound" and exists)
    ):
        return denied(answer.evidence)
    if answer.status == 404:
        return failed(f"{answer.evidence}: the request was let through, and there is nothing there")
    return failed(answer.evidence)


def build_url(
    granted: str,
    *,
    container_url: str | None = None,
    blob: str | None = None,
    extra_query: str = "",
    tampering: str | None = None,
    anonymous: bool = False,
) -> str:
    """Return the address to attack: the SAS of `granted`, on what the attacker wants."""
    parts = urlsplit(granted)
    sas = parts.query
    if tampering is not None:
        sas = tamper(sas, tampering)
    if container_url is not None:
        parts = urlsplit(container_url)
    path = parts.path.rstrip("/")
    if blob is not None:
        path += "/" + quote(blob, safe="/~")
    query = "&".join(part for part in (extra_query, "" if anonymous else sas) if part)
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


def tamper(sas: str, how: str) -> str:
    """Return a SAS with one thing changed: all permissions, a later expiry, or another signature."""
    if how not in TAMPERINGS:
        raise InputError(f"A SAS is tampered with by {', '.join(sorted(TAMPERINGS))}, not by {how!r}.")
    name = {"permissions": "sp", "expiry": "se", "signature": "sig"}[how]
    fields = [field.partition("=") for field in sas.split("&")]
    if name not in {key for key, _, _ in fields}:
        raise InputError(f"The grant has no field {name!r} to change.")
    return "&".join(f"{key}={_changed(how, value) if key == name else value}" for key, _, value in fields)


def _changed(how: str, value: str) -> str:
    if how == "permissions":
        # All of them, or, where all were granted, fewer: the signature must cover what is said.
        return "racwdl" if value != "racwdl" else "r"
    if how == "expiry":
        later = datetime.now(UTC) + timedelta(days=6)
        return quote(later.strftime("%Y-%m-%dT%H:%M:%SZ"), safe="")
    return ("B" if value.startswith("A") else "A") + re.sub(r"^(?:%..|.)", "", value)


def _from_environment(attack: Attack) -> str:
    name = attack.text("url_env")
    value = os.environ.get(name, "")
    if not value:
        raise InputError(f"The variable {name} with the grant is not set.")
    return value


_REQUESTS: Final[dict[str, tuple[str, str, bytes | None]]] = {
    "blob-read": ("GET", "", None),
    "blob-list": ("GET", "restype=container&comp=list&maxresults=1", None),
    "blob-write": ("PUT", "", _CONTENT),
    "blob-delete": ("DELETE", "", None),
}
