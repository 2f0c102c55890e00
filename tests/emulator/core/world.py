"""A world without HTTP and without processes: tests move its clock, and end its runs as they like."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from batch_emulator.clock import ManualClock, Timers, advance
from batch_emulator.nodes.contract import Failure, FailureCategory, TaskOutcome
from batch_emulator.rules import jobs, pools, tasks
from batch_emulator.rules.world import Behaviour, World
from batch_emulator.state import Account, Job, Node, Pool, Run, Task

READY_SECONDS = 150.0  # to allocate a node and to boot it


@dataclass
class RecordedEffects:
    """Remembers what the rules asked for. `runs` are those that have begun and not been ended or let go."""

    runs: list[Run] = field(default_factory=list)
    launches: list[str] = field(default_factory=list)
    ended: list[tuple[str, bool]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    prepared: list[str] = field(default_factory=list)
    removed_nodes: list[str] = field(default_factory=list)

    def prepare_node(self, node: Node) -> None:
        self.prepared.append(node.id)

    def remove_node(self, node: Node) -> None:
        self.removed_nodes.append(node.id)

    def start_run(self, run: Run) -> None:
        self.runs.append(run)
        self.launches.append(run.launch.task_path)

    def end_run(self, run: Run, *, upload: bool) -> None:
        self.ended.append((run.launch.task_path, upload))

    def remove_files(self, node: Node, path: str) -> None:
        self.removed.append(path)


class Rig:
    """A world to try rules in."""

    def __init__(self, **behaviour: Any) -> None:
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.effects = RecordedEffects()
        self.world = World(
            account=Account("account"),
            clock=self.clock,
            timers=Timers(self.clock),
            effects=self.effects,
            nodes_root=Path("/nodes"),
            behaviour=Behaviour(**behaviour),
        )

    def advance(self, seconds: float) -> None:
        advance(self.clock, self.world.timers, seconds)

    def pool(self, pool_id: str = "pool", *, ready: bool = True, **spec: Any) -> Pool:
        """Create a pool, and let its nodes boot."""
        pool = pools.add(self.world, {"id": pool_id, "vmSize": "standard_d4s_v3", **spec})
        if ready:
            self.advance(READY_SECONDS)
        return pool

    def job(self, job_id: str = "job", pool_id: str = "pool", **spec: Any) -> Job:
        return jobs.add(self.world, {"id": job_id, "poolInfo": {"poolId": pool_id}, **spec})

    def task(self, job: Job, task_id: str = "task", **spec: Any) -> Task:
        return tasks.add(self.world, job, {"id": task_id, "commandLine": "x", **spec})

    def run_of(self, name: str) -> Run:
        """The newest run whose directory ends with this name."""
        return next(run for run in reversed(self.effects.runs) if run.launch.task_path.endswith(name))

    def start(self, name: str) -> Run:
        """Let the program of a run start."""
        run = self.run_of(name)
        run.on_started(run, self.world.now())
        return run

    def end(self, name: str, exit_code: int | None = 0, failure: Failure | None = None) -> None:
        """Let a run come to its end, once."""
        run = self.run_of(name)
        self.effects.runs.remove(run)
        if exit_code and failure is None:
            failure = failed("FailureExitCode")
        run.on_ended(
            run,
            TaskOutcome(
                exit_code=exit_code, failure=failure, started=self.world.now(), ended=self.world.now()
            ),
        )


def failed(code: str, phase: str = "run") -> Failure:
    return Failure(category=FailureCategory.USER_ERROR, code=code, message=code, phase=phase)
