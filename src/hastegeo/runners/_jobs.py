"""Jobs: one for each tenant, pool and workload, made when first needed and never bound to another pool."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

from azure.batch import BatchClient, models
from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError

from hastegeo.domain import Workload
from hastegeo.errors import RunnerError
from hastegeo.runners._client import as_runner_error, enum_text, error_code
from hastegeo.runners._ids import DEFAULT_JOB_PREFIX, job_id
from hastegeo.settings import Settings

# Priorities from -1000 to 1000: somebody waits for an inference, nobody sits by a training.
# https://learn.microsoft.com/azure/batch/batch-job-prep-release
_PRIORITY: Final = {
    Workload.INFERENCE: 500,
    Workload.IMAGERYPREP: 200,
    Workload.ARTIFACTS: 100,
    Workload.EMBEDDING: 0,
    Workload.TRAINING: -100,
}
TENANT_METADATA: Final = "haste_tenant"
WORKLOAD_METADATA: Final = "haste_workload"
_MAX_GENERATIONS: Final = 50
_LONGEST_ID: Final = 64
_PAGE: Final = 1000


class JobBook:
    """The jobs of one environment. Safe to use from several threads."""

    def __init__(self, client: BatchClient, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._tenant = settings.tenant.name
        self._known: dict[tuple[str, Workload], str] = {}
        self._lock = threading.Lock()

    def ensure(self, pool_id: str, workload: Workload) -> str:
        """Return the id of a job that takes tasks of a workload on a pool, and create it if need be."""
        with self._lock:
            known = self._known.get((pool_id, workload))
            if known is None:
                known = self._find_or_create(pool_id, workload)
                self._known[pool_id, workload] = known
            return known

    def forget(self, pool_id: str, workload: Workload, job: str) -> None:
        """Say that a job was found to take no more tasks."""
        with self._lock:
            if self._known.get((pool_id, workload)) == job:
                del self._known[pool_id, workload]

    def ours(self, workload: Workload | None) -> Iterator[str]:
        """Yield the ids of this tenant's jobs, of one workload or all."""
        select = ["id", "metadata"]
        try:
            for job in self._client.list_jobs(select=select, max_results=_PAGE):
                metadata = {item.name: item.value for item in job.metadata or ()}
                if metadata.get(TENANT_METADATA) != self._tenant:
                    continue
                if workload is None or metadata.get(WORKLOAD_METADATA) == workload:
                    yield job.id
        except AzureError as error:
            raise as_runner_error(error, "list jobs") from None

    def _find_or_create(self, pool_id: str, workload: Workload) -> str:
        for candidate in self._ids(pool_id, workload):
            try:
                self._client.create_job(self._definition(candidate, pool_id, workload))
            except ResourceExistsError as error:
                if error_code(error) != "JobExists":
                    raise _not_created(error, candidate) from None
                if self._takes_tasks(candidate, pool_id):
                    return candidate
            except AzureError as error:
                raise as_runner_error(error, f"create the job {candidate}") from None
            else:
                return candidate
        raise RunnerError(
            f"Every job of tenant {self._tenant}, pool {pool_id} and workload {workload} has ended.",
            hint="Delete old jobs of this tenant, so that their ids are free again.",
        )

    def _ids(self, pool_id: str, workload: Workload) -> Iterator[str]:
        configured = self._settings.job_id(workload)
        if not self._settings.is_shared(workload):
            # The older way: the job is named by the setting, or after the pool.
            yield (configured or pool_id)[:_LONGEST_ID]
        for generation in range(_MAX_GENERATIONS):
            yield job_id(
                self._tenant,
                pool_id,
                workload,
                prefix=configured or DEFAULT_JOB_PREFIX,
                generation=generation,
            )

    def _takes_tasks(self, candidate: str, pool_id: str) -> bool:
        try:
            job = self._client.get_job(candidate, select=["id", "state", "poolInfo"])
        except ResourceNotFoundError:
            return False
        except AzureError as error:
            raise as_runner_error(error, f"read the job {candidate}") from None
        bound_to = job.pool_info.pool_id if job.pool_info else None
        return enum_text(job.state) == "active" and (bound_to or "").lower() == pool_id.lower()

    def _definition(self, candidate: str, pool_id: str, workload: Workload) -> models.BatchJobCreateOptions:
        return models.BatchJobCreateOptions(
            id=candidate,
            pool_info=models.BatchPoolInfo(pool_id=pool_id),
            priority=_PRIORITY[workload],
            metadata=[
                models.BatchMetadataItem(name=TENANT_METADATA, value=self._tenant),
                models.BatchMetadataItem(name=WORKLOAD_METADATA, value=str(workload)),
            ],
        )


def _not_created(error: AzureError, candidate: str) -> RunnerError:
    if error_code(error) == "ActiveJobAndScheduleQuotaReached":
        return RunnerError(
            f"The Batch account has no room for the job {candidate}: its quota of active jobs is used up.",
            hint="Delete or terminate jobs that are done, or ask for a higher quota.",
        )
    found = as_runner_error(error, f"create the job {candidate}")
    return RunnerError(found.message, hint=found.hint)
