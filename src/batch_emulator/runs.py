"""The bridge between the rules, which are synchronous, and the node agent, which truly runs things."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from batch_emulator.nodes.contract import NodeAgent, RunHandle
from batch_emulator.state import Node, Run

logger = logging.getLogger(__name__)


class Runs:
    """Carries out what the rules ask for. All of it is called on the event loop and returns at once.

    What concerns one directory happens in the order it was asked for: a run begins once the run before it has
    ended, what was to be deleted is gone, and its node is prepared.
    """

    def __init__(self, agent: NodeAgent) -> None:
        self._agent = agent
        self._handles: dict[Run, RunHandle] = {}
        self._ending: dict[Run, bool] = {}
        self._last: dict[Path, asyncio.Task[None]] = {}
        self._works: set[asyncio.Task[None]] = set()

    def prepare_node(self, node: Node) -> None:
        """Create the directories of a node."""
        self._in_order(node.root, lambda: self._agent.prepare_node(node.root), after=[node.root])

    def start_run(self, run: Run) -> None:
        """Begin a run."""
        place = run.launch.node_root / run.launch.task_path
        before = [self._last[path] for path in (run.node.root, place) if path in self._last]
        self._spawn(place, self._run(run, before))

    def end_run(self, run: Run, *, upload: bool) -> None:
        """End a run, whether or not it has begun."""
        handle = self._handles.get(run)
        if handle is not None:
            handle.terminate(upload=upload)
        else:
            self._ending[run] = upload

    def remove_files(self, node: Node, path: str) -> None:
        """Delete a task's directory once its run has ended."""
        place = node.root / path
        self._in_order(
            place, lambda: self._agent.remove_task_files(node.root, path), after=[node.root, place]
        )

    def remove_node(self, node: Node) -> None:
        """Delete a node's directory once every run on it has ended."""
        after = [place for place in self._last if place.is_relative_to(node.root)]
        self._in_order(node.root, lambda: self._agent.remove_node(node.root), after=after)

    async def close(self) -> None:
        """End everything."""
        for work in list(self._works):
            work.cancel()
        await asyncio.gather(*self._works, return_exceptions=True)
        await self._agent.close()

    async def _run(self, run: Run, before: list[asyncio.Task[None]]) -> None:
        await _finished(before)
        handle = self._agent.start(run.launch, on_started=lambda at: run.on_started(run, at))
        self._handles[run] = handle
        if run in self._ending:
            handle.terminate(upload=self._ending.pop(run))
        try:
            outcome = await handle.wait()
        finally:
            del self._handles[run]
        run.on_ended(run, outcome)

    def _in_order(self, place: Path, action: Callable[[], None], *, after: list[Path]) -> None:
        before = [self._last[path] for path in after if path in self._last]

        async def act() -> None:
            await _finished(before)
            await asyncio.to_thread(action)

        self._spawn(place, act())

    def _spawn(self, place: Path, work: Coroutine[Any, Any, None]) -> None:
        spawned = asyncio.get_running_loop().create_task(work)
        self._works.add(spawned)
        self._last[place] = spawned

        def done(finished: asyncio.Task[None]) -> None:
            self._works.discard(finished)
            if self._last.get(place) is finished:
                del self._last[place]
            if not finished.cancelled() and (error := finished.exception()) is not None:
                logger.error("work on a node failed", exc_info=error)

        spawned.add_done_callback(done)


async def _finished(works: list[asyncio.Task[None]]) -> None:
    if works:
        await asyncio.wait(works)
