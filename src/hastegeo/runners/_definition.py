"""From a task spec to the task that Batch is sent."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from azure.batch import models

from hastegeo.credentials import Grant, grant_lifetime, request_scope
from hastegeo.domain import (
    BlobInput,
    Decision,
    GrantKind,
    GrantScope,
    GrantVariable,
    OutputCondition,
    TaskRef,
    TaskSpec,
)
from hastegeo.runners import _hardening
from hastegeo.runners._ids import fingerprint
from hastegeo.settings import SasScope, Settings

FINGERPRINT_VARIABLE: Final = "HASTE_TASK_FINGERPRINT"
SUBMISSION_VARIABLE: Final = "HASTE_TASK_SUBMISSION"
POOL_VARIABLE: Final = "HASTE_TASK_POOL"
SPILLS_VARIABLE: Final = "HASTE_TASK_SPILLS"
LOG_NAMES: Final = ("stdout.txt", "stderr.txt")
_CONDITIONS: Final = {
    OutputCondition.SUCCESS: models.OutputFileUploadCondition.TASK_SUCCESS,
    OutputCondition.FAILURE: models.OutputFileUploadCondition.TASK_FAILURE,
    OutputCondition.COMPLETION: models.OutputFileUploadCondition.TASK_COMPLETION,
}


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a task goes, and by which submission.

    `submission_id` tells a repeated call from a second submission.
    """

    ref: TaskRef
    decision: Decision
    submission_id: str


def log_prefix(ref: TaskRef) -> str:
    """Return where in the output container a task's logs are kept."""
    return f"logs/{ref.job_id}/{ref.task_id}"


class StorageAccess:
    """How a task reaches storage: by its own grants, or by the pool's identity.

    Scopes are asked for by use, so that the grants that are minted and the URLs that are sent come from one
    place.
    """

    def __init__(self, settings: Settings, grants: Mapping[GrantScope, Grant] | None = None) -> None:
        self._settings = settings
        self._grants = grants or {}

    def scope(
        self, kind: GrantKind, container_url: str, *, prefix: str | None = None, blob: str | None = None
    ) -> GrantScope:
        """Return the scope of one use.

        Where storage cannot grant a prefix, uses of one container share a grant.
        """
        narrow = self._settings.sas_scope is SasScope.DIRECTORY or kind is GrantKind.STATE
        return request_scope(kind, container_url, prefix=prefix if narrow else None, blob=blob)

    def url(self, scope: GrantScope) -> str:
        """Return the URL that the task is given for a scope; it holds a signature if grants are used."""
        if self._settings.use_sas:
            return self._grants[scope].url.reveal()
        return scope.container.blob_url(scope.blob) if scope.blob is not None else scope.container.url

    @property
    def identity(self) -> models.BatchNodeIdentityReference | None:
        """The pool identity that storage is reached by, if grants are not used."""
        if self._settings.use_sas:
            return None
        return models.BatchNodeIdentityReference(resource_id=self._settings.registry_identity_resource_id)


def scopes(spec: TaskSpec, settings: Settings, ref: TaskRef) -> Iterator[GrantScope]:
    """Yield the scopes that a task needs, its logs included.

    Raises `GrantRefusedError` for a URL that is no address.
    """
    access = StorageAccess(settings)
    for item in spec.inputs:
        yield _input_scope(access, item)
    for output in spec.outputs:
        yield access.scope(GrantKind.OUTPUTS, output.container_url, prefix=output.prefix)
    for variable in spec.grant_variables:
        yield _variable_scope(access, variable)
    if settings.output_container_url:
        yield access.scope(GrantKind.OUTPUTS, settings.output_container_url, prefix=log_prefix(ref))


def task_lifetime(spec: TaskSpec, settings: Settings) -> timedelta:
    """Return how long a task's grants must live. Raises `GrantRefusedError` where storage cannot grant it."""
    return grant_lifetime(
        queue_allowance=settings.queue_allowance,
        wall_clock=spec.max_wall_clock or settings.max_wall_clock,
        retries=spec.max_retries,
        expected_requeues=settings.expected_requeues,
        upload_margin=settings.upload_margin,
    )


def build_task(
    spec: TaskSpec, settings: Settings, placement: Placement, access: StorageAccess
) -> models.BatchTaskCreateOptions:
    """Return the hardened task. Raises `InputError` for container options that are not allowed."""
    return models.BatchTaskCreateOptions(
        id=placement.ref.task_id,
        display_name=spec.key,
        command_line=shlex.join(spec.command),
        container_settings=models.BatchTaskContainerSettings(
            image_name=spec.image,
            container_run_options=_hardening.run_options(settings, spec.run_options),
            registry=_registry(spec, settings),
            working_directory=models.ContainerWorkingDirectory.TASK_WORKING_DIRECTORY,
            container_host_batch_bind_mounts=_hardening.bind_mounts(settings),
        ),
        user_identity=_hardening.user_identity(settings),
        resource_files=[_resource_file(access, item) for item in spec.inputs],
        output_files=list(_output_files(spec, settings, placement.ref, access)),
        environment_settings=list(_environment(spec, placement, access)),
        constraints=models.BatchTaskConstraints(
            max_wall_clock_time=spec.max_wall_clock or settings.max_wall_clock,
            retention_time=settings.task_retention_time if spec.retention is None else spec.retention,
            max_task_retry_count=spec.max_retries,
        ),
    )


def _input_scope(access: StorageAccess, item: BlobInput) -> GrantScope:
    return access.scope(GrantKind.INPUTS, item.container_url, prefix=item.prefix, blob=item.blob)


def _variable_scope(access: StorageAccess, variable: GrantVariable) -> GrantScope:
    return access.scope(variable.kind, variable.container_url, prefix=variable.prefix)


def _resource_file(access: StorageAccess, item: BlobInput) -> models.ResourceFile:
    url = access.url(_input_scope(access, item))
    if item.blob is not None:
        return models.ResourceFile(
            http_url=url, file_path=item.path or item.blob, identity_reference=access.identity
        )
    return models.ResourceFile(
        storage_container_url=url,
        blob_prefix=item.prefix,
        file_path=item.path,
        identity_reference=access.identity,
    )


def _output_files(
    spec: TaskSpec, settings: Settings, ref: TaskRef, access: StorageAccess
) -> Iterator[models.OutputFile]:
    for output in spec.outputs:
        scope = access.scope(GrantKind.OUTPUTS, output.container_url, prefix=output.prefix)
        yield _output_file(output.pattern, access, scope, output.prefix, output.condition)
    if settings.output_container_url:
        prefix = log_prefix(ref)
        scope = access.scope(GrantKind.OUTPUTS, settings.output_container_url, prefix=prefix)
        for name in LOG_NAMES:
            # The streams lie beside the working directory, from which patterns are read.
            yield _output_file(f"../{name}", access, scope, f"{prefix}/{name}", OutputCondition.COMPLETION)


def _output_file(
    pattern: str, access: StorageAccess, scope: GrantScope, path: str | None, condition: OutputCondition
) -> models.OutputFile:
    return models.OutputFile(
        file_pattern=pattern,
        destination=models.OutputFileDestination(
            container=models.OutputFileBlobContainerDestination(
                container_url=access.url(scope), path=path, identity_reference=access.identity
            )
        ),
        upload_options=models.OutputFileUploadConfiguration(upload_condition=_CONDITIONS[condition]),
    )


def _environment(
    spec: TaskSpec, placement: Placement, access: StorageAccess
) -> Iterator[models.EnvironmentSetting]:
    values = {
        **spec.environment,
        **{variable.name: access.url(_variable_scope(access, variable)) for variable in spec.grant_variables},
        "HASTE_TASK_TENANT": spec.tenant,
        "HASTE_TASK_WORKLOAD": str(spec.workload),
        POOL_VARIABLE: placement.decision.chosen,
        SPILLS_VARIABLE: str(placement.decision.spills),
        FINGERPRINT_VARIABLE: fingerprint(spec),
        SUBMISSION_VARIABLE: placement.submission_id,
    }
    for name, value in values.items():
        yield models.EnvironmentSetting(name=name, value=value)


def _registry(spec: TaskSpec, settings: Settings) -> models.ContainerRegistryReference | None:
    server, identity = settings.registry_server, settings.registry_identity_resource_id
    if not (server and identity and spec.image.startswith(f"{server}/")):
        return None
    return models.ContainerRegistryReference(
        registry_server=server, identity_reference=models.BatchNodeIdentityReference(resource_id=identity)
    )
