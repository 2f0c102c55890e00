"""The whole road: two tenants, two shared pools, an attack, prepared images, and pools at zero again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import rasterio

from .support import Demo

pytestmark = pytest.mark.xdist_group("demo")
PROMISES = (
    "every task succeeded",
    "tasks spilled over and queued",
    "every routing decision has its reason",
    "every image is a valid cloud-optimised GeoTIFF",
    "every attack was denied, and every control succeeded",
    "the pools went back to zero nodes",
)


def check_images(output: Path, *, count: int) -> None:
    images = sorted(output.glob("images/*/*/*/processed_*.tif"))
    assert len(images) == count
    for path in images:
        with rasterio.open(path) as image:
            assert image.crs is not None
            assert image.profile["tiled"]
            assert image.overviews(1)
            assert image.count == 3
            assert image.dtypes[0] == "uint8"
            assert (
                image.nodata is not None or rasterio.enums.MaskFlags.per_dataset in image.mask_flag_enums[0]
            )
            west, south, east, north = image.bounds
            assert west < east
            assert south < north
            assert image.read(1, out_shape=(64, 64)).std() > 5, "an image of one colour"
    previews = sorted(output.glob("preview_*.png"))
    assert len(previews) == count
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in previews)


def check_isolation(output: Path) -> None:
    rows = json.loads((output / "isolation.json").read_text())
    assert len(rows) == 14
    assert {row["verdict"] for row in rows} == {"denied"}
    assert all(row["control_evidence"] for row in rows)


def check_secrets(demo: Demo) -> None:
    assert (demo.output / "grants.jsonl").read_text().count("\n") >= 4
    written = [path.read_bytes() for path in demo.output.rglob("*") if path.is_file()]
    for content in (demo.text.encode(), *written):
        for mark in (b"sig=", b"Bearer ey", b"AccountKey"):
            assert mark not in content


@pytest.mark.parametrize("source", ["generated", "joplin"])
def test_every_promise_holds(demo: Callable[..., Demo], source: str, request: pytest.FixtureRequest) -> None:
    imagery = () if source == "generated" else ("--imagery", str(request.getfixturevalue("joplin")))
    run = demo(*imagery)
    assert run.finish() == 0, run.text
    for promise in PROMISES:
        assert f"kept   {promise}" in run.text
    assert "BROKEN" not in run.text
    check_images(run.output, count=8 if source == "generated" else 4)
    check_isolation(run.output)
    check_secrets(run)
    run.assert_nothing_left()


def test_without_sandboxes_isolation_is_not_tested_and_the_exit_code_says_so(
    demo: Callable[..., Demo], tmp_path: Path
) -> None:
    run = demo("--driver", "process")
    assert run.finish() == 3, run.text
    assert "Warning: tasks run as plain processes" in run.text
    rows = {row["id"]: row for row in json.loads((run.output / "isolation.json").read_text())}
    untested = {name for name, row in rows.items() if row["verdict"] == "not tested"}
    assert untested == {"residue", "token-endpoint", "batch-api", "other-ports", "other-environments"}
    assert {row["verdict"] for row in rows.values()} == {"not tested", "denied"}
    assert "--allow-unsandboxed" in run.text
    run.assert_nothing_left()
