"""Servers as child processes: started, waited for, watched, and never left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from hastegeo.errors import LocalCloudError

_READY_TIMEOUT_SECONDS = 60.0
_STOP_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.05


def free_port() -> int:
    """Return a loopback TCP port that was free a moment ago.

    Another program can take it before it is used; a server that then fails to start says so.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def require_free_port(port: int) -> None:
    """Raise `LocalCloudError` if a server listens on this loopback port already."""
    with socket.socket() as probe:
        # Without it a port of a server that just stopped counts as taken for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise LocalCloudError(
                f"Port {port} on 127.0.0.1 is in use or not allowed.",
                hint="Stop the program that uses it, choose another port, or leave the option out.",
            ) from None


class ServerProcess:
    """A server that runs as a child process in a process group of its own.

    Its output goes to `log_file`. With `die_with_parent` the kernel ends it when this process dies, however
    that happens.
    """

    def __init__(self, name: str, process: subprocess.Popen[bytes], log_file: Path) -> None:
        self.name = name
        self.log_file = log_file
        self._process = process

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        log_file: Path,
        die_with_parent: bool,
    ) -> Self:
        """Start the command with exactly this environment. Secrets belong there, never in the command."""
        setpriv = shutil.which("setpriv")
        prefix = [setpriv, "--pdeathsig", "TERM", "--"] if die_with_parent and setpriv else []
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("ab") as log:
            try:
                process = subprocess.Popen(
                    [*prefix, *command],
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C reaches the parent alone, which then stops its servers in order.
                    start_new_session=True,
                )
            except OSError as error:
                raise LocalCloudError(
                    f"{name} could not be started: {error.strerror} ({command[0]})."
                ) from error
        return cls(name, process, log_file)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def wait_until(
        self, ready: Callable[[], bool], *, what: str, timeout: float = _READY_TIMEOUT_SECONDS
    ) -> None:
        """Wait until `ready()` is true. Raises `LocalCloudError`, and stops the process, if it never is."""
        deadline = time.monotonic() + timeout
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                self.stop()
                raise LocalCloudError(
                    f"{self.name} did not {what} within {timeout:.0f} seconds.{self._last_words()}",
                    hint="Check that the machine is not overloaded and run the same command again.",
                )
            time.sleep(_POLL_SECONDS)

    def check(self) -> None:
        """Raise `LocalCloudError` if the server has ended by itself or was killed."""
        code = self._process.poll()
        if code is None:
            return
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise LocalCloudError(
            f"{self.name} {how} while it was needed.{self._last_words()}",
            hint="Run the same command again; its data was temporary.",
        )

    def stop(self) -> None:
        """End the server and everything it started; does nothing if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _last_words(self) -> str:
        try:
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return f" It said last: {lines[-1][:300]}" if lines else ""
