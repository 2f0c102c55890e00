"""The Azure Batch runner: the Runner contract on azure-batch 15."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from azure.core.credentials import AzureNamedKeyCredential, TokenCredential
from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError
from azure.identity import DefaultAzureCredential

from hastegeo.capacity import Capacity
from hastegeo.credentials import Clock, GrantLedger, GrantMinter, default_ledger_path, utc_now
from hastegeo.domain import ResultFile, TaskFile, TaskRef, TaskSpec, TaskState, TaskStatus, Workload
from hastegeo.runners._client import as_runner_error, connect_batch, error_code
from hastegeo.runners._jobs import JobBook
from hastegeo.runners._refusals import not_found
from hastegeo.runners._results import StoredResults
from hastegeo.runners._status import STATUS_FIELDS, task_status
from hastegeo.runners._streams import NodeFiles, StoredFiles, TaskStreams
from hastegeo.runners._submission import DryRun, Submitter
from hastegeo.runners.contract import LogStream, Runner, Submission
from hastegeo.settings import SasScope, Settings

_PAGE: Final = 1000


class AzureBatchRunner(Runner):
    """Runs one environment's tasks on Azure Batch.

    `credential` is the environment's identity (default: `DefaultAzureCredential`): it asks for the grants,
    reads stored logs, and signs in to Batch unless the settings hold an account key. A named key given as
    `credential` signs in to Batch only. `endpoint` overrides AZURE_BATCH_URL.

    Runners of one process that use the same Batch account should share one `capacity`, so that their
    submissions never take the same node. `batch_options` and `storage_options` go to the clients (a
    transport, for one).
    """

    def __init__(
        self,
        settings: Settings,
        credential: TokenCredential | AzureNamedKeyCredential | None = None,
        *,
        endpoint: str | None = None,
        capacity: Capacity | None = None,
        ledger: GrantLedger | None = None,
        clock: Clock = utc_now,
        batch_options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        storage = dict(storage_options or {})
        identity: TokenCredential = (
            DefaultAzureCredential()
            if credential is None or isinstance(credential, AzureNamedKeyCredential)
            else credential
        )
        self._settings = settings
        self._client = connect_batch(
            settings, credential or identity, endpoint=endpoint, **dict(batch_options or {})
        )
        self.capacity = capacity or Capacity(self._client, clock=clock)
        ledger_path = Path(settings.grant_ledger) if settings.grant_ledger else default_ledger_path()
        self.ledger = ledger or GrantLedger(ledger_path)
        minter = GrantMinter(
            identity,
            self.ledger,
            directory_scope=settings.sas_scope is SasScope.DIRECTORY,
            clock=clock,
            **storage,
        )
        self._jobs = JobBook(self._client, settings)
        self._submitter = Submitter(
            self._client, settings, capacity=self.capacity, minter=minter, jobs=self._jobs
        )
        own = settings.output_container_url
        stored = StoredFiles(own, identity, **storage) if own else None
        self._open = ExitStack()
        self._open.callback(self._client.close)
        if stored is not None:
            self._open.callback(stored.close)
        self._streams = TaskStreams(NodeFiles(self._client), stored, self.status)
        self._results = StoredResults(self._client, identity, **storage)

    def submit(self, spec: TaskSpec) -> Submission:
        """Submit a task once; see `Runner.submit`."""
        return self._submitter.submit(spec)

    def submit_many(self, specs: Sequence[TaskSpec]) -> list[Submission]:
        """Submit several tasks, 100 a call; see `Runner.submit_many`."""
        return self._submitter.submit_many(specs)

    def dry_run(self, spec: TaskSpec) -> DryRun:
        """Return what a submission would do, and do nothing but ask for the pools' capacity."""
        return self._submitter.dry_run(spec)

    def status(self, ref: TaskRef) -> TaskStatus:
        """Return what is known of a task now; see `Runner.status`."""
        try:
            task = self._client.get_task(ref.job_id, ref.task_id, select=list(STATUS_FIELDS))
        except ResourceNotFoundError:
            raise not_found(ref) from None
        except AzureError as error:
            raise as_runner_error(error, f"read the task {ref}") from None
        status = task_status(ref.job_id, task)
        if status.state not in {TaskState.QUEUED, TaskState.PREPARING}:
            self.capacity.left_queue(ref)
        return status

    def logs(
        self, ref: TaskRef, stream: LogStream | str = LogStream.STDOUT, *, follow: bool = False
    ) -> Iterator[bytes]:
        """Yield what the program wrote; see `Runner.logs`."""
        return self._streams.logs(ref, f"{LogStream(stream)}.txt", follow=follow)

    def files(self, ref: TaskRef) -> tuple[TaskFile, ...]:
        """Return the files of a task; see `Runner.files`."""
        return self._streams.files(ref)

    def download(self, ref: TaskRef, path: str, target: Path) -> Path:
        """Write one file of a task to `target`; see `Runner.download`."""
        return self._streams.download(ref, path, target)

    def results(self, ref: TaskRef) -> tuple[ResultFile, ...]:
        """Return what lies in storage where the task's outputs go, its logs included.

        It is there after the node is gone. Another task with the same prefix writes to the same place.
        """
        return self._results.list(ref)

    def download_result(self, result: ResultFile, target: Path) -> Path:
        """Write one result to `target` (a file, or an existing folder) by streaming, and return where."""
        return self._results.download(result, target)

    def cancel(self, ref: TaskRef) -> None:
        """End a task; see `Runner.cancel`."""
        try:
            self._client.terminate_task(ref.job_id, ref.task_id)
        except ResourceNotFoundError:
            raise not_found(ref) from None
        except ResourceExistsError as error:
            if error_code(error) != "TaskCompleted":
                raise as_runner_error(error, f"end the task {ref}") from None
        except AzureError as error:
            raise as_runner_error(error, f"end the task {ref}") from None
        self.capacity.left_queue(ref)

    def cleanup(self, ref: TaskRef) -> None:
        """Forget one task and delete its files on the node; see `Runner.cleanup`."""
        try:
            self._client.delete_task(ref.job_id, ref.task_id)
        except ResourceNotFoundError:
            pass
        except AzureError as error:
            raise as_runner_error(error, f"delete the task {ref}") from None
        self.capacity.left_queue(ref)

    def list(self, *, workload: Workload | None = None) -> Iterator[TaskStatus]:
        """Yield the status of this tenant's tasks; see `Runner.list`."""
        for job in self._jobs.ours(workload):
            try:
                for task in self._client.list_tasks(job, select=list(STATUS_FIELDS), max_results=_PAGE):
                    yield task_status(job, task)
            except ResourceNotFoundError:
                continue  # the job was deleted meanwhile
            except AzureError as error:
                raise as_runner_error(error, f"list the tasks of {job}") from None

    def close(self) -> None:
        """Close the connections. The runner, and what shares its capacity, is of no use afterwards."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
