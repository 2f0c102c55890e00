"""Faults on demand, below `/emulator`: not part of Azure Batch, for those who test against it."""

from __future__ import annotations

from batch_emulator.errors import BatchError, invalid_property
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.rules import nodes
from batch_emulator.state import NodeState


@registry.operation("POST", "/emulator/pools/{poolId}/nodes/{nodeId}/preempt")
def preempt_node(call: Call) -> Answer:
    """Preempt one low-priority node."""
    nodes.preempt(call.world, call.node)
    return Answer(202)


@registry.operation("POST", "/emulator/pools/{poolId}/preempt")
def preempt_pool(call: Call) -> Answer:
    """Preempt every low-priority node of a pool."""
    for node in list(call.pool.nodes.values()):
        if not node.dedicated and node.state not in {NodeState.PREEMPTED, NodeState.LEAVING_POOL}:
            nodes.preempt(call.world, node)
    return Answer(202)


@registry.operation("PUT", "/emulator/pools/{poolId}/allocationfailure")
def fail_allocation(call: Call) -> Answer:
    """Let every allocation of a pool fail: `{"code": "AllocationFailed", "message": "…"}`."""
    body = call.json
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise invalid_property("code", "A resize error code is expected, such as AllocationFailed.")
    call.pool.failing_allocation = (body["code"], str(body.get("message", "Allocation failed on demand.")))
    return Answer(200)


@registry.operation("DELETE", "/emulator/pools/{poolId}/allocationfailure")
def mend_allocation(call: Call) -> Answer:
    """Let allocations of a pool succeed again."""
    if call.pool.failing_allocation is None:
        raise BatchError("ResourceNotFound", "Allocations of this pool do not fail.")
    call.pool.failing_allocation = None
    return Answer(200)
