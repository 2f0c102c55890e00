"""Where an image has data, as polygons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import rasterio
import rasterio.features
import shapely
from affine import Affine
from rasterio.crs import CRS

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.vectors import transform

WGS84: Final = CRS.from_epsg(4326)
# Images of up to this many pixels a side are outlined exactly, larger ones by pixels that much larger.
MAX_SIDE: Final = 4096
# About 0.1 mm: more digits would only make files large.
_GRID_DEGREES: Final = 1e-9
_DENSITY_PIXELS: Final = 64


def outline(image: Path) -> shapely.Geometry:
    """Return the polygons (with their holes) of an image's valid pixels, in degrees (EPSG:4326)."""
    with rasterio.open(image, driver="GTiff") as source:
        factor = max(1.0, max(source.width, source.height) / MAX_SIDE)
        shape = max(1, round(source.height / factor)), max(1, round(source.width / factor))
        valid = source.dataset_mask(out_shape=shape)
        pixels = source.transform @ Affine.scale(source.width / shape[1], source.height / shape[0])
        crs = source.crs
    found = rasterio.features.shapes(valid, mask=valid > 0, connectivity=4, transform=pixels)
    parts = [shapely.geometry.shape(geometry) for geometry, _ in found]
    # A straight edge is not straight in another projection, unless it has points on the way.
    dense = shapely.segmentize(np.array(parts, dtype=object), _DENSITY_PIXELS * abs(pixels.a))
    return shapely.union_all(transform(dense, crs, WGS84))


def common_area(images: Sequence[Path]) -> shapely.Geometry:
    """Return where all images have data, in degrees. Raises `InputError` where that is nowhere."""
    area = outline(images[0])
    for image in images[1:]:
        area = shapely.intersection(area, outline(image))
    polygons = [part for part in shapely.get_parts(area) if isinstance(part, shapely.Polygon)]
    if not polygons:
        raise InputError(
            "The pre-event and the post-event image have no place in common where both have data.",
            hint="Check that both folders belong to one area.",
        )
    return shapely.MultiPolygon(polygons)


def write_area(area: shapely.Geometry, path: Path, properties: dict[str, Any]) -> None:
    """Write polygons as GeoJSON, one feature each, wound as RFC 7946 wants it."""
    snapped = shapely.set_precision(area, _GRID_DEGREES)
    parts = [part for part in shapely.get_parts(snapped) if isinstance(part, shapely.Polygon)]
    features = [
        {
            "type": "Feature",
            "properties": properties,
            "geometry": shapely.geometry.mapping(shapely.orient_polygons(part)),
        }
        for part in parts
    ]
    document = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")
