"""Who may call: SharedKey signatures and Entra ID tokens, both verified for real.

SharedKey: https://learn.microsoft.com/rest/api/batchservice/authenticate-requests-to-the-azure-batch-service
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote_plus

import jwt

from batch_emulator.errors import BatchError
from batch_emulator.wire.times import parse_http_time

AUDIENCE: Final = "https://batch.core.windows.net"
ISSUER_PREFIX: Final = "https://sts.windows.net/"
_SKEW: Final = timedelta(minutes=15)
_SIGNED_HEADERS: Final = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
_KNOWN_TOKENS: Final = 256


class Authenticator:
    """Verifies requests to one account. `token_keys` is a JSON Web Key Set; None refuses every token."""

    def __init__(
        self,
        account: str,
        key: str,
        *,
        now: Callable[[], datetime],
        token_keys: Mapping[str, Any] | None = None,
    ) -> None:
        self._account = account
        self._key = base64.b64decode(key)
        self._now = now
        self._token_keys = jwt.PyJWKSet.from_dict(dict(token_keys)).keys if token_keys else []
        self._tokens: dict[str, datetime] = {}

    def authenticate(self, method: str, raw_path: str, raw_query: str, headers: Mapping[str, str]) -> None:
        """Return if the request may pass, else raise AuthenticationFailed with the reason.

        `raw_path` and `raw_query` are as they came, `headers` have lower-case names.
        """
        scheme, _, credential = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "sharedkey":
            self._check_signature(method, raw_path, raw_query, headers, credential)
        elif scheme.lower() == "bearer":
            self._check_token(credential)
        else:
            raise _failed("The Authorization header is missing; send SharedKey or Bearer.")

    def _check_signature(
        self, method: str, raw_path: str, raw_query: str, headers: Mapping[str, str], credential: str
    ) -> None:
        account, _, signature = credential.strip().partition(":")
        if account.lower() != self._account.lower():
            raise _failed("The account of the signature is not this account.")
        date = headers.get("ocp-date") or headers.get("date")
        try:
            skew = abs(self._now() - parse_http_time(date or ""))
        except (ValueError, TypeError, IndexError):
            raise _failed("The ocp-date or date header is missing or not a date.") from None
        if skew > _SKEW:
            raise _failed("The date of the request is more than 15 minutes away from the service's.")
        text = string_to_sign(self._account, method, raw_path, raw_query, headers)
        wanted = base64.b64encode(hmac.digest(self._key, text.encode(), "sha256")).decode()
        if not hmac.compare_digest(wanted.encode(), signature.encode()):
            raise _failed("The signature is not the one computed from the request and the account's key.")

    def _check_token(self, token: str) -> None:
        digest = hashlib.sha256(token.encode()).hexdigest()
        known = self._tokens.get(digest)
        if known is not None and known > self._now():
            return
        if not self._token_keys:
            raise _failed("This emulator was started without token-signing keys; use SharedKey.")
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = next((key for key in self._token_keys if key.key_id == key_id), self._token_keys[0])
            claims = jwt.decode(
                token,
                key,
                algorithms=["RS256"],
                options={"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except (jwt.PyJWTError, binascii.Error, ValueError):
            raise _failed("The token's signature is not from a key that this account trusts.") from None
        self._check_claims(claims)
        if len(self._tokens) >= _KNOWN_TOKENS:
            self._tokens.clear()
        self._tokens[digest] = datetime.fromtimestamp(claims["exp"], self._now().tzinfo)

    def _check_claims(self, claims: Mapping[str, Any]) -> None:
        if str(claims.get("aud", "")).rstrip("/") != AUDIENCE:
            raise _failed(f"The token's audience is not {AUDIENCE}.")
        if not str(claims.get("iss", "")).startswith(ISSUER_PREFIX):
            raise _failed(f"The token's issuer does not begin with {ISSUER_PREFIX}.")
        now = self._now().timestamp()
        expires, not_before = claims.get("exp"), claims.get("nbf", 0)
        if not isinstance(expires, int | float) or expires <= now:
            raise _failed("The token has expired.")
        if not isinstance(not_before, int | float) or not_before > now + _SKEW.total_seconds():
            raise _failed("The token is not valid yet.")


def string_to_sign(
    account: str, method: str, raw_path: str, raw_query: str, headers: Mapping[str, str]
) -> str:
    """Return the text that a SharedKey signature covers."""
    values = [headers.get(name, "") for name in _SIGNED_HEADERS]
    length = _SIGNED_HEADERS.index("content-length")
    if values[length] in {"", "0"}:
        # Without a body, GET and HEAD sign an empty length; every other method signs 0.
        values[length] = "" if method in {"GET", "HEAD"} else "0"
    ocp = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers) if name.startswith("ocp-"))
    return "\n".join([method, *values]) + "\n" + ocp + f"/{account}{raw_path}" + _canonical_query(raw_query)


def _canonical_query(raw_query: str) -> str:
    # The first value of each name counts, and a name without a value is left out.
    found: dict[str, str] = {}
    for pair in raw_query.split("&") if raw_query else ():
        name, _, value = pair.partition("=")
        if value:
            found.setdefault(unquote_plus(name), unquote_plus(value))
    return "".join(f"\n{name}:{found[name]}" for name in sorted(found))


def _failed(reason: str) -> BatchError:
    return BatchError("AuthenticationFailed", values=(("AuthenticationErrorDetail", reason),))
