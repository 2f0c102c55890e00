"""Operations on compute nodes."""

from __future__ import annotations

from batch_emulator.routes.listing import list_answer, one_answer, sequenced, start_after
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.routes.render import node_json
from batch_emulator.rules import nodes


@registry.operation("GET", "/pools/{poolId}/nodes")
def list_nodes(call: Call) -> Answer:
    """List the nodes of a pool."""
    items = sequenced(call.pool.nodes.values(), start_after(call))
    return list_answer(call, "nodes", items, lambda node: node_json(call.world, node))


@registry.operation("GET", "/pools/{poolId}/nodes/{nodeId}")
def get_node(call: Call) -> Answer:
    """Get a node."""
    return Answer(body=one_answer(call, "nodes", node_json(call.world, call.node)))


@registry.operation("POST", "/pools/{poolId}/nodes/{nodeId}/reboot")
def reboot_node(call: Call) -> Answer:
    """Restart a node."""
    option = str(call.optional_body("BatchNodeRebootOptions").get("nodeRebootOption", "requeue")).lower()
    nodes.reboot(call.world, call.node, option, reimage=False)
    return Answer(202)


@registry.operation("POST", "/pools/{poolId}/nodes/{nodeId}/reimage")
def reimage_node(call: Call) -> Answer:
    """Make a node anew."""
    option = str(call.optional_body("BatchNodeReimageOptions").get("nodeReimageOption", "requeue")).lower()
    nodes.reboot(call.world, call.node, option, reimage=True)
    return Answer(202)


@registry.operation("POST", "/pools/{poolId}/nodes/{nodeId}/disablescheduling")
def disable_node_scheduling(call: Call) -> Answer:
    """Keep a node from taking tasks."""
    request = call.optional_body("BatchNodeDisableSchedulingOptions")
    option = str(request.get("nodeDisableSchedulingOption", "requeue")).lower()
    nodes.set_scheduling(call.world, call.node, enabled=False, option=option)
    return Answer(200)


@registry.operation("POST", "/pools/{poolId}/nodes/{nodeId}/enablescheduling")
def enable_node_scheduling(call: Call) -> Answer:
    """Let a node take tasks again."""
    nodes.set_scheduling(call.world, call.node, enabled=True)
    return Answer(200)
