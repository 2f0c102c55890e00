from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from azure.batch import BatchClient

from batch_emulator.clock import ManualClock
from batch_emulator.testing import PrivateEmulator, running_emulator

from ..core.support import batch_client


@pytest.fixture
def emulator() -> Iterator[PrivateEmulator]:
    """An emulator whose service time stands still until advanced, and whose tasks are plain processes."""
    with running_emulator(clock=ManualClock(datetime.now(UTC)), driver="process") as running:
        yield running


@pytest.fixture
def client(emulator: PrivateEmulator) -> Iterator[BatchClient]:
    with batch_client(emulator) as made:
        yield made
