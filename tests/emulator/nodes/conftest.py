"""Real nodes on this machine, with each driver that works here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batch_emulator.nodes import DRIVERS, ImageTable, create_agent

from .support import IMAGES, MakeNode, Node, require


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    """Each driver that works on this machine."""
    return require(request.param)


@pytest.fixture(params=[name for name in DRIVERS if name != "process"])
def sandbox(request: pytest.FixtureRequest) -> str:
    """Each driver that enforces isolation and works on this machine."""
    return require(request.param)


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[MakeNode]:
    """Make a node with a driver; everything is closed at the end, and no run may be left."""
    made: list[Node] = []
    with asyncio.Runner() as runner:

        def make(driver: str, images: ImageTable = IMAGES, **options: Any) -> Node:
            agent = create_agent(driver, images, **options)
            root = tmp_path / f"node-{len(made)}"
            agent.prepare_node(root)
            made.append(Node(agent, root, runner))
            return made[-1]

        yield make
        for node in made:
            runner.run(node.agent.close())
            node.agent.remove_node(node.root)
            assert not node.root.exists()


@pytest.fixture
def node(make_node: MakeNode, driver: str) -> Node:
    """A node with each driver."""
    return make_node(driver)


@pytest.fixture
def confined(make_node: MakeNode, sandbox: str) -> Node:
    """A node with each driver that enforces isolation."""
    return make_node(sandbox)
