"""The autoscale formula of our pools, by which Azure Batch itself sets their number of nodes."""

from __future__ import annotations

from typing import Final, Literal

from hastegeo.errors import ConfigurationError

NodeType = Literal["dedicated", "low_priority"]

DEFAULT_WINDOW_SECONDS: Final = 120

# A sample is visible to a formula about a minute after it was taken, so a shorter window would see none.
_SHORTEST_WINDOW_SECONDS: Final = 90
_LONGEST_WINDOW_SECONDS: Final = 3600

_TARGETS: Final[dict[NodeType, tuple[str, str]]] = {
    "dedicated": ("$TargetDedicatedNodes", "$TargetLowPriorityNodes"),
    "low_priority": ("$TargetLowPriorityNodes", "$TargetDedicatedNodes"),
}

_FORMULA: Final = """\
// One node for each task that waits or runs. Without samples the size stays as it is.
window = {window} * TimeInterval_Second;
seen = $PendingTasks.GetSamplePercent(window);
queued = seen > 0 ? max(0, $ActiveTasks.GetSample(1)) : 0;
running = seen > 0 ? max(0, $RunningTasks.GetSample(1)) : 0;
pendingTasks = queued + running;
needed = seen > 0 ? max(pendingTasks, $PendingTasks.GetSample(window, seen / 2)) : {used};
// A preempted node keeps its place in the pool and runs nothing, so it needs one beside it.
preempted = seen > 0 && needed > 0 ? max(0, $PreemptedNodeCount.GetSample(1)) : 0;
target = max({min_nodes}, min({max_nodes}, needed + preempted));
{used} = target;
{unused} = 0;
$NodeDeallocationOption = taskcompletion;
"""


def pool_formula(
    *, min_nodes: int, max_nodes: int, node_type: NodeType, window_seconds: int = DEFAULT_WINDOW_SECONDS
) -> str:
    """Write the formula of a pool that holds `min_nodes` to `max_nodes` nodes of one type, one task each.

    It asks for as many nodes as there were tasks, waiting and running, at the busiest sample of the last
    `window_seconds`, and one more for each preempted node while there are tasks. So a first task is seen as
    soon as one sample shows it, and a pool shrinks when a whole window was quiet, but never below the tasks
    that run: `taskcompletion` lets those finish. Nodes of the other type are set to none.

    The variables `queued`, `running` and `pendingTasks` (newest sample) and `target` stay in the results of
    the run, where the capacity snapshot reads them.

    Raises `ConfigurationError` for numbers of nodes that are no range, or a window that could see no sample.
    """
    if not 0 <= min_nodes <= max_nodes:
        raise ConfigurationError(
            f"A pool cannot hold from {min_nodes} to {max_nodes} nodes.",
            hint="Give a minimum of 0 or more, and a maximum that is not below it.",
        )
    if not _SHORTEST_WINDOW_SECONDS <= window_seconds <= _LONGEST_WINDOW_SECONDS:
        raise ConfigurationError(
            f"A window of {window_seconds} seconds cannot be used to scale a pool.",
            hint=f"Give {_SHORTEST_WINDOW_SECONDS} to {_LONGEST_WINDOW_SECONDS} seconds.",
        )
    used, unused = _TARGETS[node_type]
    return _FORMULA.format(
        window=window_seconds, used=used, unused=unused, min_nodes=min_nodes, max_nodes=max_nodes
    )
