"""Ids of jobs and tasks: legal for the service, telling for a reader, and distinct for distinct inputs.

The service allows 1 to 64 letters, digits, hyphens and underscores, and compares without case.
https://learn.microsoft.com/rest/api/batchservice/job/add
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from typing import Final

from hastegeo.domain import TaskSpec, Workload

_LONGEST: Final = 64
_DIGEST_LENGTH: Final = 12
DEFAULT_JOB_PREFIX: Final = "haste"


def job_id(
    tenant: str, pool_id: str, workload: Workload, *, prefix: str = DEFAULT_JOB_PREFIX, generation: int = 0
) -> str:
    """Return the id of the job of one tenant, pool and workload.

    A job that can take no more tasks (completed, disabled, being deleted) is followed by the next generation.
    """
    return _readable_id(
        f"{prefix}-{tenant}-{workload}-{pool_id}", prefix, tenant, pool_id, workload, str(generation)
    )


def task_id(spec: TaskSpec) -> str:
    """Return the id of a task: the same for the same tenant, workload and key."""
    return _readable_id(spec.key, spec.tenant, spec.workload, spec.key)


def fingerprint(spec: TaskSpec) -> str:
    """Return a digest of a task's definition, to tell the same submission from another of the same key.

    The candidate pools are left out: where a task may run is not what it is.
    """
    definition = asdict(spec)
    del definition["candidates"]
    text = json.dumps(definition, sort_keys=True, default=str, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _readable_id(text: str, *identity: str) -> str:
    # Lower case, because ids that differ in case alone are one id to the service; the digest keeps the case.
    slug = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")
    slug = slug[: _LONGEST - _DIGEST_LENGTH - 1].rstrip("-")
    # Lengths keep the parts apart: ("a", "bc") and ("ab", "c") are different identities.
    joined = "".join(f"{len(part)}:{part}" for part in identity)
    digest = hashlib.sha256(joined.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{slug}-{digest}" if slug else digest
