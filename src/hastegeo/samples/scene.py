"""Making a scene: tiles before and after a storm, footprints, and the truth about the damage.

    {out_dir}/pre/*.tif       8-bit RGB, EPSG:26915
    {out_dir}/post/*.tif      16-bit RGB, EPSG:4326, nodata 0
    {out_dir}/buildings.gpkg  footprints with their ids, EPSG:26915
    {out_dir}/truth.gpkg      the damage of each building, 0 to 3
    {out_dir}/scene.json      what is there, and of which seed; written last

As in real deliveries, the tiles overlap a little, are neither compressed nor tiled and have no overviews; pre
and post do not cover quite the same ground; and the post image ends at the slanted edge of its swath.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyogrio
import rasterio
import shapely
from affine import Affine
from numpy.typing import NDArray
from pyogrio.raw import write as write_vector
from rasterio.crs import CRS
from rasterio.enums import ColorInterp
from rasterio.transform import array_bounds
from rasterio.warp import Resampling, calculate_default_transform, reproject
from rasterio.windows import Window

from hastegeo.errors import InputError
from hastegeo.samples.canvas import Image
from hastegeo.samples.layout import Building, Damage, Town, plan_town
from hastegeo.samples.render import render

DEFAULT_SIZE: Final = 768
SIZES: Final = range(256, 2049)
PIXEL_SIZE: Final = 0.5
SCHEMA: Final = "haste.scene/1"
PRE_CRS: Final = "EPSG:26915"
POST_CRS: Final = "EPSG:4326"

# The scene's north-west corner: farmland in Missouri, so that nobody takes it for a real town.
_CORNER: Final = (418_000.0, 4_372_000.0)
# The share of the ground that one of the two images lacks.
_MISMATCH: Final = 0.08
_TILES_A_SIDE: Final = 2
_OVERLAP: Final = 0.09
_POST_NODATA: Final = 0
# GeoPackages carry the time of their making; a fixed one keeps the same seed the same.
_MADE: Final = "2024-01-01T00:00:00.000Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneManifest:
    """What was made. Paths are relative to `directory`; `damage` counts buildings by level."""

    directory: Path
    seed: int
    size: int
    pixel_size: float
    pre: tuple[str, ...]
    post: tuple[str, ...]
    buildings: str
    truth: str
    damage: dict[str, int]
    sha256: dict[str, str]

    def paths(self, names: Sequence[str]) -> tuple[Path, ...]:
        """Return names as full paths."""
        return tuple(self.directory / name for name in names)


def make_scene(out_dir: str | os.PathLike[str], *, seed: int, size: int = DEFAULT_SIZE) -> SceneManifest:
    """Make a scene of about `size` by `size` pixels of 0.5 m, and return what it is.

    The same seed and size give the same files. It takes seconds at the default size, and time, memory and
    disk grow with its square (2048 needs about 4 GB of memory). Raises `InputError` for a size out of range,
    a negative seed, or a folder that cannot be written.
    """
    if size not in SIZES:
        raise InputError(f"A scene has {SIZES[0]} to {SIZES[-1]} pixels a side, not {size}.")
    if seed < 0:
        raise InputError(f"A seed is 0 or more, not {seed}.")
    directory = Path(out_dir)
    try:
        for name in ("pre", "post"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        (directory / "scene.json").unlink(missing_ok=True)
        return _make(directory, seed, size)
    except OSError as error:
        raise InputError(
            f"The scene cannot be written to {directory} ({error.strerror or error}).",
            hint="Choose another folder.",
        ) from None


def _make(directory: Path, seed: int, size: int) -> SceneManifest:
    whole = math.ceil(size * (1 + _MISMATCH))
    town = plan_town(seed, whole * PIXEL_SIZE)
    rng = np.random.default_rng([seed, 4])
    with rasterio.Env(GDAL_PAM_ENABLED="NO"):
        pre = _write_pre(directory, render(town, seed=seed, pixel_size=PIXEL_SIZE, after=False), size, rng)
        post = _write_post(directory, render(town, seed=seed, pixel_size=PIXEL_SIZE, after=True), size, rng)
    known = _buildings_in_both(town, size, whole)
    _write_vectors(directory, town, known)
    files = (*pre, *post, "buildings.gpkg", "truth.gpkg")
    counts = Counter(building.damage for building in known)
    manifest = SceneManifest(
        directory=directory,
        seed=seed,
        size=size,
        pixel_size=PIXEL_SIZE,
        pre=pre,
        post=post,
        buildings="buildings.gpkg",
        truth="truth.gpkg",
        damage={level.name.lower(): counts[level] for level in Damage},
        sha256={name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in files},
    )
    _write_manifest(manifest)
    return manifest


def _write_pre(directory: Path, image: Image, size: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Write the image of a flight: bright, contrasty, in 8 bits."""
    shown = np.sqrt(np.clip(image[:size, :size] * 1.05 + 0.015, 0, 1))
    noisy = shown * 255 + rng.normal(0, 1.6, shown.shape)
    pixels = np.clip(np.rint(noisy), 1, 255).astype(np.uint8).transpose(2, 0, 1)
    transform = Affine(PIXEL_SIZE, 0, _CORNER[0], 0, -PIXEL_SIZE, _CORNER[1])
    return _write_tiles(directory, "pre", pixels, transform, PRE_CRS, nodata=None)


def _write_post(directory: Path, image: Image, size: int, rng: np.random.Generator) -> tuple[str, ...]:
    """Write the image of a satellite: hazy, in 11 of 16 bits, cut by the edge of its swath."""
    start = image.shape[0] - size
    seen = image[start:, start:]
    haze = np.array([55.0, 90.0, 140.0], dtype=np.float32)
    numbers = seen * np.array([1500.0, 1480.0, 1380.0], dtype=np.float32) + haze
    numbers += rng.normal(0, 6, numbers.shape)
    pixels = np.clip(np.rint(numbers), 1, 2047).astype(np.uint16).transpose(2, 0, 1)
    rows, columns = np.indices((size, size), dtype=np.float32)
    pixels[:, columns + 0.22 * rows < 0.10 * size] = _POST_NODATA

    west, north = _CORNER[0] + start * PIXEL_SIZE, _CORNER[1] - start * PIXEL_SIZE
    transform = Affine(PIXEL_SIZE, 0, west, 0, -PIXEL_SIZE, north)
    bounds = array_bounds(size, size, transform)
    source, target = CRS.from_string(PRE_CRS), CRS.from_string(POST_CRS)
    degrees, width, height = calculate_default_transform(source, target, size, size, *bounds)
    warped = np.zeros((3, height, width), dtype=np.uint16)
    reproject(
        pixels,
        warped,
        src_crs=source,
        src_transform=transform,
        src_nodata=_POST_NODATA,
        dst_crs=target,
        dst_transform=degrees,
        dst_nodata=_POST_NODATA,
        resampling=Resampling.bilinear,
    )
    return _write_tiles(directory, "post", warped, degrees, POST_CRS, nodata=_POST_NODATA)


def _write_tiles(
    directory: Path, event: str, pixels: NDArray[Any], transform: Affine, crs: str, *, nodata: int | None
) -> tuple[str, ...]:
    _, height, width = pixels.shape
    names = []
    for row, (top, tile_height) in enumerate(_cuts(height)):
        for column, (left, tile_width) in enumerate(_cuts(width)):
            name = f"{event}/tile_r{row}_c{column}.tif"
            window = Window(left, top, tile_width, tile_height)
            with rasterio.open(
                directory / name,
                "w",
                driver="GTiff",
                width=tile_width,
                height=tile_height,
                count=3,
                dtype=pixels.dtype,
                crs=crs,
                transform=transform @ Affine.translation(left, top),
                nodata=nodata,
                photometric="RGB",
                interleave="pixel",
            ) as tile:
                tile.colorinterp = (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
                tile.write(pixels[(slice(None), *window.toslices())])
            names.append(name)
    return tuple(names)


def _cuts(length: int) -> list[tuple[int, int]]:
    """Return where tiles begin along one side, and how long they are; neighbours overlap."""
    step = length // _TILES_A_SIDE
    overlap = round(length * _OVERLAP / 2)
    cuts = []
    for index in range(_TILES_A_SIDE):
        begin = max(0, index * step - overlap)
        end = length if index == _TILES_A_SIDE - 1 else (index + 1) * step + overlap
        cuts.append((begin, end - begin))
    return cuts


def _buildings_in_both(town: Town, size: int, whole: int) -> list[Building]:
    """Return the buildings that both images show whole, in the order of their ids."""
    low, high = (whole - size) * PIXEL_SIZE, size * PIXEL_SIZE
    # The swath's edge slants from the first row to the last.
    slack = 0.10 * size * PIXEL_SIZE
    both = shapely.Polygon(
        [
            (low + slack, low),
            (high, low),
            (high, high),
            (low, high),
            (low, low + slack / 0.22),
        ]
    )
    inside = (
        building
        for building in town.buildings
        if building.id and both.contains(shapely.Polygon(town.outline(building)))
    )
    return sorted(inside, key=lambda building: building.id)


def _write_vectors(directory: Path, town: Town, buildings: Sequence[Building]) -> None:
    outlines = [
        shapely.Polygon([(_CORNER[0] + east, _CORNER[1] - south) for east, south in town.outline(building)])
        for building in buildings
    ]
    geometry = np.array([shapely.to_wkb(outline) for outline in outlines], dtype=object)
    ids = np.array([building.id for building in buildings], dtype=object)
    levels = np.array([int(building.damage) for building in buildings], dtype=np.int32)
    names = np.array([building.damage.name.lower() for building in buildings], dtype=object)
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": _MADE})
    try:
        for name, layer, fields, data in (
            ("buildings.gpkg", "buildings", ["id"], [ids]),
            ("truth.gpkg", "damage", ["id", "damage", "damage_name"], [ids, levels, names]),
        ):
            path = directory / name
            path.unlink(missing_ok=True)
            write_vector(
                path,
                geometry=geometry,
                field_data=data,
                fields=fields,
                layer=layer,
                driver="GPKG",
                geometry_type="Polygon",
                crs=PRE_CRS,
            )
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": None})


def _write_manifest(manifest: SceneManifest) -> None:
    record = dataclasses.asdict(manifest) | {"schema": SCHEMA, "pre_crs": PRE_CRS, "post_crs": POST_CRS}
    del record["directory"]
    unfinished = manifest.directory / ".scene.json.partial"
    unfinished.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    unfinished.replace(manifest.directory / "scene.json")
