"""Start, preparation and release tasks: commands that the service runs on a node beside the tasks of jobs.

They are run again on the same node while they fail with an exit code, `maxTaskRetryCount` times.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from batch_emulator.nodes.contract import Failure, FailureCategory, TaskLaunch, TaskOutcome
from batch_emulator.rules.world import World
from batch_emulator.state import Json, Node, Run, SideTask, SideTaskState


def begin(
    world: World, node: Node, spec: Json, launch: TaskLaunch, then: Callable[[SideTask], None]
) -> SideTask:
    """Run a command on a node until it succeeds or may not be tried again, then call `then` with it."""
    side = SideTask(spec=spec, path=launch.task_path, started=world.now())

    def started(run: Run, at: datetime) -> None:
        if side.run is run:
            side.started = at

    def ended(run: Run, outcome: TaskOutcome) -> None:
        if side.run is not run:
            return
        side.run = None
        side.exit_code, side.failure = outcome.exit_code, outcome.failure
        side.container_id = outcome.container_id
        if _may_retry(side, outcome):
            side.retry_count += 1
            side.last_retry = world.now()
            start()
            return
        side.state, side.ended = SideTaskState.COMPLETED, outcome.ended
        then(side)

    def start() -> None:
        side.run = Run(node=node, launch=launch, on_started=started, on_ended=ended)
        world.effects.start_run(side.run)

    start()
    return side


def abandon(world: World, side: SideTask | None) -> None:
    """End the command's run, if there is one, and never hear of it again: its node is lost or restarts."""
    if side is not None and side.run is not None:
        run, side.run = side.run, None
        world.effects.end_run(run, upload=False)


def end(world: World, side: SideTask) -> None:
    """End the command for good, as failed."""
    abandon(world, side)
    side.state, side.ended = SideTaskState.COMPLETED, world.now()
    side.failure = Failure(
        category=FailureCategory.USER_ERROR, code="TaskEnded", message="Task Was Ended", phase="run"
    )


def _may_retry(side: SideTask, outcome: TaskOutcome) -> bool:
    if outcome.exit_code in {0, None} or outcome.failure is None:
        return False
    limits: Json = side.spec.get("constraints") or side.spec
    most = int(limits.get("maxTaskRetryCount", 0))
    return most < 0 or side.retry_count < most
