"""Attacks on services that a task should not reach: tokens, the Batch API, the node's identity."""

from __future__ import annotations

import http.client
import os
import socket
from typing import Final
from urllib.parse import urlencode

from hastegeo.errors import InputError
from hastegeo.workflows.probe.findings import (
    Attack,
    Finding,
    allowed,
    denied,
    failed,
    unreachable_or_failed,
)
from hastegeo.workflows.probe.web import Answer, send

_TIMEOUT: Final = 5.0
_BATCH_API: Final = "2025-06-01"
_BATCH_RESOURCE: Final = "https://batch.core.windows.net/"
_STORAGE_RESOURCE: Final = "https://storage.azure.com/"
_METADATA_URL: Final = "http://169.254.169.254/metadata/identity/oauth2/token"


def attack_http(attack: Attack) -> Finding:
    """Use a service over HTTP. `service` is `token`, `batch` or `plain`; `url` or `url_env` is its address.

    - `token` asks the App Service protocol for a token for `resource`, with the secret header's value from
      the variable `header_env` (IDENTITY_HEADER), if the attacker has it, and `client_id`.
    - `batch` lists pools, with a token asked for at the variable `token_url_env` (IDENTITY_ENDPOINT) if that
      can be had.
    - `plain` sends a GET.

    With `goal` `connect`, any answer at all counts as allowed; by default only a successful one.
    """
    service = attack.text("service", "plain")
    url = _address(attack)
    timeout = attack.number("timeout", _TIMEOUT)
    try:
        match service:
            case "token":
                answer = _ask_for_token(attack, url, attack.text("resource", _STORAGE_RESOURCE), timeout)
            case "batch":
                answer = _list_pools(attack, url, timeout)
            case "plain":
                answer = send("GET", url, timeout=timeout)
            case _:
                raise InputError(f"Attack {attack.id}: there is no service {service!r}.")
    except (OSError, http.client.HTTPException) as error:
        return unreachable_or_failed(error)
    if attack.text("goal", "use") == "connect":
        return allowed(f"reached, {answer.evidence}")
    if service == "token" and answer.status == 200:
        return allowed("HTTP 200 with a token") if _token_in(answer) else failed("HTTP 200 without a token")
    return _judge(answer)


def attack_metadata(attack: Attack) -> Finding:
    """Ask the instance metadata endpoint for a token of the node's identity. `url` is for tests.

    Source: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
    """
    url = attack.text("url", _METADATA_URL)
    query = urlencode({"api-version": "2018-02-01", "resource": attack.text("resource", _STORAGE_RESOURCE)})
    try:
        answer = send(
            "GET", f"{url}?{query}", headers={"Metadata": "true"}, timeout=attack.number("timeout", _TIMEOUT)
        )
    except (OSError, http.client.HTTPException) as error:
        return unreachable_or_failed(error)
    if answer.status == 200:
        return allowed("HTTP 200 with a token") if _token_in(answer) else failed("HTTP 200 without a token")
    if answer.status == 400 and answer.code == "invalid_request" and b"dentity not found" in answer.body:
        return denied("HTTP 400 invalid_request: the node has no identity")
    return _judge(answer)


def attack_tcp(attack: Attack) -> Finding:
    """Open a connection to `host` and `port`."""
    host, port = attack.text("host"), attack.number("port", 0)
    if not 0 < port < 65536:
        raise InputError(f"Attack {attack.id} needs a port from 1 to 65535.")
    try:
        with socket.create_connection((host, int(port)), timeout=attack.number("timeout", _TIMEOUT)):
            return allowed("connected")
    except OSError as error:
        return unreachable_or_failed(error)


def _address(attack: Attack) -> str:
    name = attack.optional_text("url_env")
    if name is None:
        return attack.text("url")
    value = os.environ.get(name) or attack.optional_text("url")
    if not value:
        raise InputError(f"The variable {name} is not set.")
    return value


def _ask_for_token(attack: Attack, url: str, resource: str, timeout: float) -> Answer:
    # https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference
    query = {"resource": resource, "api-version": "2019-08-01"}
    if client := attack.optional_text("client_id"):
        query["client_id"] = client
    secret = os.environ.get(attack.text("header_env", "IDENTITY_HEADER"), "")
    return send("GET", f"{url}?{urlencode(query)}", headers={"X-IDENTITY-HEADER": secret}, timeout=timeout)


def _list_pools(attack: Attack, url: str, timeout: float) -> Answer:
    headers: dict[str, str] = {}
    token_url = os.environ.get(attack.text("token_url_env", "IDENTITY_ENDPOINT"), "")
    if token_url:
        try:
            token = _token_in(_ask_for_token(attack, token_url, _BATCH_RESOURCE, timeout))
        except (OSError, http.client.HTTPException):
            token = ""
        if token:
            headers["Authorization"] = f"Bearer {token}"
    return send("GET", f"{url.rstrip('/')}/pools?api-version={_BATCH_API}", headers=headers, timeout=timeout)


def _token_in(answer: Answer) -> str:
    document = answer.json()
    token = document.get("access_token", "") if isinstance(document, dict) else ""
    return token if isinstance(token, str) else ""


def _judge(answer: Answer) -> Finding:
    if 200 <= answer.status < 300:
        return allowed(answer.evidence)
    if answer.status in {401, 403}:
        return denied(answer.evidence)
    return failed(answer.evidence)
