"""Tasks, pools, tenants and SKUs: frozen data, no I/O."""

from hastegeo.domain.grants import GrantKind, GrantScope, Permission
from hastegeo.domain.pools import (
    AllocationFailure,
    Attempt,
    CapacitySnapshot,
    Decision,
    NodeCounts,
    PoolDetails,
    PoolSnapshot,
    Verdict,
)
from hastegeo.domain.skus import GpuNeed, Sku, find_sku, sku_catalogue
from hastegeo.domain.storage import ContainerAddress, check_blob_name
from hastegeo.domain.tasks import (
    BlobInput,
    BlobOutput,
    GrantVariable,
    OutputCondition,
    ResultFile,
    TaskFailure,
    TaskFile,
    TaskRef,
    TaskSpec,
    TaskState,
    TaskStatus,
)
from hastegeo.domain.tenants import LONGEST_TENANT_NAME, Tenant, check_tenant_name
from hastegeo.domain.workloads import Workload

__all__ = [
    "LONGEST_TENANT_NAME",
    "AllocationFailure",
    "Attempt",
    "BlobInput",
    "BlobOutput",
    "CapacitySnapshot",
    "ContainerAddress",
    "Decision",
    "GpuNeed",
    "GrantKind",
    "GrantScope",
    "GrantVariable",
    "NodeCounts",
    "OutputCondition",
    "Permission",
    "PoolDetails",
    "PoolSnapshot",
    "ResultFile",
    "Sku",
    "TaskFailure",
    "TaskFile",
    "TaskRef",
    "TaskSpec",
    "TaskState",
    "TaskStatus",
    "Tenant",
    "Verdict",
    "Workload",
    "check_blob_name",
    "check_tenant_name",
    "find_sku",
    "sku_catalogue",
]
