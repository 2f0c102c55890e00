"""The older way: the runner looks after its one pool.

With AZURE_BATCH_MANAGE_POOLS=false no pool is ever touched.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from azure.batch import BatchClient, models
from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError

from hastegeo.errors import ConfigurationError
from hastegeo.runners._client import as_runner_error, error_code
from hastegeo.settings import Settings

logger = logging.getLogger(__name__)

_SELDOM_SECONDS: Final = 60
_FIELDS: Final = ("id", "enableAutoScale", "targetDedicatedNodes", "targetLowPriorityNodes")


class ManagedPools:
    """Creates a pool that is missing and grows one that is empty. Safe to use from several threads."""

    def __init__(self, client: BatchClient, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._lock = threading.Lock()

    def ensure(self, pool_id: str) -> None:
        """See to it that the pool exists and wants nodes.

        It does not wait for them: the task does, in its queue.

        Raises `ConfigurationError` for a pool that cannot be made from the settings.
        """
        with self._lock:
            try:
                pool = self._client.get_pool(pool_id, select=list(_FIELDS))
            except ResourceNotFoundError:
                self._create(pool_id)
                return
            except AzureError as error:
                raise as_runner_error(error, f"read the pool {pool_id}") from None
            if pool.enable_auto_scale:
                logger.info("The pool %s scales itself, so it is not resized.", pool_id)
            elif not (pool.target_dedicated_nodes or pool.target_low_priority_nodes):
                self._grow(pool_id)

    def _create(self, pool_id: str) -> None:
        settings = self._settings
        if settings.registry_identity_resource_id:
            raise ConfigurationError(
                f"The pool {pool_id} does not exist, and a pool with an identity cannot be made here: "
                "the Batch data plane attaches none.",
                hint="Create the pool with its identity beforehand, or set AZURE_BATCH_MANAGE_POOLS=false.",
            )
        images = [settings.registry_image, settings.docker_image, settings.imageryprep_docker_image]
        pool = models.BatchPoolCreateOptions(
            id=pool_id,
            vm_size=settings.vm_size,
            virtual_machine_configuration=models.VirtualMachineConfiguration(
                image_reference=models.BatchVmImageReference(
                    publisher=settings.vm_publisher,
                    offer=settings.vm_offer,
                    sku=settings.vm_sku,
                    version=settings.vm_version,
                ),
                node_agent_sku_id=settings.node_agent_sku_id,
                container_configuration=models.BatchContainerConfiguration(
                    type=models.ContainerType.DOCKER_COMPATIBLE,
                    container_image_names=list(dict.fromkeys(image for image in images if image)),
                ),
            ),
            target_dedicated_nodes=settings.target_dedicated_nodes,
            target_low_priority_nodes=settings.target_low_priority_nodes,
            task_slots_per_node=1,
        )
        try:
            self._client.create_pool(pool)
        except ResourceExistsError as error:
            if error_code(error) != "PoolExists":
                raise as_runner_error(error, f"create the pool {pool_id}") from None
        except AzureError as error:
            raise as_runner_error(error, f"create the pool {pool_id}") from None

    def _grow(self, pool_id: str) -> None:
        wanted = models.BatchPoolResizeOptions(
            target_dedicated_nodes=self._settings.target_dedicated_nodes,
            target_low_priority_nodes=self._settings.target_low_priority_nodes,
        )
        try:
            # Nobody waits for the end of the resize; the client's own waiting in the background asks seldom.
            self._client.begin_resize_pool(pool_id, wanted, polling_interval=_SELDOM_SECONDS)
        except ResourceExistsError as error:
            # Somebody else resizes it already.
            if error_code(error) != "PoolBeingResized":
                raise as_runner_error(error, f"resize the pool {pool_id}") from None
        except AzureError as error:
            raise as_runner_error(error, f"resize the pool {pool_id}") from None
