"""Running `haste demo` as a user does, and seeing what it leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TIMEOUT_SECONDS = 240


class Demo:
    """One `haste demo` process with a temporary folder of its own, by which its children are recognised."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        # Short: sandboxes keep sockets below it, whose paths may have 107 bytes.
        self._temporary = tempfile.TemporaryDirectory(prefix="hd-")
        self.temporary = Path(self._temporary.name)
        self.output = folder / "results"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hastegeo", "demo", "--output", str(self.output), *arguments],
            env={**os.environ, "TMPDIR": str(self.temporary), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.text = ""

    def read_until(self, words: str) -> None:
        """Read its output until a line holds these words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.text += line
            if words in line:
                return
        raise AssertionError(f"{words!r} never came:\n{self.text}")

    def finish(self) -> int:
        """Wait for its end, and return its exit code."""
        rest, _ = self.process.communicate(timeout=TIMEOUT_SECONDS)
        self.text += rest
        return self.process.returncode

    def children(self) -> dict[int, str]:
        """Return the live processes that work in its temporary folder, by id, with their command lines."""
        found = {}
        for place in Path("/proc").iterdir():
            if not place.name.isdigit() or int(place.name) in {os.getpid(), self.process.pid}:
                continue
            try:
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.temporary) in command:
                found[int(place.name)] = command
        return found

    def child(self, word: str) -> int:
        """Return the id of the server whose command line holds a word."""
        (pid,) = [pid for pid, command in self.children().items() if word in command]
        return pid

    def assert_nothing_left(self) -> None:
        """Check that no process and no file of it is left."""
        eventually(lambda: not self.children(), f"processes end: {self.children()}")
        eventually(lambda: not list(self.temporary.iterdir()), "temporary files are deleted")

    def close(self) -> None:
        """End whatever a failed test has left."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._temporary.cleanup()


def eventually(condition: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} seconds: {what}"
        time.sleep(0.05)
