"""Running `haste` in this process, and what its output must never hold."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import dataclass
from typing import Any

import pytest

from hastegeo.cli import main

T4, H100 = "haste-shared-cli-t4-pool", "haste-shared-cli-h100-pool"
IMAGE = "haste/test:1"
# What no output may ever hold.
FORBIDDEN = re.compile(r"sig(=|%3D)(?!REDACTED)|Traceback", re.IGNORECASE)


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Haste:
    """Runs `haste` in this process. Nothing secret may be printed, whatever the command."""

    def __init__(self, capture: pytest.CaptureFixture[str], secrets: tuple[str, ...] = ()) -> None:
        self._capture = capture
        self.secrets = secrets

    def __call__(self, *arguments: str, code: int = 0) -> Ended:
        self._capture.readouterr()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            found = main(arguments)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        out, err = self._capture.readouterr()
        assert not FORBIDDEN.search(out + err), out + err
        assert not [secret for secret in self.secrets if secret in out + err]
        assert found == code, f"{out}\n{err}"
        return Ended(found, out, err)
