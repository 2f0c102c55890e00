"""The demo's two environments: each with its own storage account, identity, settings and runner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azure.identity import DefaultAzureCredential
from azure.storage.blob import ContainerClient

from hastegeo.credentials import GrantLedger
from hastegeo.demo.pools import POOL_IDS
from hastegeo.local_cloud import identity
from hastegeo.local_cloud.cloud import LocalCloud
from hastegeo.runners import AzureBatchRunner
from hastegeo.settings import Settings

CONTAINER = "imagery"
_TASK_LIMIT = "30m"


@dataclass(frozen=True)
class DemoTenant:
    """One environment, signed in as itself."""

    name: str
    settings: Settings
    credential: DefaultAzureCredential
    container: ContainerClient
    runner: AzureBatchRunner

    @property
    def container_url(self) -> str:
        """The URL of the tenant's own container, without a signature."""
        return self.settings.output_container_url

    def upload(self, folder: Path, *, prefix: str) -> int:
        """Upload the files of a folder below `prefix`, as the tenant itself; returns how many they were."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in files:
            with path.open("rb") as data:
                self.container.upload_blob(f"{prefix}/{path.relative_to(folder)}", data, overwrite=True)
        return len(files)

    def download(self, *, prefix: str, folder: Path) -> list[Path]:
        """Download the blobs below `prefix`, as the tenant itself, and return where they are."""
        written = []
        for blob in self.container.list_blobs(name_starts_with=f"{prefix}/"):
            target = folder / blob.name.removeprefix(f"{prefix}/")
            if not target.resolve().is_relative_to(folder.resolve()):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as sink:
                self.container.download_blob(blob.name).readinto(sink)
            written.append(target)
        return written

    def close(self) -> None:
        """Close the connections."""
        self.runner.close()
        self.container.close()
        self.credential.close()


def sign_in(cloud: LocalCloud, names: Sequence[str], *, ledger_file: Path) -> list[DemoTenant]:
    """Create each tenant's container and runner. Their runners share one view of the pools' capacity.

    The environment of this process must hold the cloud's `client_environment()`.
    """
    ledger = GrantLedger(ledger_file)
    tenants: list[DemoTenant] = []
    for name in names:
        account_url = cloud.account_url(name)
        settings = Settings.load(
            {
                "HASTE_TENANT": name,
                "AZURE_BATCH_ACCOUNT_NAME": cloud.batch_account,
                "AZURE_BATCH_URL": cloud.batch_url,
                "AZURE_BATCH_OUTPUT_CONTAINER_URL": f"{account_url}/{CONTAINER}",
                "AZURE_BATCH_IMAGERYPREP_POOL_IDS": ",".join(POOL_IDS),
                "AZURE_BATCH_USE_SAS": "true",
                "AZURE_BATCH_MANAGE_POOLS": "false",
                # The nodes' files must outlive the attack that tries to read them.
                "AZURE_BATCH_TASK_RETENTION_TIME": "1d",
                "HASTE_MAX_WALL_CLOCK": _TASK_LIMIT,
            }
        )
        # A user-assigned identity each, as `AZURE_CLIENT_ID` names it in the cloud.
        credential = DefaultAzureCredential(managed_identity_client_id=identity.client_id(name))
        container = ContainerClient(account_url, CONTAINER, credential=credential)
        container.create_container()
        shared: dict[str, Any] = {"capacity": tenants[0].runner.capacity} if tenants else {}
        runner = AzureBatchRunner(settings, credential, ledger=ledger, **shared)
        tenants.append(DemoTenant(name, settings, credential, container, runner))
    return tenants
