"""The older way, in which the runner looks after its one pool; and the new one, which touches none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hastegeo.domain import TaskSpec
from hastegeo.errors import ConfigurationError
from hastegeo.runners import AzureBatchRunner

Runners = Callable[..., AzureBatchRunner]
Specs = Callable[..., TaskSpec]
OLDER = {
    "AZURE_BATCH_MANAGE_POOLS": "true",
    "AZURE_BATCH_IMAGERYPREP_POOL_IDS": "",
    "AZURE_BATCH_IMAGERYPREP_POOL_ID": "own-pool",
    "AZURE_BATCH_DOCKER_IMAGE": "r.azurecr.io/training:1",
    "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE": "r.azurecr.io/imagery:1",
    "AZURE_BATCH_TARGET_LOW_PRIORITY_NODES": "2",
}


def test_a_missing_pool_is_created_with_both_images(
    azure: Any, make_runner: Runners, make_spec: Specs
) -> None:
    make_runner(**OLDER).submit(make_spec())
    pool = azure.pools["own-pool"]
    assert (pool["targetLowPriorityNodes"], pool["targetDedicatedNodes"]) == (2, 0)
    configuration = pool["virtualMachineConfiguration"]
    assert configuration["containerConfiguration"]["containerImageNames"] == [
        "r.azurecr.io/training:1",
        "r.azurecr.io/imagery:1",
    ]
    assert configuration["nodeAgentSKUId"] == "batch.node.ubuntu 24.04"
    assert len(azure.tasks) == 1


def test_a_pool_that_needs_an_identity_is_refused_before_a_task_is_sent(
    azure: Any, make_runner: Runners, make_spec: Specs
) -> None:
    identity = {"AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID": "/ids/pool"}
    with pytest.raises(ConfigurationError, match="identity"):
        make_runner(**OLDER, **identity).submit(make_spec())
    assert not azure.tasks
    azure.pools["own-pool"] = {"id": "own-pool", "targetDedicatedNodes": 1}
    make_runner(**OLDER, **identity).submit(make_spec())
    assert len(azure.tasks) == 1


@pytest.mark.parametrize(
    ("pool", "resized"),
    [
        ({"targetDedicatedNodes": 0, "targetLowPriorityNodes": 0}, True),
        ({"targetDedicatedNodes": 1, "targetLowPriorityNodes": 0}, False),
        ({"enableAutoScale": True, "targetLowPriorityNodes": 0}, False),
    ],
)
def test_an_empty_pool_is_grown_and_one_that_scales_itself_is_not(
    azure: Any, make_runner: Runners, make_spec: Specs, pool: dict[str, Any], resized: bool
) -> None:
    azure.pools["own-pool"] = {"id": "own-pool", "state": "active", "allocationState": "steady", **pool}
    make_runner(**OLDER).submit(make_spec())
    assert azure.calls["resize_pool"] == int(resized)
    assert azure.pools["own-pool"]["targetLowPriorityNodes"] == (2 if resized else 0)


def test_pools_that_are_not_managed_are_not_even_looked_at(
    azure: Any, make_runner: Runners, make_spec: Specs
) -> None:
    make_runner(**OLDER | {"AZURE_BATCH_MANAGE_POOLS": "false"}).submit(make_spec())
    assert not azure.pools
    assert azure.calls["get_pool"] == azure.calls["create_pool"] == 0
