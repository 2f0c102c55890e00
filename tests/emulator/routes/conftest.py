from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from azure.batch import BatchClient

from batch_emulator.clock import ManualClock
from batch_emulator.testing import PrivateEmulator, running_emulator

from ..core.support import batch_client


@pytest.fixture(scope="module")
def emulator() -> Iterator[PrivateEmulator]:
    """One emulator for the tests of a module, which therefore use ids of their own."""
    with running_emulator(clock=ManualClock(datetime.now(UTC)), driver="process") as running:
        yield running


@pytest.fixture(scope="module")
def client(emulator: PrivateEmulator) -> Iterator[BatchClient]:
    with batch_client(emulator) as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """An id that no other test uses."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[-64:]
