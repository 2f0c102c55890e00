"""The same promises when the emulator runs as an ordinary user; only needed where the tests run as root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .support import is_root

_USER = 65534
_HERE = Path(__file__).parent
_SUITES = ("test_driver_contract.py", "test_isolation.py", "test_egress.py")


def _as_user(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    setpriv = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--"]
    return subprocess.run(
        [*setpriv, *command],
        env={"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not is_root(), reason="the other tests already run as an ordinary user")
def test_the_promises_hold_for_an_ordinary_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    path = os.pathsep.join(entry for entry in sys.path if entry.endswith(("src", "site-packages")))
    imports = "import batch_emulator.nodes, pytest, sys; print(sys.version_info >= (3, 11))"
    candidates = (sys.executable, *filter(None, [shutil.which("python3", path=os.defpath)]))
    python = next(
        (
            candidate
            for candidate in candidates
            if os.stat(os.path.realpath(candidate)).st_mode & 0o001
            and "True" in _as_user(candidate, "-c", imports, PYTHONPATH=path).stdout
            and _as_user("test", "-x", candidate).returncode == 0
        ),
        None,
    )
    if python is None:
        pytest.skip("no Python that an ordinary user may run has the packages that are needed")
    place = tmp_path_factory.mktemp("ordinary")
    for parent in (place, *place.parents):
        if parent.owner() == "root" and parent != Path("/") and parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o011)
    os.chown(place, _USER, _USER)
    suites = [str(_HERE / suite) for suite in _SUITES]
    result = _as_user(
        python,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={place / 'tmp'}", *suites),
        PYTHONPATH=path,
        HOME=str(place),
        TMPDIR=str(place),
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed is not None
    assert int(passed[1]) > 50
