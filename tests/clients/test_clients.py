"""Clients that we did not write, unmodified: each walks one scenario against a running emulator.

Their packages are locked beside this file and installed once into `.cache/clients`, from PyPI and npm.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from batch_emulator.clock import SystemClock
from batch_emulator.testing import PrivateEmulator, running_emulator

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".cache" / "clients"
pytestmark = pytest.mark.xdist_group("clients")


@pytest.fixture
def emulator() -> Iterator[PrivateEmulator]:
    with running_emulator(clock=SystemClock(time_scale=600), driver="process") as running:
        yield running


def installed(name: str, lock: Path, install: Callable[[Path], None]) -> Path:
    """Install into a folder that is named by the lock file's content, once."""
    folder = CACHE / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            install(folder)
            (folder / ".done").touch()
    return folder


def run(command: list[str], emulator: PrivateEmulator, *, cwd: Path | None = None) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "BATCH_URL": emulator.endpoint,
        "BATCH_ACCOUNT": emulator.account_name,
        "BATCH_KEY": emulator.account_key,
    }
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip().endswith("ok")


def test_azure_batch_14(emulator: PrivateEmulator) -> None:
    lock = HERE / "azure-batch-14.txt"

    def install(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        pip = [folder / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "--requirement", lock], check=True)

    python = installed("azure-batch-14", lock, install) / "venv/bin/python"
    run([os.fspath(python), os.fspath(HERE / "scenario_azure_batch_14.py")], emulator)


def test_npm_azure_batch_10(emulator: PrivateEmulator) -> None:
    binaries = Path(sys.prefix) / "bin"
    lock = HERE / "node/package-lock.json"

    def install(folder: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "node" / name, folder)
        environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
        npm = [binaries / "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(npm, cwd=folder, env=environment, check=True, capture_output=True)

    folder = installed("npm", lock, install)
    # Modules are found beside the script, so it runs where they are installed.
    shutil.copy(HERE / "node/scenario.mjs", folder)
    run([os.fspath(binaries / "node"), "scenario.mjs"], emulator, cwd=folder)
