"""The environment that a command works in: its settings, its identity, its runner."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hastegeo.cli._output import note
from hastegeo.errors import InputError

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

    from hastegeo.runners import AzureBatchRunner, LocalRunner
    from hastegeo.settings import Settings

EnvFile = Annotated[
    Path | None,
    typer.Option(
        "--env-file",
        metavar="FILE",
        help="Read the settings from this file of NAME=value lines, in place of the environment.",
    ),
]


def read_variables(env_file: Path | None) -> Mapping[str, str]:
    """Return the variables of a file, or those of this process where none is given."""
    if env_file is None:
        return os.environ
    from hastegeo.settings import read_env_file

    try:
        return read_env_file(env_file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise InputError(
            f"The file of settings {env_file} cannot be read ({why}).",
            hint="Name a file of NAME=value lines.",
        ) from None


def load_settings(env_file: Path | None) -> Settings:
    """Read the settings; what they warn of is said on standard error."""
    return settings_of(read_variables(env_file))


def settings_of(variables: Mapping[str, str]) -> Settings:
    """Read the settings from variables, and take their secrets out of everything that is shown."""
    from hastegeo.credentials import install_redaction, redact
    from hastegeo.settings import Settings

    install_redaction()
    # The SDKs' own warnings repeat, at length, what the command says in one sentence.
    logging.getLogger("azure").setLevel(logging.ERROR)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        settings = Settings.load(variables)
    for warning in found:
        note(f"haste: {warning.message}")
    if settings.account_key is not None:
        redact.add(settings.account_key.get_secret_value())
    return settings


@contextmanager
def signed_in(variables: Mapping[str, str]) -> Iterator[TokenCredential]:
    """Sign in as an environment, until the block ends.

    A service principal's AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET are taken from the
    variables; AZURE_CLIENT_ID alone names a managed identity. Without them it is `DefaultAzureCredential`.
    """
    from azure.identity import ClientSecretCredential, DefaultAzureCredential

    from hastegeo.credentials import redact

    tenant, client, secret = (
        variables.get(name, "") for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
    )
    credential: ClientSecretCredential | DefaultAzureCredential
    if tenant and client and secret:
        redact.add(secret)
        credential = ClientSecretCredential(tenant, client, secret)
    elif client:
        credential = DefaultAzureCredential(managed_identity_client_id=client)
    else:
        credential = DefaultAzureCredential()
    try:
        yield credential
    finally:
        credential.close()


@contextmanager
def open_runner(env_file: Path | None) -> Iterator[tuple[Settings, AzureBatchRunner | LocalRunner]]:
    """Give the settings and the runner that they name, until the block ends."""
    variables = read_variables(env_file)
    settings = settings_of(variables)
    from hastegeo.runners import AzureBatchRunner, LocalRunner
    from hastegeo.settings import RunnerType

    with signed_in(variables) as credential:
        if settings.runner_type is RunnerType.LOCAL:
            yield settings, LocalRunner(settings, credential)
        else:
            with AzureBatchRunner(settings, credential) as runner:
                yield settings, runner


def on_batch(runner: AzureBatchRunner | LocalRunner) -> AzureBatchRunner:
    """Return the runner, for what only Azure Batch has; raise `InputError` for the local one."""
    from hastegeo.runners import AzureBatchRunner

    if not isinstance(runner, AzureBatchRunner):
        raise InputError(
            "This needs Azure Batch, and RUNNER_TYPE is local.", hint="Set RUNNER_TYPE=azure_batch."
        )
    return runner
