"""The states of pools, nodes, jobs and tasks, as on the wire."""

from __future__ import annotations

from enum import StrEnum


class PoolState(StrEnum):
    """The state of a pool."""

    ACTIVE = "active"
    DELETING = "deleting"


class AllocationState(StrEnum):
    """What a pool is doing about its size."""

    STEADY = "steady"
    RESIZING = "resizing"
    STOPPING = "stopping"


class NodeState(StrEnum):
    """The state of a node, as on the wire."""

    CREATING = "creating"
    STARTING = "starting"
    WAITING_FOR_START_TASK = "waitingforstarttask"
    START_TASK_FAILED = "starttaskfailed"
    IDLE = "idle"
    RUNNING = "running"
    REBOOTING = "rebooting"
    REIMAGING = "reimaging"
    OFFLINE = "offline"
    UNUSABLE = "unusable"
    UNKNOWN = "unknown"
    PREEMPTED = "preempted"
    LEAVING_POOL = "leavingpool"
    UPGRADING_OS = "upgradingos"
    DEALLOCATING = "deallocating"
    DEALLOCATED = "deallocated"


class JobState(StrEnum):
    """The state of a job."""

    ACTIVE = "active"
    DISABLING = "disabling"
    DISABLED = "disabled"
    ENABLING = "enabling"
    TERMINATING = "terminating"
    COMPLETED = "completed"
    DELETING = "deleting"


class TaskState(StrEnum):
    """The state of a task."""

    ACTIVE = "active"
    PREPARING = "preparing"
    RUNNING = "running"
    COMPLETED = "completed"


class JobScheduleState(StrEnum):
    """The state of a job schedule."""

    ACTIVE = "active"
    COMPLETED = "completed"
    DISABLED = "disabled"
    TERMINATING = "terminating"
    DELETING = "deleting"


class SideTaskState(StrEnum):
    """The state of a start, preparation or release task on a node."""

    RUNNING = "running"
    COMPLETED = "completed"
