from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .support import Demo

DATA = Path(os.environ.get("HASTE_TEST_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Start `haste demo` with arguments; what it leaves is cleaned up."""
    started: list[Demo] = []

    def start(*arguments: str, **environment: str) -> Demo:
        started.append(Demo(tmp_path, *arguments, **environment))
        return started[-1]

    yield start
    for running in started:
        running.close()


@pytest.fixture
def joplin() -> Path:
    place = DATA / "joplin"
    if not place.is_dir():
        pytest.skip(f"the Joplin tiles are not in {place}; set HASTE_TEST_DATA to where they are")
    return place
