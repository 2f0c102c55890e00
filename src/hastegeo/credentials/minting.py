"""Minting: from an authorised scope to a signed URL, recorded before it is handed out.

Source: https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from azure.core.credentials import TokenCredential
from azure.storage.blob import generate_blob_sas, generate_container_sas

from hastegeo.credentials.delegation import Clock, DelegationKey, DelegationKeys, utc_now
from hastegeo.credentials.grant import Grant, SignedUrl
from hastegeo.credentials.ledger import GrantLedger, LedgerEntry
from hastegeo.credentials.policy import CLOCK_SKEW, LONGEST_GRANT, authorise, distinct
from hastegeo.domain import GrantScope, Tenant
from hastegeo.errors import GrantRefusedError


class GrantMinter:
    """Mints user-delegation grants for tenants. Safe to use from several threads.

    `directory_scope` narrows grants on a prefix to that directory; it needs accounts with a hierarchical
    namespace. `client_options` go to the storage client (a transport, for one).
    """

    def __init__(
        self,
        credential: TokenCredential,
        ledger: GrantLedger,
        *,
        directory_scope: bool = False,
        clock: Clock = utc_now,
        **client_options: Any,
    ) -> None:
        self._keys = DelegationKeys(credential, clock=clock, **client_options)
        self._ledger = ledger
        self._directory_scope = directory_scope
        self._clock = clock

    def mint(
        self, scopes: Iterable[GrantScope], *, tenant: Tenant, task: str, lifetime: timedelta
    ) -> tuple[Grant, ...]:
        """Return one grant for each distinct scope, living for `lifetime` from now.

        `task` says in the ledger what they are for. All scopes are authorised before the first is signed,
        and all grants are in the ledger before the first is returned. Raises `GrantRefusedError` for a
        scope outside the tenant's containers or too long a lifetime, `CredentialError` where no key or
        ledger could be had.
        """
        authorised = [authorise(scope, tenant) for scope in distinct(scopes)]
        if not timedelta(0) < lifetime <= LONGEST_GRANT:
            raise GrantRefusedError(
                f"A grant cannot live for {lifetime}: storage allows up to {LONGEST_GRANT}."
            )
        now = self._clock().replace(microsecond=0)
        grants = tuple(self._sign(scope, tenant, lifetime) for scope in authorised)
        self._ledger.append(LedgerEntry.of(grant, task=task, issued=now) for grant in grants)
        return grants

    def _sign(self, scope: GrantScope, tenant: Tenant, lifetime: timedelta) -> Grant:
        now = self._clock().replace(microsecond=0)
        starts, expires = now - CLOCK_SKEW, now + lifetime
        key = self._keys.key_for(scope.container, until=expires)
        # A SAS is not valid before its key is; a key just fetched starts 15 minutes back too.
        starts = max(starts, key.starts)
        token = self._token(scope, key, starts=starts, expires=expires)
        address = scope.container
        url = address.blob_url(scope.blob) if scope.blob is not None else address.url
        return Grant(
            scope=scope,
            tenant=tenant.name,
            starts=starts,
            expires=expires,
            key_id=key.key_id,
            url=SignedUrl(f"{url}?{token}"),
        )

    def _token(self, scope: GrantScope, key: DelegationKey, *, starts: datetime, expires: datetime) -> str:
        address = scope.container
        options: dict[str, Any] = {
            "account_name": address.account,
            "container_name": address.container,
            "user_delegation_key": key.key,
            "permission": scope.letters,
            "start": starts,
            "expiry": expires,
            "protocol": "https",
        }
        if scope.blob is not None:
            return generate_blob_sas(blob_name=scope.blob, **options)
        if self._directory_scope and scope.prefix is not None:
            return generate_blob_sas(blob_name=scope.prefix.rstrip("/"), is_directory=True, **options)
        return generate_container_sas(**options)
