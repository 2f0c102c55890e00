"""A private emulator for tests: in this process, on its own thread and free port, gone when the block ends.

with running_emulator(clock=ManualClock(), driver="process") as emulator:
    credential = AzureNamedKeyCredential(emulator.account_name, emulator.account_key)
    client = BatchClient(emulator.endpoint, credential)
    ...
    emulator.advance(120)  # the nodes have booted
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from batch_emulator.clock import Clock, ManualClock, SystemClock, advance
from batch_emulator.rules.world import World
from batch_emulator.server import Options, RunningEmulator, running

_STOP_SECONDS = 30.0
_Result = TypeVar("_Result")


class PrivateEmulator:
    """An emulator that runs on another thread of this process."""

    def __init__(
        self, options: Options, clock: Clock, loop: asyncio.AbstractEventLoop, running: RunningEmulator
    ) -> None:
        self.endpoint = running.endpoint
        self.account_name = options.account
        self.account_key = options.key
        self.driver = running.driver
        self.isolated = running.agent.enforces_isolation
        self._world = running.world
        self._clock = clock
        self._loop = loop

    def advance(self, seconds: float) -> None:
        """Let service time pass, and return when everything that fell due has happened.

        Runs of tasks take real time, and go on meanwhile. Raises `TypeError` unless the clock is a
        `ManualClock`.
        """
        clock = self._clock
        if not isinstance(clock, ManualClock):
            raise TypeError("only an emulator with a ManualClock can be advanced")
        self.on_loop(lambda world: advance(clock, world.timers, seconds))

    def on_loop(self, action: Callable[[World], _Result]) -> _Result:
        """Call a function with the emulator's world on its own thread, where nothing changes meanwhile."""

        async def call() -> _Result:
            return action(self._world)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()


@contextlib.contextmanager
def running_emulator(*, clock: Clock | None = None, **options: Any) -> Iterator[PrivateEmulator]:
    """Run a private emulator until the block ends.

    The clock is real by default; `options` are the fields of `batch_emulator.server.Options`.
    """
    chosen = Options(**options)
    time = clock or SystemClock()
    started: Future[tuple[PrivateEmulator, Callable[[], object]]] = Future()

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        async with running(chosen, time) as emulator:
            private = PrivateEmulator(chosen, time, loop, emulator)
            started.set_result((private, lambda: loop.call_soon_threadsafe(stop.set)))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)  # it belongs to the thread that waits for the start

    thread = threading.Thread(target=run, name="batch-emulator", daemon=True)
    thread.start()
    emulator, stop = started.result()
    try:
        yield emulator
    finally:
        stop()
        thread.join(_STOP_SECONDS)
        if thread.is_alive():
            raise RuntimeError("the emulator did not stop")
