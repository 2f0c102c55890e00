"""Attacks on storage: what is sent, and what the answers are worth. The last part runs against Azurite."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, generate_container_sas
from hypothesis import given
from hypothesis import strategies as st

from hastegeo.errors import InputError
from hastegeo.local_cloud import azurite
from hastegeo.local_cloud.certificates import create_certificates
from hastegeo.workflows.isolation_probe import Outcome, Result, parse_plan, run_attack
from hastegeo.workflows.probe.blobs import REFUSALS, TAMPERINGS, build_url, judge, tamper
from hastegeo.workflows.probe.web import Answer

SAS = "st=2026-01-01T00%3A00%3A00Z&se=2026-01-02T00%3A00%3A00Z&sp=rl&sv=2025-05-05&sr=c&sig=Abc%2Bdef%3D"
GRANTED = f"https://127.0.0.1:10000/hastedev1/data?{SAS}"


def test_the_grant_is_kept_and_the_place_replaced() -> None:
    url = build_url(GRANTED, container_url="https://127.0.0.1:10000/hastedev2/data", blob="raw/a b.tif")
    assert url == f"https://127.0.0.1:10000/hastedev2/data/raw/a%20b.tif?{SAS}"
    assert build_url(GRANTED, blob="x", anonymous=True) == "https://127.0.0.1:10000/hastedev1/data/x"
    listing = build_url(GRANTED, extra_query="restype=container&comp=list")
    assert listing == f"https://127.0.0.1:10000/hastedev1/data?restype=container&comp=list&{SAS}"


@pytest.mark.parametrize("how", sorted(TAMPERINGS))
def test_tampering_changes_one_field_and_only_that(how: str) -> None:
    changed, before = parse_qs(tamper(SAS, how)), parse_qs(SAS)
    name = {"permissions": "sp", "expiry": "se", "signature": "sig"}[how]
    assert changed.keys() == before.keys()
    assert [key for key in before if before[key] != changed[key]] == [name]


@given(st.binary(min_size=32, max_size=32))
def test_a_tampered_signature_is_another_signature_of_the_same_length(raw: bytes) -> None:
    signature = base64.b64encode(raw).decode()
    quoted = signature.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    (changed,) = parse_qs(tamper(f"sp=r&sig={quoted}", "signature"))["sig"]
    assert len(changed) == len(signature)
    assert base64.b64decode(changed) != raw


def test_what_cannot_be_tampered_with_is_said() -> None:
    with pytest.raises(InputError, match="no field 'sig'"):
        tamper("sp=r", "signature")
    with pytest.raises(InputError, match="not by 'colour'"):
        tamper(SAS, "colour")


@pytest.mark.parametrize("status", [200, 201, 202, 206])
def test_a_success_means_allowed(status: int) -> None:
    assert judge(Answer(status, "", b""), exists=False, anonymous=False).outcome is Outcome.ALLOWED


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_a_refusal_with_storage_s_code_means_denied(code: str) -> None:
    finding = judge(Answer(403, code, b""), exists=True, anonymous=False)
    assert finding.outcome is Outcome.DENIED
    assert finding.evidence == f"HTTP 403 {code}"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, ""),  # from a proxy, say, not from storage
        (403, "AccountIsDisabled"),
        (404, "BlobNotFound"),  # the request was let through
        (404, "ContainerNotFound"),
        (409, "BlobImmutableDueToPolicy"),
        (400, "InvalidQueryParameterValue"),
        (500, "InternalError"),
        (503, "ServerBusy"),
        (302, ""),
    ],
)
def test_any_other_answer_proves_nothing(status: int, code: str) -> None:
    for anonymous in (False, True):
        assert judge(Answer(status, code, b""), exists=True, anonymous=anonymous).outcome is Outcome.ERROR


def test_without_a_grant_a_hidden_blob_that_exists_is_a_denial() -> None:
    hidden = Answer(404, "ResourceNotFound", b"")
    assert judge(hidden, exists=True, anonymous=True).outcome is Outcome.DENIED
    assert judge(hidden, exists=False, anonymous=True).outcome is Outcome.ERROR
    assert judge(hidden, exists=True, anonymous=False).outcome is Outcome.ERROR
    closed = Answer(409, "PublicAccessNotPermitted", b"")
    assert judge(closed, exists=False, anonymous=True).outcome is Outcome.DENIED


def test_storage_out_of_reach_is_an_error_and_tells_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRANT", GRANTED.replace("10000", "1"))
    (attack,) = parse_plan(
        '{"attacks": [{"id": "a", "kind": "blob-read", "expect": "denied", "url_env": "GRANT", "blob": "b"}]}'
    )
    result = run_attack(attack)
    assert result.outcome is Outcome.ERROR
    assert result.evidence == "storage did not answer: ECONNREFUSED"


class Storage:
    """Azurite with two accounts, a container and a blob in each."""

    def __init__(self, url: str, keys: dict[str, str], authority: Path) -> None:
        self.url = url
        self.keys = keys
        for account, key in keys.items():
            with BlobServiceClient(
                f"{url}/{account}", credential=key, connection_verify=str(authority)
            ) as client:
                container = client.create_container("data")
                container.upload_blob("secret.txt", b"only mine")

    def grant(self, account: str, permissions: str, *, hours: int = 1) -> str:
        token = generate_container_sas(
            account,
            "data",
            account_key=self.keys[account],
            permission=ContainerSasPermissions.from_string(permissions),
            start=datetime.now(UTC) - timedelta(hours=2),
            expiry=datetime.now(UTC) + timedelta(hours=hours),
        )
        return f"{self.url}/{account}/data?{token}"


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    directory = tmp_path_factory.mktemp("azurite")
    certificates = create_certificates(directory / "certificates")
    keys = {name: base64.b64encode(os.urandom(32)).decode() for name in ("hastedev1", "hastedev2")}
    process, url = azurite.start(
        azurite.install(),
        accounts=keys,
        certificates=certificates,
        data_dir=directory / "data",
        log_file=directory / "azurite.log",
    )
    before = os.environ.get("SSL_CERT_FILE")
    os.environ["SSL_CERT_FILE"] = str(certificates.authority)
    try:
        yield Storage(url, keys, certificates.authority)
    finally:
        process.stop()
        if before is None:
            del os.environ["SSL_CERT_FILE"]
        else:
            os.environ["SSL_CERT_FILE"] = before


def probe(monkeypatch: pytest.MonkeyPatch, grant: str, kind: str, **parameters: object) -> Result:
    monkeypatch.setenv("GRANT", grant)
    entry = {"id": "a", "kind": kind, "expect": "denied", "url_env": "GRANT", **parameters}
    (attack,) = parse_plan(json.dumps({"attacks": [entry]}))
    result = run_attack(attack)
    assert urlsplit(grant).query.rpartition("sig=")[2] not in result.evidence
    return result


@pytest.mark.parametrize("kind", ["blob-read", "blob-list", "blob-write", "blob-delete"])
def test_another_tenant_s_container_is_denied_where_one_s_own_is_allowed(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    everything = storage.grant("hastedev1", "racwdl")
    blob = "secret.txt" if kind == "blob-read" else "made-by-probe.txt"
    if kind == "blob-delete":
        assert probe(monkeypatch, everything, "blob-write", blob=blob).outcome is Outcome.ALLOWED
    assert probe(monkeypatch, everything, kind, blob=blob).outcome is Outcome.ALLOWED
    stolen = probe(
        monkeypatch, everything, kind, blob=blob, container_url=f"{storage.url}/hastedev2/data", exists=True
    )
    assert stolen.outcome is Outcome.DENIED
    assert stolen.evidence == "HTTP 403 AuthorizationFailure"


def test_an_input_grant_does_not_write_and_an_output_grant_does_not_read(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = storage.grant("hastedev1", "rl"), storage.grant("hastedev1", "cw")
    assert probe(monkeypatch, reading, "blob-read", blob="secret.txt").outcome is Outcome.ALLOWED
    assert probe(monkeypatch, writing, "blob-write", blob="out.txt").outcome is Outcome.ALLOWED
    for grant, kind in ((reading, "blob-write"), (reading, "blob-delete"), (writing, "blob-read")):
        result = probe(monkeypatch, grant, kind, blob="secret.txt")
        assert result.outcome is Outcome.DENIED
        assert result.evidence == "HTTP 403 AuthorizationPermissionMismatch"


@pytest.mark.parametrize("how", sorted(TAMPERINGS))
def test_a_tampered_grant_is_denied_where_the_same_grant_untouched_is_allowed(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    grant = storage.grant("hastedev1", "rl")
    assert probe(monkeypatch, grant, "blob-read", blob="secret.txt").outcome is Outcome.ALLOWED
    assert probe(monkeypatch, grant, "blob-read", blob="secret.txt", tamper=how).outcome is Outcome.DENIED


def test_an_expired_grant_and_none_at_all_are_denied(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired = storage.grant("hastedev1", "rl", hours=-1)
    assert probe(monkeypatch, expired, "blob-read", blob="secret.txt").outcome is Outcome.DENIED
    alive = storage.grant("hastedev1", "rl")
    nobody = probe(monkeypatch, alive, "blob-read", blob="secret.txt", anonymous=True, exists=True)
    assert nobody.outcome is Outcome.DENIED


def test_a_blob_that_is_not_there_is_no_denial(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    result = probe(monkeypatch, storage.grant("hastedev1", "rl"), "blob-read", blob="gone.txt")
    assert result.outcome is Outcome.ERROR
    assert "BlobNotFound" in result.evidence


def test_storage_that_cannot_prove_who_it_is_is_an_error(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stranger = create_certificates(tmp_path / "stranger")
    monkeypatch.setenv("SSL_CERT_FILE", str(stranger.authority))
    result = probe(monkeypatch, storage.grant("hastedev1", "rl"), "blob-read", blob="secret.txt")
    assert result.outcome is Outcome.ERROR
    assert "not trusted" in result.evidence
