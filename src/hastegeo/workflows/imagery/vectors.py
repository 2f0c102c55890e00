"""Reading polygons that a user gives, with GDAL closed down as it is for imagery.

GDAL's vector drivers follow files to other files and to the network too, so a file is opened only if its own
first bytes say that it is a GeoPackage, GeoJSON or Shapefile.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyogrio
import pyogrio.raw
import rasterio
import rasterio.warp
import shapely
from numpy.typing import NDArray
from pyogrio.errors import DataLayerError, DataSourceError, FieldError
from rasterio.crs import CRS
from rasterio.errors import CRSError

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.gdal import local_file
from hastegeo.workflows.imagery.options import Area

_HEAD: Final = 64 * 1024
_GEOJSON: Final = re.compile(rb'"type"\s*:\s*"(FeatureCollection|Feature|Polygon|MultiPolygon)"')
# A GeoJSON look-alike by which GDAL would run a pipeline of commands.
_PIPELINE: Final = b"gdal_streamed_alg"
_SHAPEFILE: Final = b"\x00\x00\x27\x0a"
_CLOSED: Final = {"CPL_VSIL_CURL_ALLOWED_FILENAME": "none", "PROJ_NETWORK": "OFF", "CPL_DEBUG": "OFF"}
_WGS84: Final = CRS.from_epsg(4326)

Bounds = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Polygons:
    """Features with their polygons, repaired, and their fields. `notes` says what was done to them.

    `ids` are the feature ids of the file.
    """

    geometry: NDArray[np.object_]
    ids: NDArray[np.int64]
    names: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]
    crs: CRS
    notes: tuple[str, ...] = field(default=())


def check_polygons(path: Path) -> None:
    """Look at a file without reading its features. Raises `InputError` as `read_polygons` would."""
    with _opening(path) as (_, info):
        _crs(path.name, info)


def read_polygons(path: Path, *, near: tuple[Bounds, CRS] | None = None) -> Polygons:
    """Read the polygons of a file; with `near`, only those that touch a rectangle in a CRS.

    Raises `InputError` where the file is of another kind, damaged, empty, or cannot be placed.
    """
    with _opening(path) as (real, info):
        crs, placing = _crs(path.name, info)
        bbox = None if near is None else transform_bounds(near[0], near[1], crs)
        meta, ids, encoded, columns = pyogrio.raw.read(real, bbox=bbox, return_fids=True, force_2d=True)
        geometry = shapely.from_wkb(encoded, on_invalid="fix")
    repaired, notes = _repair(geometry)
    kept = ~shapely.is_empty(repaired)
    if len(geometry) and not kept.any():
        raise InputError(f"{path.name} holds no polygons.", hint="Choose a file with polygons in it.")
    return Polygons(
        geometry=repaired[kept],
        ids=ids[kept],
        names=tuple(str(name) for name in meta["fields"]),
        columns=tuple(column[kept] for column in columns),
        crs=crs,
        notes=(*placing, *notes),
    )


def read_area(path: Path) -> Area:
    """Read all polygons of a file as one area. Raises `InputError` as `read_polygons` does."""
    found = read_polygons(path)
    return Area(name=path.name, geometry=shapely.union_all(found.geometry), crs=found.crs)


def crs_of(image: Path) -> CRS:
    """Return the CRS of an image of our own."""
    with rasterio.open(image, driver="GTiff") as source:
        return source.crs


def transform(geometry: Any, source: CRS, target: CRS) -> Any:
    """Return geometries (one, or an array of them) in another CRS."""
    if source == target:
        return geometry

    def move(points: NDArray[np.float64]) -> NDArray[np.float64]:
        xs, ys = rasterio.warp.transform(source, target, points[:, 0], points[:, 1])
        return np.column_stack([xs, ys])

    return shapely.transform(geometry, move)


def transform_bounds(bounds: Bounds, source: CRS, target: CRS) -> Bounds:
    """Return the bounds around a rectangle in another CRS."""
    west, south, east, north = rasterio.warp.transform_bounds(source, target, *bounds, densify_pts=21)
    return west, south, east, north


@contextlib.contextmanager
def _opening(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Give the real path of a vector file and what it says of itself; GDAL's refusals become `InputError`."""
    real = local_file(path)
    _check_kind(path.name, real)
    pyogrio.set_gdal_config_options(_CLOSED)
    try:
        # GDAL also warns of oddities that do not matter here.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            info = pyogrio.read_info(real, force_feature_count=True, force_total_bounds=True)
            if not info["features"]:
                raise InputError(f"{path.name} holds no features.", hint="Choose a file with polygons in it.")
            yield real, info
    except (DataLayerError, DataSourceError, FieldError, shapely.errors.ShapelyError, UnicodeError) as error:
        raise InputError(
            f"{path.name} is damaged or not a vector file ({str(error).splitlines()[0][:160]}).",
            hint="Open it in a GIS and export it as a GeoPackage.",
        ) from None
    finally:
        pyogrio.set_gdal_config_options(dict.fromkeys(_CLOSED))


def _check_kind(name: str, path: Path) -> None:
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if head.startswith(b"SQLite format 3\0") and head[68:72] in {b"GPKG", b"GP10", b"GP11"}:
        return
    if head.startswith(_SHAPEFILE):
        return
    if (
        head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        and _GEOJSON.search(head)
        and _PIPELINE not in head
    ):
        return
    raise InputError(
        f"{name} is not a GeoPackage, GeoJSON or Shapefile.",
        hint="Convert it first: ogr2ogr -f GPKG OUTPUT.gpkg INPUT",
    )


def _crs(name: str, info: dict[str, Any]) -> tuple[CRS, tuple[str, ...]]:
    west, south, east, north = info["total_bounds"] or (0.0, 0.0, 0.0, 0.0)
    like_degrees = -180 <= west <= east <= 180 and -90 <= south <= north <= 90
    if info["crs"]:
        try:
            crs = CRS.from_string(info["crs"])
        except CRSError:
            raise InputError(
                f"{name} has a coordinate reference system that is not known.",
                hint="Assign a known one first: ogr2ogr -a_srs EPSG:CODE OUTPUT.gpkg INPUT",
            ) from None
        if crs.is_projected and like_degrees and (west, east) != (0.0, 0.0):
            raise InputError(
                f"{name} says that it is in {crs.to_string()}, but its coordinates are in degrees.",
                hint="Assign the right one first: ogr2ogr -a_srs EPSG:4326 OUTPUT.gpkg INPUT",
            )
        return crs, ()
    if like_degrees:
        return _WGS84, (f"{name} has no coordinate reference system; its coordinates are taken for degrees.",)
    raise InputError(
        f"{name} has no coordinate reference system, so it cannot be placed on the map.",
        hint="Assign the right one first: ogr2ogr -a_srs EPSG:CODE OUTPUT.gpkg INPUT",
    )


def _repair(geometry: NDArray[np.object_]) -> tuple[NDArray[np.object_], list[str]]:
    """Return the polygons of geometries, made valid; what has none becomes empty."""
    notes = []
    missing = shapely.is_missing(geometry) | shapely.is_empty(geometry)
    broken = ~shapely.is_valid(geometry) & ~missing
    repaired = geometry.copy()
    repaired[broken] = shapely.make_valid(geometry[broken])
    kinds = shapely.get_type_id(repaired)
    polygonal = np.isin(kinds, [shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON])
    # Repairing may leave lines and points beside polygons.
    collections = kinds == shapely.GeometryType.GEOMETRYCOLLECTION
    for index in np.flatnonzero(collections):
        repaired[index] = shapely.union_all(_polygons_in(shapely.get_parts(repaired[index])))
    repaired[~polygonal & ~collections] = shapely.Polygon()
    if broken.any():
        notes.append(f"{int(broken.sum())} invalid polygons were repaired.")
    if (dropped := int(shapely.is_empty(repaired).sum())) > 0:
        notes.append(f"{dropped} features without a polygon were left out.")
    return repaired, notes


def _polygons_in(parts: Sequence[Any] | NDArray[np.object_]) -> list[Any]:
    return [part for part in parts if isinstance(part, shapely.Polygon | shapely.MultiPolygon)]
