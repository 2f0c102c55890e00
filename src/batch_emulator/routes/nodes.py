"""Operations on compute nodes."""

from __future__ import annotations

from urllib.parse import quote

from batch_emulator.errors import BatchError
from batch_emulator.routes.listing import list_answer, one_answer, sequenced, start_after
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.routes.render import node_json
from batch_emulator.rules import node_users, nodes


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


@registry.operation("POST", "/pools/{poolId}/nodes/{nodeId}/deallocate")
def deallocate_node(call: Call) -> Answer:
    """Give a node's machine back, but keep its place in the pool."""
    request = call.optional_body("BatchNodeDeallocateOptions")
    option = str(request.get("nodeDeallocateOption", "requeue")).lower()
    nodes.deallocate(call.world, call.node, option)
    return Answer(202)


@registry.operation("POST", "/pools/{poolId}/nodes/{nodeId}/start")
def start_node(call: Call) -> Answer:
    """Start a node that was deallocated."""
    nodes.start(call.world, call.node)
    return Answer(202)


@registry.operation("GET", "/pools/{poolId}/nodes/{nodeId}/extensions", note="Nodes have no extensions.")
def list_node_extensions(call: Call) -> Answer:
    """List the extensions of a node: none, for pools that ask for some are refused."""
    call.node  # noqa: B018 - a node that does not exist is an error
    return list_answer(call, "extensions", (), lambda extension: extension)


@registry.operation(
    "GET", "/pools/{poolId}/nodes/{nodeId}/extensions/{extensionName}", note="Nodes have no extensions."
)
def get_node_extension(call: Call) -> Answer:
    """Answer that there is no such extension."""
    call.node  # noqa: B018 - a node that does not exist is an error
    raise BatchError("NodeExtensionNotFound")


_NO_LOGIN = "Users are kept as records; nobody can log in to a simulated node."


@registry.operation(
    "GET",
    "/pools/{poolId}/nodes/{nodeId}/remoteloginsettings",
    note="The address is the node's name for itself; nothing listens there.",
)
def get_node_remote_login_settings(call: Call) -> Answer:
    """Tell where SSH would listen."""
    return Answer(
        body={
            "odata.metadata": f"{call.world.url}/$metadata#remoteloginsettings/@Element",
            "remoteLoginIPAddress": call.node.ip_address,
            "remoteLoginPort": 22,
        }
    )


@registry.operation("POST", "/pools/{poolId}/nodes/{nodeId}/users", note=_NO_LOGIN)
def create_node_user(call: Call) -> Answer:
    """Add a user to a node."""
    node, spec = call.node, call.body("BatchNodeUserCreateOptions")
    node_users.add(call.world, node, spec)
    location = f"{call.world.url}/pools/{node.pool.id}/nodes/{node.id}/users/{quote(spec['name'], safe='')}"
    return Answer(201, headers={"Location": location})


@registry.operation("PUT", "/pools/{poolId}/nodes/{nodeId}/users/{userName}", note=_NO_LOGIN)
def replace_node_user(call: Call) -> Answer:
    """Change a user of a node."""
    spec = call.body("BatchNodeUserReplaceOptions")
    node_users.replace(call.world, call.node, call.path["userName"], spec)
    return Answer(200)


@registry.operation("DELETE", "/pools/{poolId}/nodes/{nodeId}/users/{userName}", note=_NO_LOGIN)
def delete_node_user(call: Call) -> Answer:
    """Remove a user from a node."""
    node_users.delete(call.world, call.node, call.path["userName"])
    return Answer(200)
