"""Operations on pools."""

from __future__ import annotations

from batch_emulator.routes.listing import list_answer, one_answer, sequenced, start_after
from batch_emulator.routes.registry import Answer, Call, registry
from batch_emulator.routes.render import count_nodes, pool_json
from batch_emulator.routes.tasks import refuse_unsupported, refuse_unsupported_task
from batch_emulator.rules import autoscaling, pools
from batch_emulator.state import Json

_STRICT_NO = (
    ("mountConfiguration", "File systems are not mounted."),
    ("applicationPackageReferences", "Application packages are not deployed."),
)
_STRICT_NO_OF_MACHINES = (("extensions", "Extensions of virtual machines are not installed."),)


def refuse_unsupported_pool(spec: Json) -> None:
    """Refuse what this emulator would have to ignore in a pool."""
    refuse_unsupported(spec, _STRICT_NO)
    refuse_unsupported(spec.get("virtualMachineConfiguration") or {}, _STRICT_NO_OF_MACHINES)
    if spec.get("startTask"):
        refuse_unsupported_task(spec["startTask"])


@registry.operation("POST", "/pools")
def create_pool(call: Call) -> Answer:
    """Create a pool."""
    spec = call.body("BatchPoolCreateOptions")
    refuse_unsupported_pool(spec)
    pool = pools.add(call.world, spec)
    return Answer(201, resource=pool, headers={"Location": f"{call.world.url}/pools/{pool.id}"})


@registry.operation("GET", "/pools")
def list_pools(call: Call) -> Answer:
    """List the pools."""
    items = sequenced(call.world.account.pools.values(), start_after(call))
    return list_answer(call, "pools", items, lambda pool: pool_json(call.world, pool))


@registry.operation("GET", "/pools/{poolId}")
def get_pool(call: Call) -> Answer:
    """Get a pool."""
    pool = call.pool
    return Answer(body=one_answer(call, "pools", pool_json(call.world, pool)), resource=pool)


@registry.operation("HEAD", "/pools/{poolId}")
def pool_exists(call: Call) -> Answer:
    """Tell whether a pool exists."""
    return Answer(resource=call.pool)


@registry.operation("DELETE", "/pools/{poolId}")
def delete_pool(call: Call) -> Answer:
    """Delete a pool; its tasks are queued again."""
    pools.delete(call.world, call.pool)
    return Answer(202)


@registry.operation("PATCH", "/pools/{poolId}")
def update_pool(call: Call) -> Answer:
    """Change some properties of a pool."""
    pool = call.pool
    pools.require_active(pool)
    changes = call.body("BatchPoolUpdateOptions")
    refuse_unsupported_pool(changes)
    pool.spec = {**pool.spec, **changes}
    pool.etag, pool.last_modified = call.world.new_etag(), call.world.now()
    return Answer(200, resource=pool)


@registry.operation("POST", "/pools/{poolId}/updateproperties")
def replace_pool_properties(call: Call) -> Answer:
    """Replace the properties of a pool that can be replaced."""
    pool = call.pool
    pools.require_active(pool)
    changes = call.body("BatchPoolReplaceOptions")
    refuse_unsupported_pool(changes)
    pool.spec.pop("metadata", None)
    pool.spec = {**pool.spec, **changes}
    pool.etag, pool.last_modified = call.world.new_etag(), call.world.now()
    return Answer(204, resource=pool)


@registry.operation("POST", "/pools/{poolId}/resize")
def resize_pool(call: Call) -> Answer:
    """Change the size of a fixed pool."""
    pool = call.pool
    pools.resize(call.world, pool, call.body("BatchPoolResizeOptions"))
    return Answer(202, resource=pool)


@registry.operation("POST", "/pools/{poolId}/stopresize")
def stop_pool_resize(call: Call) -> Answer:
    """Stop a resize in progress."""
    pool = call.pool
    pools.stop_resize(call.world, pool)
    return Answer(202, resource=pool)


@registry.operation("POST", "/pools/{poolId}/removenodes")
def remove_nodes(call: Call) -> Answer:
    """Remove named nodes from a pool."""
    pool, request = call.pool, call.body("BatchNodeRemoveOptions")
    option = str(request.get("nodeDeallocationOption", "requeue")).lower()
    pools.remove_nodes(call.world, pool, list(request["nodeList"]), option)
    return Answer(202, resource=pool)


@registry.operation("POST", "/pools/{poolId}/enableautoscale")
def enable_pool_auto_scale(call: Call) -> Answer:
    """Let a formula set the size of a pool."""
    pool = call.pool
    autoscaling.enable(call.world, pool, call.optional_body("BatchPoolEnableAutoScaleOptions"))
    return Answer(200, resource=pool)


@registry.operation("POST", "/pools/{poolId}/disableautoscale")
def disable_pool_auto_scale(call: Call) -> Answer:
    """Keep the present size of a pool."""
    pool = call.pool
    autoscaling.disable(call.world, pool)
    return Answer(200, resource=pool)


@registry.operation("POST", "/pools/{poolId}/evaluateautoscale")
def evaluate_pool_auto_scale(call: Call) -> Answer:
    """Evaluate a formula without acting on it."""
    request = call.body("BatchPoolEvaluateAutoScaleOptions")
    run = autoscaling.try_formula(call.world, call.pool, request["autoScaleFormula"])
    return Answer(body={"odata.metadata": f"{call.world.url}/$metadata#autoScaleRun", **run})


@registry.operation("GET", "/nodecounts")
def list_pool_node_counts(call: Call) -> Answer:
    """Count the nodes of every pool by state."""
    items = sequenced(call.world.account.pools.values(), start_after(call))
    return list_answer(
        call,
        "poolnodecounts",
        items,
        lambda pool: {
            "poolId": pool.id,
            "dedicated": count_nodes(pool, dedicated=True),
            "lowPriority": count_nodes(pool, dedicated=False),
        },
    )
