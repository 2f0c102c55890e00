"""The tree of errors.

Every error that a user can meet is a `HasteError`: one sentence of what is wrong and, where something can be
done about it, a hint that says what to do. The command line prints both and exits with `exit_code`; a
traceback at a user is a defect.

    HasteError
    ├── ConfigurationError     settings are missing, malformed, or contradict each other
    ├── InputError             what the user gave (a path, an image, a table) cannot be used
    ├── CapacityError          no candidate pool can take the task
    ├── CredentialError
    │   └── GrantRefusedError  a grant was asked for outside the tenant's own storage or limits
    ├── RunnerError            the compute service refused or failed a call
    │   ├── TaskConflictError  the same task id exists with another definition
    │   └── TaskNotFoundError
    └── LocalCloudError        a local server could not be installed, started, or was lost
"""

from __future__ import annotations

from typing import ClassVar


class HasteError(Exception):
    """Base of all errors that are meant for a user.

    `hint` says what to do, as one imperative sentence, or is empty where nothing helpful can be said.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class ConfigurationError(HasteError):
    """Settings are missing, malformed, or contradict each other."""

    exit_code = 2


class InputError(HasteError):
    """What the user gave cannot be used: no raster, a damaged tile, tiles that do not overlap."""

    exit_code = 2


class CapacityError(HasteError):
    """No candidate pool can take the task; the message names each candidate with its reason."""


class CredentialError(HasteError):
    """A credential could not be obtained or is not allowed to do what was asked."""


class GrantRefusedError(CredentialError):
    """A grant was asked for outside the tenant's own storage, or for longer than storage allows."""


class RunnerError(HasteError):
    """The compute service refused or failed a call."""


class TaskConflictError(RunnerError):
    """A task of the same id exists with another definition."""


class TaskNotFoundError(RunnerError):
    """The task is not known to the compute service."""


class LocalCloudError(HasteError):
    """A local server could not be installed or started, or was lost while it was needed."""
