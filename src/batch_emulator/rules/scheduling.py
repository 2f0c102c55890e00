"""Which waiting task goes to which node.

Every job keeps its own waiting tasks. A pass looks at the jobs of one pool that have some, by priority, and
costs what it places, however many tasks wait.

Source: https://learn.microsoft.com/azure/batch/batch-parallel-node-tasks
"""

from __future__ import annotations

from batch_emulator.rules import job_nodes
from batch_emulator.rules.world import World
from batch_emulator.state import Job, JobState, Node, NodeState, Pool, PoolState, Task, TaskState

_MOST_RECENT_TASKS = 10


def enqueue(world: World, task: Task) -> None:
    """Let an active task wait for a node, and place it at once if there is room."""
    task.waits = True
    task.arrival = world.next_number()
    task.job.waiting.add(task)
    pool = world.account.pool_of(task.job)
    if pool is not None:
        schedule(world, pool)


def schedule(world: World, pool: Pool) -> None:
    """Place waiting tasks on the nodes of a pool while there is room."""
    if pool.state is not PoolState.ACTIVE:
        return
    free = [node for node in pool.nodes.values() if node.takes_tasks and node.free_slots]
    if not free:
        return
    jobs = [job for job in world.account.jobs_of(pool) if job.state is JobState.ACTIVE]
    while free and (found := _next(jobs, free)) is not None:
        task, nodes = found
        node = _choose(nodes, task, pack=_packs(pool))
        task.job.waiting.take(task)
        _place(world, task, node)
        if not node.free_slots:
            free.remove(node)


def _next(jobs: list[Job], free: list[Node]) -> tuple[Task, list[Node]] | None:
    """Return the task that comes first, with the free nodes that it fits on."""
    best: tuple[Task, list[Node]] | None = None
    for job in jobs:
        if job.is_full:
            continue
        nodes = [node for node in free if job_nodes.accepts(job, node)]
        task = job.waiting.first(max((node.free_slots for node in nodes), default=0))
        if task is not None and (best is None or _place_in_line(task) < _place_in_line(best[0])):
            best = task, [node for node in nodes if node.free_slots >= task.required_slots]
    return best


def _place_in_line(task: Task) -> tuple[int, int]:
    return -task.job.priority, task.arrival


def _packs(pool: Pool) -> bool:
    policy = pool.spec.get("taskSchedulingPolicy") or {}
    return str(policy.get("nodeFillType", "spread")).lower() == "pack"


def _choose(nodes: list[Node], task: Task, *, pack: bool) -> Node:
    # An affinity is a wish: a node's own, or that of a node where a task with this affinity has run.
    wanted = (task.spec.get("affinityInfo") or {}).get("affinityId")
    if wanted:
        for node in nodes:
            if wanted == f"TVM:{node.id}":
                return node
    return (min if pack else max)(nodes, key=lambda node: node.free_slots)


def _place(world: World, task: Task, node: Node) -> None:
    now = world.now()
    held = {slot for other in node.tasks for slot in other.slots}
    task.slots = tuple(slot for slot in range(node.slots) if slot not in held)[: task.required_slots]
    task.waits = False
    task.node = task.last_node = node
    node.tasks.append(task)
    node.recent = [task, *(other for other in node.recent if other is not task)][:_MOST_RECENT_TASKS]
    node.total_tasks_run += 1
    if node.state is NodeState.IDLE:
        node.move(NodeState.RUNNING, now)
    task.exit_code = task.failure = task.started = task.ended = task.container_id = None
    task.files_removed = False
    task.move(TaskState.PREPARING, now)
    job_nodes.begin_task(world, task, node)


def release(world: World, task: Task) -> None:
    """Take a task off its node; the caller says what comes next on it, and for the task."""
    node = task.node
    if node is None:
        return
    node.tasks.remove(task)
    job_nodes.forget_task(task, node)
    task.node, task.run, task.slots = None, None, ()
    if not node.tasks and node.state is NodeState.RUNNING:
        node.move(NodeState.IDLE, world.now())
