"""Which waiting task goes to which node.

Each pool keeps its waiting tasks in a heap by job priority and arrival; an entry that is out of date (the
task was deleted, ended, or queued again) is dropped when it comes up. A pass therefore costs what it places,
not what waits.

Source: https://learn.microsoft.com/azure/batch/batch-parallel-node-tasks
"""

from __future__ import annotations

import heapq

from batch_emulator.rules.world import World
from batch_emulator.state.model import Job, JobState, Node, NodeState, Pool, PoolState, Task, TaskState


def enqueue(world: World, task: Task) -> None:
    """Let an active task whose dependencies are met wait for a node of its job's pool."""
    pool = world.pool_of(task.job)
    if pool is None:
        return
    heapq.heappush(pool.waiting, (-task.job.priority, world.new_order(), task))
    schedule(world, pool)


def enqueue_job(world: World, job: Job) -> None:
    """Let every task of a job that can run wait again, after the job was enabled or got another pool."""
    for task in job.tasks.values():
        if task.state is TaskState.ACTIVE and not task.unmet:
            enqueue(world, task)


def schedule(world: World, pool: Pool) -> None:
    """Place waiting tasks on the nodes of a pool while there is room."""
    if pool.state is not PoolState.ACTIVE or not pool.waiting:
        return
    free = [node for node in pool.nodes.values() if node.takes_tasks and node.used_slots < node.slots]
    put_back: list[tuple[int, int, Task]] = []
    placed: set[int] = set()
    while free and pool.waiting:
        entry = heapq.heappop(pool.waiting)
        task = entry[2]
        if not _can_run(task) or id(task) in placed:
            continue
        if _job_is_full(task.job):
            put_back.append(entry)
            continue
        node = _choose(free, task, pack=_packs(pool))
        if node is None:
            # It needs more slots than any node has free: smaller tasks behind it may still run.
            put_back.append(entry)
            continue
        placed.add(id(task))
        _place(world, task, node)
        if node.used_slots >= node.slots:
            free.remove(node)
    for entry in put_back:
        heapq.heappush(pool.waiting, entry)


def _can_run(task: Task) -> bool:
    return (
        task.state is TaskState.ACTIVE
        and task.job.state is JobState.ACTIVE
        and not task.unmet
        and task.job.holds(task)
    )


def _job_is_full(job: Job) -> bool:
    return job.max_parallel_tasks is not None and job.running >= job.max_parallel_tasks


def _packs(pool: Pool) -> bool:
    policy = pool.spec.get("taskSchedulingPolicy") or {}
    return str(policy.get("nodeFillType", "spread")).lower() == "pack"


def _choose(free: list[Node], task: Task, *, pack: bool) -> Node | None:
    fitting = [node for node in free if node.slots - node.used_slots >= task.required_slots]
    if not fitting:
        return None
    return (max if pack else min)(fitting, key=lambda node: node.used_slots)


def _place(world: World, task: Task, node: Node) -> None:
    node.tasks.append(task)
    node.total_tasks_run += 1
    if node.state is NodeState.IDLE:
        node.state, node.state_since = NodeState.RUNNING, world.now()
    task.node = task.last_node = node
    task.epoch += 1
    task.previous_state, task.state, task.state_since = task.state, TaskState.PREPARING, world.now()
    task.exit_code, task.failure, task.result, task.ended, task.container_id = None, None, None, None, None
    task.files_removed = False
    task.job.running += 1
    world.effects.start_run(task, node)


def release(world: World, task: Task) -> Node | None:
    """Take a task off its node, and return the node; the caller says what comes next on it."""
    node = task.node
    if node is None:
        return None
    node.tasks.remove(task)
    task.node = None
    task.job.running -= 1
    if not node.tasks and node.state is NodeState.RUNNING:
        node.state, node.state_since = NodeState.IDLE, world.now()
    return node
