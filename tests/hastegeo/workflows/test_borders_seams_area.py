"""Black borders, blended seams, and areas of interest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rasterio
import rasterio.warp
from affine import Affine
from rasterio.windows import Window

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.grid import plan_grid
from hastegeo.workflows.imagery.mosaic import Mosaic, _weights
from hastegeo.workflows.imagery.options import FEATHER_PIXELS, Seams
from hastegeo.workflows.imagery.tiles import read_pixels, read_tile
from hastegeo.workflows.prepare_imagery import ImageryOptions, check_imagery, prepare_imagery, read_area

TileWriter = Callable[..., Path]
Noise = Callable[..., np.ndarray]


def slanted(height: int = 120, width: int = 140) -> np.ndarray:
    """Where a picture lies that was turned: a slanted band, as after warping."""
    rows, columns = np.indices((height, width))
    return (columns > 20 - rows * 0.15) & (columns < width - rows * 0.15) & (rows > 4)


def valid_pixels(path: Path, *, keep_black: bool = False) -> np.ndarray:
    tile = read_tile(path.name, path, keep_black=keep_black)
    with rasterio.open(path) as source:
        return read_pixels(tile, source, Window(0, 0, tile.width, tile.height))[1]


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_a_black_border_is_no_data_and_black_inside_is(
    tmp_path: Path, write_tile: TileWriter, noise: Noise, dtype: str
) -> None:
    inside = slanted()
    data = np.maximum(noise(3, 120, 140, dtype), 1) * inside
    data[:, 50:60, 60:70] = 0  # a shadow
    path = write_tile(tmp_path / "a.tif", data)
    assert np.array_equal(valid_pixels(path), inside)
    assert valid_pixels(path, keep_black=True).all()


def test_a_tile_that_says_what_is_empty_is_believed(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    data = np.maximum(noise(3, 120, 140), 1) * slanted()
    assert valid_pixels(write_tile(tmp_path / "a.tif", data, nodata=255)).sum() > slanted().sum()
    mask = np.ones((120, 140), bool)
    assert valid_pixels(write_tile(tmp_path / "b.tif", data, mask=mask)).all()


def test_a_few_black_pixels_at_the_edge_are_no_border(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    data = np.maximum(noise(3, 100, 100), 1)
    data[:, 0, :5] = 0
    assert valid_pixels(write_tile(tmp_path / "a.tif", data)).all()


def test_a_jpeg_s_border_is_not_quite_black(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    inside = np.zeros((256, 256), bool)
    inside[64:192, 64:192] = True
    data = (np.full((3, 256, 256), 120) * inside).astype("uint8")
    path = write_tile(tmp_path / "a.tif", data, compress="JPEG", photometric="YCBCR", tiled=True)
    # Blocks of 16 pixels are compressed together.
    assert (valid_pixels(path) != inside).sum() == 0


def test_a_black_border_is_said_and_can_be_kept(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    write_tile(tmp_path / "in" / "a.tif", np.maximum(noise(3, 120, 140), 1) * slanted())
    assert "Black borders count as no data: a.tif." in check_imagery(tmp_path / "in")["post"].notes
    shares = []
    for keep in (False, True):
        manifest = prepare_imagery(
            tmp_path / "in",
            tmp_path / "out",
            event="post",
            project="p",
            layer="l",
            options=ImageryOptions(keep_black=keep),
        )
        shares.append(manifest.valid_share)
    assert shares == [slanted().mean(), 1.0]


def test_tiles_that_are_black_all_over_are_refused(tmp_path: Path, write_tile: TileWriter) -> None:
    write_tile(tmp_path / "a.tif", np.zeros((3, 40, 40), "uint8"))
    with pytest.raises(InputError, match="black or marked as having no data"):
        check_imagery(tmp_path)


# Seams


def read_mosaic(*paths: Path, seams: Seams) -> tuple[np.ndarray, np.ndarray]:
    tiles = [read_tile(path.name, path) for path in paths]
    with Mosaic(tiles, plan_grid(tiles).grid, seams=seams) as mosaic:
        return mosaic.read(Window(0, 0, mosaic.grid.width, mosaic.grid.height))


def test_a_feathered_seam_goes_from_one_tile_to_the_other_without_a_step(
    tmp_path: Path, write_tile: TileWriter
) -> None:
    left = write_tile(tmp_path / "a.tif", np.full((1, 200, 300), 1000, "uint16"))
    right = write_tile(tmp_path / "b.tif", np.full((1, 200, 300), 3000, "uint16"), west=500_200)
    hard, _ = read_mosaic(left, right, seams=Seams.TOP)
    soft, valid = read_mosaic(left, right, seams=Seams.FEATHER)
    assert valid.all()
    assert np.abs(np.diff(hard[0, 100].astype(int))).max() == 2000
    assert np.abs(np.diff(soft[0, 100].astype(int))).max() < 80
    assert (np.diff(soft[0, 100].astype(int)) >= 0).all()
    # Where one tile is alone, nothing changes.
    assert np.array_equal(soft[:, :, :200], hard[:, :, :200])
    assert np.array_equal(soft[:, :, 300:], hard[:, :, 300:])


def test_feathering_works_on_warped_tiles_and_keeps_empty_pixels_out(
    tmp_path: Path, write_tile: TileWriter
) -> None:
    turned = Affine.translation(500_060, 4_000_000) @ Affine.rotation(-8) @ Affine.scale(1, -1)
    flat = np.full((1, 150, 150), 100, "uint8")
    holed = np.full((1, 150, 150), 200, "uint8")
    holed[:, 60:90, 60:90] = 0
    first = write_tile(tmp_path / "a.tif", flat, nodata=0)
    second = write_tile(tmp_path / "b.tif", holed, nodata=0, transform=turned)
    data, valid = read_mosaic(first, second, seams=Seams.FEATHER)
    seen = data[0][valid]
    assert seen.min() == 100
    assert seen.max() == 200
    assert ((seen > 110) & (seen < 190)).any()


def test_weights_rise_from_the_edge_and_are_the_same_in_every_window(
    tmp_path: Path, write_tile: TileWriter
) -> None:
    tile = read_tile("a.tif", write_tile(tmp_path / "a.tif", np.ones((1, 300, 200), "uint8")))
    whole = _weights(tile, Window(0, 0, 200, 300))
    assert whole.min() == whole[0, 0] == whole[-1, -1] == 1
    assert whole[150, 100] == whole[150, FEATHER_PIXELS] == 255
    assert np.array_equal(_weights(tile, Window(30, 40, 50, 60)), whole[40:100, 30:80])


# Areas of interest


def write_geojson(path: Path, *rings: list[tuple[float, float]]) -> Path:
    features = [
        {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        for ring in rings
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def degrees(x: float, y: float) -> tuple[float, float]:
    xs, ys = rasterio.warp.transform("EPSG:32615", "EPSG:4326", [x], [y])
    return xs[0], ys[0]


def test_everything_is_cut_to_the_area_of_interest(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    data = noise(3, 200, 200)
    write_tile(tmp_path / "in" / "a.tif", data)
    corners = [(500_050.2, 3_999_950.0), (500_130.0, 3_999_950.0), (500_050.2, 3_999_850.0)]
    area = read_area(write_geojson(tmp_path / "aoi.geojson", [degrees(*c) for c in (*corners, corners[0])]))
    manifest = prepare_imagery(
        tmp_path / "in",
        tmp_path / "out",
        event="post",
        project="p",
        layer="l",
        options=ImageryOptions(area=area),
    )
    assert (manifest.grid.width, manifest.grid.height) == (80, 100)
    with rasterio.open(tmp_path / "out" / manifest.output("raw").path) as raw:
        valid = raw.dataset_mask() > 0
        assert valid.mean() == pytest.approx(0.5, abs=0.03)  # it is a triangle
        assert np.array_equal(raw.read()[:, valid], data[:, 50:150, 50:130][:, valid])
    with rasterio.open(tmp_path / "out" / manifest.output("processed").path) as processed:
        assert np.array_equal(processed.dataset_mask() > 0, valid)


def test_an_area_elsewhere_is_refused(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    write_tile(tmp_path / "in" / "a.tif", noise(3, 60, 60))
    ring = [(10.0, 50.0), (10.1, 50.0), (10.1, 50.1), (10.0, 50.0)]
    area = read_area(write_geojson(tmp_path / "aoi.geojson", ring))
    with pytest.raises(InputError, match=r"aoi\.geojson does not overlap the tiles"):
        check_imagery(tmp_path / "in", ImageryOptions(area=area))
