"""The command line against the local Azure Batch and Azurite."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.batch import BatchClient, models
from azure.core.credentials import AzureNamedKeyCredential

from hastegeo.local_cloud import identity

from .support import H100, IMAGE, T4, Haste


@pytest.fixture(scope="session")
def batch() -> Iterator[Any]:
    """A local Azure Batch with two fixed pools: one T4 node, and one H100 node."""
    from batch_emulator.clock import SystemClock
    from batch_emulator.nodes.images import Image, ImageTable
    from batch_emulator.testing import running_emulator

    image = Image(read_only_paths=(Path(sys.prefix), Path(sys.base_prefix)))
    with running_emulator(clock=SystemClock(200), images=ImageTable({IMAGE: image})) as found:
        key = AzureNamedKeyCredential(found.account_name, found.account_key)
        with BatchClient(found.endpoint, key) as client:
            for pool, size in ((T4, "Standard_NC16as_T4_v3"), (H100, "Standard_NC40ads_H100_v5")):
                client.create_pool(
                    models.BatchPoolCreateOptions(
                        id=pool,
                        vm_size=size,
                        virtual_machine_configuration=models.VirtualMachineConfiguration(
                            image_reference=models.BatchVmImageReference(publisher="p", offer="o", sku="s"),
                            node_agent_sku_id="batch.node.ubuntu 24.04",
                        ),
                        target_dedicated_nodes=1,
                        metadata=[models.BatchMetadataItem(name="haste_tier", value=pool.split("-")[-2])],
                    )
                )
            _wait_for_nodes(client)
        yield found


def _wait_for_nodes(client: BatchClient) -> None:
    """Wait until each pool has its node: an allocation takes a moment here too."""
    deadline = time.monotonic() + 20
    while any(counts.dedicated.total < 1 for counts in client.list_pool_node_counts()):
        assert time.monotonic() < deadline, "the pools got no nodes"
        time.sleep(0.02)


@pytest.fixture
def variables(storage: Any, batch: Any, tmp_path: Path) -> dict[str, str]:
    """The settings of tenant dev1 in the shared mode."""
    return {
        "HASTE_TENANT": "dev1",
        "AZURE_BATCH_URL": batch.endpoint,
        "AZURE_BATCH_ACCOUNT_NAME": batch.account_name,
        "AZURE_BATCH_ACCOUNT_KEY": batch.account_key,
        "AZURE_BATCH_USE_SAS": "true",
        "AZURE_BATCH_MANAGE_POOLS": "false",
        "AZURE_BATCH_IMAGERYPREP_POOL_IDS": f"{T4},{H100}",
        "AZURE_BATCH_OUTPUT_CONTAINER_URL": storage.address("dev1store").url,
        "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": IMAGE,
        "HASTE_GRANT_LEDGER": str(tmp_path / "grants.jsonl"),
        "AZURE_CLIENT_ID": identity.client_id("dev1"),
    }


@pytest.fixture
def write_env(tmp_path: Path) -> Callable[..., str]:
    """Write variables to a file, and return its path."""

    def write(values: dict[str, str], name: str = "dev1.env") -> str:
        path = tmp_path / name
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return str(path)

    return write


@pytest.fixture
def bare_haste(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Haste:
    """The command line in an environment without settings."""
    for name in [name for name in os.environ if name.startswith(("AZURE_BATCH_", "HASTE_"))]:
        monkeypatch.delenv(name)
    return Haste(capfd)


@pytest.fixture
def haste(bare_haste: Haste, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Haste:
    """The command line in tenant dev1's environment."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    bare_haste.secrets = (variables["AZURE_BATCH_ACCOUNT_KEY"],)
    return bare_haste
