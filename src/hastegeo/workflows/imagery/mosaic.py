"""The mosaic, block by block: memory is that of one block, whatever the size of the whole.

Where tiles overlap, the finer one lies on top, and among equals the one whose name sorts last.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from affine import Affine
from numpy.typing import NDArray
from rasterio.errors import RasterioError
from rasterio.warp import Resampling, reproject, transform_bounds
from rasterio.windows import Window

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.gdal import WARP_MEGABYTES, not_readable, open_geotiff
from hastegeo.workflows.imagery.grid import Grid, place_on
from hastegeo.workflows.imagery.tiles import Tile, listing, read_pixels

TILE_SIZE: Final = 512
_BLOCK_BYTES: Final = 32 * 1024 * 1024
_MAX_OPEN: Final = 32
_OPAQUE: Final = 255
# Warping needs the neighbours of a pixel.
_PADDING: Final = 4
# A tile much finer than the grid is warped in parts, so that no part reads more source pixels than this.
_MAX_SOURCE_PIXELS: Final = 16_000_000
_SMALLEST_PART: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A tile and where it lies on the grid; `offset` is None for a tile that has to be warped."""

    tile: Tile
    window: Window
    offset: tuple[int, int] | None


class Mosaic:
    """All tiles of an event on one grid, readable by window."""

    def __init__(self, tiles: Sequence[Tile], grid: Grid) -> None:
        """Arrange tiles on a grid. Raises `InputError` where their bands do not match."""
        self.grid = grid
        self.count = _common_count(tiles)
        self.dtype: str = common_dtype(tiles)
        ordered = sorted(tiles, key=lambda tile: tile.name)
        ordered.sort(key=lambda tile: -_ground_area(tile, grid))
        self.placements = tuple(_place(tile, grid) for tile in ordered)
        self._open: OrderedDict[str, Any] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        while self._open:
            self._open.popitem()[1].close()

    @property
    def block_size(self) -> int:
        """The side of the blocks to read: a multiple of the output's own tiles, bounded in bytes."""
        pixel = self.count * np.dtype(self.dtype).itemsize
        side = math.isqrt(_BLOCK_BYTES // pixel)
        return max(TILE_SIZE, min(4 * TILE_SIZE, side // TILE_SIZE * TILE_SIZE))

    def read(self, window: Window) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return data (bands, rows, columns) and valid pixels of a window of the grid.

        Pixels that no tile covers are 0 and not valid. Raises `InputError` naming a tile that is damaged.
        """
        data = np.zeros((self.count, window.height, window.width), dtype=self.dtype)
        valid = np.zeros((window.height, window.width), dtype=bool)
        for placement in self.placements:
            part = _intersection(window, placement.window)
            if part is None:
                continue
            if placement.offset is not None:
                self._copy(placement, part, window, data, valid)
            else:
                self._warp(placement.tile, part, window, data, valid)
        return data, valid

    def _source(self, tile: Tile) -> Any:
        source = self._open.pop(tile.name, None)
        if source is None:
            source = open_geotiff(tile.path)
        self._open[tile.name] = source
        if len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)[1].close()
        return source

    def _copy(
        self,
        placement: Placement,
        part: Window,
        window: Window,
        data: NDArray[Any],
        valid: NDArray[np.bool_],
    ) -> None:
        tile = placement.tile
        column, row = placement.offset or (0, 0)
        wanted = Window(part.col_off - column, part.row_off - row, part.width, part.height)
        pixels, present = read_pixels(tile, self._source(tile), wanted)
        _lay_over(pixels, present, part, window, data, valid)

    def _warp(
        self, tile: Tile, part: Window, window: Window, data: NDArray[Any], valid: NDArray[np.bool_]
    ) -> None:
        wanted = _source_window(tile, self.grid, part)
        if wanted is None:
            return
        if (
            wanted.width * wanted.height > _MAX_SOURCE_PIXELS
            and max(part.width, part.height) > _SMALLEST_PART
        ):
            for quarter in _quarters(part):
                self._warp(tile, quarter, window, data, valid)
            return
        pixels, present = read_pixels(tile, self._source(tile), wanted)
        if not present.any():
            return
        # Validity travels as an alpha band: whatever marked a pixel as empty, it then lends nothing to its
        # neighbours. The type is one that holds both the pixels and 255.
        stacked_type = np.result_type(self.dtype, np.uint8)
        stacked = np.empty((self.count + 1, *present.shape), dtype=stacked_type)
        stacked[:-1] = pixels
        stacked[-1] = np.where(present, _OPAQUE, 0)
        warped = np.zeros((self.count + 1, part.height, part.width), dtype=stacked_type)
        try:
            reproject(
                stacked,
                warped,
                src_crs=tile.crs,
                src_transform=tile.transform @ Affine.translation(wanted.col_off, wanted.row_off),
                src_alpha=self.count + 1,
                dst_crs=self.grid.crs,
                dst_transform=self.grid.transform @ Affine.translation(part.col_off, part.row_off),
                dst_alpha=self.count + 1,
                resampling=Resampling.bilinear,
                warp_mem_limit=WARP_MEGABYTES,
                SRC_ALPHA_MAX=str(_OPAQUE),
                DST_ALPHA_MAX=str(_OPAQUE),
            )
        except RasterioError as error:
            raise not_readable(tile.path, error) from None
        present = warped[-1] > _OPAQUE // 2
        _lay_over(warped[:-1].astype(self.dtype, copy=False), present, part, window, data, valid)


def common_dtype(tiles: Sequence[Tile]) -> str:
    """Return the smallest pixel type that holds the pixels of all tiles."""
    common = np.result_type(*(np.dtype(tile.dtype) for tile in tiles))
    # 8-bit signed and 64-bit integers are beyond what other readers of GeoTIFF take.
    return {"int8": "int16", "int64": "float64"}.get(common.name, common.name)


def _common_count(tiles: Sequence[Tile]) -> int:
    counts = {len(tile.bands) for tile in tiles}
    if len(counts) > 1:
        few, many = min(counts), max(counts)
        raise InputError(
            f"The tiles have different bands: {few} in "
            f"{listing([tile.name for tile in tiles if len(tile.bands) == few])} and {many} in "
            f"{listing([tile.name for tile in tiles if len(tile.bands) == many])}.",
            hint="Prepare them as separate layers, or bring them to the same bands (gdal_translate -b).",
        )
    return counts.pop()


def _ground_area(tile: Tile, grid: Grid) -> float:
    """Return the area of one of the tile's pixels, in pixels of the grid, to two digits."""
    if tile.crs == grid.crs:
        area = math.prod(tile.resolution)
    else:
        west, south, east, north = transform_bounds(tile.crs, grid.crs, *tile.bounds)
        area = (east - west) * (north - south) / (tile.width * tile.height)
    return float(f"{area / abs(grid.transform.determinant):.1e}")


def _place(tile: Tile, grid: Grid) -> Placement:
    offset = place_on(tile, grid)
    whole = Window(0, 0, grid.width, grid.height)
    if offset is not None:
        window: Window | None = Window(*offset, tile.width, tile.height)
    else:
        west, south, east, north = transform_bounds(tile.crs, grid.crs, *tile.bounds, densify_pts=21)
        window = _window_around(~grid.transform, [(west, south), (east, north)], padding=1)
    inside = _intersection(window, whole) if window is not None else None
    if inside is None:  # the grid is planned around all tiles
        raise InputError(f"{tile.name} lies outside the mosaic.", hint="Check its position.")
    return Placement(tile=tile, window=inside, offset=offset)


def _source_window(tile: Tile, grid: Grid, part: Window) -> Window | None:
    """Return the pixels of a tile that a part of the grid is made of."""
    transform = grid.transform @ Affine.translation(part.col_off, part.row_off)
    corners = [transform @ corner for corner in ((0, 0), (part.width, part.height))]
    (west, north), (east, south) = corners
    try:
        left, bottom, right, top = transform_bounds(
            grid.crs, tile.crs, west, south, east, north, densify_pts=21
        )
    except RasterioError:
        # Part of the grid may lie where the tile's projection is not defined; the tile does not.
        left, bottom, right, top = tile.bounds
    if not all(math.isfinite(value) for value in (left, bottom, right, top)):
        left, bottom, right, top = tile.bounds
    points = [(x, y) for x in (left, right) for y in (bottom, top)]
    around = _window_around(~tile.transform, points, padding=_PADDING)
    return _intersection(around, Window(0, 0, tile.width, tile.height))


def _window_around(to_pixels: Affine, points: Sequence[tuple[float, float]], *, padding: int) -> Window:
    columns, rows = zip(*(to_pixels @ point for point in points), strict=True)
    left, top = math.floor(min(columns)) - padding, math.floor(min(rows)) - padding
    right, bottom = math.ceil(max(columns)) + padding, math.ceil(max(rows)) + padding
    return Window(left, top, right - left, bottom - top)


def _intersection(first: Window, second: Window) -> Window | None:
    left, top = max(first.col_off, second.col_off), max(first.row_off, second.row_off)
    right = min(first.col_off + first.width, second.col_off + second.width)
    bottom = min(first.row_off + first.height, second.row_off + second.height)
    if right <= left or bottom <= top:
        return None
    return Window(left, top, right - left, bottom - top)


def _quarters(part: Window) -> list[Window]:
    def halves(start: int, length: int) -> list[tuple[int, int]]:
        half = length // 2
        return [(start, half), (start + half, length - half)] if half else [(start, length)]

    return [
        Window(left, top, width, height)
        for top, height in halves(part.row_off, part.height)
        for left, width in halves(part.col_off, part.width)
    ]


def _lay_over(
    pixels: NDArray[Any],
    present: NDArray[np.bool_],
    part: Window,
    window: Window,
    data: NDArray[Any],
    valid: NDArray[np.bool_],
) -> None:
    rows = slice(part.row_off - window.row_off, part.row_off - window.row_off + part.height)
    columns = slice(part.col_off - window.col_off, part.col_off - window.col_off + part.width)
    if present.all():
        data[:, rows, columns] = pixels
        valid[rows, columns] = True
        return
    np.copyto(data[:, rows, columns], pixels, where=present, casting="unsafe")
    valid[rows, columns] |= present
