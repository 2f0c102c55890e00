"""The mosaic agrees with rasterio's own tools on small cases, and what is not valid never shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rasterio.enums import ColorInterp
from rasterio.merge import merge
from rasterio.warp import Resampling, reproject
from rasterio.windows import Window

from hastegeo.errors import InputError
from hastegeo.workflows.imagery import mosaic as mosaic_module
from hastegeo.workflows.imagery.grid import plan_grid
from hastegeo.workflows.imagery.mosaic import Mosaic
from hastegeo.workflows.imagery.tiles import read_tile

TileWriter = Callable[..., Path]
Noise = Callable[..., np.ndarray]


def open_mosaic(*paths: Path) -> Mosaic:
    tiles = [read_tile(path.name, path) for path in paths]
    return Mosaic(tiles, plan_grid(tiles).grid)


def whole(mosaic: Mosaic) -> tuple[np.ndarray, np.ndarray]:
    with mosaic:
        return mosaic.read(Window(0, 0, mosaic.grid.width, mosaic.grid.height))


def test_tiles_on_one_grid_are_what_rasterio_merges(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    paths = [
        write_tile(
            tmp_path / f"{index}.tif",
            np.maximum(noise(3, 120, 150, "uint16", seed=index), 1),
            west=500_000 + east,
            north=4_000_000 - south,
            nodata=0,
        )
        for index, (east, south) in enumerate([(0, 0), (130, 20), (40, 100)])
    ]
    data, valid = whole(open_mosaic(*paths))
    expected, transform = merge([str(path) for path in paths], method="last")
    assert transform.almost_equals(open_mosaic(*paths).grid.transform)
    assert np.array_equal(np.where(valid, data, 0), expected)
    assert np.array_equal(valid, (expected != 0).all(axis=0))


def test_a_foreign_tile_is_what_rasterio_warps(tmp_path: Path, write_tile: TileWriter) -> None:
    rows, columns = np.indices((200, 200))
    smooth = np.stack([rows + columns, rows, 400 - columns]).astype("uint16") + 10
    main = write_tile(tmp_path / "a.tif", smooth[:, :60, :60])
    foreign = write_tile(
        tmp_path / "b.tif",
        smooth[:, :50, :50],
        crs="EPSG:4326",
        transform=Affine(1e-5, 0, -93.0, 0, -1e-5, 36.144),
    )
    opened = open_mosaic(main, foreign)
    grid = opened.grid
    data, valid = whole(opened)
    expected = np.zeros((3, grid.height, grid.width), dtype="uint16")
    reproject(
        smooth[:, :50, :50].copy(),
        expected,
        src_crs="EPSG:4326",
        src_transform=Affine(1e-5, 0, -93.0, 0, -1e-5, 36.144),
        src_nodata=0,
        dst_crs=grid.crs,
        dst_transform=grid.transform,
        dst_nodata=0,
        resampling=Resampling.bilinear,
    )
    both = valid & (expected != 0).all(axis=0)
    with rasterio.open(main) as source:
        column, row = (~grid.transform) @ (source.bounds.left, source.bounds.top)
    both[round(row) : round(row) + 60, round(column) : round(column) + 60] = False  # there the main tile lies
    assert both.sum() > 1000
    difference = np.abs(data.astype(int) - expected)[:, both]
    assert difference.max() <= 2
    assert (difference == 0).mean() > 0.95


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=st.integers(0, 150), top=st.integers(0, 150), width=st.integers(1, 90), height=st.integers(1, 90))
def test_a_window_is_a_part_of_the_whole(
    left: int,
    top: int,
    width: int,
    height: int,
    tmp_path_factory: pytest.TempPathFactory,
    two_tiles: tuple[Path, Path],
) -> None:
    opened = open_mosaic(*two_tiles)
    data, valid = whole(opened)
    rows = slice(top, min(top + height, opened.grid.height))
    columns = slice(left, min(left + width, opened.grid.width))
    if rows.stop <= rows.start or columns.stop <= columns.start:
        return
    with open_mosaic(*two_tiles) as again:
        part, part_valid = again.read(Window(left, top, columns.stop - columns.start, rows.stop - rows.start))
    # Warping by parts may round a coordinate in another way, by less than an eighth of a pixel.
    assert (part_valid != valid[rows, columns]).mean() <= 0.02
    same = part_valid & valid[rows, columns]
    assert np.abs(part.astype(int) - data[:, rows, columns])[:, same].max(initial=0) <= 2


@pytest.fixture
def two_tiles(tmp_path: Path, write_tile: TileWriter) -> tuple[Path, Path]:
    """One tile on the grid and one, smooth, that is turned and has to be warped."""
    rows, columns = np.indices((150, 150))
    smooth = np.stack([100 + rows // 4 + columns // 4] * 3).astype("uint8")
    turned = Affine.translation(500_080, 3_999_950) @ Affine.rotation(12) @ Affine.scale(1, -1)
    return (
        write_tile(tmp_path / "a.tif", smooth[:, :100, :100]),
        write_tile(tmp_path / "b.tif", smooth, transform=turned),
    )


def test_the_finer_tile_lies_on_top_then_the_last_by_name(tmp_path: Path, write_tile: TileWriter) -> None:
    flat = np.ones((1, 40, 40), dtype="uint8")
    fine = write_tile(tmp_path / "a-fine.tif", flat * 50, pixel=0.5)
    early = write_tile(tmp_path / "b.tif", flat * 100)
    late = write_tile(tmp_path / "c.tif", flat * 200)
    data, valid = whole(open_mosaic(late, fine, early))
    assert valid.all()
    assert set(np.unique(data[0, :38, :38])) == {50}
    assert set(np.unique(data[0, 42:, 42:])) == {200}


@pytest.mark.parametrize("way", ["nodata", "alpha", "mask", "nan", "nodata and alpha"])
@pytest.mark.parametrize("warped", [False, True])
def test_whatever_marks_a_pixel_as_empty_it_stays_empty_and_lends_nothing(
    tmp_path: Path, write_tile: TileWriter, way: str, warped: bool
) -> None:
    # Half the tile is empty; what its pixels hold there would show if it leaked into the other half.
    empty = np.indices((60, 60))[1] < 30
    kind = "float32" if way == "nan" else "uint16"
    hidden = {"nodata": 60_000, "alpha": 60_000, "mask": 60_000, "nan": np.nan}.get(way, 60_000)
    data = np.where(empty, hidden, 1000).astype(kind)[np.newaxis]
    turned = Affine.translation(500_000, 4_000_000) @ Affine.rotation(15) @ Affine.scale(1, -1)
    options: dict[str, object] = {"transform": turned} if warped else {}
    if way.startswith("nodata"):
        options["nodata"] = 60_000
    if way.endswith("alpha"):
        data = np.concatenate([data, np.where(empty, 0, 65_535).astype(kind)[np.newaxis]])
        options["colours"] = (ColorInterp.gray, ColorInterp.alpha)
    if way == "mask":
        options["mask"] = ~empty
    found, valid = whole(open_mosaic(write_tile(tmp_path / "a.tif", data, **options)))
    assert found.shape[0] == 1
    assert valid.sum() == pytest.approx(30 * 60, rel=0.03 if warped else 0)
    assert np.unique(found[0][valid]).tolist() == [1000]


def test_where_the_upper_tile_is_empty_the_lower_shows(tmp_path: Path, write_tile: TileWriter) -> None:
    lower = write_tile(tmp_path / "a.tif", np.full((1, 30, 30), 7, "uint8"))
    upper = np.zeros((1, 30, 30), "uint8")
    upper[:, :10] = 9
    data, valid = whole(open_mosaic(lower, write_tile(tmp_path / "b.tif", upper, nodata=0)))
    assert valid.all()
    assert (data[0, :10] == 9).all()
    assert (data[0, 10:] == 7).all()


def test_other_numbers_of_bands_are_refused_by_name(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    one = write_tile(tmp_path / "one.tif", noise(1, 30, 30))
    three = write_tile(tmp_path / "three.tif", noise(3, 30, 30))
    with pytest.raises(InputError, match=r"1 in one\.tif and 3 in three\.tif"):
        open_mosaic(one, three)


@pytest.mark.parametrize(
    ("kinds", "common"),
    [
        (("uint8", "uint8"), "uint8"),
        (("uint8", "uint16"), "uint16"),
        (("uint16", "int16"), "int32"),
        (("uint8", "float32"), "float32"),
        (("uint32", "int32"), "float64"),
    ],
)
def test_mixed_pixel_types_become_one_that_holds_both(
    tmp_path: Path, write_tile: TileWriter, noise: Noise, kinds: tuple[str, str], common: str
) -> None:
    first, second = noise(1, 30, 30, kinds[0]), noise(1, 30, 30, kinds[1], seed=1)
    opened = open_mosaic(
        write_tile(tmp_path / "a.tif", first), write_tile(tmp_path / "b.tif", second, west=500_030)
    )
    assert opened.dtype == common
    data, _ = whole(opened)
    assert np.array_equal(data[0, :, :30], first[0].astype(common))
    assert np.array_equal(data[0, :, 30:], second[0].astype(common))


def test_a_much_finer_tile_is_warped_in_parts_with_the_same_result(
    tmp_path: Path, write_tile: TileWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, columns = np.indices((160, 160))
    smooth = np.stack([rows // 2 + columns // 2 + 20]).astype("uint8")
    turned = Affine.translation(500_000, 4_000_000) @ Affine.rotation(10) @ Affine.scale(1, -1)
    path = write_tile(tmp_path / "a.tif", smooth, transform=turned)
    at_once, valid = whole(open_mosaic(path))
    monkeypatch.setattr(mosaic_module, "_MAX_SOURCE_PIXELS", 2_000)
    monkeypatch.setattr(mosaic_module, "_SMALLEST_PART", 16)
    in_parts, valid_in_parts = whole(open_mosaic(path))
    assert (valid != valid_in_parts).mean() < 0.01
    both = valid & valid_in_parts
    assert np.abs(at_once.astype(int) - in_parts)[:, both].max() <= 1


def test_no_more_files_are_open_than_allowed(
    tmp_path: Path, write_tile: TileWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mosaic_module, "_MAX_OPEN", 3)
    paths = [
        write_tile(
            tmp_path / f"{index}.tif", np.full((1, 10, 10), index + 1, "uint8"), west=500_000 + index * 10
        )
        for index in range(8)
    ]
    opened = open_mosaic(*paths)
    with opened:
        data, _ = opened.read(Window(0, 0, 80, 10))
        assert len(opened._open) == 3
    assert not opened._open
    assert data[0, 0, ::10].tolist() == list(range(1, 9))
