"""The same promises when the emulator runs as an ordinary user; only needed where the tests run as root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
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
def test_the_promises_hold_for_an_ordinary_user() -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    path = os.pathsep.join(entry for entry in sys.path if entry.endswith(("src", "site-packages")))
    imports = "import batch_emulator.nodes, pytest, sys; print(sys.version_info >= (3, 11))"
    candidates = (sys.executable, *filter(None, [shutil.which("python3", path=os.defpath)]))
    python = next(
        (
            candidate
            for candidate in candidates
            if _as_user("test", "-x", candidate).returncode == 0
            and "True" in _as_user(candidate, "-c", imports, PYTHONPATH=path).stdout
        ),
        None,
    )
    if python is None:
        pytest.skip("no Python that an ordinary user may run has the packages that are needed")
    with tempfile.TemporaryDirectory(prefix="ordinary-user-") as place:
        os.chown(place, _USER, _USER)
        result = _as_user(
            python,
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not process", f"--basetemp={place}/tmp"),
            *(str(_HERE / suite) for suite in _SUITES),
            PYTHONPATH=path,
            HOME=place,
            TMPDIR=place,
        )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    passed = re.search(r"(\d+) passed", result.stdout)
    assert passed is not None
    assert int(passed[1]) > 50
