"""The resources of an account, and what they are made of.

No rules here: those are in `batch_emulator.rules`.
"""

from batch_emulator.state.account import Account
from batch_emulator.state.jobs import Job, JobOnNode, Task
from batch_emulator.state.pools import Node, Pool
from batch_emulator.state.queues import Count, Tally, WaitingTasks
from batch_emulator.state.resources import Json, Resource, key
from batch_emulator.state.runs import Run, SideTask
from batch_emulator.state.schedules import JobSchedule
from batch_emulator.state.states import (
    AllocationState,
    JobScheduleState,
    JobState,
    NodeState,
    PoolState,
    SideTaskState,
    TaskState,
)

__all__ = [
    "Account",
    "AllocationState",
    "Count",
    "Job",
    "JobOnNode",
    "JobSchedule",
    "JobScheduleState",
    "JobState",
    "Json",
    "Node",
    "NodeState",
    "Pool",
    "PoolState",
    "Resource",
    "Run",
    "SideTask",
    "SideTaskState",
    "Tally",
    "Task",
    "TaskState",
    "WaitingTasks",
    "key",
]
