"""The files that imagery preparation leaves: raw mosaic, processed image, preview."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import rasterio
import rasterio.shutil
from affine import Affine
from numpy.typing import NDArray
from rasterio.enums import ColorInterp, Resampling
from rasterio.windows import Window

from hastegeo.workflows.imagery.grid import Grid
from hastegeo.workflows.imagery.mosaic import TILE_SIZE, Mosaic
from hastegeo.workflows.imagery.percentiles import BandCounter, add_to_all
from hastegeo.workflows.imagery.stretch import NODATA, Stretch
from hastegeo.workflows.imagery.tiles import windows

PREVIEW_PIXELS: Final = 800

Advance = Callable[[float], None]

# What is on the way to a COG is read once or twice and then deleted: fast beats small.
_PASSING: Final[dict[str, Any]] = {
    "driver": "GTiff",
    "tiled": True,
    "blockxsize": TILE_SIZE,
    "blockysize": TILE_SIZE,
    "compress": "ZSTD",
    "zstd_level": 1,
    "bigtiff": "IF_SAFER",
    "num_threads": "ALL_CPUS",
    "sparse_ok": True,
}
_COG: Final[dict[str, Any]] = {
    "driver": "COG",
    "blocksize": TILE_SIZE,
    "overview_resampling": "AVERAGE",
    "bigtiff": "IF_SAFER",
    "num_threads": "ALL_CPUS",
}
# The raw mosaic is for programs on GDAL, where ZSTD is faster than DEFLATE for the same size; what is shown
# in browsers and older readers is DEFLATE, which all of them know.
RAW_COMPRESSION: Final = {"compress": "ZSTD", "level": 3}
PROCESSED_COMPRESSION: Final = {"compress": "DEFLATE", "level": 6}


def write_raw(
    mosaic: Mosaic, path: Path, *, nodata: float | None, percentiles: tuple[int, int], advance: Advance
) -> tuple[list[BandCounter], int]:
    """Write the mosaic to a passing file, and return the counted values of each band and of valid pixels.

    Pixels without data hold `nodata`; without one they are marked in an internal mask.
    """
    counters = [BandCounter(mosaic.dtype, percentiles) for _ in range(mosaic.count)]
    blocks = windows(mosaic.grid.width, mosaic.grid.height, size=mosaic.block_size)
    valid_pixels = 0
    # Of four bands of bytes GDAL would take the last for alpha.
    options = {"alpha": "unspecified"} if mosaic.count > 1 else {}
    with _create(
        path, mosaic.grid, count=mosaic.count, dtype=mosaic.dtype, nodata=nodata, **options
    ) as target:
        target.colorinterp = [ColorInterp[colour] for colour in mosaic.colours]
        for done, window in enumerate(blocks, start=1):
            data, valid = mosaic.read(window)
            found = int(np.count_nonzero(valid))
            valid_pixels += found
            if found:
                add_to_all(counters, data, valid)
            if nodata is None:
                target.write_mask(np.where(valid, 255, 0).astype(np.uint8), window=window)
            elif found < valid.size:
                data[:, ~valid] = nodata
            if found or nodata is not None:
                target.write(data, window=window)
            advance(done / len(blocks))
    return counters, valid_pixels


def count_again(path: Path, counters: Sequence[BandCounter], *, block_size: int, advance: Advance) -> None:
    """Give the counters their second look at the raw mosaic."""
    for counter in counters:
        counter.begin_second_pass()
    with rasterio.open(path, driver="GTiff") as source:
        blocks = windows(source.width, source.height, size=block_size)
        for done, window in enumerate(blocks, start=1):
            valid = source.dataset_mask(window=window) > 0
            add_to_all(counters, source.read(window=window), valid)
            advance(done / len(blocks))


class Blocks(Protocol):
    """What the processed image is made of, on its own grid."""

    @property
    def block_size(self) -> int:
        """The side of the blocks to read."""
        ...

    def read(self, window: Window) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return data (bands, rows, columns) and valid pixels of a window."""
        ...


@dataclass(frozen=True, slots=True)
class PassingFile:
    """A raw mosaic, read back."""

    source: Any
    block_size: int

    def read(self, window: Window) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return data (bands, rows, columns) and valid pixels of a window."""
        return self.source.read(window=window), self.source.dataset_mask(window=window) > 0


def write_processed(
    blocks: Blocks,
    path: Path,
    grid: Grid,
    *,
    bands: tuple[int, int, int],
    stretches: Sequence[Stretch],
    advance: Advance,
) -> int:
    """Write the 8-bit RGB image to a passing file, and return how many of its pixels are valid.

    `bands` are the 0-based positions of those shown.
    """
    valid_pixels = 0
    with _create(path, grid, count=3, dtype="uint8", nodata=NODATA, photometric="RGB") as target:
        target.colorinterp = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
        all_windows = windows(grid.width, grid.height, size=blocks.block_size)
        for done, window in enumerate(all_windows, start=1):
            data, valid = blocks.read(window)
            if found := int(np.count_nonzero(valid)):
                shown = np.stack(
                    [stretch(data[band]) for band, stretch in zip(bands, stretches, strict=True)]
                )
                shown[:, ~valid] = NODATA
                target.write(shown, window=window)
                valid_pixels += found
            advance(done / len(all_windows))
    return valid_pixels


def write_cog(source: Path, target: Path, *, compression: dict[str, Any]) -> None:
    """Turn a passing file into a cloud-optimised GeoTIFF with overviews."""
    with rasterio.open(source, driver="GTiff") as opened:
        predictor = "FLOATING_POINT" if np.dtype(opened.dtypes[0]).kind == "f" else "STANDARD"
        rasterio.shutil.copy(opened, target, **_COG, **compression, predictor=predictor)


def write_preview(image: Path, target: Path) -> None:
    """Write a PNG of at most 800 pixels a side, in the ground's proportions, see-through without data."""
    with rasterio.open(image, driver="GTiff") as source:
        height, width = _preview_shape(source)
        colours: NDArray[np.uint8] = source.read(
            [1, 2, 3], out_shape=(3, height, width), resampling=Resampling.average
        )
        opacity = np.where((colours != NODATA).any(axis=0), 255, 0).astype(np.uint8)
        transform = source.transform @ Affine.scale(source.width / width, source.height / height)
    # A PNG cannot keep its position; it is given all the same, for rasterio warns of a raster without one.
    with rasterio.open(
        target, "w", driver="PNG", width=width, height=height, count=4, dtype="uint8", transform=transform
    ) as picture:
        picture.write(np.concatenate([colours, opacity[np.newaxis]]))


def _preview_shape(source: Any) -> tuple[int, int]:
    x_size, y_size = source.res
    if source.crs.is_geographic:
        # A degree of longitude is shorter than one of latitude.
        middle = (source.bounds.bottom + source.bounds.top) / 2
        x_size *= max(math.cos(math.radians(middle)), 0.1)
    ground_width, ground_height = source.width * x_size, source.height * y_size
    pixel = max(ground_width / PREVIEW_PIXELS, ground_height / PREVIEW_PIXELS, x_size, y_size)
    return max(1, round(ground_height / pixel)), max(1, round(ground_width / pixel))


def _create(path: Path, grid: Grid, *, count: int, dtype: str, nodata: float | None, **options: Any) -> Any:
    return rasterio.open(
        path,
        "w",
        width=grid.width,
        height=grid.height,
        count=count,
        dtype=dtype,
        crs=grid.crs,
        transform=grid.transform,
        nodata=nodata,
        **(_PASSING | options),
    )
