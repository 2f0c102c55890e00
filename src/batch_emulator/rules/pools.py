"""Pools and their nodes: growing, shrinking, booting, losing nodes.

Source: https://learn.microsoft.com/rest/api/batchservice/pool
"""

from __future__ import annotations

from collections.abc import Callable

from batch_emulator.errors import BatchError
from batch_emulator.rules import autoscaling, scheduling
from batch_emulator.rules import tasks as task_rules
from batch_emulator.rules.world import World
from batch_emulator.state.model import (
    AllocationState,
    Json,
    Node,
    NodeState,
    Pool,
    PoolState,
    key,
)

_MOST_REMOVED_A_CALL = 100


def add(world: World, spec: Json) -> Pool:
    """Create a pool, and start to bring it to its size."""
    if key(spec["id"]) in world.account.pools:
        raise BatchError("PoolExists")
    _check_scale_settings(spec)
    now = world.now()
    pool = Pool(
        id=spec["id"],
        spec=spec,
        created=now,
        last_modified=now,
        state_since=now,
        allocation_since=now,
        etag=world.new_etag(),
    )
    world.account.pools[key(pool.id)] = pool
    for job in world.account.jobs.values():
        if key(job.pool_id) == key(pool.id):
            scheduling.enqueue_job(world, job)
    if pool.autoscales:
        autoscaling.start(world, pool)
    else:
        _aim(
            world,
            pool,
            dedicated=int(spec.get("targetDedicatedNodes", 0)),
            low_priority=int(spec.get("targetLowPriorityNodes", 0)),
            option="requeue",
        )
    return pool


def resize(world: World, pool: Pool, request: Json) -> None:
    """Change the size of a fixed pool. It must be steady, and must not scale itself."""
    require_active(pool)
    if pool.autoscales:
        raise BatchError("PoolNotEligibleForOperation", "The pool scales automatically; disable that first.")
    if pool.allocation_state is not AllocationState.STEADY:
        raise BatchError("PoolBeingResized")
    if request.get("targetDedicatedNodes") is None and request.get("targetLowPriorityNodes") is None:
        raise BatchError("MissingRequiredProperty", values=(("PropertyName", "targetDedicatedNodes"),))
    if "resizeTimeout" in request:
        pool.spec["resizeTimeout"] = request["resizeTimeout"]
    dedicated, low_priority = request.get("targetDedicatedNodes"), request.get("targetLowPriorityNodes")
    _aim(
        world,
        pool,
        dedicated=pool.target_dedicated if dedicated is None else dedicated,
        low_priority=pool.target_low_priority if low_priority is None else low_priority,
        option=str(request.get("nodeDeallocationOption", "requeue")).lower(),
    )


def scale_to(world: World, pool: Pool, *, dedicated: int, low_priority: int, option: str) -> None:
    """Bring a pool to the targets that its formula gave. A resize in progress is given the new aim."""
    if pool.state is PoolState.ACTIVE:
        _aim(world, pool, dedicated=dedicated, low_priority=low_priority, option=option)


def stop_resize(world: World, pool: Pool) -> None:
    """Stop a resize: what the pool has now becomes its target."""
    require_active(pool)
    if pool.allocation_state is not AllocationState.RESIZING:
        raise BatchError("OperationInvalidForCurrentState")
    pool.target_dedicated = len(pool.bucket(dedicated=True))
    pool.target_low_priority = len(pool.bucket(dedicated=False))
    pool.resize_errors = [
        {
            "code": "ResizeStopped",
            "message": "Desired number of nodes could not be allocated as the resize was stopped",
        }
    ]
    _steady(world, pool)


def remove_nodes(world: World, pool: Pool, node_ids: list[str], option: str) -> None:
    """Remove named nodes; the target shrinks with them."""
    require_active(pool)
    if pool.allocation_state is not AllocationState.STEADY:
        raise BatchError("PoolBeingResized")
    if not node_ids or len(node_ids) > _MOST_REMOVED_A_CALL:
        raise BatchError("OutOfRangeInput", "Name 1 to 100 nodes.")
    nodes = [find_node(pool, node_id) for node_id in node_ids]
    for node in nodes:
        if node.dedicated:
            pool.target_dedicated = max(0, pool.target_dedicated - 1)
        else:
            pool.target_low_priority = max(0, pool.target_low_priority - 1)
    pool.deallocation_option = option
    _set_allocation(world, pool, AllocationState.RESIZING)
    for node in nodes:
        _dismiss(world, node, option)
    _settle(world, pool)


def delete(world: World, pool: Pool) -> None:
    """Delete a pool: its tasks are queued again, and wait for a pool of that id."""
    require_active(pool)
    pool.state, pool.state_since = PoolState.DELETING, world.now()
    autoscaling.stop(pool)
    if pool.resize_timer:
        pool.resize_timer.cancel()
    for node in list(pool.nodes.values()):
        _dismiss(world, node, "requeue")

    def gone() -> None:
        del world.account.pools[key(pool.id)]

    world.timers.after(world.behaviour.allocation_seconds, gone)


def require_active(pool: Pool) -> None:
    """Raise PoolBeingDeleted for a pool that is on its way out."""
    if pool.state is PoolState.DELETING:
        raise BatchError("PoolBeingDeleted")


def find_node(pool: Pool, node_id: str) -> Node:
    """Return a node by its id. Raises NodeNotFound."""
    node = pool.nodes.get(node_id)
    if node is None:
        raise BatchError("NodeNotFound")
    return node


def preempt(world: World, node: Node) -> None:
    """Take a low-priority node away, as the service does for want of capacity; it comes back later."""
    if node.dedicated or node.state is NodeState.PREEMPTED:
        raise BatchError(
            "OperationNotValidOnNode", "Only low-priority nodes that are there can be preempted."
        )
    _cancel_timer(node)
    for task in list(node.tasks):
        task_rules.requeue(world, task, counts=world.behaviour.requeue_counts_preemption)
    world.effects.remove_node(node)
    _move(world, node, NodeState.PREEMPTED)
    node.timer = world.timers.after(world.behaviour.restore_seconds, lambda: _boot(world, node))
    _schedule(world, node.pool)


def reboot(world: World, node: Node, option: str, *, reimage: bool) -> None:
    """Restart a node (and with `reimage` make it anew): its tasks are queued again or ended first."""
    if node.state not in {NodeState.IDLE, NodeState.RUNNING, NodeState.START_TASK_FAILED, NodeState.UNUSABLE}:
        raise BatchError("OperationNotValidOnNode")
    _take_tasks(world, node, option)
    if reimage:
        world.effects.remove_node(node)
    _move(world, node, NodeState.REIMAGING if reimage else NodeState.REBOOTING)
    node.timer = world.timers.after(world.behaviour.boot_seconds, lambda: _came_up(world, node))


def set_scheduling(world: World, node: Node, *, enabled: bool, option: str = "requeue") -> None:
    """Let a node take tasks, or keep it from taking any (`offline` in the listing)."""
    if node.scheduling_enabled is enabled:
        raise BatchError("NodeAlreadyInTargetSchedulingState")
    node.scheduling_enabled = enabled
    if enabled:
        if node.state is NodeState.OFFLINE:
            _move(world, node, NodeState.RUNNING if node.tasks else NodeState.IDLE)
        _schedule(world, node.pool)
        return
    if option != "taskcompletion":
        _take_tasks(world, node, option)
    if not node.tasks:
        _move(world, node, NodeState.OFFLINE)


def after_task(world: World, node: Node) -> None:
    """Follow up on a task that left a node: the node may leave, go offline, or take the next task."""
    if node.leaves_when_idle and not node.tasks:
        _leave(world, node)
        _settle(world, node.pool)
    elif not node.scheduling_enabled and not node.tasks and node.state is NodeState.IDLE:
        _move(world, node, NodeState.OFFLINE)
    _schedule(world, node.pool)


def _check_scale_settings(spec: Json) -> None:
    fixed = [
        name for name in ("targetDedicatedNodes", "targetLowPriorityNodes") if spec.get(name) is not None
    ]
    if spec.get("enableAutoScale"):
        if not spec.get("autoScaleFormula"):
            raise BatchError("MissingRequiredProperty", values=(("PropertyName", "autoScaleFormula"),))
        if fixed:
            raise BatchError(
                "InvalidAutoScalingSettings", f"{fixed[0]} cannot be set on a pool that scales automatically."
            )
        autoscaling.check_settings(spec)
    elif spec.get("autoScaleFormula"):
        raise BatchError("InvalidAutoScalingSettings", "autoScaleFormula needs enableAutoScale.")


def _aim(world: World, pool: Pool, *, dedicated: int, low_priority: int, option: str) -> None:
    pool.target_dedicated, pool.target_low_priority = dedicated, low_priority
    pool.deallocation_option = option
    missing = [
        dedicated - len(_staying(pool, dedicated=True)),
        low_priority - len(_staying(pool, dedicated=False)),
    ]
    if missing == [0, 0]:
        _settle(world, pool)
        return
    pool.resize_errors = []
    _set_allocation(world, pool, AllocationState.RESIZING)
    for is_dedicated, difference in ((True, missing[0]), (False, missing[1])):
        if difference < 0:
            _shrink(world, pool, dedicated=is_dedicated, by=-difference, option=option)
    if max(missing) > 0:
        _restart_timer(pool, world, world.behaviour.allocation_seconds, lambda: _allocate(world, pool))
    else:
        _settle(world, pool)


def _staying(pool: Pool, *, dedicated: bool) -> list[Node]:
    return [node for node in pool.bucket(dedicated=dedicated) if not node.leaves_when_idle]


def _shrink(world: World, pool: Pool, *, dedicated: bool, by: int, option: str) -> None:
    # Nodes without work go first, as the service documents for its own choice of nodes.
    nodes = sorted(_staying(pool, dedicated=dedicated), key=lambda node: len(node.tasks))
    for node in nodes[:by]:
        _dismiss(world, node, option)


def _allocate(world: World, pool: Pool) -> None:
    if pool.failing_allocation is not None:
        code, message = pool.failing_allocation
        pool.resize_errors = [{"code": code, "message": message, "values": []}]
        _steady(world, pool)
        return
    for is_dedicated, target in ((True, pool.target_dedicated), (False, pool.target_low_priority)):
        nodes = pool.bucket(dedicated=is_dedicated)
        # A node that was to leave when idle is kept rather than replaced.
        for node in [node for node in nodes if node.leaves_when_idle]:
            if len(_staying(pool, dedicated=is_dedicated)) < target:
                node.leaves_when_idle = False
        for _ in range(target - len(_staying(pool, dedicated=is_dedicated))):
            _new_node(world, pool, dedicated=is_dedicated)
    _settle(world, pool)
    _schedule(world, pool)


def _new_node(world: World, pool: Pool, *, dedicated: bool) -> None:
    number = world.new_node_number()
    suffix = "d" if dedicated else "p"
    # The service's form: tvmps_ and a hash, then _d for dedicated and _p for low-priority nodes.
    node_id = f"tvmps_{number:064x}_{suffix}"
    node = Node(
        id=node_id,
        pool=pool,
        dedicated=dedicated,
        root=world.nodes_root / pool.id / node_id,
        ip_address=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        allocated=world.now(),
        state_since=world.now(),
        slots=pool.slots_per_node,
    )
    pool.nodes[node.id] = node
    _boot(world, node)


def _boot(world: World, node: Node) -> None:
    """Bring a node from creating over starting to idle, each in its share of the boot time."""
    _move(world, node, NodeState.CREATING)
    half = world.behaviour.boot_seconds / 2

    def starting() -> None:
        _move(world, node, NodeState.STARTING)
        node.timer = world.timers.after(half, lambda: _came_up(world, node))

    node.timer = world.timers.after(half, starting)


def _came_up(world: World, node: Node) -> None:
    node.timer = None
    node.last_boot = world.now()
    world.effects.prepare_node(node)
    _move(world, node, NodeState.IDLE)
    _schedule(world, node.pool)


def _dismiss(world: World, node: Node, option: str) -> None:
    if node.tasks and option == "taskcompletion":
        node.leaves_when_idle = True
        return
    _take_tasks(world, node, option)
    _leave(world, node)


def _take_tasks(world: World, node: Node, option: str) -> None:
    for task in list(node.tasks):
        if option == "terminate":
            task_rules.terminate(world, task)
        else:
            task_rules.requeue(world, task, counts=False)


def _leave(world: World, node: Node) -> None:
    """Take a node out of the pool: it is listed as leaving for a moment, with its files gone."""
    _cancel_timer(node)
    _move(world, node, NodeState.LEAVING_POOL)

    def gone() -> None:
        node.pool.nodes.pop(node.id, None)
        world.effects.remove_node(node)
        _settle(world, node.pool)

    world.timers.after(world.behaviour.allocation_seconds, gone)


def _settle(world: World, pool: Pool) -> None:
    """End a resize whose target is met."""
    if pool.allocation_state is AllocationState.STEADY:
        return
    met = len(pool.nodes) == pool.target_dedicated + pool.target_low_priority
    if met and len(pool.bucket(dedicated=True)) == pool.target_dedicated:
        _steady(world, pool)


def _steady(world: World, pool: Pool) -> None:
    if pool.resize_timer:
        pool.resize_timer.cancel()
        pool.resize_timer = None
    _set_allocation(world, pool, AllocationState.STEADY)


def _restart_timer(pool: Pool, world: World, seconds: float, action: Callable[[], None]) -> None:
    if pool.resize_timer:
        pool.resize_timer.cancel()
    pool.resize_timer = world.timers.after(seconds, action)


def _set_allocation(world: World, pool: Pool, state: AllocationState) -> None:
    if pool.allocation_state is not state:
        pool.allocation_state, pool.allocation_since = state, world.now()


def _move(world: World, node: Node, state: NodeState) -> None:
    node.state, node.state_since = state, world.now()


def _cancel_timer(node: Node) -> None:
    if node.timer:
        node.timer.cancel()
        node.timer = None


def _schedule(world: World, pool: Pool) -> None:
    scheduling.schedule(world, pool)
