"""One run of one task: downloads, the program, uploads, and the facts of how it ended."""

from __future__ import annotations

import asyncio
import functools
import os
import shlex
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from batch_emulator.nodes import layout
from batch_emulator.nodes.beneath import create_file, open_directory, open_root, opened, split_relative
from batch_emulator.nodes.contract import Failure, TaskLaunch, TaskOutcome
from batch_emulator.nodes.drivers import Driver, Program, ProgramError, RunningProgram
from batch_emulator.nodes.endpoints import Endpoint
from batch_emulator.nodes.failures import (
    ended_failure,
    exit_failure,
    file_failure,
    launch_failure,
    server_failure,
    user_failure,
)
from batch_emulator.nodes.images import Image, ImageTable, RunOptions, RunOptionsError, parse_run_options
from batch_emulator.nodes.mounts import Mount, MountError, SandboxView, sandbox_mounts
from batch_emulator.nodes.transfers import (
    Cancelled,
    TransferError,
    Transfers,
    download_resource_files,
    upload_output_files,
)

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """What all runs of one agent share."""

    driver: Driver
    images: ImageTable
    egress: tuple[Endpoint, ...] | None
    environment: Mapping[str, str]
    read_only_paths: tuple[Path, ...]
    ca_bundle: str | None
    executor: Executor


class _FailedError(Exception):
    """The run cannot go on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True, kw_only=True)
class _Ended:
    """How the program ended; `exit_code` None when it was ended from outside."""

    exit_code: int | None
    failure: Failure | None
    started: datetime
    ended: datetime


class Run:
    """A `RunHandle`: one launch being carried out."""

    def __init__(
        self, context: RunContext, launch: TaskLaunch, on_started: Callable[[datetime], None]
    ) -> None:
        self._context = context
        self._launch = launch
        self._on_started = on_started
        self._outcome: asyncio.Future[TaskOutcome] = asyncio.get_running_loop().create_future()
        self._terminated = asyncio.Event()
        self._upload = True
        self._stop_downloads = threading.Event()
        self._stop_uploads = threading.Event()

    async def wait(self) -> TaskOutcome:
        """See `RunHandle.wait`."""
        return await asyncio.shield(self._outcome)

    def terminate(self, *, upload: bool = True) -> None:
        """See `RunHandle.terminate`. After `upload=False`, a later call does not bring uploads back."""
        self._upload = self._upload and upload
        self._terminated.set()
        self._stop_downloads.set()
        if not self._upload:
            self._stop_uploads.set()

    async def carry_out(self) -> None:
        """Do the whole run and settle the outcome; the outcome never stays open."""
        try:
            self._outcome.set_result(await self._run())
        except asyncio.CancelledError:
            self._outcome.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - an unforeseen error is this run's, and the agent goes on
            failure = server_failure("CommandLaunchFailed", f"the node agent failed: {error!r}")
            self._outcome.set_result(self._not_run(failure))

    async def _run(self) -> TaskOutcome:
        image, options = Image(), RunOptions()
        try:
            if self._launch.container is not None:
                image = self._find_image(self._launch.container.image_name)
                options = _run_options(self._launch.container.run_options)
            arguments = _words(self._launch.command_line)
            environment = layout.task_environment(
                self._launch,
                image={**image.environment, **options.environment},
                agent=self._context.environment,
                view=self._view,
            )
            await self._prepare(environment)
            ended = await self._run_program(image, options, arguments, environment)
        except _FailedError as error:
            return self._not_run(error.failure)
        except Cancelled:
            return self._not_run(ended_failure("Task Was Ended by User Request", "preprocessing"))
        failure = ended.failure
        if self._upload:
            upload_failure = await self._in_thread(
                upload_output_files,
                self._transfers(environment, self._stop_uploads),
                self._launch.output_files,
                succeeded=ended.exit_code == 0,
            )
            # The exit code speaks for itself, so the upload's failure is the one that would be lost.
            failure = upload_failure or failure
        return TaskOutcome(
            exit_code=ended.exit_code,
            failure=failure,
            started=ended.started,
            ended=ended.ended,
            terminated=self._terminated.is_set(),
        )

    async def _prepare(self, environment: Mapping[str, str]) -> None:
        transfers = self._transfers(environment, self._stop_downloads)
        try:
            await self._in_thread(
                layout.prepare_task,
                self._launch.node_root,
                self._launch.task_path,
                owner=self._context.driver.task_user,
            )
            await self._in_thread(download_resource_files, transfers, self._launch.resource_files)
            transfers.check()
        except TransferError as error:
            raise _FailedError(error.failure) from error
        except OSError as error:
            raise _FailedError(file_failure(error, path=self._launch.task_path)) from error

    async def _run_program(
        self, image: Image, options: RunOptions, arguments: list[str], environment: Mapping[str, str]
    ) -> _Ended:
        argv = [*image.command, *arguments]
        if not argv:
            raise _FailedError(user_failure("CommandLaunchFailed", "the command line is empty"))
        with ExitStack() as stack:
            try:
                stdout, stderr = (
                    stack.enter_context(opened(descriptor)) for descriptor in self._output_files()
                )
                program = Program(
                    argv=argv,
                    environment=environment,
                    directory=self._directory(image),
                    stdout=stdout,
                    stderr=stderr,
                    mounts=self._mounts(image, options),
                    egress=self._context.egress,
                    elevated=self._launch.elevated,
                )
                running = await self._context.driver.start(program)
            except ProgramError as error:
                raise _FailedError(launch_failure(error, argv[0])) from error
            except (MountError, OSError) as error:
                raise _FailedError(server_failure("CommandLaunchFailed", str(error))) from error
        started = datetime.now(UTC)
        try:
            self._on_started(started)
            exit_code, failure = await self._watch(running)
        finally:
            running.kill()
            await running.wait()
        return _Ended(exit_code=exit_code, failure=failure, started=started, ended=datetime.now(UTC))

    async def _watch(self, running: RunningProgram) -> tuple[int | None, Failure | None]:
        """Wait for the program's end, the end of its time, or the order to end it, whatever comes first."""
        limit = self._launch.max_wall_clock
        ending = asyncio.ensure_future(running.wait())
        ordered = asyncio.ensure_future(self._terminated.wait())
        try:
            await asyncio.wait(
                {ending, ordered},
                timeout=None if limit is None else limit.total_seconds(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if ending.done():
                code = ending.result()
                return code, None if code == 0 else exit_failure(code)
            running.kill()
            await ending
            if ordered.done():
                return None, ended_failure("Task Was Ended by User Request", "run")
            return None, ended_failure("the task ran past its maxWallClockTime and was ended", "run")
        finally:
            ordered.cancel()
            ending.cancel()

    def _find_image(self, name: str) -> Image:
        image = self._context.images.find(name)
        if image is None:
            known = ", ".join(sorted(self._context.images.images)) or "none"
            raise _FailedError(
                user_failure(
                    "ContainerInvalidImage",
                    f"container image {name!r} is not in this emulator's image table (known: {known})",
                    phase="preprocessing",
                )
            )
        return image

    def _output_files(self) -> tuple[int, int]:
        owner = self._context.driver.task_user
        with (
            opened(open_root(self._launch.node_root)) as root,
            opened(open_directory(root, split_relative(self._launch.task_path))) as task,
        ):
            stdout = create_file(task, (layout.STDOUT,), mode=0o660, owner=owner)
            try:
                return stdout, create_file(task, (layout.STDERR,), mode=0o660, owner=owner)
            except OSError:
                os.close(stdout)
                raise

    def _mounts(self, image: Image, options: RunOptions) -> tuple[Mount, ...]:
        if not self._context.driver.enforces_isolation:
            return ()
        return sandbox_mounts(
            SandboxView(
                node_root=self._launch.node_root,
                task_path=self._launch.task_path,
                visible=layout.visible_paths(self._launch),
                read_only_paths=(*self._context.read_only_paths, *image.read_only_paths),
                host_network=self._context.egress is None,
                shm_size=options.shm_size,
            )
        )

    @property
    def _view(self) -> str:
        """Where the program sees the node root."""
        return layout.NODE_ROOT if self._context.driver.enforces_isolation else str(self._launch.node_root)

    def _directory(self, image: Image) -> str:
        container = self._launch.container
        if container is not None and container.working_directory.lower() == "containerimagedefault":
            return image.working_directory
        return f"{self._view}/{self._launch.task_path}/{layout.WORKING_DIRECTORY}"

    def _transfers(self, environment: Mapping[str, str], stop: threading.Event) -> Transfers:
        return Transfers(
            node_root=self._launch.node_root,
            task_path=self._launch.task_path,
            seen_as=f"{self._view}/{self._launch.task_path}",
            environment=environment,
            owner=self._context.driver.task_user,
            ca_bundle=self._context.ca_bundle,
            stop=stop,
        )

    def _not_run(self, failure: Failure) -> TaskOutcome:
        return TaskOutcome(
            exit_code=None,
            failure=failure,
            started=None,
            ended=datetime.now(UTC),
            terminated=self._terminated.is_set(),
        )

    async def _in_thread(self, function: Callable[..., _T], *arguments: object, **options: object) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._context.executor, functools.partial(function, *arguments, **options)
        )


def _words(command_line: str) -> list[str]:
    try:
        return shlex.split(command_line)
    except ValueError as error:
        message = f"the command line cannot be split into words: {error}"
        raise _FailedError(user_failure("CommandLaunchFailed", message)) from error


def _run_options(text: str) -> RunOptions:
    try:
        return parse_run_options(text)
    except RunOptionsError as error:
        failure = user_failure("ContainerInvalidRunOptions", str(error), phase="preprocessing")
        raise _FailedError(failure) from error
