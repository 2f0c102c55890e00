"""Grants do what they say and nothing else, tried on Azurite; each denial has its control beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContainerClient

from hastegeo.credentials import Grant, GrantLedger, GrantMinter
from hastegeo.domain import ContainerAddress, GrantKind, GrantScope, Tenant
from hastegeo.errors import CredentialError, GrantRefusedError

HOUR = timedelta(hours=1)
Mint = Callable[..., Grant]


def client(grant: Grant, *, url: str | None = None) -> ContainerClient:
    return ContainerClient.from_container_url(url or grant.url.reveal())


@pytest.fixture
def mint(storage: Any, tmp_path: Path) -> Mint:
    def make(
        kind: GrantKind,
        *,
        account: str = "dev1store",
        lifetime: timedelta = HOUR,
        ago: timedelta = timedelta(0),
        **place: str,
    ) -> Grant:
        minter = GrantMinter(
            storage.credential, GrantLedger(tmp_path / "grants.jsonl"), clock=lambda: datetime.now(UTC) - ago
        )
        address = storage.address(account)
        tenant = Tenant("dev1", frozenset({address}))
        (grant,) = minter.mint(
            [GrantScope(kind, address, **place)], tenant=tenant, task="job/task", lifetime=lifetime
        )
        return grant

    return make


def denied(action: Callable[[], Any], *codes: str) -> None:
    with pytest.raises(HttpResponseError) as caught:
        action()
    assert caught.value.status_code == 403
    if codes:
        assert getattr(caught.value, "error_code", None) in codes


def test_inputs_read_and_list_and_no_more(mint: Mint) -> None:
    with client(mint(GrantKind.INPUTS)) as container:
        assert container.download_blob("raw/a.tif").readall() == b"pixels"
        assert "raw/a.tif" in [blob.name for blob in container.list_blobs()]
        denied(lambda: container.upload_blob("raw/new.tif", b"x"))
        denied(lambda: container.upload_blob("raw/a.tif", b"x", overwrite=True))
        denied(lambda: container.delete_blob("raw/a.tif"))


def test_outputs_create_and_write_and_no_more(mint: Mint, storage: Any) -> None:
    with client(mint(GrantKind.OUTPUTS)) as container, storage.owner("dev1store") as owner:
        container.upload_blob("results/new.tif", b"first", overwrite=True)
        container.upload_blob("results/new.tif", b"second", overwrite=True)
        assert owner.download_blob("results/new.tif").readall() == b"second"
        denied(lambda: container.download_blob("results/new.tif"))
        denied(lambda: list(container.list_blobs()))
        denied(lambda: container.delete_blob("results/new.tif"))


def test_state_reads_writes_and_lists_but_never_deletes(mint: Mint) -> None:
    with client(mint(GrantKind.STATE, prefix="state/task")) as container:
        container.upload_blob("state/task/1.ckpt", b"weights", overwrite=True)
        assert container.download_blob("state/task/1.ckpt").readall() == b"weights"
        assert [blob.name for blob in container.list_blobs(name_starts_with="state/")] == [
            "state/task/1.ckpt"
        ]
        denied(lambda: container.delete_blob("state/task/1.ckpt"))


def test_one_blob_is_granted_alone(mint: Mint) -> None:
    grant = mint(GrantKind.INPUTS, blob="raw/a.tif")
    base, _, token = grant.url.reveal().partition("?")
    with client(grant, url=f"{base.removesuffix('/raw/a.tif')}?{token}") as container:
        assert container.download_blob("raw/a.tif").readall() == b"pixels"
        denied(lambda: list(container.list_blobs()))
        denied(lambda: container.download_blob("results/new.tif"))


def test_a_grant_opens_no_other_container_or_account(mint: Mint) -> None:
    grant = mint(GrantKind.INPUTS)
    url = grant.url.reveal()
    for old, new in (("/data?", "/other?"), ("/dev1store/", "/dev2store/")):
        with client(grant, url=url.replace(old, new)) as foreign:
            denied(lambda reach=foreign: reach.download_blob("raw/a.tif"))
    with client(grant) as own:
        assert own.download_blob("raw/a.tif").readall() == b"pixels"


@pytest.mark.parametrize(
    ("old", "new"),
    [("sp=rl", "sp=rwdl"), ("sr=c", "sr=b"), ("sig=", "sig=A"), ("spr=https", "spr=https,http")],
)
def test_a_tampered_grant_is_denied(mint: Mint, old: str, new: str) -> None:
    grant = mint(GrantKind.INPUTS)
    assert old in grant.url.reveal()
    with client(grant, url=grant.url.reveal().replace(old, new)) as tampered:
        denied(lambda: tampered.download_blob("raw/a.tif"), "AuthorizationFailure", "AuthenticationFailed")
    with client(grant) as whole:
        assert whole.download_blob("raw/a.tif").readall() == b"pixels"


def test_an_expired_grant_is_denied_and_a_live_one_of_the_same_kind_is_not(mint: Mint) -> None:
    expired = mint(GrantKind.INPUTS, ago=2 * HOUR, lifetime=HOUR)
    with client(expired) as late:
        denied(lambda: late.download_blob("raw/a.tif"))
    live = mint(GrantKind.INPUTS, ago=2 * HOUR, lifetime=3 * HOUR)
    with client(live) as in_time:
        assert in_time.download_blob("raw/a.tif").readall() == b"pixels"


def test_a_grant_starts_a_quarter_of_an_hour_back_and_demands_https(mint: Mint) -> None:
    grant = mint(GrantKind.INPUTS)
    query = parse_qs(urlsplit(grant.url.reveal()).query)
    assert grant.expires - grant.starts == HOUR + timedelta(minutes=15)
    assert query["st"] == [f"{grant.starts:%Y-%m-%dT%H:%M:%SZ}"]
    assert query["se"] == [f"{grant.expires:%Y-%m-%dT%H:%M:%SZ}"]
    assert (query["spr"], query["sr"]) == (["https"], ["c"])
    assert "skoid" in query  # signed by a user-delegation key, not by the account's


def test_a_foreign_container_is_refused_before_any_key_is_asked_for(
    storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(BlobServiceClient, "get_user_delegation_key", lambda *_: asked.append("key"))
    minter = GrantMinter(storage.credential, GrantLedger(tmp_path / "grants.jsonl"))
    own, foreign = storage.address("dev1store"), storage.address("dev2store")
    scopes = [GrantScope(GrantKind.INPUTS, own), GrantScope(GrantKind.INPUTS, foreign)]
    with pytest.raises(GrantRefusedError, match="dev2store"):
        minter.mint(scopes, tenant=Tenant("dev1", frozenset({own})), task="t", lifetime=HOUR)
    assert not asked
    assert not (tmp_path / "grants.jsonl").exists()


def test_a_directory_is_granted_where_storage_has_directories(storage: Any, tmp_path: Path) -> None:
    # Azurite has no directory scope, so the signed fields are looked at: sr=d, and sdd, the depth.
    address = storage.address("dev1store")
    minter = GrantMinter(storage.credential, GrantLedger(tmp_path / "grants.jsonl"), directory_scope=True)
    scope = GrantScope(GrantKind.STATE, address, prefix="state/task-1/")
    (grant,) = minter.mint([scope], tenant=Tenant("dev1", frozenset({address})), task="t", lifetime=HOUR)
    query = parse_qs(urlsplit(grant.url.reveal()).query)
    assert (query["sr"], query["sdd"], query["sp"]) == (["d"], ["2"], ["rcwl"])


def test_threads_share_one_key_and_a_longer_need_gets_a_longer_key(
    storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[datetime, datetime]] = []
    real = BlobServiceClient.get_user_delegation_key

    def counting(self: BlobServiceClient, starts: datetime, expires: datetime, **options: Any) -> Any:
        calls.append((starts, expires))
        return real(self, starts, expires, **options)

    monkeypatch.setattr(BlobServiceClient, "get_user_delegation_key", counting)
    now = [datetime.now(UTC)]
    minter = GrantMinter(storage.credential, GrantLedger(tmp_path / "g.jsonl"), clock=lambda: now[0])
    address = storage.address("dev1store")
    tenant = Tenant("dev1", frozenset({address}))

    def one(lifetime: timedelta) -> Grant:
        (grant,) = minter.mint(
            [GrantScope(GrantKind.INPUTS, address)], tenant=tenant, task="t", lifetime=lifetime
        )
        return grant

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, [HOUR] * 32))
    assert len(calls) == 1
    assert calls[0][1] - calls[0][0] == timedelta(days=7)
    now[0] += timedelta(days=1)
    one(timedelta(days=5))
    assert len(calls) == 1
    one(timedelta(days=6, hours=1))
    assert len(calls) == 2
    assert len(list(minter_ledger(tmp_path))) == 34


def minter_ledger(tmp_path: Path) -> Iterator[Any]:
    return GrantLedger(tmp_path / "g.jsonl").entries()


def test_an_unreachable_account_is_one_clear_error(storage: Any, tmp_path: Path) -> None:
    nowhere = ContainerAddress.parse("https://127.0.0.1:9/dev1store/data")
    minter = GrantMinter(storage.credential, GrantLedger(tmp_path / "g.jsonl"), retry_total=0)
    with pytest.raises(CredentialError, match="no delegation key"):
        minter.mint(
            [GrantScope(GrantKind.INPUTS, nowhere)],
            tenant=Tenant("dev1", frozenset({nowhere})),
            task="t",
            lifetime=HOUR,
        )


def test_nothing_is_granted_that_cannot_be_recorded(storage: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    minter = GrantMinter(storage.credential, GrantLedger(tmp_path / "file" / "grants.jsonl"))
    address = storage.address("dev1store")
    with pytest.raises(CredentialError, match="HASTE_GRANT_LEDGER"):
        minter.mint(
            [GrantScope(GrantKind.INPUTS, address)],
            tenant=Tenant("dev1", frozenset({address})),
            task="t",
            lifetime=HOUR,
        )
