"""The one grid that all tiles of an event are brought to.

Its CRS is that of most pixels and its pixel size the finest there is. It keeps the pixel edges of the tile
that gave the size, so that tiles on the same grid are copied, never resampled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import shapely
from affine import Affine
from rasterio.crs import CRS
from rasterio.errors import RasterioError
from rasterio.transform import array_bounds
from rasterio.warp import calculate_default_transform, transform_bounds

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.options import Area
from hastegeo.workflows.imagery.tiles import MAX_PIXELS, Tile, listing
from hastegeo.workflows.imagery.vectors import transform

Bounds = tuple[float, float, float, float]

# Tiles apart from each other may leave this much of the mosaic empty before they are taken for a mistake.
MAX_EMPTY_SHARE: Final = 0.75
# A foreign CRS gives slightly other pixel sizes for the same imagery; only a clearly finer one counts.
_CLEARLY_FINER: Final = 0.8
_SNAP: Final = 1e-3
_KILOMETRES_A_DEGREE: Final = 111.32


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A north-up pixel grid."""

    crs: CRS
    transform: Affine
    width: int
    height: int

    @property
    def bounds(self) -> Bounds:
        """West, south, east and north."""
        west, south, east, north = array_bounds(self.height, self.width, self.transform)
        return west, south, east, north


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPlan:
    """A grid, and in `notes` one sentence for every decision that led to it."""

    grid: Grid
    notes: tuple[str, ...]


def plan_grid(tiles: Sequence[Tile], *, area: Area | None = None) -> GridPlan:
    """Choose the grid for tiles, cut to an area of interest.

    Raises `InputError` where they do not lie together, or not in the area.
    """
    notes: list[str] = []
    crs = _most_common_crs(tiles)
    others = sorted({crs_name(tile.crs) for tile in tiles if tile.crs != crs})
    if others:
        notes.append(f"Tiles in {listing(others)} are warped to {crs_name(crs)}, the CRS of most pixels.")
    boxes = {tile.name: _bounds_in(tile, crs) for tile in tiles}
    anchor, (x_size, y_size) = _finest(tiles, crs)
    sizes = {tuple(round(size, 9) for size in tile.resolution) for tile in tiles if tile.crs == crs}
    if len(sizes) > 1:
        notes.append(
            f"Tiles have {len(sizes)} pixel sizes; the finest, {x_size:.9g} x {y_size:.9g}, is used."
        )
    _check_together(boxes, crs)
    origin_x, origin_y = _origin(anchor, boxes)
    west, south, east, north = _around(list(boxes.values()))
    if area is not None:
        west, south, east, north = _cut((west, south, east, north), area, crs)
        notes.append(f"Cut to the area of interest in {area.name}.")
    left = _floor((west - origin_x) / x_size)
    right = _ceil((east - origin_x) / x_size)
    top = _floor((origin_y - north) / y_size)
    bottom = _ceil((origin_y - south) / y_size)
    grid = Grid(
        crs=crs,
        transform=Affine(x_size, 0, origin_x + left * x_size, 0, -y_size, origin_y - top * y_size),
        width=max(right - left, 1),
        height=max(bottom - top, 1),
    )
    if grid.width * grid.height > MAX_PIXELS:
        raise InputError(
            f"The mosaic would have {grid.width} x {grid.height} pixels, which is more than can be meant.",
            hint="Check the positions and pixel sizes of the tiles, or prepare them in parts.",
        )
    return GridPlan(grid=grid, notes=tuple(notes))


def place_on(tile: Tile, grid: Grid) -> tuple[int, int] | None:
    """Return the grid's (column, row) of the tile's first pixel, or None for a tile that must be warped."""
    if tile.crs != grid.crs or not tile.is_north_up:
        return None
    (x_size, y_size), (grid_x, grid_y) = tile.resolution, (grid.transform.a, -grid.transform.e)
    # Over the whole tile, edges may drift apart by no more than the snapping distance.
    if (
        abs(x_size / grid_x - 1) * tile.width > _SNAP * 10
        or abs(y_size / grid_y - 1) * tile.height > _SNAP * 10
    ):
        return None
    column, row = ~grid.transform @ (tile.transform.c, tile.transform.f)
    if abs(column - round(column)) > _SNAP * 10 or abs(row - round(row)) > _SNAP * 10:
        return None
    return round(column), round(row)


def _cut(bounds: Bounds, area: Area, crs: CRS) -> Bounds:
    wanted = shapely.bounds(transform(area.geometry, area.crs, crs))
    west, south = max(bounds[0], wanted[0]), max(bounds[1], wanted[1])
    east, north = min(bounds[2], wanted[2]), min(bounds[3], wanted[3])
    if not (west < east and south < north):
        raise InputError(
            f"The area of interest in {area.name} does not overlap the tiles.",
            hint="Check its coordinates and its coordinate reference system.",
        )
    return west, south, east, north


def _most_common_crs(tiles: Sequence[Tile]) -> CRS:
    pixels: Counter[str] = Counter()
    for tile in tiles:
        pixels[tile.crs.to_wkt()] += tile.width * tile.height
    most = max(pixels.values())
    wkt = min(text for text, count in pixels.items() if count == most)
    return next(tile.crs for tile in tiles if tile.crs.to_wkt() == wkt)


def crs_name(crs: CRS) -> str:
    """Return `EPSG:CODE`, or the name a CRS without a code gives itself."""
    code = crs.to_epsg()
    return f"EPSG:{code}" if code else str(crs.to_wkt().split('"')[1])


def _bounds_in(tile: Tile, crs: CRS) -> Bounds:
    if tile.crs == crs:
        return tile.bounds
    try:
        west, south, east, north = transform_bounds(tile.crs, crs, *tile.bounds, densify_pts=21)
    except (RasterioError, ValueError) as error:
        raise _unplaceable(tile, crs) from error
    if not all(math.isfinite(value) for value in (west, south, east, north)) or west >= east:
        raise _unplaceable(tile, crs)
    return west, south, east, north


def _unplaceable(tile: Tile, crs: CRS) -> InputError:
    return InputError(
        f"{tile.name} ({crs_name(tile.crs)}) cannot be placed in {crs_name(crs)}, the CRS of most pixels.",
        hint="Check its coordinate reference system, or remove it.",
    )


def _finest(tiles: Sequence[Tile], crs: CRS) -> tuple[Tile | None, tuple[float, float]]:
    """Return the pixel size to use and the tile whose edges to keep, if one is in the grid's own CRS."""
    native = [tile for tile in tiles if tile.crs == crs]
    finest = min(native, key=lambda tile: (math.prod(tile.resolution), not tile.is_north_up, tile.name))
    best: tuple[Tile | None, tuple[float, float]] = (finest, finest.resolution)
    for tile in tiles:
        if tile.crs != crs:
            transform, _, _ = calculate_default_transform(
                tile.crs, crs, tile.width, tile.height, *tile.bounds
            )
            foreign = (abs(transform.a), abs(transform.e))
            if math.prod(foreign) < math.prod(best[1]) * _CLEARLY_FINER**2:
                best = (None, foreign)
    return best


def _origin(anchor: Tile | None, boxes: dict[str, Bounds]) -> tuple[float, float]:
    if anchor is not None:
        west, _, _, north = anchor.bounds
        return west, north
    return min(box[0] for box in boxes.values()), max(box[3] for box in boxes.values())


def _floor(value: float) -> int:
    return math.floor(value + _SNAP)


def _ceil(value: float) -> int:
    return math.ceil(value - _SNAP)


def _around(boxes: Sequence[Bounds]) -> Bounds:
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def _check_together(boxes: dict[str, Bounds], crs: CRS) -> None:
    """Refuse tiles that lie apart and would leave the mosaic mostly empty.

    Tiles that touch, however thin their line, are together: a tornado's track is a diagonal.
    """
    groups = connected_groups(boxes)
    if len(groups) == 1:
        return
    west, south, east, north = _around(list(boxes.values()))
    covered = shapely.union_all([shapely.box(*box) for box in boxes.values()]).area
    empty = 1 - covered / ((east - west) * (north - south))
    if empty <= MAX_EMPTY_SHARE:
        return
    main, *rest = sorted(groups, key=lambda group: (-len(group), group))
    far = rest[0]
    distance = shapely.box(*_around([boxes[name] for name in main])).distance(
        shapely.box(*_around([boxes[name] for name in far]))
    )
    raise InputError(
        f"The tiles do not lie together: it is {_distance(distance, crs)} from {listing(main)} to "
        f"{listing(far)}, and {math.floor(empty * 100)} % of the mosaic would be empty.",
        hint="Prepare them as separate layers, or check their coordinate reference systems.",
    )


def connected_groups(boxes: dict[str, Bounds]) -> list[list[str]]:
    """Return the names of boxes in groups that touch, with a tolerance of half a box's size."""
    names = sorted(boxes)
    tree = shapely.STRtree([_grown(boxes[name]) for name in names])
    parent = list(range(len(names)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for first, second in zip(*tree.query(tree.geometries, predicate="intersects"), strict=True):
        parent[root(int(first))] = root(int(second))
    groups: dict[int, list[str]] = {}
    for index, name in enumerate(names):
        groups.setdefault(root(index), []).append(name)
    return sorted(groups.values())


def _grown(box: Bounds) -> shapely.Polygon:
    west, south, east, north = box
    margin_x, margin_y = (east - west) / 4, (north - south) / 4
    return shapely.box(west - margin_x, south - margin_y, east + margin_x, north + margin_y)


def _distance(value: float, crs: CRS) -> str:
    if crs.is_geographic:
        kilometres = value * _KILOMETRES_A_DEGREE
    else:
        kilometres = value * (crs.linear_units_factor[1] or 1.0) / 1000
    return f"about {kilometres:,.0f} km" if kilometres >= 10 else f"about {kilometres:.2g} km"
