"""Servers are started, watched, and never left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hastegeo.errors import LocalCloudError
from hastegeo.local_cloud import processes


def start(tmp_path: Path, code: str) -> processes.ServerProcess:
    return processes.ServerProcess.start(
        "The server",
        [sys.executable, "-c", code],
        environment={"PATH": os.environ["PATH"]},
        log_file=tmp_path / "log",
        die_with_parent=True,
    )


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def eventually(condition: Callable[[], bool], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


FOREVER = "import time; print('up', flush=True); time.sleep(600)"


def test_a_server_that_is_killed_is_reported_in_one_sentence_with_its_last_words(tmp_path: Path) -> None:
    server = start(tmp_path, FOREVER)
    server.wait_until(lambda: "up" in server.log_file.read_text(), what="come up")
    server.check()  # control: alive
    os.kill(server.pid, 9)
    assert eventually(lambda: not is_alive(server.pid))
    with pytest.raises(LocalCloudError, match=r"The server was killed by signal 9.*It said last: up"):
        server.check()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    server = start(tmp_path, "import sys; sys.exit('the port is taken')")
    with pytest.raises(LocalCloudError, match=r"ended with exit code 1.*the port is taken"):
        server.wait_until(lambda: False, what="come up")


def test_a_server_that_never_gets_ready_is_stopped(tmp_path: Path) -> None:
    server = start(tmp_path, FOREVER)
    with pytest.raises(LocalCloudError, match="did not come up within 0 seconds"):
        server.wait_until(lambda: False, what="come up", timeout=0.2)
    assert not is_alive(server.pid)


def test_stop_ends_what_the_server_started_too(tmp_path: Path) -> None:
    server = start(
        tmp_path,
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(600)",
    )
    server.wait_until(lambda: server.log_file.read_text().strip().isdigit(), what="come up")
    child = int(server.log_file.read_text())
    assert is_alive(child)
    server.stop()
    assert eventually(lambda: not is_alive(child))
    assert not is_alive(server.pid)


def test_the_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time, pathlib, os\n"
            "from hastegeo.local_cloud.processes import ServerProcess\n"
            "s = ServerProcess.start('s', [sys.executable, '-c', 'import time; time.sleep(600)'],"
            " environment={'PATH': os.environ['PATH']}, log_file=pathlib.Path(sys.argv[1]),"
            " die_with_parent=True)\n"
            "print(s.pid, flush=True); time.sleep(600)",
            str(tmp_path / "log"),
        ],
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    with parent.stdout:
        server = int(parent.stdout.readline())
        assert eventually(lambda: is_alive(server))
        parent.kill()
        parent.wait()
    assert eventually(lambda: not is_alive(server))


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LocalCloudError, match=f"Port {port} on 127.0.0.1 is in use"):
            processes.require_free_port(port)
    processes.require_free_port(port)  # control: free again
