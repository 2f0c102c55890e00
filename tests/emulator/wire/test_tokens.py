"""Bearer tokens: signed by a key of the set, for Azure Batch, from Entra ID, and within their time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from hypothesis import given
from hypothesis import strategies as st

from batch_emulator.errors import BatchError
from batch_emulator.wire.auth import Authenticator

from .support import ACCOUNT, KEY, NOW

CLAIMS: Mapping[str, Any] = {
    "aud": "https://batch.core.windows.net/",
    "iss": "https://sts.windows.net/11111111-1111-1111-1111-111111111111/",
    "nbf": NOW.timestamp() - 60,
    "exp": NOW.timestamp() + 3600,
}


def public_jwk(private: RSAPrivateKey, key_id: str) -> dict[str, Any]:
    jwk: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key()))
    return {**jwk, "kid": key_id, "alg": "RS256", "use": "sig"}


@pytest.fixture(scope="module")
def signing_key() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def other_key() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


class Clock:
    def __init__(self) -> None:
        self.time = NOW

    def __call__(self) -> Any:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authenticator(signing_key: RSAPrivateKey, clock: Clock) -> Authenticator:
    keys = {"keys": [public_jwk(signing_key, "first")]}
    return Authenticator(ACCOUNT, KEY, token_keys=keys, now=clock)


def token(key: RSAPrivateKey, *, key_id: str = "first", **changed: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changed}.items() if value is not None}
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": key_id})


def authenticate(authenticator: Authenticator, credential: str) -> None:
    authenticator.authenticate("GET", "/pools", "", {"authorization": f"Bearer {credential}"})


def refuse(authenticator: Authenticator, credential: str) -> str:
    with pytest.raises(BatchError) as raised:
        authenticate(authenticator, credential)
    assert (raised.value.status, raised.value.code) == (401, "AuthenticationFailed")
    return raised.value.values[0][1]


@pytest.mark.parametrize("slashes", ["", "/", "//"])
def test_the_audience_may_end_in_slashes(
    authenticator: Authenticator, signing_key: RSAPrivateKey, slashes: str
) -> None:
    authenticate(authenticator, token(signing_key, aud=f"https://batch.core.windows.net{slashes}"))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"aud": "https://storage.azure.com"}, "audience"),
        ({"aud": "https://batch.core.windows.net.example/"}, "audience"),
        ({"aud": None}, "audience"),
        ({"iss": "https://login.example/"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"exp": NOW.timestamp() - 1}, "expired"),
        ({"exp": None}, "expired"),
        ({"nbf": NOW.timestamp() + 3600}, "not valid yet"),
    ],
    ids=str,
)
def test_a_token_for_something_else_is_refused(
    authenticator: Authenticator, signing_key: RSAPrivateKey, changed: dict[str, Any], reason: str
) -> None:
    authenticate(authenticator, token(signing_key))
    assert reason in refuse(authenticator, token(signing_key, **changed))


def test_a_token_of_another_key_is_refused(
    authenticator: Authenticator, signing_key: RSAPrivateKey, other_key: RSAPrivateKey
) -> None:
    authenticate(authenticator, token(signing_key))
    assert "signed" in refuse(authenticator, token(other_key))
    assert "signed" in refuse(authenticator, token(other_key, key_id="unknown"))


def test_a_token_without_a_signature_is_refused(
    authenticator: Authenticator, signing_key: RSAPrivateKey
) -> None:
    assert "signed" in refuse(authenticator, jwt.encode(dict(CLAIMS), None, algorithm="none"))
    signed = token(signing_key)
    authenticate(authenticator, signed)
    assert "signed" in refuse(authenticator, signed.rpartition(".")[0] + ".")


def test_each_key_of_the_set_signs(
    signing_key: RSAPrivateKey, other_key: RSAPrivateKey, clock: Clock
) -> None:
    keys = {"keys": [public_jwk(signing_key, "first"), public_jwk(other_key, "second")]}
    authenticator = Authenticator(ACCOUNT, KEY, token_keys=keys, now=clock)
    authenticate(authenticator, token(signing_key))
    authenticate(authenticator, token(other_key, key_id="second"))
    refuse(authenticator, token(other_key, key_id="first"))


def test_a_token_that_was_good_expires(
    authenticator: Authenticator, signing_key: RSAPrivateKey, clock: Clock
) -> None:
    credential = token(signing_key)
    authenticate(authenticator, credential)
    clock.time += timedelta(minutes=59)
    authenticate(authenticator, credential)
    clock.time += timedelta(minutes=1)
    assert "expired" in refuse(authenticator, credential)


def test_a_token_without_end_is_no_error_of_ours(
    authenticator: Authenticator, signing_key: RSAPrivateKey
) -> None:
    authenticate(authenticator, token(signing_key, exp=1e300))


def test_without_keys_every_token_is_refused(signing_key: RSAPrivateKey, clock: Clock) -> None:
    authenticator = Authenticator(ACCOUNT, KEY, now=clock)
    assert "SharedKey" in refuse(authenticator, token(signing_key))


@pytest.mark.parametrize("header", [None, "", "Basic abc", "Bearer", "bearer x"])
def test_without_a_usable_token_the_answer_says_where_to_get_one(
    authenticator: Authenticator, header: str | None
) -> None:
    headers = {} if header is None else {"authorization": header}
    with pytest.raises(BatchError) as raised:
        authenticator.authenticate("GET", "/pools", "", headers)
    assert raised.value.status == 401
    assert raised.value.headers["WWW-Authenticate"].startswith("Bearer ")  # type: ignore[attr-defined]


DEEP = jwt.utils.base64url_encode(b"[" * 20_000).decode()


@given(st.one_of(st.text(st.characters(max_codepoint=255)), st.just(f"{DEEP}.e30.e30")))
def test_no_made_up_token_passes(signing_key: RSAPrivateKey, text: str) -> None:
    keys = {"keys": [public_jwk(signing_key, "first")]}
    refuse(Authenticator(ACCOUNT, KEY, token_keys=keys, now=lambda: NOW), text)
