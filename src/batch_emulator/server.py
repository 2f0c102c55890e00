"""The emulator as one thing: state, rules, node agent and HTTP server on one event loop."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn

from batch_emulator.app import Application
from batch_emulator.clock import Clock, ManualClock, SystemClock, Timers
from batch_emulator.nodes import ImageTable, create_agent
from batch_emulator.nodes.contract import NodeAgent
from batch_emulator.rules.world import Behaviour, Quotas, World
from batch_emulator.runs import Runs
from batch_emulator.state import Account
from batch_emulator.wire.auth import Authenticator

logger = logging.getLogger(__name__)

DEFAULT_ACCOUNT = "localbatch"


def new_key() -> str:
    """Return a new random account key, in base64 as Azure has it."""
    return base64.b64encode(secrets.token_bytes(64)).decode()


@dataclass(frozen=True, kw_only=True)
class Options:
    """How an emulator runs. `egress` None gives tasks the host's network, else only these endpoints.

    `port` 0 takes a free one. `work_dir` None makes a temporary one, which is deleted at the end.
    `task_environment` is set in every task, below the task's own variables.
    """

    host: str = "127.0.0.1"
    port: int = 0
    account: str = DEFAULT_ACCOUNT
    key: str = field(default_factory=new_key, repr=False)
    certificate: Path | None = None
    certificate_key: Path | None = None
    token_keys: Mapping[str, Any] | None = None
    driver: str = "auto"
    images: ImageTable = field(default_factory=ImageTable)
    egress: tuple[str, ...] | None = None
    task_environment: Mapping[str, str] = field(default_factory=dict)
    work_dir: Path | None = None
    behaviour: Behaviour = field(default_factory=Behaviour)
    quotas: Quotas = field(default_factory=Quotas)


@dataclass(frozen=True)
class RunningEmulator:
    """An emulator that listens."""

    endpoint: str
    world: World
    agent: NodeAgent
    driver: str


class PortInUseError(OSError):
    """The address to listen on is taken, or may not be used."""


@contextlib.asynccontextmanager
async def running(options: Options, clock: Clock) -> AsyncIterator[RunningEmulator]:
    """Run an emulator until the block ends; then end every run, and leave no file and no process."""
    listener = _listen(options.host, options.port)
    work_dir = options.work_dir or Path(tempfile.mkdtemp(prefix="batch-emulator-"))
    scheme = "https" if options.certificate else "http"
    host = f"[{options.host}]" if ":" in options.host else options.host
    endpoint = f"{scheme}://{host}:{listener.getsockname()[1]}"
    agent = create_agent(options.driver, options.images, options.egress, dict(options.task_environment))
    runs = Runs(agent)
    timers = Timers(clock)
    world = World(
        account=Account(options.account),
        clock=clock,
        timers=timers,
        effects=runs,
        nodes_root=work_dir / "nodes",
        url=endpoint,
        behaviour=options.behaviour,
        quotas=options.quotas,
    )
    # Clients sign with the real time, also where a test keeps the clock.
    authenticator = Authenticator(
        options.account, options.key, now=lambda: datetime.now(UTC), token_keys=options.token_keys
    )
    server = _server(Application(world, authenticator), options)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    driving = asyncio.create_task(_drive(clock, timers))
    try:
        while not server.started:
            if serving.done():
                await serving
                raise RuntimeError("the HTTP server ended before it had started")
            await asyncio.sleep(0.01)
        yield RunningEmulator(endpoint, world, agent, agent.driver_name)
    finally:
        driving.cancel()
        server.should_exit = True
        await asyncio.gather(driving, serving, return_exceptions=True)
        await runs.close()
        if options.work_dir is None:
            shutil.rmtree(work_dir, ignore_errors=True)


def _listen(host: str, port: int) -> socket.socket:
    try:
        # The protocol is named, for else asyncio does not switch off Nagle's algorithm, which would delay
        # every answer that is sent in two parts by 40 ms.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(host, port, error) from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from None
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> PortInUseError:
    return PortInUseError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}")


def _server(application: Application, options: Options) -> uvicorn.Server:
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.certificate_key,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    # Signals are for whoever runs the loop; uvicorn would take them for itself.
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment,method-assign] # same protocol
    return server


async def _drive(clock: Clock, timers: Timers) -> None:
    """Fire timers when they are due. A manual clock is driven by whoever holds it."""
    if not isinstance(clock, SystemClock):
        return
    earlier = asyncio.Event()
    timers.on_earlier = earlier.set
    while True:
        earlier.clear()
        try:
            timers.run_due()
        except Exception:
            # One broken rule must not stop the time for everything else.
            logger.exception("a timer failed")
            continue
        due = timers.next_due()
        wait = None if due is None else max(0.0, due - clock.service_seconds()) / clock.time_scale
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(earlier.wait(), wait)


def write_ready_file(path: Path, emulator: RunningEmulator) -> None:
    """Tell, in a file that appears whole, that the emulator listens and where."""
    ready = {
        "endpoint": emulator.endpoint,
        "pid": os.getpid(),
        "driver": emulator.driver,
        "isolated": emulator.agent.enforces_isolation,
    }
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(ready))
    unfinished.replace(path)


__all__ = [
    "DEFAULT_ACCOUNT",
    "ManualClock",
    "Options",
    "PortInUseError",
    "RunningEmulator",
    "new_key",
    "running",
    "write_ready_file",
]
