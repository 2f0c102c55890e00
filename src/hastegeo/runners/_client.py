"""The Batch client: how it signs in, what it retries, and how its errors become ours."""

from __future__ import annotations

from typing import Any, Final

from azure.batch import BatchClient
from azure.core.credentials import AzureNamedKeyCredential, TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.core.pipeline import PipelineResponse
from azure.core.pipeline.policies import RetryPolicy

from hastegeo.credentials import redact
from hastegeo.errors import CredentialError, RunnerError
from hastegeo.settings import Settings

_RETRIES: Final = 5
_LONGEST_WAIT_SECONDS: Final = 30
_BUDGET_SECONDS: Final = 120


class BudgetedRetryPolicy(RetryPolicy[Any, Any]):
    """Retries 408, 429 and 5xx, and lost connections, of every method, within a budget of time and tries.

    Every call of this library may be repeated: ids are chosen here, so that a repeated creation answers
    that the thing exists. A Retry-After is honoured; one longer than the budget allows is not waited for.
    """

    def __init__(self) -> None:
        super().__init__(
            retry_total=_RETRIES,
            retry_status=_RETRIES,
            retry_backoff_factor=0.4,
            retry_backoff_max=8,
            timeout=_BUDGET_SECONDS,
        )
        self._method_whitelist = frozenset({*self._method_whitelist, "POST", "PATCH"})

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        """Whether an answer is worth another try."""
        status = response.http_response.status_code
        if status not in {408, 429} and status < 500:
            return False
        wait = self.get_retry_after(response) or 0
        return bool(settings["total"] > 0 and wait <= _LONGEST_WAIT_SECONDS)


def connect_batch(
    settings: Settings,
    credential: TokenCredential | AzureNamedKeyCredential,
    *,
    endpoint: str | None = None,
    **client_options: Any,
) -> BatchClient:
    """Return a client of the environment's Batch account; an account key in the settings wins over
    `credential`.

    `endpoint` overrides AZURE_BATCH_URL. `client_options` go to the client (a transport, for one).
    """
    if settings.account_key is not None:
        key = settings.account_key.get_secret_value()
        redact.add(key)
        credential = AzureNamedKeyCredential(settings.account_name, key)
    return BatchClient(
        endpoint or settings.url,
        credential,
        retry_policy=BudgetedRetryPolicy(),
        **{"connection_timeout": 10, "read_timeout": 60, **client_options},
    )


def error_code(error: AzureError) -> str:
    """Return the service's own code of an error (`TaskExists`), or an empty string."""
    if not isinstance(error, HttpResponseError):
        return ""
    return str(getattr(error.error, "code", None) or "")


def enum_text(value: object) -> str:
    """Return an enumeration's value in lower case: the service is free in its case and adds values."""
    return str(getattr(value, "value", value) or "").lower()


def as_runner_error(error: AzureError, doing: str) -> RunnerError | CredentialError:
    """Return our error for a failed call: what was tried, and what the service said, without secrets."""
    if isinstance(error, HttpResponseError) and error.status_code in {401, 403}:
        return CredentialError(
            f"The Batch account refused to {doing} ({_answer(error)}).",
            hint="Give this identity a role on the Batch account, or check AZURE_BATCH_ACCOUNT_KEY.",
        )
    if isinstance(error, ClientAuthenticationError):
        return CredentialError(
            f"No credential could be had to {doing}: {redact(error.message)}",
            hint="Sign in (az login), or give this process an identity.",
        )
    if isinstance(error, HttpResponseError) and error.status_code is not None:
        message = redact(str(getattr(error.error, "message", "") or error.reason or "")).partition("\n")[0]
        return RunnerError(f"The Batch account failed to {doing} ({_answer(error)}): {message}".rstrip(": "))
    return RunnerError(
        f"The Batch account could not be reached to {doing}: {redact(str(error))}",
        hint="Check AZURE_BATCH_URL and the network, then try again: repeating it is safe.",
    )


def _answer(error: HttpResponseError) -> str:
    return f"HTTP {error.status_code} {error_code(error)}".rstrip()
