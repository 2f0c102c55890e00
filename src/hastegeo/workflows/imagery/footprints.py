"""Building footprints: the user's own, cut to where the imagery has data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import shapely
from pyogrio.errors import DataSourceError, FeatureError, FieldError
from pyogrio.raw import write as write_vector
from rasterio.crs import CRS

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.coverage import WGS84
from hastegeo.workflows.imagery.vectors import Polygons, read_polygons, transform

LAYER: Final = "building_footprints"
_SOURCE_ID: Final = "source_fid"


@dataclass(frozen=True, slots=True, kw_only=True)
class FootprintsReport:
    """What became of a footprints file: how many polygons are kept, cut at the edge, and what was done."""

    kept: int
    cut: int
    notes: tuple[str, ...]


def write_footprints(source: Path, target: Path, *, area: shapely.Geometry, crs: CRS) -> FootprintsReport:
    """Write the footprints that lie in `area` (degrees) as a GeoPackage in a CRS.

    They are repaired and cut at the area's edge. All their fields are kept, and the feature id of the source
    as `source_fid`. Raises `InputError` where the file cannot be used, or nothing of it lies in the area.
    """
    bounds = shapely.bounds(area)
    found = read_polygons(source, near=((bounds[0], bounds[1], bounds[2], bounds[3]), WGS84))
    local_area = transform(shapely.segmentize(area, 1e-3), WGS84, found.crs)
    shapely.prepare(local_area)
    inside = shapely.covers(local_area, found.geometry)
    touching = shapely.intersects(local_area, found.geometry)
    geometry = found.geometry.copy()
    edge = touching & ~inside
    geometry[edge] = [_polygonal(part) for part in shapely.intersection(geometry[edge], local_area)]
    kept = touching & ~shapely.is_empty(geometry)
    if not kept.any():
        raise InputError(
            f"None of the footprints in {source.name} lies where the imagery has data.",
            hint="Check that it belongs to this area, and its coordinate reference system.",
        )
    moved = transform(geometry[kept], found.crs, crs)
    _write(found, kept, moved, target, crs)
    return FootprintsReport(kept=int(kept.sum()), cut=int((edge & kept).sum()), notes=found.notes)


def _polygonal(geometry: shapely.Geometry) -> shapely.Geometry:
    parts = shapely.get_parts(geometry)
    return shapely.union_all([part for part in parts if isinstance(part, shapely.Polygon)])


def _write(found: Polygons, kept: np.ndarray, geometry: np.ndarray, target: Path, crs: CRS) -> None:
    names = [_SOURCE_ID if _SOURCE_ID not in found.names else f"{_SOURCE_ID}_of_file", *found.names]
    columns = [found.ids[kept], *(column[kept] for column in found.columns)]
    # The names that a GeoPackage keeps for itself must not be those of the user's fields.
    own = {"FID": "fid", "GEOMETRY_NAME": "geom"}
    taken = {name.lower() for name in names}
    options = {key: name if name not in taken else f"haste_{name}" for key, name in own.items()}
    several = np.array([shapely.MultiPolygon(shapely.get_parts(part)) for part in geometry], dtype=object)
    try:
        write_vector(
            target,
            geometry=shapely.to_wkb(several),
            field_data=columns,
            fields=names,
            layer=LAYER,
            driver="GPKG",
            geometry_type="MultiPolygon",
            crs=crs.to_wkt(),
            layer_options=options,
        )
    except (DataSourceError, FeatureError, FieldError) as error:
        raise InputError(
            f"The footprints cannot be written as a GeoPackage ({str(error).splitlines()[0][:160]}).",
            hint="Rename or remove the fields it names.",
        ) from None
