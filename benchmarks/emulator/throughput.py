"""Trivial tasks a second through eight nodes, and what scheduling costs with many tasks waiting.

    python benchmarks/emulator/throughput.py [--tasks 2000]

The first figure runs /bin/true for real with the process driver. The others run the rules alone, with a node
agent that ends every run at once: a task should cost the same with 1k, 10k and 100k tasks waiting.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from batch_emulator.clock import ManualClock, SystemClock, Timers, advance
from batch_emulator.nodes.contract import TaskOutcome
from batch_emulator.rules import jobs, pools, tasks
from batch_emulator.rules.world import World
from batch_emulator.server import Options, running
from batch_emulator.state import Account, Node, Run

NODES = 8
POOL = {"id": "pool", "vmSize": "Standard_D2s_v3", "targetDedicatedNodes": NODES}
JOB = {"id": "job", "poolInfo": {"poolId": "pool"}}


def all_done(world: World) -> bool:
    return not world.account.jobs["job"].tally.unfinished


async def real(count: int) -> float:
    """Return how many tasks a second really ran."""
    async with running(Options(driver="process"), SystemClock(time_scale=600)) as emulator:
        world = emulator.world
        pool = pools.add(world, dict(POOL))
        while not all(node.takes_tasks for node in pool.nodes.values()) or len(pool.nodes) < NODES:
            await asyncio.sleep(0.05)
        job = jobs.add(world, dict(JOB))
        began = time.perf_counter()
        for number in range(count):
            tasks.add(world, job, {"id": f"t{number}", "commandLine": "/bin/true"})
        while not all_done(world):
            await asyncio.sleep(0.05)
        return count / (time.perf_counter() - began)


class InstantEffects:
    """Ends every run as soon as it is asked to."""

    def __init__(self) -> None:
        self.begun: list[Run] = []

    def prepare_node(self, node: Node) -> None: ...

    def remove_node(self, node: Node) -> None: ...

    def start_run(self, run: Run) -> None:
        self.begun.append(run)

    def end_run(self, run: Run, *, upload: bool) -> None: ...

    def remove_files(self, node: Node, path: str) -> None: ...


def scheduling(count: int) -> float:
    """Return the cost of a task's way through the rules, in microseconds, with `count` tasks waiting."""
    clock = ManualClock()
    timers = Timers(clock)
    effects = InstantEffects()
    world = World(Account("bench"), clock, timers, effects, Path("/nowhere"))
    pools.add(world, dict(POOL))
    job = jobs.add(world, dict(JOB))
    for number in range(count):
        tasks.add(world, job, {"id": f"t{number}", "commandLine": "/bin/true"})
    began = time.perf_counter()
    advance(clock, timers, 600)
    while effects.begun:
        run = effects.begun.pop()
        ended = TaskOutcome(exit_code=0, failure=None, started=clock.now(), ended=clock.now())
        run.on_ended(run, ended)
    assert all_done(world)
    return (time.perf_counter() - began) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2000)
    options = parser.parse_args()
    print(f"real tasks through {NODES} nodes  {asyncio.run(real(options.tasks)):8.0f} a second")
    first = scheduling(1_000)
    for count in (1_000, 10_000, 100_000):
        cost = scheduling(count)
        print(
            f"scheduling with {count:>7,} tasks {cost:8.1f} us a task, {cost / first:.2f} times that of 1,000"
        )


if __name__ == "__main__":
    main()
