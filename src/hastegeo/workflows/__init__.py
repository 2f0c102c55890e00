"""The programs that run inside tasks.

Each is a module with `main(arguments) -> exit code`, found by name, so that `haste workload NAME …` and the
entry point of every container image are one thing. A module is imported only when it is asked for: a probe
must not pay for loading GDAL.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, cast

from hastegeo.errors import InputError

WORKFLOWS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "prepare_imagery": "hastegeo.workflows.prepare_imagery",
        "isolation_probe": "hastegeo.workflows.isolation_probe",
    }
)

WorkflowMain = Callable[[Sequence[str]], int]


def load_workflow(name: str) -> WorkflowMain:
    """Return the `main` of a workflow. Raises `InputError` that names the ones there are."""
    if name not in WORKFLOWS:
        raise InputError(
            f"There is no workload program {name!r}.", hint=f"Choose one of: {', '.join(sorted(WORKFLOWS))}."
        )
    return cast("WorkflowMain", importlib.import_module(WORKFLOWS[name]).main)


__all__ = ["WORKFLOWS", "WorkflowMain", "load_workflow"]
