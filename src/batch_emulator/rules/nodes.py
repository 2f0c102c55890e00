"""The life of a node: booting, its start task, losing and regaining it, leaving the pool.

A node's state is changed before its tasks are taken, so that the scheduler does not give them back to it.

Source: https://learn.microsoft.com/rest/api/batchservice/compute-node
"""

from __future__ import annotations

from collections.abc import Callable

from batch_emulator.errors import BatchError
from batch_emulator.rules import job_nodes, launching, pools, scheduling, side_tasks
from batch_emulator.rules import tasks as task_rules
from batch_emulator.rules.world import World
from batch_emulator.state import Json, Node, NodeState, Pool, SideTask, SideTaskState

_RESTARTABLE = {
    NodeState.IDLE,
    NodeState.RUNNING,
    NodeState.START_TASK_FAILED,
    NodeState.UNUSABLE,
    NodeState.OFFLINE,
    NodeState.WAITING_FOR_START_TASK,
}
# `retaineddata` waits for the retention of files too, which nothing here would use.
_WAITING_OPTIONS = {"taskcompletion", "retaineddata"}


def find(pool: Pool, node_id: str) -> Node:
    """Return a node by its id. Raises NodeNotFound."""
    node = pool.nodes.get(node_id.lower())
    if node is None:
        raise BatchError("NodeNotFound")
    return node


def add(world: World, pool: Pool, *, dedicated: bool) -> Node:
    """Give a pool a new node, which then boots."""
    number = world.next_number()
    # The service's form: tvmps_ and a hash, then _d for dedicated and _p for low-priority nodes.
    node_id = f"tvmps_{number:064x}_{'d' if dedicated else 'p'}"
    node = Node(
        id=node_id,
        sequence=number,
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
    return node


def preempt(world: World, node: Node) -> None:
    """Take a low-priority node away, as the service does for want of capacity; it comes back later."""
    if node.dedicated or node.state in {NodeState.PREEMPTED, NodeState.LEAVING_POOL}:
        raise BatchError(
            "OperationNotValidOnNode", "Only low-priority nodes that are there can be preempted."
        )
    _lose(world, node, NodeState.PREEMPTED, counts=world.behaviour.requeue_counts_preemption)
    if node.leaves_when_idle:
        leave(world, node)
        return
    node.timer = world.timers.after(world.behaviour.restore_seconds, lambda: _boot(world, node))


def make_unusable(world: World, node: Node, error: Json) -> None:
    """Break a node, as a fault: its tasks are queued again, and it stays broken until it is rebooted."""
    if node.state in {NodeState.PREEMPTED, NodeState.LEAVING_POOL, NodeState.UNUSABLE}:
        raise BatchError("OperationNotValidOnNode")
    node.errors.append(error)
    _lose(world, node, NodeState.UNUSABLE, counts=True)
    if node.leaves_when_idle:
        leave(world, node)


def reboot(world: World, node: Node, option: str, *, reimage: bool) -> None:
    """Restart a node (and with `reimage` make it anew): its tasks are queued again or ended first."""
    if node.state not in _RESTARTABLE:
        raise BatchError("OperationNotValidOnNode")

    def restart() -> None:
        _go_down(world, node, NodeState.REIMAGING if reimage else NodeState.REBOOTING, option, anew=reimage)
        node.timer = world.timers.after(world.behaviour.boot_seconds / 2, lambda: _came_up(world, node))

    _when_free(node, option, restart)


def deallocate(world: World, node: Node, option: str) -> None:
    """Give a node's machine back, but keep its place in the pool; its temporary disk is lost."""
    if node.state not in {NodeState.IDLE, NodeState.RUNNING}:
        raise BatchError("OperationNotValidOnNode", "Only idle and running nodes can be deallocated.")

    def gone() -> None:
        node.timer = None
        node.move(NodeState.DEALLOCATED, world.now())

    def stop() -> None:
        _go_down(world, node, NodeState.DEALLOCATING, option, anew=True)
        node.timer = world.timers.after(world.behaviour.allocation_seconds, gone)

    _when_free(node, option, stop)


def start(world: World, node: Node) -> None:
    """Start a node that was deallocated."""
    if node.state is not NodeState.DEALLOCATED:
        raise BatchError("OperationNotValidOnNode", "Only deallocated nodes can be started.")
    node.move(NodeState.STARTING, world.now())
    node.timer = world.timers.after(world.behaviour.boot_seconds, lambda: _came_up(world, node))


def set_scheduling(world: World, node: Node, *, enabled: bool, option: str = "requeue") -> None:
    """Let a node take tasks, or keep it from taking any (`offline` once it has none)."""
    if node.scheduling_enabled is enabled:
        raise BatchError("NodeAlreadyInTargetSchedulingState")
    node.scheduling_enabled = enabled
    if enabled:
        if node.state is NodeState.OFFLINE:
            node.move(NodeState.IDLE, world.now())
        scheduling.schedule(world, node.pool)
        return
    if option != "taskcompletion":
        _take_tasks(world, node, option)
    after_task(world, node)


def dismiss(world: World, node: Node, option: str) -> None:
    """Let a node leave its pool: after its tasks with `taskcompletion`, else now."""
    if node.state is NodeState.LEAVING_POOL:
        return
    if node.tasks and option in _WAITING_OPTIONS:
        node.leaves_when_idle = True
        return
    node.cancel_timer()
    node.move(NodeState.LEAVING_POOL, world.now())
    _take_tasks(world, node, option)
    leave(world, node)


def leave(world: World, node: Node) -> None:
    """Take a node without tasks out of its pool: it is listed as leaving for a moment, then it is gone."""
    node.cancel_timer()
    node.when_idle = None
    node.move(NodeState.LEAVING_POOL, world.now())
    side_tasks.abandon(world, node.start_task)
    job_nodes.node_left(world, world.account.jobs_of(node.pool), node)

    def gone() -> None:
        node.pool.nodes.pop(node.id, None)
        world.effects.remove_node(node)
        pools.settle(world, node.pool)

    world.timers.after(world.behaviour.allocation_seconds, gone)


def after_task(world: World, node: Node) -> None:
    """Follow up on a task that left a node: the node may leave, go offline, or take the next task."""
    if node.leaves_when_idle and not node.tasks and node.state is not NodeState.LEAVING_POOL:
        leave(world, node)
        pools.settle(world, node.pool)
    elif node.when_idle is not None and not node.tasks:
        node.when_idle()
    elif not node.scheduling_enabled and not node.tasks and node.state is NodeState.IDLE:
        node.move(NodeState.OFFLINE, world.now())
    scheduling.schedule(world, node.pool)


def _boot(world: World, node: Node) -> None:
    """Bring a node from creating over starting to idle, each in its share of the boot time."""
    node.move(NodeState.CREATING, world.now())
    half = world.behaviour.boot_seconds / 2

    def starting() -> None:
        node.move(NodeState.STARTING, world.now())
        node.timer = world.timers.after(half, lambda: _came_up(world, node))

    node.timer = world.timers.after(half, starting)


def _came_up(world: World, node: Node) -> None:
    node.timer = None
    node.last_boot = world.now()
    world.effects.prepare_node(node)
    spec: Json | None = node.pool.spec.get("startTask")
    if spec is None:
        _ready(world, node)
        return
    waits = bool(spec.get("waitForSuccess", True))
    launch = launching.start_task_launch(world, node, spec)
    node.start_task = side_tasks.begin(
        world, node, spec, launch, lambda side: _start_task_ended(world, node, side, waited=waits)
    )
    if waits:
        node.move(NodeState.WAITING_FOR_START_TASK, world.now())
    else:
        _ready(world, node)


def _start_task_ended(world: World, node: Node, side: SideTask, *, waited: bool) -> None:
    if not waited or node.state is not NodeState.WAITING_FOR_START_TASK:
        return
    if side.succeeded:
        _ready(world, node)
    else:
        node.move(NodeState.START_TASK_FAILED, world.now())


def _ready(world: World, node: Node) -> None:
    node.move(NodeState.IDLE, world.now())
    after_task(world, node)


def _when_free(node: Node, option: str, action: Callable[[], None]) -> None:
    """Do something to a node now, or once its tasks have completed; it takes no new ones until then."""
    if node.tasks and option in _WAITING_OPTIONS:
        node.when_idle = action
    else:
        action()


def _go_down(world: World, node: Node, state: NodeState, option: str, *, anew: bool) -> None:
    node.cancel_timer()
    node.when_idle = None
    node.move(state, world.now())
    _take_tasks(world, node, option)
    _restart(world, node, anew=anew)
    node.errors.clear()
    scheduling.schedule(world, node.pool)


def _lose(world: World, node: Node, state: NodeState, *, counts: bool) -> None:
    node.cancel_timer()
    node.when_idle = None
    node.move(state, world.now())
    for task in list(node.tasks):
        # What becomes of one task may have taken others along, by the rules of its job.
        if task.node is node:
            task_rules.requeue(world, task, counts=counts)
    _restart(world, node, anew=True)
    scheduling.schedule(world, node.pool)


def _restart(world: World, node: Node, *, anew: bool) -> None:
    """End what is not a task on a node that goes down; `anew` deletes its files too."""
    side_tasks.abandon(world, node.start_task)
    if node.start_task is not None and node.start_task.state is SideTaskState.RUNNING:
        node.start_task = None
    job_nodes.node_restarts(world, world.account.jobs_of(node.pool), node, anew=anew)
    if anew:
        node.users.clear()
        world.effects.remove_node(node)


def _take_tasks(world: World, node: Node, option: str) -> None:
    for task in list(node.tasks):
        if task.node is not node:
            continue  # it went along with another one, by the rules of their job
        if option == "terminate":
            task_rules.terminate(world, task)
            if task.node is not None:
                # The node goes now, whether or not the run has come to its end.
                task_rules.requeue(world, task, counts=False)
        else:
            task_rules.requeue(world, task, counts=False)
