"""A scene is the same for the same seed, looks like what it says, and tells the truth about itself."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pyogrio.raw
import pytest
import rasterio
import shapely
import shapely.geometry
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.crs import CRS
from rasterio.features import geometry_mask
from rasterio.warp import transform_bounds, transform_geom

from hastegeo.errors import InputError
from hastegeo.samples import Damage, SceneManifest, make_scene
from hastegeo.samples.layout import plan_town

SIZE = 320


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> SceneManifest:
    return make_scene(tmp_path_factory.mktemp("scene"), seed=7, size=SIZE)


def read_vectors(path: Path) -> tuple[dict[str, list[object]], list[shapely.Geometry], str]:
    meta, _, geometry, data = pyogrio.raw.read(path)
    fields = {name: list(column) for name, column in zip(meta["fields"], data, strict=True)}
    return fields, list(shapely.from_wkb(geometry)), meta["crs"]


def test_the_same_seed_gives_the_same_files_and_another_seed_others(
    scene: SceneManifest, tmp_path: Path
) -> None:
    again = make_scene(tmp_path / "again", seed=7, size=SIZE)
    other = make_scene(tmp_path / "other", seed=8, size=SIZE)
    assert again.sha256 == scene.sha256
    assert all(other.sha256[name] != digest for name, digest in scene.sha256.items())
    assert (again.directory / "scene.json").read_bytes() == (scene.directory / "scene.json").read_bytes()


def test_the_checksums_and_names_are_those_of_the_files(scene: SceneManifest) -> None:
    found = {
        path.relative_to(scene.directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in scene.directory.rglob("*")
        if path.is_file() and path.name != "scene.json"
    }
    assert found == scene.sha256
    assert {*scene.pre, *scene.post, scene.buildings, scene.truth} == set(found)
    record = json.loads((scene.directory / "scene.json").read_text())
    assert record["sha256"] == scene.sha256
    assert record["damage"] == scene.damage


@pytest.mark.parametrize(
    ("event", "crs", "dtype", "nodata"),
    [("pre", "EPSG:26915", "uint8", None), ("post", "EPSG:4326", "uint16", 0.0)],
)
def test_tiles_are_raw_as_delivered_and_overlap_a_little(
    scene: SceneManifest, event: str, crs: str, dtype: str, nodata: float | None
) -> None:
    boxes = []
    for path in scene.paths(scene.pre if event == "pre" else scene.post):
        with rasterio.open(path) as tile:
            assert (tile.crs.to_string(), tile.dtypes[0], tile.nodata) == (crs, dtype, nodata)
            assert tile.count == 3
            assert tile.compression is None
            assert not tile.profile["tiled"]
            assert tile.overviews(1) == []
            assert len(np.unique(tile.read(1))) > 50
            boxes.append(shapely.box(*tile.bounds))
    assert len(boxes) == 4
    union = shapely.union_all(boxes)
    assert union.area == pytest.approx(union.envelope.area)
    assert 1.05 < sum(box.area for box in boxes) / union.area < 1.4


def test_pre_and_post_overlap_only_partly(scene: SceneManifest) -> None:
    grounds = {}
    for event, names in (("pre", scene.pre), ("post", scene.post)):
        boxes = []
        for path in scene.paths(names):
            with rasterio.open(path) as tile:
                boxes.append(shapely.box(*transform_bounds(tile.crs, "EPSG:26915", *tile.bounds)))
        grounds[event] = shapely.union_all(boxes)
    shared = grounds["pre"].intersection(grounds["post"]).area / grounds["pre"].area
    assert 0.6 < shared < 0.95


def test_the_post_image_has_a_swath_edge_without_data(scene: SceneManifest) -> None:
    with rasterio.open(scene.directory / "post/tile_r0_c0.tif") as tile:
        empty = (tile.dataset_mask() == 0).mean()
    assert 0.05 < empty < 0.6


def test_every_footprint_has_a_truth_and_lies_in_both_images(scene: SceneManifest) -> None:
    footprints, outlines, crs = read_vectors(scene.directory / scene.buildings)
    truth, _, _ = read_vectors(scene.directory / scene.truth)
    assert CRS.from_string(crs) == CRS.from_epsg(26915)
    assert footprints["id"] == truth["id"]
    assert len(set(footprints["id"])) == len(footprints["id"]) == sum(scene.damage.values())
    assert [Damage(level).name.lower() for level in truth["damage"]] == truth["damage_name"]
    for outline in outlines:
        assert outline.is_valid
        centre = outline.centroid
        for names in (scene.pre, scene.post):
            assert any(_sees(path, centre) for path in scene.paths(names))


def _sees(path: Path, point: shapely.Point) -> bool:
    with rasterio.open(path) as tile:
        x, y = transform_geom("EPSG:26915", tile.crs, shapely.geometry.mapping(point))["coordinates"]
        row, column = tile.index(x, y)
        inside = 0 <= row < tile.height and 0 <= column < tile.width
        return bool(inside and tile.dataset_mask()[row, column])


def test_roofs_that_the_truth_calls_destroyed_become_rubble_and_undamaged_ones_stay(tmp_path: Path) -> None:
    scene = make_scene(tmp_path, seed=7, size=640)
    truth, outlines, _ = read_vectors(scene.directory / scene.truth)
    levels = np.array(truth["damage"])
    # Rubble is speckled: its pixels differ more among each other than those of a roof.
    growth = _speckle(scene, scene.post, outlines) / _speckle(scene, scene.pre, outlines)
    destroyed, untouched = growth[levels == Damage.DESTROYED], growth[levels == Damage.NONE]
    assert len(destroyed) >= 5
    assert len(untouched) >= 5
    assert np.median(destroyed) > 1.5 * np.median(untouched)


def _speckle(scene: SceneManifest, names: tuple[str, ...], outlines: list[shapely.Geometry]) -> np.ndarray:
    """Return the relative spread of the red pixels in each footprint, from a tile that shows all of it."""
    found = np.zeros(len(outlines))
    for path in scene.paths(names):
        with rasterio.open(path) as tile:
            red = tile.read(1).astype(float)
            red = (
                red if event_of(path) == "post" else red**2
            )  # the 8-bit image is brightened by a square root
            ground = shapely.box(*tile.bounds)
            for index, outline in enumerate(outlines):
                shape = transform_geom("EPSG:26915", tile.crs, shapely.geometry.mapping(outline))
                if ground.contains(shapely.geometry.shape(shape)):
                    inside = geometry_mask([shape], red.shape, tile.transform, invert=True)
                    found[index] = red[inside].std() / red[inside].mean()
    assert (found > 0).all()
    return found


def event_of(path: Path) -> str:
    return path.parent.name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": 1, "size": 100}, "256 to 2048 pixels"),
        ({"seed": 1, "size": 5000}, "256 to 2048 pixels"),
        ({"seed": -1}, "seed is 0 or more"),
    ],
)
def test_a_wrong_size_or_seed_is_refused(arguments: dict[str, int], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        make_scene(tmp_path / "scene", **arguments)
    assert not (tmp_path / "scene").exists()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot be written.*Choose another folder"):
        make_scene(tmp_path / "file", seed=1, size=SIZE)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), extent=st.floats(140, 500))
def test_a_town_is_whole_whatever_the_seed(seed: int, extent: float) -> None:
    town = plan_town(seed, extent)
    assert town == plan_town(seed, extent)
    ids = [building.id for building in town.buildings if building.id]
    assert len(set(ids)) == len(ids) > 0
    for building in town.buildings:
        outline = shapely.Polygon(town.outline(building))
        assert outline.area == pytest.approx(building.length * building.width)
    # The storm's middle lies in the scene, and it does less further away.
    across = town.storm.half_width * 4
    assert town.storm.strength(0.0, town.storm.offset) > town.storm.strength(0.0, town.storm.offset + across)
