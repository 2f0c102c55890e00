"""The settings: name, default and meaning of each. `docs/reference/settings.md` is made of them."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr

from hastegeo.settings._parsing import (
    BatchId,
    BatchIds,
    Boolean,
    Capabilities,
    ContainerUrl,
    ContainerUrls,
    Duration,
    ServerName,
    ServiceUrl,
    Size,
    TenantName,
)

OLD_REGISTRY_NAME: Final = "AZURE_BATCH_REGISTRY_SERVER_URL"


class RunnerType(StrEnum):
    """Where tasks run."""

    AZURE_BATCH = "azure_batch"
    LOCAL = "local"


class SasScope(StrEnum):
    """How narrow a grant on a prefix is."""

    CONTAINER = "container"
    DIRECTORY = "directory"


def _setting(*names: str, default: object, description: str, **constraints: Any) -> Any:
    """Declare a setting: its environment variables (the first is the one to write), default and meaning."""
    alias = names[0] if len(names) == 1 else AliasChoices(*names)
    return Field(default=default, validation_alias=alias, description=description, **constraints)


class SettingsFields(BaseModel):
    """Every setting that is read."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="ignore", hide_input_in_errors=True)

    runner_type: RunnerType = _setting(
        "RUNNER_TYPE", default=RunnerType.AZURE_BATCH, description="Where tasks run: azure_batch or local."
    )
    account_name: str = _setting(
        "AZURE_BATCH_ACCOUNT_NAME",
        default="",
        description="Name of the Batch account. Needed with an account key, which signs with it.",
    )
    url: ServiceUrl = _setting(
        "AZURE_BATCH_URL",
        default="",
        description="Endpoint of the Batch account. Plain http only with an account key.",
    )
    account_key: SecretStr | None = _setting(
        "AZURE_BATCH_ACCOUNT_KEY",
        default=None,
        description=(
            "Key of the Batch account. Unset: Entra ID (DefaultAzureCredential). Storage never uses a key."
        ),
    )
    output_container_url: ContainerUrl = _setting(
        "AZURE_BATCH_OUTPUT_CONTAINER_URL",
        default="",
        description="The environment's own container: results and logs go there. Without a signature.",
    )
    training_pool_id: BatchId = _setting(
        "AZURE_BATCH_TRAINING_POOL_ID",
        default="training-pool",
        description="The one pool for training, if no list is set.",
    )
    imageryprep_pool_id: BatchId = _setting(
        "AZURE_BATCH_IMAGERYPREP_POOL_ID",
        default="imageryprep-pool",
        description="The one pool for imagery preparation and artifacts, if no list is set.",
    )
    training_pool_ids: BatchIds = _setting(
        "AZURE_BATCH_TRAINING_POOL_IDS",
        default=(),
        description="Candidate pools for training and embedding, preferred first, comma separated.",
    )
    inference_pool_ids: BatchIds = _setting(
        "AZURE_BATCH_INFERENCE_POOL_IDS",
        default=(),
        description="Candidate pools for inference. Unset: the training list.",
    )
    imageryprep_pool_ids: BatchIds = _setting(
        "AZURE_BATCH_IMAGERYPREP_POOL_IDS",
        default=(),
        description="Candidate pools for imagery preparation and artifacts, preferred first.",
    )
    use_sas: Boolean = _setting(
        "AZURE_BATCH_USE_SAS",
        default=False,
        description="Give each task its own short-lived grants instead of the pool's identity.",
    )
    manage_pools: Boolean = _setting(
        "AZURE_BATCH_MANAGE_POOLS",
        default=True,
        description="Let the runner create and grow the pool. Set false on shared pools.",
    )
    registry_server: ServerName = _setting(
        "AZURE_BATCH_REGISTRY_SERVER",
        OLD_REGISTRY_NAME,
        default="",
        description=(
            "Container registry, such as myregistry.azurecr.io. AZURE_BATCH_REGISTRY_SERVER_URL is its "
            "old name."
        ),
    )
    registry_image: str = _setting(
        "AZURE_BATCH_REGISTRY_IMAGE", default="", description="Image that a managed pool prefetches."
    )
    registry_identity_resource_id: str = _setting(
        "AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID",
        default="",
        description=(
            "Resource id of the pool's identity: pulls images, and reads storage where USE_SAS is false."
        ),
    )
    docker_image: str = _setting(
        "AZURE_BATCH_DOCKER_IMAGE",
        default="",
        description="Image of training, inference and embedding tasks.",
    )
    imageryprep_docker_image: str = _setting(
        "AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE",
        default="",
        description="Image of imagery preparation and artifact tasks.",
    )
    vm_size: str = _setting(
        "AZURE_BATCH_VM_SIZE", default="Standard_NC40ads_H100_v5", description="VM size of a managed pool."
    )
    vm_publisher: str = _setting(
        "AZURE_BATCH_VM_PUBLISHER", default="microsoft-dsvm", description="Image publisher of a managed pool."
    )
    vm_offer: str = _setting(
        "AZURE_BATCH_VM_OFFER", default="ubuntu-hpc", description="Image offer of a managed pool."
    )
    vm_sku: str = _setting("AZURE_BATCH_VM_SKU", default="2404", description="Image SKU of a managed pool.")
    vm_version: str = _setting(
        "AZURE_BATCH_VM_VERSION", default="latest", description="Image version of a managed pool."
    )
    node_agent_sku_id: str = _setting(
        "AZURE_BATCH_NODE_AGENT_SKU_ID",
        default="batch.node.ubuntu 24.04",
        description="Node agent of a managed pool; it must fit the image.",
    )
    target_dedicated_nodes: int = _setting(
        "AZURE_BATCH_TARGET_DEDICATED_NODES",
        default=0,
        ge=0,
        description="Dedicated nodes of a managed pool.",
    )
    target_low_priority_nodes: int = _setting(
        "AZURE_BATCH_TARGET_LOW_PRIORITY_NODES",
        default=1,
        ge=0,
        description="Low-priority (Spot) nodes of a managed pool.",
    )
    task_retention_time: Duration = _setting(
        "AZURE_BATCH_TASK_RETENTION_TIME",
        default=timedelta(hours=1),
        description="How long a node keeps a finished task's files. Short, for the node is shared.",
    )
    training_job_id: str = _setting(
        "TRAINING_BATCH_JOB_ID",
        "AZURE_BATCH_TRAINING_BATCH_JOB_ID",
        default="",
        description=(
            "Job of training and embedding tasks: as it is with one pool, prefix of the id with a list."
        ),
    )
    inference_job_id: str = _setting(
        "INFERENCE_BATCH_JOB_ID",
        "AZURE_BATCH_INFERENCE_BATCH_JOB_ID",
        default="",
        description="Job of inference tasks, likewise.",
    )
    imageryprep_job_id: str = _setting(
        "IMAGERYPREP_BATCH_JOB_ID",
        "AZURE_BATCH_IMAGERYPREP_BATCH_JOB_ID",
        default="",
        description="Job of imagery preparation tasks, likewise.",
    )
    artifact_job_id: str = _setting(
        "ARTIFACT_BATCH_JOB_ID",
        "AZURE_BATCH_ARTIFACT_BATCH_JOB_ID",
        default="",
        description="Job of artifact tasks, likewise.",
    )
    tenant_name: TenantName = _setting(
        "HASTE_TENANT",
        default="",
        description=(
            "Who this environment is. Unset: the account and container of AZURE_BATCH_OUTPUT_CONTAINER_URL."
        ),
    )
    allowed_container_urls: ContainerUrls = _setting(
        "HASTE_ALLOWED_CONTAINERS",
        default=(),
        description="The containers that grants may be given for. Unset: AZURE_BATCH_OUTPUT_CONTAINER_URL.",
    )
    sas_scope: SasScope = _setting(
        "HASTE_SAS_SCOPE",
        default=SasScope.CONTAINER,
        description=(
            "container, or directory where the account has a hierarchical namespace: grants then cover "
            "the prefix."
        ),
    )
    max_wall_clock: Duration = _setting(
        "HASTE_MAX_WALL_CLOCK",
        default=timedelta(hours=8),
        description="Limit of one run, where the task sets none.",
    )
    queue_allowance: Duration = _setting(
        "HASTE_QUEUE_ALLOWANCE",
        default=timedelta(hours=12),
        description="How long a task may wait in the queue before its grants are of no use.",
    )
    expected_requeues: int = _setting(
        "HASTE_EXPECTED_REQUEUES",
        default=2,
        ge=0,
        description="Reruns after lost nodes that grants allow for.",
    )
    upload_margin: Duration = _setting(
        "HASTE_UPLOAD_MARGIN",
        default=timedelta(minutes=30),
        description="Time for the upload of results after a run.",
    )
    grant_ledger: str = _setting(
        "HASTE_GRANT_LEDGER",
        default="",
        description=(
            "File to which every grant is written, without its signature. Unset: haste/grants.jsonl in "
            "the user's state folder."
        ),
    )
    allocation_error_age: Duration = _setting(
        "HASTE_ALLOCATION_ERROR_AGE",
        default=timedelta(minutes=10),
        description="How long a pool's allocation failure sends tasks elsewhere.",
    )
    local_root: str = _setting(
        "HASTE_LOCAL_ROOT",
        default="",
        description="Folder of the local runner. Unset: haste/local in the user's state folder.",
    )
    local_slots: int = _setting(
        "HASTE_LOCAL_SLOTS", default=1, ge=1, description="Tasks that the local runner runs at once."
    )
    shm_size: Size = _setting(
        "HASTE_SHM_SIZE", default="2g", description="Shared memory of a task's container."
    )
    task_mounts_all: Boolean = _setting(
        "HASTE_TASK_MOUNTS_ALL",
        default=False,
        description=(
            "WIDENS: mount the whole node root into containers. For agents without bind-mount selection."
        ),
    )
    task_pool_user: Boolean = _setting(
        "HASTE_TASK_POOL_USER", default=False, description="WIDENS: run tasks as the pool's one shared user."
    )
    task_capabilities: Capabilities = _setting(
        "HASTE_TASK_CAPABILITIES",
        default=(),
        description="WIDENS: Linux capabilities that containers keep, comma separated, such as CHOWN.",
    )
