"""Submission: from a spec to exactly one task, whatever answers get lost on the way."""

from __future__ import annotations

import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from azure.batch import BatchClient, models
from azure.core.exceptions import AzureError, ResourceNotFoundError

from hastegeo.capacity import Capacity, Reservation
from hastegeo.credentials import Grant, GrantMinter, authorise, distinct
from hastegeo.domain import Decision, GrantScope, TaskRef, TaskSpec, Workload
from hastegeo.errors import HasteError, RunnerError
from hastegeo.routing import select_pool
from hastegeo.runners._client import as_runner_error, enum_text, error_code
from hastegeo.runners._definition import (
    FINGERPRINT_VARIABLE,
    SUBMISSION_VARIABLE,
    Placement,
    StorageAccess,
    build_task,
    scopes,
    task_lifetime,
)
from hastegeo.runners._ids import fingerprint, task_id
from hastegeo.runners._jobs import JobBook
from hastegeo.runners._managed_pools import ManagedPools
from hastegeo.runners._refusals import check_tenant, conflict, some_failed
from hastegeo.runners._status import environment
from hastegeo.runners.contract import Submission
from hastegeo.settings import Settings

# Answers that say a job takes no more tasks, so that the next generation of it is used.
_JOB_IS_OVER: Final = frozenset(
    {"JobNotFound", "JobCompleted", "JobNotActive", "JobBeingDeleted", "JobBeingTerminated", "JobDisabled"}
)
_TRIES: Final = 3
# https://learn.microsoft.com/rest/api/batchservice/task/add-collection
_CHUNK: Final = 100
_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a submission would do: where the task goes, what it is granted, and what Batch is sent.

    The task has plain URLs in place of signed ones.
    """

    decision: Decision
    scopes: tuple[GrantScope, ...]
    task: models.BatchTaskCreateOptions


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A task that is ready to be sent."""

    spec: TaskSpec
    placement: Placement
    reservation: Reservation
    grants: tuple[Grant, ...]
    task: models.BatchTaskCreateOptions


class Submitter:
    """Submits the tasks of one environment. Safe to use from several threads."""

    def __init__(
        self,
        client: BatchClient,
        settings: Settings,
        *,
        capacity: Capacity,
        minter: GrantMinter,
        jobs: JobBook,
    ) -> None:
        self._client = client
        self._settings = settings
        self._tenant = settings.tenant
        self._capacity = capacity
        self._minter = minter
        self._jobs = jobs
        self._pools = ManagedPools(client, settings)
        self._done: dict[tuple[Workload, str], tuple[str, Submission]] = {}
        self._lock = threading.Lock()

    def submit(self, spec: TaskSpec) -> Submission:
        """Submit one task; see `Runner.submit`."""
        self._check(spec)
        earlier = self._earlier(spec)
        if earlier is not None:
            return earlier
        decision, reservation = self._route(spec)
        try:
            return self._add(self._prepare(spec, decision, reservation))
        except BaseException:
            self._capacity.release(reservation)
            raise

    def submit_many(self, specs: Sequence[TaskSpec]) -> list[Submission]:
        """Submit several tasks in few calls; see `Runner.submit_many`."""
        results: dict[int, Submission | HasteError] = {}
        by_job: dict[str, list[tuple[int, _Prepared]]] = defaultdict(list)
        for index, spec in enumerate(specs):
            try:
                self._check(spec)
                earlier = self._earlier(spec)
                if earlier is not None:
                    results[index] = earlier
                    continue
                prepared = self._prepared_or_released(spec)
                by_job[prepared.placement.ref.job_id].append((index, prepared))
            except HasteError as error:
                results[index] = error
        chunks = [tasks[at : at + _CHUNK] for tasks in by_job.values() for at in range(0, len(tasks), _CHUNK)]
        with ThreadPoolExecutor(max_workers=_THREADS) as threads:
            for answers in threads.map(self._add_chunk, chunks):
                results.update(answers)
        ordered = [results[index] for index in range(len(specs))]
        errors = [found for found in ordered if isinstance(found, HasteError)]
        if errors:
            raise some_failed(errors, len(specs)) from errors[0]
        return [found for found in ordered if isinstance(found, Submission)]

    def dry_run(self, spec: TaskSpec) -> DryRun:
        """Return what a submission would do, and do nothing."""
        self._check(spec)
        decision, reservation = self._route(spec)
        self._capacity.release(reservation)
        plain = self._settings.model_copy(update={"use_sas": False})
        ref = TaskRef("dry-run", task_id(spec))
        needed = distinct(scopes(spec, self._settings, ref)) if self._settings.use_sas else ()
        placement = Placement(ref, decision, "dry-run")
        return DryRun(decision, needed, build_task(spec, self._settings, placement, StorageAccess(plain)))

    def _check(self, spec: TaskSpec) -> None:
        """Refuse what cannot be carried out before anything is asked of any service."""
        check_tenant(spec, self._tenant)
        if self._settings.use_sas:
            task_lifetime(spec, self._settings)
            for scope in scopes(spec, self._settings, TaskRef("job", task_id(spec))):
                authorise(scope, self._tenant)

    def _earlier(self, spec: TaskSpec) -> Submission | None:
        """Return the submission that this process made of the same task, if the task still exists."""
        with self._lock:
            found = self._done.get((spec.workload, spec.key))
        if found is None:
            return None
        known, submission = found
        if known != fingerprint(spec):
            raise conflict(spec, submission.ref)
        if self._read(submission.ref) is None:
            return None
        return replace(submission, created=False)

    def _route(self, spec: TaskSpec) -> tuple[Decision, Reservation]:
        candidates = spec.candidates or self._settings.candidates(spec.workload)
        if len(candidates) == 1:
            decision = select_pool(candidates, None, spec.gpu)
            return decision, self._capacity.reserve(decision.chosen)
        return self._capacity.decide(
            lambda snapshot: select_pool(
                candidates, snapshot, spec.gpu, fresh_failure=self._settings.allocation_error_age
            )
        )

    def _prepared_or_released(self, spec: TaskSpec) -> _Prepared:
        decision, reservation = self._route(spec)
        try:
            return self._prepare(spec, decision, reservation)
        except BaseException:
            self._capacity.release(reservation)
            raise

    def _prepare(self, spec: TaskSpec, decision: Decision, reservation: Reservation) -> _Prepared:
        if self._settings.manage_pools:
            self._pools.ensure(decision.chosen)
        ref = TaskRef(self._jobs.ensure(decision.chosen, spec.workload), task_id(spec))
        placement = Placement(ref, decision, uuid.uuid4().hex)
        grants: tuple[Grant, ...] = ()
        if self._settings.use_sas:
            grants = self._minter.mint(
                scopes(spec, self._settings, ref),
                tenant=self._tenant,
                task=str(ref),
                lifetime=task_lifetime(spec, self._settings),
            )
        access = StorageAccess(self._settings, {grant.scope: grant for grant in grants})
        task = build_task(spec, self._settings, placement, access)
        return _Prepared(spec, placement, reservation, grants, task)

    def _add(self, prepared: _Prepared) -> Submission:
        for last in (False,) * (_TRIES - 1) + (True,):
            ref = prepared.placement.ref
            try:
                self._client.create_task(ref.job_id, prepared.task)
            except AzureError as error:
                code = error_code(error)
                if code == "TaskExists":
                    return self._existing(prepared)
                if code not in _JOB_IS_OVER or last:
                    raise as_runner_error(error, f"add the task {ref}") from None
            else:
                return self._created(prepared)
            pool_id = prepared.placement.decision.chosen
            self._jobs.forget(pool_id, prepared.spec.workload, ref.job_id)
            prepared = self._prepare(prepared.spec, prepared.placement.decision, prepared.reservation)
        raise AssertionError("the last try returns or raises")

    def _add_chunk(self, chunk: Sequence[tuple[int, _Prepared]]) -> dict[int, Submission | HasteError]:
        """Add up to 100 tasks of one job by one call. What that call does not settle is added one by one."""
        job_id = chunk[0][1].placement.ref.job_id
        group = models.BatchTaskGroup(task_values=[prepared.task for _, prepared in chunk])
        added: set[str] = set()
        try:
            answers = self._client.create_task_collection(job_id, group).result_values or ()
            added = {answer.task_id for answer in answers if enum_text(answer.status) == "success"}
        except AzureError as error:
            if getattr(error, "status_code", None) == 413 and len(chunk) > 1:
                half = len(chunk) // 2
                return {**self._add_chunk(chunk[:half]), **self._add_chunk(chunk[half:])}
        return dict(self._settle(chunk, added))

    def _settle(
        self, chunk: Sequence[tuple[int, _Prepared]], added: set[str]
    ) -> Iterator[tuple[int, Submission | HasteError]]:
        for index, prepared in chunk:
            if prepared.placement.ref.task_id in added:
                yield index, self._created(prepared)
                continue
            try:
                yield index, self._add(prepared)
            except HasteError as error:
                self._capacity.release(prepared.reservation)
                yield index, error

    def _created(self, prepared: _Prepared) -> Submission:
        self._capacity.confirm(prepared.reservation, prepared.placement.ref)
        submission = Submission(
            ref=prepared.placement.ref, decision=prepared.placement.decision, grants=prepared.grants
        )
        self._remember(prepared.spec, submission)
        return submission

    def _existing(self, prepared: _Prepared) -> Submission:
        """Tell apart a lost answer (it is this submission's task), the same task, and another of the same
        key.
        """
        ref = prepared.placement.ref
        task = self._read(ref)
        if task is None:
            raise RunnerError(f"Task {ref} exists and yet cannot be read.", hint="Submit it again.")
        variables = environment(task)
        if variables.get(SUBMISSION_VARIABLE) == prepared.placement.submission_id:
            return self._created(prepared)
        if variables.get(FINGERPRINT_VARIABLE) != fingerprint(prepared.spec):
            raise conflict(prepared.spec, ref)
        self._capacity.release(prepared.reservation)
        submission = Submission(ref=ref, decision=prepared.placement.decision, created=False)
        self._remember(prepared.spec, submission)
        return submission

    def _remember(self, spec: TaskSpec, submission: Submission) -> None:
        with self._lock:
            self._done[spec.workload, spec.key] = (fingerprint(spec), submission)

    def _read(self, ref: TaskRef) -> models.BatchTask | None:
        try:
            return self._client.get_task(ref.job_id, ref.task_id, select=["id", "environmentSettings"])
        except ResourceNotFoundError:
            return None
        except AzureError as error:
            raise as_runner_error(error, f"read the task {ref}") from None
