"""A check of cloud-optimised GeoTIFFs that fails for files which only look like one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rasterio.shutil

from hastegeo.errors import InputError
from hastegeo.workflows.cog import check_cog

TileWriter = Callable[..., Path]
Noise = Callable[..., np.ndarray]


def make_cog(source: Path, target: Path) -> Path:
    rasterio.shutil.copy(source, target, driver="COG", compress="DEFLATE", blocksize=256)
    return target


def test_a_real_one_passes(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    source = write_tile(tmp_path / "a.tif", noise(3, 700, 900), nodata=0)
    report = check_cog(make_cog(source, tmp_path / "cog.tif"))
    assert report.valid
    assert report.problems == ()
    assert (report.crs, report.validity, report.overviews) == ("EPSG:32615", "nodata", (2, 4))
    assert (report.bands, report.dtype, report.resolution) == (3, "uint8", (1.0, 1.0))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"nodata": None}, "does not say which pixels hold data"),
        ({"crs": None}, "no coordinate reference system"),
    ],
)
def test_one_without_what_it_needs_does_not(
    tmp_path: Path, write_tile: TileWriter, noise: Noise, options: dict[str, object], problem: str
) -> None:
    source = write_tile(tmp_path / "a.tif", noise(3, 300, 300), **{"nodata": 0, **options})
    report = check_cog(make_cog(source, tmp_path / "cog.tif"))
    assert not report.valid
    assert problem in " ".join(report.problems)


def test_a_plain_geotiff_does_not(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    report = check_cog(write_tile(tmp_path / "a.tif", noise(3, 700, 900), nodata=0))
    assert any("not tiled" in problem for problem in report.problems)
    assert any("overviews" in problem for problem in report.problems)


def test_overviews_that_were_added_later_do_not(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    path = write_tile(tmp_path / "a.tif", noise(3, 700, 900), nodata=0, tiled=True)
    with rasterio.open(path, "r+") as target:
        target.build_overviews([2, 4])
    assert not check_cog(path).valid


def test_a_file_that_is_no_raster_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.tif").write_text("nothing")
    with pytest.raises(InputError, match="not a GeoTIFF"):
        check_cog(tmp_path / "a.tif")
