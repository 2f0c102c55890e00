"""Pools that scale themselves: samples every 30 seconds, and the formula every interval.

Source: https://learn.microsoft.com/azure/batch/batch-automatic-scaling
"""

from __future__ import annotations

from typing import Any

from batch_emulator.autoscale import (
    AutoScaleFormulaSyntaxError,
    AutoScaleResult,
    CurrentTargets,
    MetricStore,
    evaluate,
    parse,
)
from batch_emulator.errors import BatchError
from batch_emulator.rules import pools
from batch_emulator.rules.world import World
from batch_emulator.state import Json, NodeState, Pool, PoolState
from batch_emulator.wire.durations import parse_duration
from batch_emulator.wire.times import format_time

_SAMPLE_SECONDS = 30.0
_DEFAULT_INTERVAL_SECONDS = 15 * 60.0
_SHORTEST_INTERVAL_SECONDS = 5 * 60.0
_LONGEST_INTERVAL_SECONDS = 168 * 3600.0
_ENABLE_PAUSE_SECONDS = 30.0


def check_settings(settings: Json) -> None:
    """Check a formula's syntax and its interval."""
    try:
        parse(settings["autoScaleFormula"])
    except AutoScaleFormulaSyntaxError as error:
        raise BatchError("AutoScalingFormulaSyntaxError", str(error)) from None
    seconds = _interval_seconds(settings)
    if not _SHORTEST_INTERVAL_SECONDS <= seconds <= _LONGEST_INTERVAL_SECONDS:
        raise BatchError(
            "InvalidPropertyValue",
            values=(
                ("PropertyName", "autoScaleEvaluationInterval"),
                ("Reason", "The interval must be from 5 minutes to 168 hours."),
            ),
        )


def start(world: World, pool: Pool) -> None:
    """Begin to sample and to evaluate; the first evaluation is at once."""
    stop(pool)
    pool.auto_scale_enabled_at = world.clock.service_seconds()
    if pool.metrics is None:
        pool.metrics = MetricStore()
        _sample(world, pool)
    _evaluate_and_repeat(world, pool)


def stop(pool: Pool) -> None:
    """Evaluate no more."""
    if pool.auto_scale_timer:
        pool.auto_scale_timer.cancel()
        pool.auto_scale_timer = None


def enable(world: World, pool: Pool, request: Json) -> None:
    """Let a formula set the targets from now on, or change the formula."""
    pools.require_active(pool)
    if not pool.autoscales and not request.get("autoScaleFormula"):
        raise BatchError("MissingRequiredProperty", values=(("PropertyName", "autoScaleFormula"),))
    last = pool.auto_scale_enabled_at
    if last is not None and world.clock.service_seconds() - last < _ENABLE_PAUSE_SECONDS:
        raise BatchError("TooManyEnableAutoScaleRequests")
    settings = {**pool.spec, **request}
    check_settings(settings)
    pool.spec = {**settings, "enableAutoScale": True}
    pool.etag, pool.last_modified = world.new_etag(), world.now()
    start(world, pool)


def disable(world: World, pool: Pool) -> None:
    """Keep the present size as the fixed target."""
    pools.require_active(pool)
    stop(pool)
    for name in ("autoScaleFormula", "autoScaleEvaluationInterval"):
        pool.spec.pop(name, None)
    pool.spec["enableAutoScale"] = False
    pool.etag, pool.last_modified = world.new_etag(), world.now()


def try_formula(world: World, pool: Pool, formula: str) -> Json:
    """Evaluate a formula for a pool without acting on it. The pool must scale itself."""
    pools.require_active(pool)
    if not pool.autoscales:
        raise BatchError("PoolNotEligibleForOperation", "Automatic scaling is not enabled on the pool.")
    return _run_json(world, _evaluate(world, pool, formula))


def measure(world: World, pool: Pool) -> dict[str, float]:
    """Return what a pool's samples hold at this moment."""
    tallies = [job.tally for job in world.account.jobs_of(pool)]
    active = sum(tally.active.tasks for tally in tallies)
    running = sum(tally.running.tasks for tally in tallies)
    usable = {NodeState.IDLE, NodeState.RUNNING}
    return {
        "$ActiveTasks": float(active),
        "$RunningTasks": float(running),
        "$PendingTasks": float(active + running),
        "$SucceededTasks": float(pool.succeeded_tasks),
        "$FailedTasks": float(pool.failed_tasks),
        "$CurrentDedicatedNodes": float(len(pool.bucket(dedicated=True))),
        "$CurrentLowPriorityNodes": float(len(pool.bucket(dedicated=False))),
        "$PreemptedNodeCount": float(sum(n.state is NodeState.PREEMPTED for n in pool.nodes.values())),
        "$UsableNodeCount": float(sum(n.state in usable for n in pool.nodes.values())),
        "$TaskSlotsPerNode": float(pool.slots_per_node),
    }


def _sample(world: World, pool: Pool) -> None:
    if pool.state is not PoolState.ACTIVE or pool.metrics is None:
        return
    pool.metrics.record(world.clock.service_now(), measure(world, pool))
    world.timers.after(_SAMPLE_SECONDS, lambda: _sample(world, pool))


def _evaluate_and_repeat(world: World, pool: Pool) -> None:
    result = _evaluate(world, pool, pool.spec["autoScaleFormula"])
    pool.auto_scale_run = _run_json(world, result)
    pool.auto_scale_timer = world.timers.after(
        _interval_seconds(pool.spec), lambda: _evaluate_and_repeat(world, pool)
    )
    if result.error is None:
        pools.scale_to(
            world,
            pool,
            dedicated=result.target_dedicated,
            low_priority=result.target_low_priority,
            option=result.node_deallocation_option,
        )


def _evaluate(world: World, pool: Pool, formula: str) -> AutoScaleResult:
    return evaluate(
        formula,
        metrics=pool.metrics or MetricStore(),
        now=world.clock.service_now(),
        current=CurrentTargets(dedicated=pool.target_dedicated, low_priority=pool.target_low_priority),
    )


def _run_json(world: World, result: AutoScaleResult) -> Json:
    run: dict[str, Any] = {"timestamp": format_time(world.now()), "results": result.results}
    if result.error is not None:
        run["error"] = {
            "code": result.error.code,
            "message": result.error.message,
            "values": [{"name": name, "value": value} for name, value in result.error.values],
        }
    return run


def _interval_seconds(settings: Json) -> float:
    text = settings.get("autoScaleEvaluationInterval")
    return parse_duration(text).total_seconds() if text else _DEFAULT_INTERVAL_SECONDS
