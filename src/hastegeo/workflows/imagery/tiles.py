"""Tiles: finding them, and reading what they are.

A tile is a GeoTIFF of one event. Whatever makes it unusable is said here, with its name, before anything is
computed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from affine import Affine
from numpy.typing import NDArray
from rasterio.crs import CRS
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.errors import RasterioError
from rasterio.transform import array_bounds
from rasterio.windows import Window

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.borders import Border, find_border
from hastegeo.workflows.imagery.gdal import local_file, not_readable, open_geotiff

Event = Literal["pre", "post"]
EVENTS: Final[tuple[Event, ...]] = ("pre", "post")
_SUFFIXES: Final = frozenset({".tif", ".tiff"})
_DTYPES: Final = frozenset({"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"})
_MAX_NAMED: Final = 3
# 160,000 x 160,000: far above the largest image we know of, far below what a wrong position asks for.
MAX_PIXELS: Final = 25_600_000_000


class Validity(StrEnum):
    """How a tile marks the pixels that hold nothing."""

    ALL = "all"
    NODATA = "nodata"
    ALPHA = "alpha"
    MASK = "mask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """What one GeoTIFF is.

    `name` is its path below the folder that was given. `bands` are the 1-based indexes of its data bands;
    `alpha` is that of its alpha band, if any. `nodata` is None unless the tile declares one. `colours` has a
    name for each data band (`red`, `gray`, `undefined`, …). `border` is a black one that no tag tells of.
    """

    path: Path
    name: str
    width: int
    height: int
    bands: tuple[int, ...]
    alpha: int | None
    dtype: str
    crs: CRS
    transform: Affine
    nodata: float | None
    validity: Validity
    colours: tuple[str, ...]
    border: Border | None = None

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north in the tile's own CRS, around all four corners."""
        corners = [
            self.transform @ corner
            for corner in ((0, 0), (self.width, 0), (0, self.height), (self.width, self.height))
        ]
        xs, ys = zip(*corners, strict=True)
        return min(xs), min(ys), max(xs), max(ys)

    @property
    def resolution(self) -> tuple[float, float]:
        """The size of a pixel in CRS units, along its rows and along its columns."""
        a, b, _, d, e, _ = self.transform[:6]
        return math.hypot(a, d), math.hypot(b, e)

    @property
    def is_north_up(self) -> bool:
        """Whether rows run west to east and columns north to south."""
        a, b, _, d, e, _ = self.transform[:6]
        return bool(a > 0 and e < 0 and abs(b) < 1e-9 * a and abs(d) < 1e-9 * a)


def find_tiles(folder: str | os.PathLike[str], event: Event) -> list[tuple[str, Path]]:
    """Return (name, path) of every GeoTIFF of an event, sorted by name.

    `folder` holds `pre/` and `post/`, or the tiles of one event themselves, at any depth; hidden files are
    passed over. A path of one GeoTIFF is that tile. Raises `InputError` where there is none.
    """
    text = os.fspath(folder)
    root = Path(text)
    if text.startswith("/vsi") or "://" in text or not root.is_dir():
        real = local_file(text)
        return [(real.name, real)]
    if any((root / name).is_dir() for name in EVENTS):
        root = root / event
        if not root.is_dir():
            raise InputError(
                f"{text} has no {event}/ folder.", hint=f"Put the {event}-event tiles into {root}."
            )
    found: list[tuple[str, Path]] = []
    others: list[str] = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if any(part.startswith(".") for part in name.parts) or path.is_dir():
            continue
        if path.suffix.lower() in _SUFFIXES:
            found.append((name.as_posix(), path))
        else:
            others.append(name.as_posix())
    if not found:
        seen = f", only {listing(others)}" if others else ""
        raise InputError(
            f"There is no GeoTIFF (.tif, .tiff) in {root}{seen}.",
            hint="Give a folder of GeoTIFFs, or one with pre/ and post/ in it.",
        )
    return found


def listing(names: Sequence[str]) -> str:
    """Return a few of many names as words."""
    if len(names) > _MAX_NAMED:
        return f"{', '.join(names[:_MAX_NAMED])} and {len(names) - _MAX_NAMED} more"
    return ", ".join(names)


def counted(count: int, noun: str, verb: str = "") -> str:
    """Return `1 tile lies` or `2 tiles lie`, given `tile` and `lies`; the verb is a regular one or `is`."""
    if count == 1:
        return f"1 {noun} {verb}".rstrip()
    plural = {"is": "are", "has": "have"}.get(verb, verb.removesuffix("s"))
    return f"{count} {noun}s {plural}".rstrip()


def read_tile(name: str, path: Path, *, keep_black: bool = False) -> Tile:
    """Read what a tile is. Raises `InputError` where it cannot be placed or its data is not all there.

    A black border counts as no data where nothing else says what does, unless `keep_black`.
    """
    with open_geotiff(path) as source:
        _check_placed(name, source)
        bands = tuple(
            index
            for index, colour in zip(source.indexes, source.colorinterp, strict=True)
            if colour != ColorInterp.alpha
        )
        if not bands:
            raise InputError(f"{name} has an alpha band and no data.", hint="Remove the file.")
        dtype = np.result_type(*(np.dtype(source.dtypes[index - 1]) for index in bands)).name
        if dtype not in _DTYPES:
            raise InputError(
                f"{name} holds {dtype} pixels, which are not imagery.",
                hint="Convert it first: gdal_translate -ot Float32 INPUT OUTPUT.tif",
            )
        if ColorInterp.palette in source.colorinterp:
            raise InputError(
                f"{name} holds palette indexes, not colours.",
                hint="Convert it first: gdal_translate -expand rgb INPUT OUTPUT.tif",
            )
        if source.width * source.height > MAX_PIXELS:
            raise InputError(
                f"{name} claims {source.width} x {source.height} pixels, which is more than can be meant.",
                hint="Cut it into parts first: gdal_translate -srcwin X Y WIDTH HEIGHT INPUT OUTPUT.tif",
            )
        _check_complete(name, path, source)
        validity = _validity(source, bands)
        border = None
        if validity is Validity.ALL and not keep_black and np.dtype(dtype).kind == "u":
            try:
                border = find_border(source, bands)
            except RasterioError as error:
                raise not_readable(path, error) from None
        return Tile(
            path=path,
            name=name,
            width=source.width,
            height=source.height,
            bands=bands,
            alpha=next((index for index in source.indexes if index not in bands), None),
            dtype=dtype,
            crs=source.crs,
            transform=source.transform,
            nodata=source.nodatavals[bands[0] - 1],
            validity=validity,
            colours=tuple(source.colorinterp[index - 1].name for index in bands),
            border=border,
        )


def _check_placed(name: str, source: Any) -> None:
    if not source.crs:
        raise InputError(
            f"{name} has no coordinate reference system, so it cannot be placed on the map.",
            hint="Assign the right one first: gdal_translate -a_srs EPSG:CODE INPUT OUTPUT.tif",
        )
    if source.transform == Affine.identity() or source.transform.is_degenerate:
        raise InputError(
            f"{name} has no position: its pixels carry no map coordinates.",
            hint="Georeference it first (gdal_translate -a_ullr, or gdalwarp where it has control points).",
        )
    bounds = array_bounds(source.height, source.width, source.transform)
    if not all(math.isfinite(value) for value in bounds):
        raise InputError(f"{name} has no finite position.", hint="Georeference it again.")
    west, south, east, north = bounds
    if source.crs.is_geographic and max(abs(south), abs(north), abs(west) - 450, abs(east) - 450) > 90.5:
        raise InputError(
            f"{name} says that it is in degrees, but its coordinates are not.",
            hint="Assign the right one of its own: gdal_translate -a_srs EPSG:CODE INPUT OUTPUT.tif",
        )


def _check_complete(name: str, path: Path, source: Any) -> None:
    """Refuse a tile whose blocks reach past the end of the file.

    A copy that broke off keeps a readable header, and GDAL notices only when it comes to the missing part.
    """
    size = path.stat().st_size
    block_height, block_width = source.block_shapes[0]
    rows, columns = -(-source.height // block_height), -(-source.width // block_width)
    for row in range(rows):
        for column in range(columns):
            for band in (source.indexes[0], source.indexes[-1]):
                start = source.get_tag_item(f"BLOCK_OFFSET_{column}_{row}", "TIFF", bidx=band)
                length = source.get_tag_item(f"BLOCK_SIZE_{column}_{row}", "TIFF", bidx=band)
                # A sparse file leaves blocks out: they have no offset.
                if start is not None and length is not None and int(start) + int(length) > size:
                    raise InputError(
                        f"{name} is cut short: it has {size} bytes and its data goes on to "
                        f"{int(start) + int(length)}.",
                        hint="Copy or download it again, or remove it.",
                    )


def _validity(source: Any, bands: tuple[int, ...]) -> Validity:
    flags = source.mask_flag_enums[bands[0] - 1]
    if MaskFlags.nodata in flags:
        return Validity.NODATA
    if MaskFlags.alpha in flags:
        return Validity.ALPHA
    if MaskFlags.per_dataset in flags:
        return Validity.MASK
    return Validity.ALL


def read_pixels(tile: Tile, source: Any, window: Window) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the data bands and the valid pixels of a window of a tile. Raises `InputError` if it is damaged.

    A pixel is valid where the tile says so, and at least one of its bands is a finite number.
    """
    try:
        data = source.read(list(tile.bands), window=window)
        if tile.alpha is not None:
            valid = source.read(tile.alpha, window=window) > 0
        elif tile.validity is Validity.MASK:
            valid = source.read_masks(tile.bands[0], window=window) > 0
        else:
            valid = np.ones(data.shape[1:], dtype=bool)
    except RasterioError as error:
        raise not_readable(tile.path, error) from None
    if tile.border is not None:
        valid &= tile.border.inside(window)
    if tile.nodata is not None:
        valid &= _differs(data, tile.nodata).any(axis=0)
    if data.dtype.kind == "f":
        valid &= np.isfinite(data).any(axis=0)
    return data, valid


def _differs(data: NDArray[Any], nodata: float) -> NDArray[np.bool_]:
    if data.dtype.kind == "f":
        # A tile of 32-bit floats keeps its nodata value with more digits than its pixels have.
        with np.errstate(over="ignore"):
            differs: NDArray[np.bool_] = data != data.dtype.type(nodata)
    else:
        differs = data != nodata
    return differs


def has_valid_pixel(tile: Tile) -> bool:
    """Whether any pixel of the tile holds data; reads only as far as the first one that does."""
    if tile.validity is Validity.ALL and tile.border is None and np.dtype(tile.dtype).kind != "f":
        return True
    with open_geotiff(tile.path) as source:
        return any(
            read_pixels(tile, source, window)[1].any()
            for window in windows(tile.width, tile.height, size=1024)
        )


def windows(width: int, height: int, *, size: int) -> list[Window]:
    """Return the windows of at most `size` by `size` pixels that cover a raster, row by row."""
    return [
        Window(left, top, min(size, width - left), min(size, height - top))
        for top in range(0, height, size)
        for left in range(0, width, size)
    ]
