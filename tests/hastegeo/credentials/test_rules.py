"""The rules around grants: policy, lifetime, ledger, redaction. No network."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hastegeo.credentials import (
    LONGEST_GRANT,
    Grant,
    GrantLedger,
    LedgerEntry,
    RedactingFilter,
    Redactor,
    SignedUrl,
    authorise,
    grant_lifetime,
    redact,
    request_scope,
)
from hastegeo.domain import ContainerAddress, GrantKind, GrantScope, Permission, Tenant
from hastegeo.errors import GrantRefusedError

CANARY = "c4n4ry%2FSignature%2Bof%3D"
SIGNED = f"https://dev1store.blob.core.windows.net/data?sv=2025-07-05&sp=rl&sig={CANARY}&se=2026"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ACCOUNTS, CONTAINERS = ["acct1", "acct2"], ["data", "other"]
addresses = st.builds(
    lambda account, container: ContainerAddress.parse(f"https://{account}.blob.core.windows.net/{container}"),
    st.sampled_from(ACCOUNTS),
    st.sampled_from(CONTAINERS),
)
places = st.one_of(st.just({}), st.just({"prefix": "a/b"}), st.just({"blob": "a/b.tif"}))


def make_grant(number: int = 0) -> Grant:
    address = ContainerAddress.parse("https://dev1store.blob.core.windows.net/data")
    return Grant(
        GrantScope(GrantKind.INPUTS, address, prefix=f"raw/{number}"),
        "dev1",
        NOW,
        NOW + timedelta(hours=1),
        "oid/start/end",
        SignedUrl(SIGNED),
    )


@given(st.sampled_from(list(GrantKind)), addresses, places, st.frozensets(addresses, max_size=3))
def test_what_is_granted_lies_in_the_request_and_in_the_tenants_containers(
    kind: GrantKind, address: ContainerAddress, place: dict[str, str], own: frozenset[ContainerAddress]
) -> None:
    place = place or ({"prefix": "state"} if kind is GrantKind.STATE else {})
    if kind is GrantKind.STATE and "prefix" not in place:
        place = {"prefix": "state"}
    requested = GrantScope(kind, address, **place)
    try:
        granted = authorise(requested, Tenant("dev1", own))
    except GrantRefusedError:
        assert address not in own
        return
    assert granted.container in own
    assert granted == requested
    assert granted.permissions <= set(Permission)


def test_no_kind_may_delete() -> None:
    assert "d" not in {permission.value for permission in Permission}


def test_a_request_for_a_disguised_address_is_refused() -> None:
    assert request_scope(GrantKind.INPUTS, "https://dev1store.blob.core.windows.net/data")
    for url in (
        "https://dev1store.blob.core.windows.net@evil.example/data",
        "https://dev1store.blob.core.windows.net/data/../other",
        "https://dev1store.blob.core.windows.net/%64ata",
        "https://DEV1STORE.blob.core.windows.net/data",
    ):
        with pytest.raises(GrantRefusedError):
            request_scope(GrantKind.INPUTS, url)


def test_a_lifetime_covers_the_queue_every_run_and_the_upload() -> None:
    assert grant_lifetime(
        queue_allowance=timedelta(hours=12),
        wall_clock=timedelta(hours=2),
        retries=1,
        expected_requeues=2,
        upload_margin=timedelta(minutes=30),
    ) == timedelta(hours=12 + 4 * 2, minutes=30)


@given(
    st.timedeltas(timedelta(0), timedelta(days=8)),
    st.timedeltas(timedelta(seconds=1), timedelta(days=8)),
    st.integers(0, 5),
    st.integers(0, 5),
    st.timedeltas(timedelta(0), timedelta(days=1)),
)
def test_no_lifetime_is_longer_than_storage_allows(
    queue: timedelta, wall_clock: timedelta, retries: int, requeues: int, margin: timedelta
) -> None:
    need = queue + (1 + retries + requeues) * wall_clock + margin

    def lifetime() -> timedelta:
        return grant_lifetime(
            queue_allowance=queue,
            wall_clock=wall_clock,
            retries=retries,
            expected_requeues=requeues,
            upload_margin=margin,
        )

    if need > LONGEST_GRANT:
        with pytest.raises(GrantRefusedError, match="7 days less 15 minutes"):
            lifetime()
    else:
        assert lifetime() == need


def test_a_signed_url_shows_itself_only_when_asked() -> None:
    url = SignedUrl(SIGNED)
    grant = make_grant()
    for text in (str(url), repr(url), f"{url}", str(grant), repr(grant), repr([grant])):
        assert CANARY not in text
    assert url.reveal() == SIGNED
    for leak in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(url)


def test_the_ledger_keeps_every_line_of_every_thread(tmp_path: Path) -> None:
    ledger = GrantLedger(tmp_path / "state" / "grants.jsonl")

    def append(number: int) -> None:
        ledger.append([LedgerEntry.of(make_grant(number), task=f"job/{number}", issued=NOW)])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(append, range(200)))
    assert {entry.task for entry in ledger.entries()} == {f"job/{number}" for number in range(200)}
    assert CANARY not in ledger.path.read_text()
    assert ledger.path.stat().st_mode & 0o077 == 0


def test_the_ledger_answers_who_got_what_and_until_when(tmp_path: Path) -> None:
    ledger = GrantLedger(tmp_path / "grants.jsonl")
    assert list(ledger.entries()) == []
    ledger.append([LedgerEntry.of(make_grant(1), task="job/1", issued=NOW)])
    ledger.append([LedgerEntry.of(make_grant(2), task="job/2", issued=NOW)])
    with ledger.path.open("a") as file:
        file.write('{"issued": "cut')
    (entry,) = ledger.entries(tenant="dev1", task="job/2")
    assert (entry.kind, entry.permissions, entry.prefix) == ("inputs", "rl", "raw/2")
    assert entry.digest == SignedUrl(SIGNED).digest
    assert entry.is_live(NOW)
    assert not entry.is_live(NOW + timedelta(hours=2))
    assert list(ledger.entries(tenant="dev2")) == []


@pytest.mark.parametrize(
    "text",
    [
        SIGNED,
        SIGNED.replace("&", "&amp;"),
        SIGNED.replace("%", "%25").replace("sig=", "sig%3D"),
        f"SIG={CANARY}",
        json.dumps({"url": SIGNED}),
        f"Authorization: SharedKey account:{CANARY}",
        f"Bearer {CANARY}",
        f"AccountKey={CANARY};EndpointSuffix=core.windows.net",
        f"token eyJhbGciOiJSUzI1NiJ9.{'c4n4ryAAAAAAAAA'}.c4n4rySignature",
    ],
)
def test_every_form_of_a_secret_is_redacted(text: str) -> None:
    assert "c4n4ry" in text
    assert "c4n4ry" not in redact(text)


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="=%:"), max_size=80))
def test_text_without_secrets_is_left_alone(text: str) -> None:
    if "bearer" not in text.lower() and "eyj" not in text.lower():
        assert Redactor()(text) == text


def test_a_registered_key_is_redacted_wherever_it_stands() -> None:
    redactor = Redactor()
    redactor.add("short")
    redactor.add("0123456789abcdef==")
    redactor.add("0123456789abcdef")
    assert redactor("key 0123456789abcdef== and a short word") == "key REDACTED and a short word"


def test_logs_and_their_tracebacks_are_redacted() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter())
    logger = logging.getLogger("test-redaction")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        logger.error("failed for %s", SIGNED)
        try:
            int(SIGNED)
        except ValueError:
            logger.exception("failed again", stack_info=True)
    finally:
        logger.removeHandler(handler)
    shown = stream.getvalue()
    assert "c4n4ry" not in shown
    assert shown.count("sig=REDACTED") == 2
    assert "ValueError" in shown


def test_an_uncaught_exception_is_redacted_on_standard_error() -> None:
    program = (
        "from hastegeo.credentials import install_redaction\n"
        "install_redaction()\n"
        f"raise ValueError({SIGNED!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "sig=REDACTED" in done.stderr
    assert "c4n4ry" not in done.stderr
