"""The mosaic, block by block: memory is that of one block, whatever the size of the whole.

Where tiles overlap, either the finer one lies on top (among equals, the one whose name sorts last), or they
are blended, so that no edge of a tile shows.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import rasterio.features
import shapely
from affine import Affine
from numpy.typing import NDArray
from rasterio.errors import RasterioError
from rasterio.warp import Resampling, reproject
from rasterio.windows import Window

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.gdal import WARP_MEGABYTES, not_readable, open_geotiff
from hastegeo.workflows.imagery.grid import Grid
from hastegeo.workflows.imagery.options import FEATHER_PIXELS, Area, Seams
from hastegeo.workflows.imagery.placing import (
    Placement,
    intersection,
    place_tiles,
    quarters,
    slices,
    source_window,
)
from hastegeo.workflows.imagery.tiles import Tile, listing, read_pixels
from hastegeo.workflows.imagery.vectors import transform

TILE_SIZE: Final = 512
_BLOCK_BYTES: Final = 32 * 1024 * 1024
_MAX_OPEN: Final = 32
_OPAQUE: Final = 255
# A tile much finer than the grid is warped in parts, so that no part reads more source pixels than this.
_MAX_SOURCE_PIXELS: Final = 16_000_000
_SMALLEST_PART: Final = 64

# A part of the grid with a tile's pixels, which of them are valid, and their weights in a blend.
_Piece = tuple[Window, NDArray[Any], NDArray[np.bool_], NDArray[Any] | None]


class Mosaic:
    """All tiles of an event on one grid, readable by window.

    Pixels outside `area` have no data. A tile that lies beside the grid is left out.
    """

    def __init__(
        self, tiles: Sequence[Tile], grid: Grid, *, seams: Seams = Seams.TOP, area: Area | None = None
    ) -> None:
        """Arrange tiles on a grid. Raises `InputError` where their bands do not match."""
        self.grid = grid
        self.count = _common_count(tiles)
        self.dtype: str = common_dtype(tiles)
        self.colours = tiles[0].colours
        self.placements = place_tiles(tiles, grid)
        self._feather = seams is Seams.FEATHER
        self._area = None if area is None else transform(area.geometry, area.crs, grid.crs)
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
        blend = _Blend(data.shape) if self._feather else None
        for part, pixels, present, weights in self._pieces(window):
            rows, columns = slices(part, window)
            if present.all():
                data[:, rows, columns] = pixels
                valid[rows, columns] = True
            else:
                np.copyto(data[:, rows, columns], pixels, where=present, casting="unsafe")
                valid[rows, columns] |= present
            if blend is not None and weights is not None:
                blend.add(rows, columns, pixels, np.where(present, weights, 0))
        if blend is not None:
            blend.put_into(data)
        if self._area is not None:
            self._clip(window, data, valid)
        return data, valid

    def _clip(self, window: Window, data: NDArray[Any], valid: NDArray[np.bool_]) -> None:
        outside = rasterio.features.geometry_mask(
            [shapely.geometry.mapping(self._area)],
            out_shape=valid.shape,
            transform=self.grid.transform @ Affine.translation(window.col_off, window.row_off),
        )
        valid &= ~outside
        data[:, outside] = 0

    def _pieces(self, window: Window) -> Iterator[_Piece]:
        """Yield what tiles hold of a window, from the lowest to the uppermost."""
        for placement in self.placements:
            part = intersection(window, placement.window)
            if part is None:
                continue
            if placement.offset is None:
                yield from self._warped(placement.tile, part)
            else:
                yield self._copied(placement, part)

    def _source(self, tile: Tile) -> Any:
        source = self._open.pop(tile.name, None)
        if source is None:
            source = open_geotiff(tile.path)
        self._open[tile.name] = source
        if len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)[1].close()
        return source

    def _copied(self, placement: Placement, part: Window) -> _Piece:
        tile = placement.tile
        column, row = placement.offset or (0, 0)
        wanted = Window(part.col_off - column, part.row_off - row, part.width, part.height)
        pixels, present = read_pixels(tile, self._source(tile), wanted)
        return part, pixels, present, _weights(tile, wanted) if self._feather else None

    def _warped(self, tile: Tile, part: Window) -> Iterator[_Piece]:
        wanted = source_window(tile, self.grid, part)
        if wanted is None:
            return
        if (
            wanted.width * wanted.height > _MAX_SOURCE_PIXELS
            and max(part.width, part.height) > _SMALLEST_PART
        ):
            for quarter in quarters(part):
                yield from self._warped(tile, quarter)
            return
        pixels, present = read_pixels(tile, self._source(tile), wanted)
        if not present.any():
            return
        planes = [*pixels]
        if self._feather:
            planes.append(_weights(tile, wanted))
        warped, present = self._reproject(tile, planes, present, wanted, part)
        weights = warped[-1] if self._feather else None
        yield part, warped[: self.count].astype(self.dtype, copy=False), present, weights

    def _reproject(
        self,
        tile: Tile,
        planes: Sequence[NDArray[Any]],
        present: NDArray[np.bool_],
        wanted: Window,
        part: Window,
    ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        # Validity travels as an alpha band: whatever marked a pixel as empty, it then lends nothing to its
        # neighbours. The type is one that holds both the pixels and 255.
        kind = np.result_type(self.dtype, np.uint8)
        stacked = np.empty((len(planes) + 1, *present.shape), dtype=kind)
        for position, plane in enumerate(planes):
            stacked[position] = plane
        stacked[-1] = np.where(present, _OPAQUE, 0)
        warped = np.zeros((len(planes) + 1, part.height, part.width), dtype=kind)
        try:
            reproject(
                stacked,
                warped,
                src_crs=tile.crs,
                src_transform=tile.transform @ Affine.translation(wanted.col_off, wanted.row_off),
                src_alpha=len(planes) + 1,
                dst_crs=self.grid.crs,
                dst_transform=self.grid.transform @ Affine.translation(part.col_off, part.row_off),
                dst_alpha=len(planes) + 1,
                resampling=Resampling.bilinear,
                warp_mem_limit=WARP_MEGABYTES,
                SRC_ALPHA_MAX=str(_OPAQUE),
                DST_ALPHA_MAX=str(_OPAQUE),
            )
        except RasterioError as error:
            raise not_readable(tile.path, error) from None
        return warped[:-1], warped[-1] > _OPAQUE // 2


class _Blend:
    """The weighted mean of tiles where two or more of them overlap."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._sum = np.zeros(shape, dtype=np.float64)
        self._weight = np.zeros(shape[1:], dtype=np.float64)
        self._tiles = np.zeros(shape[1:], dtype=np.uint16)

    def add(self, rows: slice, columns: slice, pixels: NDArray[Any], weights: NDArray[Any]) -> None:
        self._sum[:, rows, columns] += np.where(weights > 0, pixels, 0) * weights.astype(np.float64)
        self._weight[rows, columns] += weights
        self._tiles[rows, columns] += weights > 0

    def put_into(self, data: NDArray[Any]) -> None:
        several = self._tiles > 1
        if not several.any():
            return
        mean = self._sum[:, several] / self._weight[several]
        data[:, several] = np.rint(mean) if data.dtype.kind in "iu" else mean


def _weights(tile: Tile, window: Window) -> NDArray[Any]:
    """Return the weight of each pixel of a window, from 1 at the tile's edge to 255 well inside."""
    columns = np.arange(window.col_off, window.col_off + window.width)[None, :]
    rows = np.arange(window.row_off, window.row_off + window.height)[:, None]
    first, end = np.zeros_like(rows), np.full_like(rows, tile.width)
    if tile.border is not None:
        first, end = tile.border.first[rows], tile.border.end[rows]
    across = np.minimum(columns - first, end - 1 - columns)
    down = np.minimum(rows, tile.height - 1 - rows)
    share = np.clip(np.minimum(across, down) / FEATHER_PIXELS, 0, 1)
    weights: NDArray[Any] = (1 + share * (_OPAQUE - 1)).astype(np.uint8)
    return weights


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
