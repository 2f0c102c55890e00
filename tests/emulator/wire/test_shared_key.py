"""SharedKey: what the real SDKs sign is accepted, and a request that differs in anything signed is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from azure.batch import BatchClient
from azure.batch import models as batch
from azure.core import MatchConditions
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.errors import BatchError
from batch_emulator.wire.auth import Authenticator

from .support import ACCOUNT, KEY, NOW, Sent, SentError, catching_client

# Caught from azure-batch 14.2.0, which cannot be installed beside 15.1.
OLDER = Path(__file__).parent / "data/signed_by_azure_batch_14_2.json"
CALLS: dict[str, Callable[[BatchClient], object]] = {
    "list": lambda client: list(
        client.list_tasks("job", filter="state eq 'active' and startswith(id,'a+b &ü')", select=["id"])
    ),
    "create": lambda client: client.create_job(
        batch.BatchJobCreateOptions(id="ü", pool_info=batch.BatchPoolInfo(pool_id="p"))
    ),
    "post without a body": lambda client: client.enable_job_schedule("schedule"),
    "delete on a condition": lambda client: client.begin_delete_pool(
        "p", etag='"0x8"', match_condition=MatchConditions.IfNotModified
    ),
    "dates": lambda client: client.get_pool("p", if_modified_since=NOW, if_unmodified_since=NOW),
    "head": lambda client: client.pool_exists("p"),
    "file": lambda client: client.download_task_file("j", "t", "wd/a b+ü.txt", ocp_range="bytes=0-9"),
}


def caught(call: Callable[[BatchClient], object]) -> Sent:
    with catching_client() as (client, transport):
        with pytest.raises(SentError):
            call(client)
        return transport.last


def authenticate(request: Sent, *, after: timedelta = timedelta(), key: str = KEY) -> None:
    authenticator = Authenticator(ACCOUNT, key, now=lambda: NOW + after)
    authenticator.authenticate(request.method, request.path, request.query, request.headers)


def refuse(request: Sent, *, after: timedelta = timedelta(), key: str = KEY) -> str:
    with pytest.raises(BatchError) as raised:
        authenticate(request, after=after, key=key)
    assert (raised.value.status, raised.value.code) == (403, "AuthenticationFailed")
    ((name, reason),) = raised.value.values
    assert name == "AuthenticationErrorDetail"
    return reason


@pytest.fixture
def request_of_a_job() -> Sent:
    return caught(CALLS["create"])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_azure_batch_15_signs_is_accepted(call: Callable[[BatchClient], object]) -> None:
    authenticate(caught(call))


@pytest.mark.parametrize(
    "recorded", json.loads(OLDER.read_text()), ids=lambda r: f"{r['method']} {r['path']}"
)
def test_what_azure_batch_14_signed_is_accepted(recorded: dict[str, object]) -> None:
    authenticate(Sent(**recorded))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "PUT"},
        {"path": "/pools"},
        {"query": "api-version=2024-02-01.19.0"},
        {"query": "api-version=2025-06-01&maxresults=5"},
    ],
    ids=str,
)
def test_a_changed_request_is_refused(request_of_a_job: Sent, changed: dict[str, str]) -> None:
    authenticate(request_of_a_job)
    assert "signature" in refuse(replace(request_of_a_job, **changed))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content-length", "41000"),
        ("content-type", "text/plain"),
        ("if-match", '"0x9"'),
        ("if-none-match", "*"),
        ("range", "bytes=0-1"),
        ("ocp-range", "bytes=0-1"),
    ],
)
def test_a_changed_header_is_refused(request_of_a_job: Sent, name: str, value: str) -> None:
    authenticate(request_of_a_job)
    headers = {**request_of_a_job.headers, name: value}
    assert "signature" in refuse(replace(request_of_a_job, headers=headers))


def test_headers_that_nobody_signs_may_change(request_of_a_job: Sent) -> None:
    headers = {**request_of_a_job.headers, "user-agent": "a proxy", "x-forwarded-for": "::1", "ocp-empty": ""}
    authenticate(replace(request_of_a_job, headers=headers))


def test_another_key_or_account_is_refused(request_of_a_job: Sent) -> None:
    assert "signature" in refuse(request_of_a_job, key="AAAA")
    sent = request_of_a_job.headers["authorization"]
    headers = {**request_of_a_job.headers, "authorization": sent.replace(ACCOUNT, "other")}
    assert "account" in refuse(replace(request_of_a_job, headers=headers))


@pytest.mark.parametrize("minutes", [-14, 0, 14])
def test_a_clock_may_differ_by_less_than_15_minutes(request_of_a_job: Sent, minutes: int) -> None:
    authenticate(request_of_a_job, after=timedelta(minutes=minutes))


@pytest.mark.parametrize("minutes", [-16, 16])
def test_a_clock_may_not_differ_by_more(request_of_a_job: Sent, minutes: int) -> None:
    assert "15 minutes" in refuse(request_of_a_job, after=timedelta(minutes=minutes))


def test_ocp_date_wins_over_date(request_of_a_job: Sent) -> None:
    other = {"date": "Fri, 02 Jan 2015 12:00:00 GMT"}
    reason = refuse(replace(request_of_a_job, headers={**request_of_a_job.headers, **other}))
    assert "signature" in reason  # the date is signed too, but it is not the one whose age counts


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 30 Nov 2026 06:11:03 +99999999999"])
def test_a_request_without_a_date_is_refused(request_of_a_job: Sent, date: str) -> None:
    headers = {**request_of_a_job.headers, "ocp-date": date}
    assert "date" in refuse(replace(request_of_a_job, headers=headers))


@given(st.text(st.characters(max_codepoint=255)))
def test_no_made_up_credential_passes(credential: str) -> None:
    headers = {"ocp-date": "Fri, 02 Jan 2026 12:00:00 GMT", "authorization": f"SharedKey {credential}"}
    refuse(Sent("GET", "/jobs", "", headers))


@given(st.text(min_size=1, max_size=20).filter(lambda text: text.strip("/.")), st.text(max_size=20))
def test_any_id_and_filter_can_be_signed(job_id: str, text: str) -> None:
    authenticate(caught(lambda client: list(client.list_tasks(job_id, filter=text))))
