"""User-delegation keys: what signs grants instead of an account key.

Source: https://learn.microsoft.com/rest/api/storageservices/get-user-delegation-key
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.storage.blob import BlobServiceClient, UserDelegationKey

from hastegeo.credentials.policy import CLOCK_SKEW, LONGEST_GRANT
from hastegeo.credentials.redaction import redact
from hastegeo.domain.storage import ContainerAddress
from hastegeo.errors import CredentialError

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class DelegationKey:
    """A key and when it ends. Its value is in no text of this class."""

    key: UserDelegationKey = field(repr=False)
    starts: datetime
    expires: datetime

    @property
    def key_id(self) -> str:
        """Names the key without telling it: the identity that got it, and its times."""
        return f"{self.key.signed_oid}/{self.key.signed_start}/{self.key.signed_expiry}"


@dataclass(slots=True)
class _Account:
    lock: threading.Lock = field(default_factory=threading.Lock)
    key: DelegationKey | None = None


class DelegationKeys:
    """Gets delegation keys, one an account, and keeps them while they last. Safe to use from several threads.

    One instance belongs to one credential. A key is asked for as long as storage allows, so that it serves
    many grants; a key that ends before a grant does is replaced. Threads that need the same key make one
    call.
    """

    def __init__(self, credential: TokenCredential, *, clock: Clock = utc_now, **client_options: Any) -> None:
        self._credential = credential
        self._clock = clock
        self._client_options = client_options
        self._accounts: dict[str, _Account] = {}
        self._lock = threading.Lock()

    def key_for(self, address: ContainerAddress, *, until: datetime) -> DelegationKey:
        """Return a key of the address's account that lives until `until` at least.

        Raises `CredentialError`; a missing role is named with the command that grants it.
        """
        with self._lock:
            account = self._accounts.setdefault(address.account_url, _Account())
        with account.lock:
            if account.key is None or account.key.expires < until:
                account.key = self._fetch(address)
            return account.key

    def _fetch(self, address: ContainerAddress) -> DelegationKey:
        now = self._clock().replace(microsecond=0)
        starts, expires = now - CLOCK_SKEW, now + LONGEST_GRANT
        try:
            with BlobServiceClient(
                address.account_url, credential=self._credential, **self._client_options
            ) as client:
                key = client.get_user_delegation_key(starts, expires)
        except HttpResponseError as error:
            raise _refused(address, error) from None
        except AzureError as error:
            raise CredentialError(
                f"The storage account {address.account} gave no delegation key: {redact(str(error))}",
                hint="Check that the account's endpoint is reachable from here, and sign in again.",
            ) from None
        return DelegationKey(key=key, starts=starts, expires=expires)


def _refused(address: ContainerAddress, error: HttpResponseError) -> CredentialError:
    # The storage client adds the service's own code to azure-core's error, without declaring it.
    answer = f"HTTP {error.status_code}, {getattr(error, 'error_code', None) or 'no code'}"
    if isinstance(error, ClientAuthenticationError) or error.status_code in {401, 403}:
        return CredentialError(
            f"The identity of this process may not ask the storage account {address.account} "
            f"for a delegation key ({answer}).",
            hint=(
                "Give it the role Storage Blob Delegator: az role assignment create "
                '--role "Storage Blob Delegator" --assignee IDENTITY_OBJECT_ID '
                f"--scope $(az storage account show --name {address.account} --query id --output tsv)"
            ),
        )
    return CredentialError(
        f"The storage account {address.account} gave no delegation key ({answer}).",
        hint="Try again; if it persists, check the account's state and network rules.",
    )
