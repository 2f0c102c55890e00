"""The demo's attack: a task of one tenant against another's data, node files, processes and services."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from azure.storage.blob import BlobServiceClient, generate_container_sas

from hastegeo.demo.imagery import PreparationJob
from hastegeo.demo.images import IMAGERYPREP_IMAGE
from hastegeo.demo.pools import POOLS
from hastegeo.demo.tenants import CONTAINER, DemoTenant
from hastegeo.domain import (
    BlobInput,
    BlobOutput,
    GrantKind,
    GrantVariable,
    TaskRef,
    TaskSpec,
    TaskState,
    TaskStatus,
    Workload,
)
from hastegeo.errors import RunnerError
from hastegeo.local_cloud import identity
from hastegeo.local_cloud.cloud import LocalCloud, account_name
from hastegeo.runners import AzureBatchRunner, Submission
from hastegeo.verification import (
    AttackRow,
    ControlPlace,
    IsolationTargets,
    RowResult,
    attack_rows,
    judge_row,
    probe_plan,
)
from hastegeo.verification.attacks import DELETING, EXPIRED, IDENTITY_HEADER, INPUTS, OUTPUTS
from hastegeo.workflows.isolation_probe import (
    PLAN_VARIABLE,
    ProbeReport,
    Result,
    parse_plan,
    read_report,
    run_plan,
)

# The pool with one node, so that victim and attacker meet on it.
_POOL_ID = min(POOLS, key=lambda pool: pool.max_nodes).pool_id
_EXPIRES_AFTER = timedelta(seconds=5)
_NOTES_BLOB = "private/notes.txt"
_OWN_BLOB = "probe/own.txt"
_DISPOSABLE_BLOB = "probe/disposable.txt"
_POLL_SECONDS = 0.25

Watch = Callable[[str, str, Submission], None]
Tick = Callable[[], None]


@dataclass(frozen=True)
class IsolationAttack:
    """Everything that the attack needs: who attacks, whom, and where. `victim_job` leaves the residue."""

    cloud: LocalCloud
    attacker: DemoTenant
    victim: DemoTenant
    victim_job: PreparationJob

    def run(self, *, watch: Watch, tick: Tick) -> list[RowResult]:
        """Carry the attack out and return the table.

        `watch` is told of every task submitted, and `tick` is called while waiting. Raises `HasteError` where
        the attack itself could not be carried out.
        """
        rows = attack_rows(self._targets())
        expired_url = self._sign("rl", _EXPIRES_AFTER)
        expired_at = time.monotonic() + _EXPIRES_AFTER.total_seconds() + 1
        host_results = self._probe_here(rows, {EXPIRED: expired_url})
        victim = self._submit(self.victim.runner, self._victim_spec(), "victim", self.victim.name, watch)
        self._wait(self.victim.runner, victim.ref, tick, until={TaskState.RUNNING})
        while time.monotonic() < expired_at:
            tick()
            time.sleep(_POLL_SECONDS)
        # Submitted while the victim holds the node or has just left it, before the pool lets it go.
        attack = self._submit(
            self.attacker.runner, self._attack_spec(rows, expired_url), "attack", self.attacker.name, watch
        )
        settings = self.attacker.settings.model_copy(update={"task_mounts_all": True})
        with AzureBatchRunner(
            settings,
            self.attacker.credential,
            capacity=self.attacker.runner.capacity,
            ledger=self.attacker.runner.ledger,
        ) as widened_runner:
            control = self._submit(
                widened_runner, self._control_spec(rows), "control", self.attacker.name, watch
            )
            statuses = [
                self._wait(runner, submission.ref, tick)
                for runner, submission in (
                    (self.victim.runner, victim),
                    (self.attacker.runner, attack),
                    (widened_runner, control),
                )
            ]
        if len({status.node_id for status in statuses}) > 1:
            raise RunnerError(
                "The tasks of victim, attacker and control ran on different nodes, so that the attack on "
                "residue proves nothing.",
                hint="A node was lost or replaced meanwhile: run the demo again.",
            )
        results = {**host_results, **self._report("attack"), **self._report("control")}
        return [
            judge_row(
                row,
                results.get(row.id),
                results.get(f"{row.id}/control"),
                sandboxed=self.cloud.isolated,
            )
            for row in rows
        ]

    def _targets(self) -> IsolationTargets:
        marker = f"only for {self.victim.name}: {os.urandom(16).hex()}"
        self.victim.container.upload_blob(_NOTES_BLOB, f"{marker}\n".encode(), overwrite=True)
        for blob in (_OWN_BLOB, _DISPOSABLE_BLOB):
            self.attacker.container.upload_blob(blob, b"of the attacker\n", overwrite=True)
        return IsolationTargets(
            own_container=self.attacker.container_url,
            own_blob=_OWN_BLOB,
            disposable_blob=_DISPOSABLE_BLOB,
            victim_container=self.victim.container_url,
            victim_blob=_NOTES_BLOB,
            marker_sha256=hashlib.sha256(marker.encode()).hexdigest(),
            storage_url=self.cloud.blob_url,
            batch_url=self.cloud.batch_url,
            token_url=self.cloud.token_url,
            client_id=identity.client_id(self.attacker.name),
            key_process=self.cloud.processes["azurite"].pid,
        )

    def _sign(self, permission: str, lifetime: timedelta) -> str:
        """Sign what the product never would: an expired grant, and one that may delete (for a control)."""
        now = datetime.now(UTC)
        account_url = self.cloud.account_url(self.attacker.name)
        with BlobServiceClient(account_url, credential=self.attacker.credential) as service:
            key = service.get_user_delegation_key(now - timedelta(minutes=15), now + timedelta(hours=1))
        sas = generate_container_sas(
            account_name=account_name(self.attacker.name),
            container_name=CONTAINER,
            user_delegation_key=key,
            permission=permission,
            start=now - timedelta(minutes=15),
            expiry=now + lifetime,
            protocol="https",
        )
        return f"{self.attacker.container_url}?{sas}"

    def _probe_here(self, rows: tuple[AttackRow, ...], variables: dict[str, str]) -> dict[str, Result]:
        """Run the controls that belong outside every task, in this process."""
        variables = variables | {IDENTITY_HEADER: self.cloud.identity_header}
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            report = run_plan(parse_plan(probe_plan(rows, ControlPlace.HOST)))
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        return _by_id(report)

    def _victim_spec(self) -> TaskSpec:
        spec = self.victim_job.spec()
        notes = BlobInput(container_url=self.victim.container_url, blob=_NOTES_BLOB, path="private-notes.txt")
        return replace(
            spec,
            key="isolation/victim",
            inputs=(*spec.inputs, notes),
            outputs=(),
            candidates=(_POOL_ID,),
        )

    def _attack_spec(self, rows: tuple[AttackRow, ...], expired_url: str) -> TaskSpec:
        own = self.attacker.container_url
        return self._probe_spec(
            "attack",
            probe_plan(rows, ControlPlace.TASK, with_attacks=True),
            environment={
                EXPIRED: expired_url,
                DELETING: self._sign("d", timedelta(hours=1)),
                # The attacker is even told the secret that the token endpoint asks for.
                IDENTITY_HEADER: self.cloud.identity_header,
            },
            grant_variables=(
                GrantVariable(name=INPUTS, kind=GrantKind.INPUTS, container_url=own),
                GrantVariable(name=OUTPUTS, kind=GrantKind.OUTPUTS, container_url=own),
            ),
        )

    def _control_spec(self, rows: tuple[AttackRow, ...]) -> TaskSpec:
        return self._probe_spec("control", probe_plan(rows, ControlPlace.WIDENED_TASK))

    def _probe_spec(
        self,
        name: str,
        plan: str,
        *,
        environment: dict[str, str] | None = None,
        grant_variables: tuple[GrantVariable, ...] = (),
    ) -> TaskSpec:
        return TaskSpec(
            key=f"isolation/{name}",
            tenant=self.attacker.name,
            workload=Workload.IMAGERYPREP,
            image=IMAGERYPREP_IMAGE,
            command=("isolation_probe",),
            outputs=(
                BlobOutput(
                    pattern="outputs/probe_report.json",
                    container_url=self.attacker.container_url,
                    prefix=f"probe/{name}.json",
                ),
            ),
            environment={PLAN_VARIABLE: plan, **(environment or {})},
            grant_variables=grant_variables,
            candidates=(_POOL_ID,),
        )

    def _submit(
        self, runner: AzureBatchRunner, spec: TaskSpec, name: str, tenant: str, watch: Watch
    ) -> Submission:
        submission = runner.submit(spec)
        watch(tenant, f"isolation {name}", submission)
        return submission

    def _wait(
        self,
        runner: AzureBatchRunner,
        ref: TaskRef,
        tick: Tick,
        *,
        until: frozenset[TaskState] | set[TaskState] = frozenset(),
    ) -> TaskStatus:
        while True:
            status = runner.status(ref)
            if status.state in {TaskState.FAILED, TaskState.CANCELLED}:
                raise RunnerError(f"The task {ref} of the isolation test has failed: {status.reason}")
            if status.state.is_final or status.state in until:
                return status
            tick()
            time.sleep(_POLL_SECONDS)

    def _report(self, name: str) -> dict[str, Result]:
        text = self.attacker.container.download_blob(f"probe/{name}.json").readall()
        return _by_id(read_report(text.decode()))


def _by_id(report: ProbeReport) -> dict[str, Result]:
    return {result.id: result for result in report.results}


def save_table(results: list[RowResult], path: Path) -> None:
    """Write the table as JSON, for those who keep records."""
    rows = [
        {
            "id": result.row.id,
            "attack": result.row.title,
            "verdict": result.verdict.value,
            "evidence": result.attack_evidence,
            "control": result.row.control_title,
            "control_place": result.row.control_place.value,
            "control_evidence": result.control_evidence,
        }
        for result in results
    ]
    path.write_text(json.dumps(rows, indent=2) + "\n")
