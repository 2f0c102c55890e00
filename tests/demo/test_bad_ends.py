"""However the demo ends, it says why in one sentence, and leaves no process and no file behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine

from .support import Demo, eventually

pytestmark = pytest.mark.xdist_group("demo")


def tile(path: Path, *, west: float = 500_000.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    profile = {
        "driver": "GTiff",
        "width": 64,
        "height": 64,
        "count": 3,
        "dtype": "uint8",
        "crs": "EPSG:32615",
    }
    with rasterio.open(path, "w", **profile, transform=Affine(1, 0, west, 0, -1, 4_100_000)) as image:
        image.write(np.random.default_rng(1).integers(1, 255, (3, 64, 64), dtype="uint8"))
    return path


def one_sentence(run: Demo, words: str) -> None:
    assert "Traceback" not in run.text
    assert f"haste: {words}" in run.text or words in run.text, run.text
    assert "What to do:" in run.text


def no_raster(folder: Path) -> None:
    tile(folder / "good.tif")
    (folder / "notes.tif").write_text("this is text")


def truncated(folder: Path) -> None:
    path = tile(folder / "cut.tif")
    path.write_bytes(path.read_bytes()[:100])


def empty_tile(folder: Path) -> None:
    (folder / "empty.tif").touch()


def nothing(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


def far_apart(folder: Path) -> None:
    tile(folder / "pre/a.tif")
    tile(folder / "post/b.tif", west=700_000.0)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (no_raster, "notes.tif is not a GeoTIFF"),
        (truncated, "cut.tif is damaged"),
        (empty_tile, "empty.tif is an empty file"),
        (nothing, "no"),
        (far_apart, "do not overlap"),
        (None, "is not a folder"),
    ],
)
def test_imagery_that_cannot_be_used(
    demo: Callable[..., Demo], tmp_path: Path, prepare: Callable[[Path], None] | None, words: str
) -> None:
    folder = tmp_path / "imagery"
    if prepare is not None:
        folder.mkdir()
        prepare(folder)
    run = demo("--imagery", str(folder))
    assert run.finish() == 2
    one_sentence(run, words)
    assert "Starting Azurite" not in run.text, "the imagery is checked before anything is started"
    run.assert_nothing_left()


@pytest.mark.parametrize("option", ["--blob-port", "--batch-port"])
def test_a_port_in_use(demo: Callable[..., Demo], option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = demo(option, str(port))
        assert run.finish() == 1
    one_sentence(run, f"Port {port} on 127.0.0.1 is in use")
    run.assert_nothing_left()


def test_results_that_cannot_be_written(demo: Callable[..., Demo], tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where a folder should be")
    run = demo()
    assert run.finish() == 2
    one_sentence(run, "The results cannot be written to")
    run.assert_nothing_left()


def test_a_folder_that_is_there_and_takes_no_files(demo: Callable[..., Demo]) -> None:
    run = demo("--output", "/proc")
    assert run.finish() == 2
    one_sentence(run, "The results cannot be written to /proc")
    run.assert_nothing_left()


def test_an_unknown_driver(demo: Callable[..., Demo]) -> None:
    run = demo("--driver", "hyper-v")
    assert run.finish() == 2
    assert "hyper-v" in run.text
    assert "bubblewrap" in run.text
    assert "Traceback" not in run.text
    run.assert_nothing_left()


@pytest.fixture
def running(demo: Callable[..., Demo], tmp_path: Path) -> Iterator[Demo]:
    """A demo in the middle of its tasks."""
    for event in ("pre", "post"):
        tile(tmp_path / "imagery" / event / "a.tif")
    run = demo("--imagery", str(tmp_path / "imagery"))
    run.read_until("== preparing imagery")
    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_stops_everything(running: Demo, number: signal.Signals) -> None:
    assert len(running.children()) >= 3
    running.process.send_signal(number)
    assert running.finish() == 130
    assert "interrupted" in running.text
    assert "Traceback" not in running.text
    running.assert_nothing_left()


def test_a_killed_demo_takes_its_servers_along(running: Demo) -> None:
    assert len(running.children()) >= 3
    running.process.kill()
    running.finish()
    eventually(lambda: not running.children(), "the servers end")
    # Nobody was left to delete the files.
    for left in running.temporary.iterdir():
        shutil.rmtree(left)


@pytest.mark.parametrize(
    ("server", "name"), [("azurite", "Azurite"), ("batch_emulator", "The local Azure Batch")]
)
def test_a_server_killed_in_the_middle(running: Demo, server: str, name: str) -> None:
    os.kill(running.child(server), signal.SIGKILL)
    assert running.finish() == 1
    one_sentence(running, f"{name} was killed by signal 9")
    running.assert_nothing_left()
