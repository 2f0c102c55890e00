"""The two shared pools of the demo: a T4 pool of two nodes and an H100 pool of one, both from zero."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from azure.batch import BatchClient, models

from hastegeo.routing.autoscale import pool_formula


@dataclass(frozen=True)
class DemoPool:
    """One shared pool: a tier of the group `dev`."""

    pool_id: str
    tier: str
    vm_size: str
    max_nodes: int


# In the order of preference: imagery preparation needs no H100 while a T4 is to be had.
POOLS = (
    DemoPool("haste-shared-dev-t4-pool", "t4", "Standard_NC16as_T4_v3", 2),
    DemoPool("haste-shared-dev-h100-pool", "h100", "Standard_NC40ads_H100_v5", 1),
)
POOL_IDS = tuple(pool.pool_id for pool in POOLS)
# The shortest interval that Azure Batch allows.
_AUTOSCALE_INTERVAL = timedelta(minutes=5)


def create_pools(client: BatchClient) -> None:
    """Create the pools: low-priority nodes, scaled from zero by the formula that shared pools use."""
    for pool in POOLS:
        client.create_pool(
            models.BatchPoolCreateOptions(
                id=pool.pool_id,
                vm_size=pool.vm_size,
                virtual_machine_configuration=models.VirtualMachineConfiguration(
                    image_reference=models.BatchVmImageReference(
                        publisher="microsoft-dsvm", offer="ubuntu-hpc", sku="2404", version="latest"
                    ),
                    node_agent_sku_id="batch.node.ubuntu 24.04",
                    container_configuration=models.BatchContainerConfiguration(
                        type=models.ContainerType.DOCKER_COMPATIBLE
                    ),
                ),
                task_slots_per_node=1,
                enable_inter_node_communication=False,
                enable_auto_scale=True,
                auto_scale_evaluation_interval=_AUTOSCALE_INTERVAL,
                auto_scale_formula=pool_formula(
                    min_nodes=0, max_nodes=pool.max_nodes, node_type="low_priority"
                ),
                metadata=[
                    models.BatchMetadataItem(name="haste_tier", value=pool.tier),
                    models.BatchMetadataItem(name="haste_max_nodes", value=str(pool.max_nodes)),
                ],
            )
        )
