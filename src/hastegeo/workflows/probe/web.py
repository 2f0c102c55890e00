"""Plain HTTP, as an attacker would speak it: no SDK, no retries, no proxies, no redirects.

Certificates are verified against SSL_CERT_FILE, or the system's own authorities: an answer from a server that
cannot prove who it is would prove nothing.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import IO, Final

from hastegeo.errors import InputError

_MAX_BODY: Final = 64 * 1024
_CODE: Final = re.compile(rb"<Code>([A-Za-z]{1,80})</Code>")
_WORD: Final = re.compile(r"[A-Za-z0-9_.]{1,80}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said. `code` is the error code of its own, empty where it gave none."""

    status: int
    code: str
    body: bytes

    @property
    def evidence(self) -> str:
        """The status and code, as a phrase."""
        return f"HTTP {self.status} {self.code}".rstrip()

    def json(self) -> object:
        """Return the body as JSON, or None where it is not."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """Follow nothing: a redirect is an answer of its own."""


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float,
) -> Answer:
    """Send a request and return the answer, whatever its status.

    Raises `OSError` or `http.client.HTTPException` where there is no answer, `InputError` for an address that
    is not http or https.
    """
    if not url.startswith(("https://", "http://")):
        raise InputError("An address to attack begins with https:// or http://.")
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)  # noqa: S310 - checked above
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context()),
        _NoRedirect(),
    )
    try:
        with opener.open(request, timeout=timeout) as response:
            return _answer(response.status, response.headers, response.read(_MAX_BODY))
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.headers, error.read(_MAX_BODY))
    except UnicodeError:
        raise http.client.InvalidURL from None


def _answer(status: int, headers: Message, body: bytes) -> Answer:
    code = headers.get("x-ms-error-code", "")
    if not code and (found := _CODE.search(body)):
        code = found.group(1).decode()
    answer = Answer(status, code if _WORD.fullmatch(code) else "", body)
    if not answer.code and status >= 400 and isinstance(document := answer.json(), dict):
        value = document.get("code") or document.get("error")
        if isinstance(value, dict):
            value = value.get("code")
        if isinstance(value, str) and _WORD.fullmatch(value):
            return Answer(status, value, body)
    return answer
