"""The settings of an environment: the contract between a deployment and this library.

Every setting is one environment variable. Unset new settings give the older behaviour: one pool a workload,
managed by the runner, and the pool's identity for storage.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping
from typing import Self

from pydantic import AliasChoices, ValidationError

from hastegeo.domain import LONGEST_TENANT_NAME, ContainerAddress, Tenant, Workload
from hastegeo.settings import _checks
from hastegeo.settings._fields import OLD_REGISTRY_NAME, SettingsFields
from hastegeo.settings._parsing import placeholder_in
from hastegeo.settings._problems import Problem, configuration_error


class Settings(SettingsFields):
    """The settings of one environment, read by `Settings.load` and frozen."""

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Read the settings from `environ` (the process's own by default).

        A value that is empty counts as unset, and so does one that still holds a `<placeholder>`. Raises one
        `ConfigurationError` with all problems, each with the setting's name and what to put there.
        """
        source = os.environ if environ is None else environ
        values = {name: source[name].strip() for name in setting_names(cls) if source.get(name, "").strip()}
        if OLD_REGISTRY_NAME in values:
            warnings.warn(
                f"{OLD_REGISTRY_NAME} is the old name of AZURE_BATCH_REGISTRY_SERVER.",
                FutureWarning,
                stacklevel=2,
            )
        placeholders = {name: found for name, text in values.items() if (found := placeholder_in(text))}
        values = {name: text for name, text in values.items() if name not in placeholders}
        problems: list[Problem] = []
        try:
            settings = cls.model_validate(values)
        except ValidationError as error:
            problems = _problems(error)
            wrong = {problem.setting for problem in problems}
            settings = cls.model_validate({name: text for name, text in values.items() if name not in wrong})
        known_wrong = {problem.setting for problem in problems}
        problems += [
            problem
            for problem in _checks.contradictions(settings, placeholders)
            if problem.setting not in known_wrong
        ]
        if problems:
            raise configuration_error(problems)
        return settings

    def candidates(self, workload: Workload) -> tuple[str, ...]:
        """Return the pools that may run a workload, preferred first; never empty."""
        if workload is Workload.INFERENCE and self.inference_pool_ids:
            return self.inference_pool_ids
        if workload in {Workload.IMAGERYPREP, Workload.ARTIFACTS}:
            return self.imageryprep_pool_ids or (self.imageryprep_pool_id,)
        return self.training_pool_ids or (self.training_pool_id,)

    def is_shared(self, workload: Workload) -> bool:
        """Whether a workload runs on shared pools (a list is set), not in the older single-pool way."""
        if workload in {Workload.IMAGERYPREP, Workload.ARTIFACTS}:
            return bool(self.imageryprep_pool_ids)
        if workload is Workload.INFERENCE:
            return bool(self.inference_pool_ids or self.training_pool_ids)
        return bool(self.training_pool_ids)

    def job_id(self, workload: Workload) -> str:
        """Return the configured job id of a workload, or an empty string."""
        return {
            Workload.TRAINING: self.training_job_id,
            Workload.EMBEDDING: self.training_job_id,
            Workload.INFERENCE: self.inference_job_id,
            Workload.IMAGERYPREP: self.imageryprep_job_id,
            Workload.ARTIFACTS: self.artifact_job_id,
        }[workload]

    def image(self, workload: Workload) -> str:
        """Return the configured image of a workload, or an empty string."""
        preparation = workload in {Workload.IMAGERYPREP, Workload.ARTIFACTS}
        return self.imageryprep_docker_image if preparation else self.docker_image

    @property
    def tenant(self) -> Tenant:
        """Who this environment is, with the containers that are its own."""
        urls = self.allowed_container_urls or (
            (self.output_container_url,) if self.output_container_url else ()
        )
        containers = frozenset(ContainerAddress.parse(url) for url in urls)
        name = self.tenant_name
        if not name and self.output_container_url:
            name = _default_tenant(ContainerAddress.parse(self.output_container_url))
        return Tenant(name=name or "default", containers=containers)

    @property
    def widened(self) -> tuple[str, ...]:
        """Return the names of the settings that weaken the isolation of tasks, as `haste config check`
        reports them.
        """
        flags = {
            "HASTE_TASK_MOUNTS_ALL": self.task_mounts_all,
            "HASTE_TASK_POOL_USER": self.task_pool_user,
            "HASTE_TASK_CAPABILITIES": bool(self.task_capabilities),
        }
        return tuple(name for name, on in flags.items() if on)


def _default_tenant(own: ContainerAddress) -> str:
    """Name a tenant after its container; two containers never give one name."""
    name = f"{own.account}-{own.container}"
    if len(name) <= LONGEST_TENANT_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_TENANT_NAME - 9].rstrip('-')}-{digest}"


def names_of(cls: type[Settings], field: str) -> tuple[str, ...]:
    """Return the environment variables of a field, the one to write first."""
    alias = cls.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (str(alias),)


def setting_names(cls: type[Settings]) -> tuple[str, ...]:
    """Return every environment variable that is read."""
    return tuple(name for field in cls.model_fields for name in names_of(cls, field))


def _problems(error: ValidationError) -> list[Problem]:
    problems = []
    for item in error.errors(include_url=False, include_input=False):
        name = str(item["loc"][0])
        text = item["msg"].removeprefix("Value error, ")
        problems.append(Problem(setting=name, what=text[:1].lower() + text[1:]))
    return problems
