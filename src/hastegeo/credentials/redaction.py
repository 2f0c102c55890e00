"""Keeping secrets out of everything that is shown: logs, errors, tracebacks, command-line output.

A pattern finds what is shaped like a secret (a SAS signature, an Authorization header, an account key in a
connection string). What has no shape of its own, such as a bare account key, is registered by `Redactor.add`.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from types import TracebackType
from typing import Final

MASK: Final = "REDACTED"
# `sig` may stand in a URL, in an escaped URL (sig%3D), or in a doubly escaped one; a signature is base64 in
# which +, / and = may be escaped once or twice.
_SIGNATURE: Final = re.compile(r"(?i)\b(sig(?:=|%(?:25)*3d))(?:[A-Za-z0-9+/=_-]|%(?:25)*[0-9a-f]{2})+")
_AUTHORIZATION: Final = re.compile(r"(?i)\b(SharedKey(?:Lite)?\s+[^\s:]+:|Bearer\s+)[A-Za-z0-9+/=._~-]+")
_CONNECTION: Final = re.compile(r"(?i)\b((?:AccountKey|SharedAccessSignature|AccessKey)\s*=\s*)[^\s;\"']+")
_JSON_WEB_TOKEN: Final = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*")
# Shorter words would blot out ordinary text.
_SHORTEST_SECRET: Final = 8


class Redactor:
    """Removes secrets from text. Safe to use from several threads."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def add(self, secret: str) -> None:
        """Register a literal secret. One under 8 characters is ignored: it would blot out plain words."""
        with self._lock:
            if len(secret) >= _SHORTEST_SECRET and secret not in self._secrets:
                # Longest first, so that a secret inside another leaves no remainder.
                self._secrets = tuple(sorted({*self._secrets, secret}, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        """Return `text` with every secret replaced by REDACTED."""
        text = _SIGNATURE.sub(rf"\g<1>{MASK}", text)
        text = _CONNECTION.sub(rf"\g<1>{MASK}", text)
        text = _AUTHORIZATION.sub(rf"\g<1>{MASK}", text)
        text = _JSON_WEB_TOKEN.sub(MASK, text)
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


redact: Final = Redactor()


class RedactingFilter(logging.Filter):
    """Redacts a record's message, arguments, exception and stack before any handler formats it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place; every record passes."""
        record.msg = redact(record.getMessage())
        record.args = None
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            record.exc_text = redact("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        elif record.exc_text:
            record.exc_text = redact(record.exc_text)
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return True


def install_redaction() -> None:
    """Redact all handlers of the root logger, and the tracebacks of uncaught exceptions on standard error.

    A program calls it once, after it has set up logging; calling it again changes nothing.
    """
    for handler in logging.getLogger().handlers:
        if not any(isinstance(present, RedactingFilter) for present in handler.filters):
            handler.addFilter(RedactingFilter())
    sys.excepthook = _print_redacted


def _print_redacted(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, where))))
