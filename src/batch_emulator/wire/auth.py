"""Who may call: SharedKey signatures and Entra ID tokens, both verified for real.

SharedKey: https://learn.microsoft.com/rest/api/batchservice/authenticate-requests-to-the-azure-batch-service
"""

from __future__ import annotations

import base64
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
# Audience and times are checked after the signature, by the emulator's own clock and with its own messages.
_ONLY_SIGNATURE: Final[jwt.types.Options] = {
    "verify_aud": False,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}
_CHALLENGE: Final = (
    f'Bearer authorization_uri="https://login.microsoftonline.com/common", resource="{AUDIENCE}/"'
)


class AuthenticationRequiredError(BatchError):
    """No usable token: 401, whose `headers` tell the client where to get one."""

    def __init__(self, reason: str) -> None:
        super().__init__("AuthenticationFailed", values=(("AuthenticationErrorDetail", reason),))
        self.status = 401
        self.headers = {"WWW-Authenticate": _CHALLENGE}


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
        # The digest of each token that was found good, and when it expires (seconds since the epoch).
        self._tokens: dict[bytes, float] = {}

    def authenticate(self, method: str, raw_path: str, raw_query: str, headers: Mapping[str, str]) -> None:
        """Return if the request may pass, else raise AuthenticationFailed with the reason.

        The status is 403 for a bad signature, and 401 for a bad token or none of either. `raw_path` and
        `raw_query` are as they came, `headers` have lower-case names.
        """
        scheme, _, credential = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "sharedkey":
            self._check_signature(method, raw_path, raw_query, headers, credential)
        elif scheme.lower() == "bearer":
            self._check_token(credential)
        else:
            raise AuthenticationRequiredError(
                "The Authorization header is missing; send SharedKey or Bearer."
            )

    def _check_signature(
        self, method: str, raw_path: str, raw_query: str, headers: Mapping[str, str], credential: str
    ) -> None:
        account, _, signature = credential.strip().partition(":")
        if account.lower() != self._account.lower():
            raise _failed("The account of the signature is not this account.")
        date = headers.get("ocp-date") or headers.get("date")
        try:
            skew = abs(self._now() - parse_http_time(date or ""))
        except ValueError:
            raise _failed("The ocp-date or date header is missing or not a date.") from None
        if skew > _SKEW:
            raise _failed("The date of the request is more than 15 minutes away from the service's.")
        matches = [
            hmac.compare_digest(self._sign(text).encode(), signature.encode())
            for length in signed_lengths(method, headers)
            for text in (string_to_sign(account, method, raw_path, raw_query, headers, length),)
        ]
        if not any(matches):
            raise _failed("The signature is not the one computed from the request and the account's key.")

    def _sign(self, text: str) -> str:
        return base64.b64encode(hmac.digest(self._key, text.encode(), "sha256")).decode()

    def _check_token(self, token: str) -> None:
        digest = hashlib.sha256(token.encode()).digest()
        if self._tokens.get(digest, 0.0) > self._now().timestamp():
            return
        if not self._token_keys:
            raise AuthenticationRequiredError(
                "This emulator was started without token-signing keys; use SharedKey."
            )
        expires = self._check_claims(self._verified_claims(token))
        if len(self._tokens) >= _KNOWN_TOKENS:
            self._tokens.clear()
        self._tokens[digest] = expires

    def _verified_claims(self, token: str) -> Mapping[str, Any]:
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = next((key for key in self._token_keys if key.key_id == key_id), self._token_keys[0])
            claims: Mapping[str, Any] = jwt.decode(token, key, algorithms=["RS256"], options=_ONLY_SIGNATURE)
        except (jwt.PyJWTError, ValueError, RecursionError):
            reason = "The token is not signed by a key that this account trusts."
            raise AuthenticationRequiredError(reason) from None
        return claims

    def _check_claims(self, claims: Mapping[str, Any]) -> float:
        """Return when the token expires."""
        # SDKs ask for the audience with one slash, two (azure-batch 15.1), or none at its end.
        if str(claims.get("aud", "")).rstrip("/") != AUDIENCE:
            raise AuthenticationRequiredError(f"The token's audience is not {AUDIENCE}.")
        if not str(claims.get("iss", "")).startswith(ISSUER_PREFIX):
            raise AuthenticationRequiredError(f"The token's issuer does not begin with {ISSUER_PREFIX}.")
        now = self._now().timestamp()
        expires, not_before = claims.get("exp"), claims.get("nbf", 0)
        if not isinstance(expires, int | float) or expires <= now:
            raise AuthenticationRequiredError("The token has expired.")
        if not isinstance(not_before, int | float) or not_before > now + _SKEW.total_seconds():
            raise AuthenticationRequiredError("The token is not valid yet.")
        return expires


def string_to_sign(
    account: str, method: str, raw_path: str, raw_query: str, headers: Mapping[str, str], length: str
) -> str:
    """Return the text that a SharedKey signature covers. `length` stands for the content-length header."""
    shown = {**headers, "content-length": length}
    values = [shown.get(name, "") for name in _SIGNED_HEADERS]
    ocp = "".join(
        f"{name}:{headers[name].strip()}\n"
        for name in sorted(headers)
        if name.startswith("ocp-") and headers[name]
    )
    return "\n".join([method, *values]) + "\n" + ocp + f"/{account}{raw_path}" + _canonical_query(raw_query)


def signed_lengths(method: str, headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return what clients sign as the length of a body.

    Without a body GET and HEAD sign nothing. For other methods the Python SDKs sign `0`, and npm's signs
    nothing for DELETE; neither says anything about the request that the other does not, so both pass.
    """
    length = headers.get("content-length", "")
    if length not in {"", "0"}:
        return (length,)
    return ("",) if method in {"GET", "HEAD"} else ("0", "")


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
