"""Users that clients add to a node to log in: records only, for nobody can log in to a simulated node.

Source: https://learn.microsoft.com/rest/api/batchservice/compute-node/add-user
"""

from __future__ import annotations

from datetime import timedelta

from batch_emulator.errors import BatchError, invalid_property
from batch_emulator.rules.world import World
from batch_emulator.state import Json, Node, NodeState
from batch_emulator.wire.times import format_time, parse_time

_UP = {NodeState.IDLE, NodeState.RUNNING, NodeState.OFFLINE, NodeState.START_TASK_FAILED}
_STANDARD_LIFE = timedelta(days=1)


def add(world: World, node: Node, spec: Json) -> None:
    """Add a user, who expires after a day unless the request says when. The password is not kept."""
    if node.state not in _UP:
        raise BatchError("OperationNotValidOnNode", "Users can be added only to a node that is up.")
    if not spec["name"]:
        raise invalid_property("name", "A user needs a name.")
    if spec["name"] in _present(world, node):
        raise BatchError("NodeUserExists")
    node.users[spec["name"]] = {
        "isAdmin": spec.get("isAdmin", False),
        "expiryTime": _expiry(world, spec),
    }


def replace(world: World, node: Node, name: str, spec: Json) -> None:
    """Give a user another password or key, and another expiry."""
    user = _present(world, node).get(name)
    if user is None:
        raise BatchError("NodeUserNotFound")
    user["expiryTime"] = _expiry(world, spec)


def delete(world: World, node: Node, name: str) -> None:
    """Remove a user."""
    if name not in _present(world, node):
        raise BatchError("NodeUserNotFound")
    del node.users[name]


def _present(world: World, node: Node) -> dict[str, Json]:
    """Return the users that have not expired."""
    for name in [name for name, user in node.users.items() if parse_time(user["expiryTime"]) <= world.now()]:
        del node.users[name]
    return node.users


def _expiry(world: World, spec: Json) -> str:
    text: str | None = spec.get("expiryTime")
    if text is None:
        return format_time(world.now() + _STANDARD_LIFE)
    if parse_time(text) <= world.now():
        raise invalid_property("expiryTime", "It must be in the future.", text)
    return text
