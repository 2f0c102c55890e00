"""A whole cloud on loopback as one thing to start and stop.

It is made of certificates, a token endpoint, Azurite and the local Azure Batch.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hastegeo.local_cloud import azurite, identity
from hastegeo.local_cloud.certificates import CertificateFiles, create_certificates
from hastegeo.local_cloud.processes import ServerProcess, require_free_port

BATCH_ACCOUNT = "hastebatch"
# Azure Batch boots and scales in minutes; here a minute of its waiting takes a second.
DEFAULT_TIME_SCALE = 60.0


@dataclass(frozen=True, kw_only=True)
class LocalCloudOptions:
    """What to start.

    `tenants` get a storage account and an identity each. `images` maps image names to their TOML entries for
    the local Azure Batch. Ports are free ones unless given.
    """

    tenants: Sequence[str]
    images_file: Path
    driver: str = "auto"
    time_scale: float = DEFAULT_TIME_SCALE
    blob_port: int | None = None
    batch_port: int | None = None
    keep: bool = False


@dataclass(frozen=True, kw_only=True)
class LocalCloud:
    """A running local cloud: where everything is, and what proves who one is.

    `batch_key` and `storage_keys` stay out of the repr.
    """

    directory: Path
    certificates: CertificateFiles
    blob_url: str
    batch_url: str
    batch_account: str
    token_url: str
    isolated: bool
    driver: str
    processes: Mapping[str, ServerProcess]
    batch_key: str = field(repr=False)
    storage_keys: Mapping[str, str] = field(repr=False)
    identity_header: str = field(repr=False)

    def account_url(self, tenant: str) -> str:
        """Return the URL of a tenant's storage account."""
        return f"{self.blob_url}/{account_name(tenant)}"

    def client_environment(self) -> dict[str, str]:
        """Return what a program needs in its environment to trust this cloud and to sign in to it."""
        return {
            **self.certificates.client_environment(),
            "IDENTITY_ENDPOINT": self.token_url,
            "IDENTITY_HEADER": self.identity_header,
        }

    def check(self) -> None:
        """Raise `LocalCloudError` if a server has ended or was killed."""
        for process in self.processes.values():
            process.check()


def account_name(tenant: str) -> str:
    """Return the storage account's name of a tenant: lower-case letters and digits, as Azure wants it."""
    return f"haste{''.join(c for c in tenant.lower() if c.isalnum())}"


@contextlib.contextmanager
def running_cloud(options: LocalCloudOptions) -> Iterator[LocalCloud]:
    """Start everything, and stop and delete everything at the end unless `options.keep`.

    Raises `LocalCloudError` where a server cannot be started; those already started are stopped first.
    """
    for port in (options.blob_port, options.batch_port):
        if port is not None:
            require_free_port(port)
    azurite_dir = azurite.install()
    directory = Path(tempfile.mkdtemp(prefix="haste-"))
    processes: dict[str, ServerProcess] = {}
    finished = False
    try:
        yield _start(directory, azurite_dir, options, processes)
        finished = True
    finally:
        if not (options.keep and finished):
            for process in reversed(processes.values()):
                process.stop()
            shutil.rmtree(directory, ignore_errors=True)


def _start(
    directory: Path, azurite_dir: Path, options: LocalCloudOptions, processes: dict[str, ServerProcess]
) -> LocalCloud:
    certificates = create_certificates(directory / "certificates")
    logs = directory / "logs"
    die_with_parent = not options.keep
    identity_header = secrets.token_hex(16)
    storage_keys = {account_name(tenant): _new_key() for tenant in options.tenants}
    batch_key = _new_key()
    key_set = directory / "token-signing-keys.json"

    processes["identity"], token_url = identity.start(
        options.tenants,
        identity_header=identity_header,
        key_set_file=key_set,
        log_file=logs / "identity.log",
        die_with_parent=die_with_parent,
    )
    processes["azurite"], blob_url = azurite.start(
        azurite_dir,
        accounts=storage_keys,
        certificates=certificates,
        data_dir=directory / "azurite",
        log_file=logs / "azurite.log",
        port=options.blob_port,
        die_with_parent=die_with_parent,
    )
    ready_file = directory / "batch-ready.json"
    command = [
        *(sys.executable, "-m", "batch_emulator", "start", "--host", "127.0.0.1"),
        *("--port", str(options.batch_port or 0), "--account", BATCH_ACCOUNT),
        *("--cert", os.fspath(certificates.server_certificate)),
        *("--key", os.fspath(certificates.server_key)),
        *("--time-scale", str(options.time_scale), "--driver", options.driver),
        *("--images", os.fspath(options.images_file)),
        *("--egress", blob_url.removeprefix("https://")),
        *("--token-jwks", os.fspath(key_set)),
        *("--work-dir", os.fspath(directory / "batch"), "--ready-file", os.fspath(ready_file)),
    ]
    environment = {
        **certificates.client_environment(),
        "BATCH_EMULATOR_ACCOUNT_KEY": batch_key,
        "PATH": os.environ.get("PATH", ""),
        "HOME": os.fspath(directory),
        "LANG": "C.UTF-8",
    }
    batch = ServerProcess.start(
        "The local Azure Batch",
        command,
        environment=environment,
        log_file=logs / "batch.log",
        die_with_parent=die_with_parent,
    )
    processes["batch"] = batch
    batch.wait_until(ready_file.exists, what="come up")
    ready = json.loads(ready_file.read_text())
    return LocalCloud(
        directory=directory,
        certificates=certificates,
        blob_url=blob_url,
        batch_url=ready["endpoint"],
        batch_account=BATCH_ACCOUNT,
        token_url=token_url,
        isolated=ready["isolated"],
        driver=ready["driver"],
        processes=processes,
        batch_key=batch_key,
        storage_keys=storage_keys,
        identity_header=identity_header,
    )


def _new_key() -> str:
    return base64.b64encode(os.urandom(64)).decode()
