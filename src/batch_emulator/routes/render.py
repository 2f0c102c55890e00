"""Resources as the service shows them: what the client sent, the service's defaults, and the state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from batch_emulator.nodes.contract import Failure
from batch_emulator.rules.world import World
from batch_emulator.state import (
    Job,
    JobOnNode,
    JobSchedule,
    Json,
    Node,
    NodeState,
    Pool,
    Resource,
    SideTask,
    Task,
    TaskState,
)
from batch_emulator.wire.times import format_time

_TASK_DEFAULTS: Mapping[str, Any] = {
    "requiredSlots": 1,
    "userIdentity": {"autoUser": {"scope": "pool", "elevationLevel": "nonadmin"}},
}
_TASK_CONSTRAINTS: Mapping[str, Any] = {
    "maxWallClockTime": "P10675199DT2H48M5.4775807S",
    "retentionTime": "P7D",
    "maxTaskRetryCount": 0,
}
_JOB_DEFAULTS: Mapping[str, Any] = {
    "priority": 0,
    "maxParallelTasks": -1,
    "allowTaskPreemption": False,
    "onAllTasksComplete": "noaction",
    "onTaskFailure": "noaction",
    "usesTaskDependencies": False,
}
_JOB_CONSTRAINTS: Mapping[str, Any] = {
    "maxWallClockTime": "P10675199DT2H48M5.4775807S",
    "maxTaskRetryCount": 0,
}
_POOL_DEFAULTS: Mapping[str, Any] = {
    "taskSlotsPerNode": 1,
    "taskSchedulingPolicy": {"nodeFillType": "Spread"},
    "enableInterNodeCommunication": False,
    "enableAutoScale": False,
    "resizeTimeout": "PT15M",
}


def pool_json(world: World, pool: Pool) -> Json:
    """Return a pool. Its targets are the present ones, not those it was created with."""
    shown = {**_POOL_DEFAULTS, **pool.spec, **_common(world, pool, f"pools/{pool.id}")}
    shown |= {
        "state": pool.state.value,
        "stateTransitionTime": format_time(pool.state_since),
        "allocationState": pool.allocation_state.value,
        "allocationStateTransitionTime": format_time(pool.allocation_since),
        "currentDedicatedNodes": len(pool.bucket(dedicated=True)),
        "targetDedicatedNodes": pool.target_dedicated,
        "currentLowPriorityNodes": len(pool.bucket(dedicated=False)),
        "targetLowPriorityNodes": pool.target_low_priority,
    }
    shown["vmSize"] = str(shown["vmSize"]).lower()
    if pool.autoscales:
        shown.pop("resizeTimeout", None)
        shown.setdefault("autoScaleEvaluationInterval", "PT15M")
        if pool.auto_scale_run:
            shown["autoScaleRun"] = pool.auto_scale_run
    if pool.resize_errors:
        shown["resizeErrors"] = pool.resize_errors
    return shown


def node_json(world: World, node: Node) -> Json:
    """Return a compute node."""
    shown: Json = {
        "id": node.id,
        "url": f"{world.url}/pools/{node.pool.id}/nodes/{node.id}",
        "state": node.state.value,
        "schedulingState": "enabled" if node.scheduling_enabled else "disabled",
        "stateTransitionTime": format_time(node.state_since),
        "allocationTime": format_time(node.allocated),
        "ipAddress": node.ip_address,
        "affinityId": f"TVM:{node.id}",
        "vmSize": str(node.pool.spec["vmSize"]).lower(),
        "totalTasksRun": node.total_tasks_run,
        "totalTasksSucceeded": node.total_tasks_succeeded,
        "runningTasksCount": len(node.tasks),
        "runningTaskSlotsCount": node.slots - node.free_slots,
        "isDedicated": node.dedicated,
        "recentTasks": [_recent_task(world, task) for task in node.recent],
        "virtualMachineInfo": {
            "imageReference": (node.pool.spec.get("virtualMachineConfiguration") or {}).get("imageReference")
        },
    }
    if node.last_boot:
        shown["lastBootTime"] = format_time(node.last_boot)
    if node.errors:
        shown["errors"] = node.errors
    if node.start_task is not None:
        shown["startTask"] = node.start_task.spec
        shown["startTaskInfo"] = side_task_json(node.start_task)
    return shown


def side_task_json(side: SideTask) -> Json:
    """Return the information on a start, preparation or release task."""
    info: Json = {"state": side.state.value, "startTime": format_time(side.started)}
    info["retryCount"] = side.retry_count
    if side.last_retry:
        info["lastRetryTime"] = format_time(side.last_retry)
    if side.ended:
        info["endTime"] = format_time(side.ended)
        info["result"] = "failure" if side.failure else "success"
    if side.exit_code is not None:
        info["exitCode"] = side.exit_code
    if side.failure:
        info["failureInfo"] = failure_json(side.failure)
    if side.container_id:
        info["containerInfo"] = {"containerId": side.container_id}
    return info


def job_on_node_json(world: World, here: JobOnNode) -> Json:
    """Return what a job's preparation and release tasks have done on one node."""
    node = here.node
    shown: Json = {
        "poolId": node.pool.id,
        "nodeId": node.id,
        "nodeUrl": f"{world.url}/pools/{node.pool.id}/nodes/{node.id}",
    }
    for name, side in (
        ("jobPreparationTaskExecutionInfo", here.preparation),
        ("jobReleaseTaskExecutionInfo", here.release),
    ):
        if side is not None:
            shown[name] = {
                **side_task_json(side),
                "taskRootDirectory": side.path,
                "taskRootDirectoryUrl": f"{shown['nodeUrl']}/files/{side.path}",
            }
    return shown


def job_json(world: World, job: Job) -> Json:
    """Return a job."""
    shown = {**_JOB_DEFAULTS, **job.spec, **_common(world, job, f"jobs/{job.id}")}
    shown["constraints"] = {**_JOB_CONSTRAINTS, **(job.spec.get("constraints") or {})}
    shown["state"] = job.state.value
    shown["stateTransitionTime"] = format_time(job.state_since)
    if job.previous_state:
        shown["previousState"] = job.previous_state.value
        shown["previousStateTransitionTime"] = format_time(job.previous_state_since or job.created)
    info: Json = {"startTime": format_time(job.started), "poolId": job.pool_id}
    if job.ended:
        info["endTime"] = format_time(job.ended)
    if job.terminate_reason:
        info["terminateReason"] = job.terminate_reason
    if job.scheduling_error:
        info["schedulingError"] = job.scheduling_error
    shown["executionInfo"] = info
    return shown


def schedule_json(world: World, schedule: JobSchedule) -> Json:
    """Return a job schedule."""
    shown = {**schedule.spec, **_common(world, schedule, f"jobschedules/{schedule.id}")}
    shown["state"] = schedule.state.value
    shown["stateTransitionTime"] = format_time(schedule.state_since)
    if schedule.previous_state:
        shown["previousState"] = schedule.previous_state.value
        shown["previousStateTransitionTime"] = format_time(schedule.previous_state_since or schedule.created)
    info: Json = {}
    if schedule.next_run:
        info["nextRunTime"] = format_time(schedule.next_run)
    if schedule.recent_job:
        job_id = schedule.recent_job.id
        info["recentJob"] = {"id": job_id, "url": f"{world.url}/jobs/{job_id}"}
    if schedule.ended:
        info["endTime"] = format_time(schedule.ended)
    shown["executionInfo"] = info
    return shown


def task_json(world: World, task: Task) -> Json:
    """Return a task."""
    shown = {**_TASK_DEFAULTS, **task.spec, **_common(world, task, "")}
    shown["url"] = task_url(world, task)
    shown["constraints"] = {**_TASK_CONSTRAINTS, **(task.spec.get("constraints") or {})}
    shown["state"] = task.state.value
    shown["stateTransitionTime"] = format_time(task.state_since)
    if task.previous_state:
        shown["previousState"] = task.previous_state.value
        shown["previousStateTransitionTime"] = format_time(task.previous_state_since or task.created)
    shown["executionInfo"] = _execution_info(task)
    if task.last_node is not None and task.state is not TaskState.ACTIVE:
        shown["nodeInfo"] = _node_info(world, task, task.last_node)
    return shown


def task_url(world: World, task: Task) -> str:
    """Return the URL of a task."""
    return f"{world.url}/jobs/{task.job.id}/tasks/{task.id}"


def count_nodes(pool: Pool, *, dedicated: bool) -> Json:
    """Return how many nodes of one kind are in each state, as node counts show them."""
    states = [node.state for node in pool.nodes.values() if node.dedicated is dedicated]
    names = {
        NodeState.WAITING_FOR_START_TASK: "waitingForStartTask",
        NodeState.START_TASK_FAILED: "startTaskFailed",
        NodeState.LEAVING_POOL: "leavingPool",
        NodeState.UPGRADING_OS: "upgradingOS",
    }
    counts: Json = {names.get(state, state.value): states.count(state) for state in NodeState}
    counts["total"] = len(states)
    return counts


def _common(world: World, resource: Resource, path: str) -> Json:
    return {
        "url": f"{world.url}/{path}",
        "eTag": resource.etag,
        "lastModified": format_time(resource.last_modified),
        "creationTime": format_time(resource.created),
    }


def _execution_info(task: Task) -> Json:
    info: Json = {"retryCount": task.retry_count, "requeueCount": task.requeue_count}
    times: dict[str, datetime | None] = {
        "startTime": task.started,
        "endTime": task.ended,
        "lastRetryTime": task.last_retry,
        "lastRequeueTime": task.last_requeue,
    }
    info |= {name: format_time(time) for name, time in times.items() if time is not None}
    if task.exit_code is not None:
        info["exitCode"] = task.exit_code
    if task.state is TaskState.COMPLETED:
        info["result"] = "failure" if task.failure else "success"
    if task.failure:
        info["failureInfo"] = failure_json(task.failure)
    if task.container_id:
        info["containerInfo"] = {"containerId": task.container_id}
    return info


def failure_json(failure: Failure) -> Json:
    """Return `failureInfo` (or, for a job, the same of a scheduling error)."""
    return {
        "category": failure.category.value,
        "code": failure.code,
        "message": failure.message,
        "details": [{"name": name, "value": value} for name, value in failure.details],
    }


def _recent_task(world: World, task: Task) -> Json:
    return {
        "taskUrl": task_url(world, task),
        "jobId": task.job.id,
        "taskId": task.id,
        "taskState": task.state.value,
        "executionInfo": _execution_info(task),
    }


def _node_info(world: World, task: Task, node: Node) -> Json:
    return {
        "affinityId": f"TVM:{node.id}",
        "nodeUrl": f"{world.url}/pools/{node.pool.id}/nodes/{node.id}",
        "poolId": node.pool.id,
        "nodeId": node.id,
        "taskRootDirectory": task.path,
        "taskRootDirectoryUrl": f"{world.url}/pools/{node.pool.id}/nodes/{node.id}/files/{task.path}",
    }
