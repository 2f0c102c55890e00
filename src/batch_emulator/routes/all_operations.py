"""Every operation: those of the modules imported here, and a clear refusal for the rest of the API."""

from batch_emulator.errors import BatchError
from batch_emulator.routes import (
    accounts,
    certificates,
    faults,
    files,
    job_schedules,
    jobs,
    nodes,
    pools,
    tasks,
)
from batch_emulator.routes.api import API, ApiOperation
from batch_emulator.routes.registry import Answer, Call, Operation, registry

__all__ = [
    "accounts",
    "certificates",
    "faults",
    "files",
    "job_schedules",
    "jobs",
    "nodes",
    "pools",
    "registry",
    "tasks",
]


def _refuse_the_rest() -> None:
    for operation in API:
        if not registry.has(operation.method, operation.path):
            registry.add(_unsupported(operation))


def _unsupported(operation: ApiOperation) -> Operation:
    def refuse(call: Call) -> Answer:  # noqa: ARG001 - the answer is the same whatever was asked
        raise BatchError(
            "NotSupportedByEmulator", f"This emulator does not support the operation {operation.name}."
        )

    return Operation(operation.method, operation.path, operation.name, refuse, supported=False)


_refuse_the_rest()
