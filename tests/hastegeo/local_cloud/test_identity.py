"""The token endpoint gives tokens to who knows the header's secret, and to nobody else."""

from __future__ import annotations

import time
from pathlib import Path

import jwt
import pytest
from starlette.testclient import TestClient

from hastegeo.local_cloud import identity

HEADER = "the-secret"
STORAGE = "https://storage.azure.com"


@pytest.fixture
def issuer() -> identity.TokenIssuer:
    return identity.TokenIssuer(["dev1", "dev2"])


@pytest.fixture
def client(issuer: identity.TokenIssuer) -> TestClient:
    return TestClient(identity.create_app(issuer, HEADER))


def ask(client: TestClient, *, header: str | None = HEADER, **query: str):
    asked = {
        "api-version": "2019-08-01",
        "resource": STORAGE,
        "client_id": identity.client_id("dev1"),
    } | query
    headers = {} if header is None else {"X-IDENTITY-HEADER": header}
    return client.get("/msi/token", params=asked, headers=headers)


@pytest.mark.parametrize("resource", [STORAGE, "https://batch.core.windows.net/"])
def test_a_known_identity_gets_a_token_that_verifies(
    client: TestClient, issuer: identity.TokenIssuer, resource: str
) -> None:
    answer = ask(client, resource=resource)
    assert answer.status_code == 200
    body = answer.json()
    key = jwt.PyJWKSet.from_dict(issuer.key_set()).keys[0]
    claims = jwt.decode(body["access_token"], key, algorithms=["RS256"], audience=resource)
    assert claims["iss"] == identity.ISSUER
    assert claims["exp"] == int(body["expires_on"]) > time.time()


def test_two_identities_are_two_principals(client: TestClient) -> None:
    first, second = (
        jwt.decode(
            ask(client, client_id=identity.client_id(name)).json()["access_token"],
            options={"verify_signature": False},
        )["oid"]
        for name in ("dev1", "dev2")
    )
    assert first != second


@pytest.mark.parametrize("header", [None, "", "wrong", HEADER + "x"])
def test_without_the_secret_header_nothing_is_given(client: TestClient, header: str | None) -> None:
    answer = ask(client, header=header)
    assert answer.status_code == 403
    assert "access_token" not in answer.text


@pytest.mark.parametrize(
    "query",
    [
        {"resource": "https://vault.azure.net"},
        {"client_id": identity.client_id("dev3")},
        {"client_id": ""},
        {"api-version": "2017-09-01"},
    ],
)
def test_an_unknown_identity_audience_or_version_is_refused(
    client: TestClient, query: dict[str, str]
) -> None:
    assert ask(client, **query).status_code == 400


def test_the_key_set_holds_no_private_part(issuer: identity.TokenIssuer) -> None:
    (key,) = issuer.key_set()["keys"]
    assert not {"d", "p", "q", "dp", "dq", "qi"} & key.keys()


def test_default_azure_credential_signs_in_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.identity import DefaultAzureCredential

    process, url = identity.start(
        ["dev1"],
        identity_header=HEADER,
        key_set_file=tmp_path / "keys.json",
        log_file=tmp_path / "identity.log",
    )
    try:
        monkeypatch.setenv("IDENTITY_ENDPOINT", url)
        monkeypatch.setenv("IDENTITY_HEADER", HEADER)
        with DefaultAzureCredential(managed_identity_client_id=identity.client_id("dev1")) as credential:
            token = credential.get_token("https://batch.core.windows.net//.default")
    finally:
        process.stop()
    claims = jwt.decode(token.token, options={"verify_signature": False})
    assert claims["aud"] == "https://batch.core.windows.net/"
