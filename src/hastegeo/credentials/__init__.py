"""Grants: what to allow, delegation keys, minting, the ledger of what was given, redaction."""

from hastegeo.credentials.delegation import Clock, DelegationKey, DelegationKeys, utc_now
from hastegeo.credentials.grant import Grant, SignedUrl
from hastegeo.credentials.ledger import GrantLedger, LedgerEntry, default_ledger_path
from hastegeo.credentials.minting import GrantMinter
from hastegeo.credentials.policy import (
    CLOCK_SKEW,
    LONGEST_GRANT,
    authorise,
    distinct,
    grant_lifetime,
    request_scope,
)
from hastegeo.credentials.redaction import RedactingFilter, Redactor, install_redaction, redact

__all__ = [
    "CLOCK_SKEW",
    "LONGEST_GRANT",
    "Clock",
    "DelegationKey",
    "DelegationKeys",
    "Grant",
    "GrantLedger",
    "GrantMinter",
    "LedgerEntry",
    "RedactingFilter",
    "Redactor",
    "SignedUrl",
    "authorise",
    "default_ledger_path",
    "distinct",
    "grant_lifetime",
    "install_redaction",
    "redact",
    "request_scope",
    "utc_now",
]
