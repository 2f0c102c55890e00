"""Where a tile lies on the grid, and which of its pixels a part of the grid is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from affine import Affine
from rasterio.errors import RasterioError
from rasterio.warp import transform_bounds
from rasterio.windows import Window

from hastegeo.workflows.imagery.grid import Grid, place_on
from hastegeo.workflows.imagery.tiles import Tile

# Warping needs the neighbours of a pixel.
_PADDING: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A tile and where it lies on the grid; `offset` is None for a tile that has to be warped."""

    tile: Tile
    window: Window
    offset: tuple[int, int] | None


def place_tiles(tiles: Sequence[Tile], grid: Grid) -> tuple[Placement, ...]:
    """Return the tiles that lie on the grid, from the lowest to the uppermost."""
    ordered = sorted(tiles, key=lambda tile: tile.name)
    ordered.sort(key=lambda tile: -_ground_area(tile, grid))
    placements = (_place(tile, grid) for tile in ordered)
    return tuple(placement for placement in placements if placement is not None)


def source_window(tile: Tile, grid: Grid, part: Window) -> Window | None:
    """Return the pixels of a tile that a part of the grid is made of, or None where there are none."""
    transform = grid.transform @ Affine.translation(part.col_off, part.row_off)
    (west, north), (east, south) = (transform @ corner for corner in ((0, 0), (part.width, part.height)))
    try:
        box = transform_bounds(grid.crs, tile.crs, west, south, east, north, densify_pts=21)
    except RasterioError:
        # Part of the grid may lie where the tile's projection is not defined; the tile does not.
        box = tile.bounds
    left, bottom, right, top = box if all(math.isfinite(value) for value in box) else tile.bounds
    corners = [(x, y) for x in (left, right) for y in (bottom, top)]
    around = _window_around(~tile.transform, corners, padding=_PADDING)
    return intersection(around, Window(0, 0, tile.width, tile.height))


def intersection(first: Window, second: Window) -> Window | None:
    """Return what two windows have in common, or None."""
    left, top = max(first.col_off, second.col_off), max(first.row_off, second.row_off)
    right = min(first.col_off + first.width, second.col_off + second.width)
    bottom = min(first.row_off + first.height, second.row_off + second.height)
    if right <= left or bottom <= top:
        return None
    return Window(left, top, right - left, bottom - top)


def quarters(part: Window) -> list[Window]:
    """Return a window in four parts, or two where it is one pixel wide or high."""

    def halves(start: int, length: int) -> list[tuple[int, int]]:
        half = length // 2
        return [(start, half), (start + half, length - half)] if half else [(start, length)]

    return [
        Window(left, top, width, height)
        for top, height in halves(part.row_off, part.height)
        for left, width in halves(part.col_off, part.width)
    ]


def slices(part: Window, window: Window) -> tuple[slice, slice]:
    """Return the rows and columns of `part` in an array of `window`."""
    top, left = part.row_off - window.row_off, part.col_off - window.col_off
    return slice(top, top + part.height), slice(left, left + part.width)


def _place(tile: Tile, grid: Grid) -> Placement | None:
    offset = place_on(tile, grid)
    if offset is not None:
        window = Window(*offset, tile.width, tile.height)
    else:
        west, south, east, north = transform_bounds(tile.crs, grid.crs, *tile.bounds, densify_pts=21)
        window = _window_around(~grid.transform, [(west, south), (east, north)], padding=1)
    inside = intersection(window, Window(0, 0, grid.width, grid.height))
    return None if inside is None else Placement(tile=tile, window=inside, offset=offset)


def _ground_area(tile: Tile, grid: Grid) -> float:
    """Return the area of one of the tile's pixels, in pixels of the grid, to two digits."""
    if tile.crs == grid.crs:
        area = math.prod(tile.resolution)
    else:
        west, south, east, north = transform_bounds(tile.crs, grid.crs, *tile.bounds)
        area = (east - west) * (north - south) / (tile.width * tile.height)
    return float(f"{area / abs(grid.transform.determinant):.1e}")


def _window_around(to_pixels: Affine, points: Sequence[tuple[float, float]], *, padding: int) -> Window:
    columns, rows = zip(*(to_pixels @ point for point in points), strict=True)
    left, top = math.floor(min(columns)) - padding, math.floor(min(rows)) - padding
    right, bottom = math.ceil(max(columns)) + padding, math.ceil(max(rows)) + padding
    return Window(left, top, right - left, bottom - top)
