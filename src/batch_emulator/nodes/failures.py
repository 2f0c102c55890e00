"""Failures in the service's words: what `failureInfo` of a task says (facts: Batch, failure codes)."""

from __future__ import annotations

import errno

from batch_emulator.nodes.contract import Failure, FailureCategory
from batch_emulator.nodes.drivers import ProgramError

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def user_failure(
    code: str, message: str, *, phase: str = "run", details: tuple[tuple[str, str], ...] = ()
) -> Failure:
    """A failure that the task's author can do something about."""
    return Failure(
        category=FailureCategory.USER_ERROR, code=code, message=message, phase=phase, details=details
    )


def server_failure(
    code: str, message: str, *, phase: str = "run", details: tuple[tuple[str, str], ...] = ()
) -> Failure:
    """A failure of the node or of a service that it depends on."""
    return Failure(
        category=FailureCategory.SERVER_ERROR, code=code, message=message, phase=phase, details=details
    )


def exit_failure(code: int) -> Failure:
    """The program ended with a code other than 0."""
    message = "The task exited with an exit code representing a failure"
    return user_failure("FailureExitCode", message, details=(("Message", message), ("ExitCode", str(code))))


def ended_failure(message: str, phase: str) -> Failure:
    """The run was ended from outside: by request, or because its time was up."""
    return user_failure("TaskEnded", message, phase=phase)


def launch_failure(error: ProgramError, name: str) -> Failure:
    """The program `name` could not be started."""
    if error.step != "exec":
        return server_failure("CommandLaunchFailed", f"the sandbox failed ({error.step}): {error}")
    if error.errno == errno.ENOENT:
        return user_failure("CommandProgramNotFound", f"the program {name!r} was not found")
    return user_failure("CommandLaunchFailed", f"the program {name!r} could not be started: {error}")


def file_failure(error: OSError, *, path: str) -> Failure:
    """A file could not be written on the node before the run."""
    code = "DiskFull" if error.errno in _NO_ROOM else "ResourceFileWriteFailed"
    return server_failure(
        code, f"{path}: {error.strerror or error}", phase="preprocessing", details=(("FilePath", path),)
    )
