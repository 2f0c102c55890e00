"""Pools: creating, resizing and deleting them, and the errors of resizes.

Source: https://learn.microsoft.com/rest/api/batchservice/pool
"""

from __future__ import annotations

from batch_emulator.errors import BatchError, invalid_property
from batch_emulator.rules import autoscaling, nodes, quotas, scheduling
from batch_emulator.rules.world import World
from batch_emulator.state import AllocationState, Json, Pool, PoolState, key
from batch_emulator.wire.durations import parse_duration

_MOST_REMOVED_A_CALL = 100
_DEFAULT_RESIZE_SECONDS = 15 * 60.0
_SHORTEST_RESIZE_SECONDS = 5 * 60.0


def add(world: World, spec: Json) -> Pool:
    """Create a pool, and start to bring it to its size."""
    if key(spec["id"]) in world.account.pools:
        raise BatchError("PoolExists")
    quotas.check_pool(world, spec)
    _check_scale_settings(spec)
    _check_resize_timeout(spec)
    now = world.now()
    pool = Pool(
        id=spec["id"],
        sequence=world.next_number(),
        spec=spec,
        created=now,
        last_modified=now,
        state_since=now,
        allocation_since=now,
        etag=world.new_etag(),
    )
    world.account.pools[key(pool.id)] = pool
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
    dedicated, low_priority = request.get("targetDedicatedNodes"), request.get("targetLowPriorityNodes")
    if dedicated is None and low_priority is None:
        raise BatchError("MissingRequiredProperty", values=(("PropertyName", "targetDedicatedNodes"),))
    _check_resize_timeout(request)
    if "resizeTimeout" in request:
        pool.spec["resizeTimeout"] = request["resizeTimeout"]
    _aim(
        world,
        pool,
        dedicated=pool.target_dedicated if dedicated is None else _target(dedicated),
        low_priority=pool.target_low_priority if low_priority is None else _target(low_priority),
        option=str(request.get("nodeDeallocationOption", "requeue")).lower(),
    )


def scale_to(world: World, pool: Pool, *, dedicated: int, low_priority: int, option: str) -> None:
    """Bring a pool to the targets that its formula gave. A resize in progress is given the new aim.

    But while nodes are waited for that leave once their tasks have completed, the pool keeps its aim: so does
    the service, and a formula with `taskcompletion` has to live with it.
    """
    waits = pool.allocation_state is AllocationState.RESIZING and any(
        node.leaves_when_idle for node in pool.nodes.values()
    )
    if pool.state is PoolState.ACTIVE and not waits:
        _aim(world, pool, dedicated=dedicated, low_priority=low_priority, option=option)


def stop_resize(world: World, pool: Pool) -> None:
    """Stop a resize: what the pool has now becomes its target."""
    require_active(pool)
    if pool.allocation_state is not AllocationState.RESIZING:
        raise BatchError("OperationInvalidForCurrentState")
    pool.target_dedicated = len(pool.staying(dedicated=True))
    pool.target_low_priority = len(pool.staying(dedicated=False))
    message = "Desired number of nodes could not be allocated as the resize was stopped"
    _give_up(world, pool, [_resize_error("ResizeStopped", message)])


def remove_nodes(world: World, pool: Pool, node_ids: list[str], option: str) -> None:
    """Remove named nodes; the target shrinks with them."""
    require_active(pool)
    if pool.allocation_state is not AllocationState.STEADY:
        raise BatchError("PoolBeingResized")
    if not node_ids or len(node_ids) > _MOST_REMOVED_A_CALL:
        raise BatchError("OutOfRangeInput", "Name 1 to 100 nodes.")
    leaving = list(dict.fromkeys(nodes.find(pool, node_id) for node_id in node_ids))
    _begin_resize(world, pool)
    for node in leaving:
        if node.dedicated:
            pool.target_dedicated = max(0, pool.target_dedicated - 1)
        else:
            pool.target_low_priority = max(0, pool.target_low_priority - 1)
        nodes.dismiss(world, node, option)
    settle(world, pool)


def delete(world: World, pool: Pool) -> None:
    """Delete a pool: its tasks are queued again, and wait for a pool of that id."""
    require_active(pool)
    pool.state, pool.state_since = PoolState.DELETING, world.now()
    autoscaling.stop(pool)
    _cancel_timers(pool)
    for node in list(pool.nodes.values()):
        nodes.dismiss(world, node, "requeue")

    def gone() -> None:
        del world.account.pools[key(pool.id)]

    world.timers.after(world.behaviour.allocation_seconds, gone)


def require_active(pool: Pool) -> None:
    """Raise PoolBeingDeleted for a pool that is on its way out."""
    if pool.state is PoolState.DELETING:
        raise BatchError("PoolBeingDeleted")


def settle(world: World, pool: Pool) -> None:
    """End a resize whose target is met."""
    if pool.allocation_state is not AllocationState.RESIZING or pool.state is not PoolState.ACTIVE:
        return
    leaving = any(node.leaves_when_idle for node in pool.nodes.values())
    wanted = pool.target_dedicated, pool.target_low_priority
    present = len(pool.bucket(dedicated=True)), len(pool.bucket(dedicated=False))
    if present == wanted and not leaving and len(pool.nodes) == sum(wanted):
        _steady(world, pool)


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
    for name in fixed:
        _target(spec[name])


def _check_resize_timeout(request: Json) -> None:
    text = request.get("resizeTimeout")
    if text is not None and parse_duration(text).total_seconds() < _SHORTEST_RESIZE_SECONDS:
        raise invalid_property("resizeTimeout", "The timeout must be at least 5 minutes.", text)


def _target(number: int) -> int:
    if number < 0:
        raise BatchError("OutOfRangeInput", "A number of nodes cannot be below zero.")
    return number


def _aim(world: World, pool: Pool, *, dedicated: int, low_priority: int, option: str) -> None:
    pool.target_dedicated, pool.target_low_priority = dedicated, low_priority
    missing = {
        True: dedicated - len(pool.staying(dedicated=True)),
        False: low_priority - len(pool.staying(dedicated=False)),
    }
    if not any(missing.values()):
        settle(world, pool)
        return
    _begin_resize(world, pool)
    for is_dedicated, difference in missing.items():
        if difference < 0:
            _shrink(world, pool, dedicated=is_dedicated, by=-difference, option=option)
    if max(missing.values()) > 0:
        if pool.allocation_timer:
            pool.allocation_timer.cancel()
        pool.allocation_timer = world.timers.after(
            world.behaviour.allocation_seconds, lambda: _allocate(world, pool)
        )
    settle(world, pool)


def _begin_resize(world: World, pool: Pool) -> None:
    pool.resize_errors = []
    pool.move_allocation(AllocationState.RESIZING, world.now())
    if pool.deadline_timer:
        pool.deadline_timer.cancel()
    text = pool.spec.get("resizeTimeout")
    seconds = parse_duration(text).total_seconds() if text else _DEFAULT_RESIZE_SECONDS
    pool.deadline_timer = world.timers.after(seconds, lambda: _time_out(world, pool))


def _time_out(world: World, pool: Pool) -> None:
    message = "Desired number of nodes could not be allocated as the resize timeout was reached"
    _give_up(world, pool, [_resize_error("AllocationTimedout", message)])


def _give_up(world: World, pool: Pool, errors: list[Json]) -> None:
    """End a resize that has not met its target."""
    pool.resize_errors = errors
    _steady(world, pool)


def _resize_error(code: str, message: str) -> Json:
    return {"code": code, "message": message, "values": []}


def _shrink(world: World, pool: Pool, *, dedicated: bool, by: int, option: str) -> None:
    # Nodes without work go first, as the service documents for its own choice of nodes.
    for node in sorted(pool.staying(dedicated=dedicated), key=lambda node: len(node.tasks))[:by]:
        nodes.dismiss(world, node, option)


def _allocate(world: World, pool: Pool) -> None:
    pool.allocation_timer = None
    if pool.failing_allocation is not None:
        code, message = pool.failing_allocation
        _give_up(world, pool, [_resize_error(code, message)])
        return
    errors: list[Json] = []
    for is_dedicated, target in ((True, pool.target_dedicated), (False, pool.target_low_priority)):
        # A node that was to leave when idle is kept rather than replaced.
        for node in pool.bucket(dedicated=is_dedicated):
            if node.leaves_when_idle and len(pool.staying(dedicated=is_dedicated)) < target:
                node.leaves_when_idle = False
        missing = target - len(pool.staying(dedicated=is_dedicated))
        left = quotas.nodes_left(world, pool, dedicated=is_dedicated)
        for _ in range(missing if left is None else min(missing, left)):
            nodes.add(world, pool, dedicated=is_dedicated)
        if left is not None and left < missing:
            errors.append(quotas.core_error(dedicated=is_dedicated))
    if errors:
        _give_up(world, pool, errors)
    settle(world, pool)
    scheduling.schedule(world, pool)


def _steady(world: World, pool: Pool) -> None:
    _cancel_timers(pool)
    pool.move_allocation(AllocationState.STEADY, world.now())


def _cancel_timers(pool: Pool) -> None:
    for timer in (pool.allocation_timer, pool.deadline_timer):
        if timer:
            timer.cancel()
    pool.allocation_timer = pool.deadline_timer = None
