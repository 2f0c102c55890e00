"""The node agent's end of the control channel to a sandbox's PID 1 (the other end is `_init.py`)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from contextlib import suppress
from typing import Any

from batch_emulator.nodes.drivers.base import ProgramError
from batch_emulator.nodes.endpoints import Endpoint

_MAX_MESSAGE_BYTES = 64 * 1024
_CONNECT_SECONDS = 10.0
_FULL_WAIT_SECONDS = 0.01

logger = logging.getLogger(__name__)


class Channel:
    """Hears what PID 1 reports and opens the connections that it asks for.

    Closing it ends the sandbox: PID 1 exits when its channel does.
    """

    def __init__(self, connection: socket.socket, endpoints: tuple[Endpoint, ...]) -> None:
        connection.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._endpoints = endpoints
        self._connecting: set[asyncio.Task[None]] = set()
        self._open = True
        self.exit_code: int | None = None
        self.started: asyncio.Future[bool] = self._loop.create_future()
        """True once the program runs, false if PID 1 ended before; ProgramError if it cannot be started."""
        self._loop.add_reader(connection.fileno(), self.hear)

    def close(self) -> None:
        """Close the channel, and with it every connection that is still being opened."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._connection.fileno())
            self._connection.close()
            for task in self._connecting:
                task.cancel()
            if not self.started.done():
                self.started.set_result(False)

    def hear(self) -> None:
        """Take in everything that PID 1 has reported so far."""
        while self._open:
            try:
                data = self._connection.recv(_MAX_MESSAGE_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.close()
                return
            self._handle(json.loads(data))

    def _handle(self, message: dict[str, Any]) -> None:
        if "started" in message:
            if not self.started.done():
                self.started.set_result(True)
        elif "failed" in message:
            failed = message["failed"]
            if not self.started.done():
                self.started.set_exception(ProgramError(failed["step"], failed["errno"], failed["message"]))
        elif "exit" in message:
            self.exit_code = message["exit"]
        else:
            task = self._loop.create_task(
                self._connect(message["connect"], self._endpoints[message["endpoint"]])
            )
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)

    async def _connect(self, request: int, endpoint: Endpoint) -> None:
        family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as outside:
            try:
                await asyncio.wait_for(
                    self._loop.sock_connect(outside, (endpoint.host, endpoint.port)), _CONNECT_SECONDS
                )
            except (OSError, TimeoutError) as error:
                logger.debug("endpoint %s does not answer: %s", endpoint, error)
                await self._send({"refused": request}, [])
            else:
                await self._send({"connected": request}, [outside.fileno()])

    async def _send(self, message: dict[str, Any], descriptors: list[int]) -> None:
        while self._open:
            try:
                socket.send_fds(self._connection, [json.dumps(message).encode()], descriptors)
                return
            except BlockingIOError:
                await asyncio.sleep(_FULL_WAIT_SECONDS)
            except OSError:
                return


async def wait_for_exit(process_id: int) -> None:
    """Return when the child process has ended; it stays to be reaped. Works on every event loop."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    descriptor = os.pidfd_open(process_id)

    def notice() -> None:
        if not ended.done():
            ended.set_result(None)

    loop.add_reader(descriptor, notice)
    try:
        await ended
    finally:
        with suppress(RuntimeError):  # the loop may be closing
            loop.remove_reader(descriptor)
        os.close(descriptor)
