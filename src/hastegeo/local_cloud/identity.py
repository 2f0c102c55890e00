"""The token endpoint of this machine, by which `DefaultAzureCredential` runs unchanged.

It speaks the managed-identity protocol of App Service.

A client sends `GET {IDENTITY_ENDPOINT}?resource=…&api-version=2019-08-01[&client_id=…]` with the header
`X-IDENTITY-HEADER`, and gets `{access_token, expires_on, resource, token_type, client_id}`. Tokens are RS256
JWTs with the claims that Azure Storage and Azure Batch check: audience, issuer, times, object id.

Source: https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from hastegeo.errors import LocalCloudError
from hastegeo.local_cloud.processes import ServerProcess, free_port

API_VERSION = "2019-08-01"
TENANT_ID = "6ad0a4c5-7a55-4bfe-9b4d-2b8a5c1f0d3e"
ISSUER = f"https://sts.windows.net/{TENANT_ID}/"
# What this run's services accept; a token for anything else would be useless, and asking for it is a mistake.
AUDIENCES = ("https://storage.azure.com", "https://batch.core.windows.net")
_TOKEN_LIFETIME_SECONDS = 3600
_HEADER_VARIABLE = "HASTE_LOCAL_IDENTITY_HEADER"


def client_id(identity: str) -> str:
    """Return the client id of a named identity: the same name gives the same id in every run."""
    return str(uuid.uuid5(uuid.UUID(TENANT_ID), f"client/{identity}"))


class TokenIssuer:
    """Signs tokens for a fixed set of identities with a key that lives as long as this process."""

    def __init__(self, identities: Sequence[str]) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._key_id = uuid.uuid4().hex
        self._identities = {client_id(name): name for name in identities}

    def key_set(self) -> dict[str, Any]:
        """Return the public signing keys as a JSON Web Key Set."""
        public: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [public | {"kid": self._key_id, "use": "sig", "alg": "RS256"}]}

    def knows(self, client: str) -> bool:
        """Whether there is an identity with this client id."""
        return client in self._identities

    def issue(self, client: str, resource: str, *, now: float) -> dict[str, str]:
        """Return the protocol's answer for one identity and resource; `now` is in seconds since 1970."""
        issued = int(now)
        expires = issued + _TOKEN_LIFETIME_SECONDS
        claims = {
            "aud": resource,
            "iss": ISSUER,
            "iat": issued,
            "nbf": issued - 300,
            "exp": expires,
            "tid": TENANT_ID,
            "appid": client,
            "oid": str(uuid.uuid5(uuid.UUID(TENANT_ID), f"object/{self._identities[client]}")),
            "ver": "1.0",
        }
        token = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": self._key_id})
        return {
            "access_token": token,
            "client_id": client,
            "expires_on": str(expires),
            "resource": resource,
            "token_type": "Bearer",
        }


def create_app(issuer: TokenIssuer, identity_header: str) -> Starlette:
    """Build the endpoint. A caller without the header's secret value gets 403, whatever else it asks."""

    async def token(request: Request) -> JSONResponse:
        shown = request.headers.get("x-identity-header", "")
        if not hmac.compare_digest(shown.encode(), identity_header.encode()):
            return _refusal(403, "The X-IDENTITY-HEADER header is missing or wrong.")
        query = request.query_params
        if query.get("api-version") != API_VERSION:
            return _refusal(400, f"api-version must be {API_VERSION}.")
        resource = query.get("resource", "")
        if resource.rstrip("/") not in AUDIENCES:
            return _refusal(400, f"resource must be one of {', '.join(AUDIENCES)}.")
        client = query.get("client_id", "")
        if not issuer.knows(client):
            return _refusal(400, "client_id names no user-assigned identity of this machine.")
        return JSONResponse(issuer.issue(client, resource, now=time.time()))

    return Starlette(routes=[Route("/msi/token", token, methods=["GET"])])


def _refusal(status: int, message: str) -> JSONResponse:
    return JSONResponse({"statusCode": status, "message": message}, status_code=status)


def start(
    identities: Sequence[str],
    *,
    identity_header: str,
    key_set_file: Path,
    log_file: Path,
    die_with_parent: bool = True,
) -> tuple[ServerProcess, str]:
    """Start the endpoint as a process, and return it and its URL (the value for IDENTITY_ENDPOINT).

    The public signing keys are in `key_set_file` before this returns.
    """
    port = free_port()
    command = [
        *(sys.executable, "-m", "hastegeo.local_cloud.identity", "--port", str(port)),
        *("--key-set-file", os.fspath(key_set_file)),
        *(word for name in identities for word in ("--identity", name)),
    ]
    process = ServerProcess.start(
        "The token endpoint",
        command,
        environment=_environment(identity_header),
        log_file=log_file,
        die_with_parent=die_with_parent,
    )
    process.wait_until(lambda: key_set_file.exists() and _listens(port), what=f"listen on port {port}")
    return process, f"http://127.0.0.1:{port}/msi/token"


def _environment(identity_header: str) -> Mapping[str, str]:
    return {"PATH": os.environ.get("PATH", ""), _HEADER_VARIABLE: identity_header}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve tokens on loopback until SIGTERM."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--identity", action="append", required=True)
    parser.add_argument("--key-set-file", type=Path, required=True)
    options = parser.parse_args(arguments)
    header = os.environ.pop(_HEADER_VARIABLE, "")
    if not header:
        raise LocalCloudError(f"{_HEADER_VARIABLE} is not set, so anybody could ask for tokens.")
    issuer = TokenIssuer(options.identity)
    unfinished = options.key_set_file.with_suffix(".part")
    unfinished.write_text(json.dumps(issuer.key_set()))
    unfinished.replace(options.key_set_file)
    # uvicorn re-raises the signal after it has shut down in order; that is a normal end here.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.run(
        create_app(issuer, header), host="127.0.0.1", port=options.port, log_level="warning", access_log=False
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
