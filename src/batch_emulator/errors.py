"""The service's errors: HTTP status, code and message, as a client sees them.

Source of the codes: https://learn.microsoft.com/rest/api/batchservice/batch-status-and-error-codes
"""

from __future__ import annotations

from typing import Final

# The status of each code that the emulator answers, and the message of those that need no detail.
CODES: Final[dict[str, tuple[int, str]]] = {
    "InvalidPropertyValue": (
        400,
        "The value provided for one of the properties in the request body is invalid.",
    ),
    "MissingRequiredProperty": (400, "A required property was not specified in the request body."),
    "InvalidRequestBody": (400, "The specified Request Body is not syntactically valid."),
    "InvalidQueryParameterValue": (400, "Value for one of the query parameters is invalid."),
    "InvalidHeaderValue": (400, "The value for one of the HTTP headers is not in the correct format."),
    "OutOfRangeInput": (400, "One of the request inputs is out of range."),
    "UnsupportedRequestVersion": (400, "The specified version is not supported."),
    "AutoScalingFormulaSyntaxError": (400, "The specified autoscaling formula has a syntax error."),
    "InvalidAutoScalingSettings": (400, "The specified autoscaling settings are not valid."),
    "TaskDependenciesNotSpecifiedOnJob": (
        400,
        "The job does not use task dependencies, but the task has some.",
    ),
    "AuthenticationFailed": (403, "Server failed to authenticate the request."),
    "IOError": (403, "The file could not be read or written."),
    "AccountNotFound": (404, "The specified account does not exist."),
    "PoolNotFound": (404, "The specified pool does not exist."),
    "JobNotFound": (404, "The specified job does not exist."),
    "JobScheduleNotFound": (404, "The specified job schedule does not exist."),
    "TaskNotFound": (404, "The specified task does not exist."),
    "NodeNotFound": (404, "The specified node does not exist."),
    "NodeUserNotFound": (404, "The specified node user does not exist."),
    "NodeExtensionNotFound": (404, "The specified extension does not exist."),
    "ApplicationNotFound": (404, "The specified application does not exist."),
    "FileNotFound": (404, "The specified file does not exist."),
    "ResourceNotFound": (404, "The specified resource does not exist."),
    "UnsupportedHttpVerb": (405, "The resource doesn't support the specified HTTP verb."),
    "PoolExists": (409, "The specified pool already exists."),
    "JobExists": (409, "The specified job already exists."),
    "JobScheduleExists": (409, "The specified job schedule already exists."),
    "TaskExists": (409, "The specified task already exists."),
    "NodeUserExists": (409, "The specified node user already exists."),
    "OperationInvalidForCurrentState": (
        409,
        "The operation is not valid for the current state of the resource.",
    ),
    "PoolBeingResized": (409, "The specified pool is being resized."),
    "PoolBeingDeleted": (409, "The specified pool is being deleted."),
    "PoolNotEligibleForOperation": (409, "The specified pool is not eligible for the operation."),
    "JobBeingDeleted": (409, "The specified job is being deleted."),
    "JobBeingTerminated": (409, "The specified job is being terminated."),
    "JobCompleted": (409, "The specified job is already in a completed state."),
    "JobDisabled": (409, "The specified job is disabled."),
    "JobNotActive": (409, "The specified job is not active."),
    "JobScheduleBeingDeleted": (409, "The specified job schedule is being deleted."),
    "JobScheduleBeingTerminated": (409, "The specified job schedule is being terminated."),
    "JobScheduleCompleted": (409, "The specified job schedule is already in a completed state."),
    "TaskCompleted": (409, "The specified task is already in a completed state."),
    "TaskNotCompleted": (409, "The specified task has not completed."),
    "TaskSucceeded": (409, "The specified task succeeded and cannot be reactivated."),
    "TaskFilesUnavailable": (409, "The task files are unavailable: the task has not run on a node."),
    "TaskFilesCleanedup": (409, "The task files were cleaned up: their retention time has passed."),
    "NodeStateUnusable": (409, "The node is unusable."),
    "NodeAlreadyInTargetSchedulingState": (409, "The node is already in the requested scheduling state."),
    "OperationNotValidOnNode": (409, "The operation is not valid on the specified node."),
    "PoolQuotaReached": (409, "The specified account has reached its pool quota."),
    "ActiveJobAndScheduleQuotaReached": (
        409,
        "The account has reached its quota of active jobs and schedules.",
    ),
    "JobPreparationTaskNotSpecified": (409, "The job has no job preparation task."),
    "ConditionNotMet": (412, "The condition specified in the conditional headers was not met."),
    "NotModified": (304, "The resource was not modified."),
    "RequestBodyTooLarge": (413, "The size of the request body exceeds the maximum size permitted."),
    "InvalidRange": (416, "The range specified is invalid for the current size of the file."),
    "TooManyRequests": (429, "Too many requests; retry after the time given in the Retry-After header."),
    "InternalError": (500, "The server encountered an internal error. Please retry the request."),
    "OperationTimedOut": (500, "The operation could not be completed within the permitted time."),
    "NotSupportedByEmulator": (501, "This emulator does not support the operation."),
    "ServerBusy": (503, "The server is busy. Please retry the request."),
    "TooManyEnableAutoScaleRequests": (503, "Autoscale was enabled on the pool less than 30 seconds ago."),
}


class BatchError(Exception):
    """An error answer of the service.

    `code` is one of `CODES`, which gives the HTTP status. `values` are the key-value details of the answer.
    """

    def __init__(
        self, code: str, message: str | None = None, *, values: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self.status, standard = CODES[code]
        self.code = code
        self.message = message or standard
        self.values = values
        super().__init__(f"{code}: {self.message}")


def invalid_property(name: str, reason: str, value: object = None) -> BatchError:
    """Say which property of the body is wrong, what was sent, and why."""
    details: list[tuple[str, str]] = [("PropertyName", name)]
    if value is not None:
        details.append(("PropertyValue", str(value)[:200]))
    details.append(("Reason", reason))
    return BatchError("InvalidPropertyValue", values=tuple(details))
