"""The manifest: what was made, of what, how, and by which versions. It is the last file to appear."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import rasterio

from hastegeo.workflows.imagery.grid import Grid, crs_name
from hastegeo.workflows.imagery.tiles import Event, Tile

MANIFEST_NAME: Final = "imagery_manifest.json"
SCHEMA: Final = "haste.imagery/1"
_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRecord:
    """A tile that went in. `sha256` is of the whole file."""

    name: str
    sha256: str
    bytes: int
    width: int
    height: int
    bands: int
    dtype: str
    crs: str
    nodata: float | None
    validity: str

    @classmethod
    def of(cls, tile: Tile) -> InputRecord:
        """Record a tile, and its file as it is now."""
        return cls(
            name=tile.name,
            sha256=sha256_of(tile.path),
            bytes=tile.path.stat().st_size,
            width=tile.width,
            height=tile.height,
            bands=len(tile.bands),
            dtype=tile.dtype,
            crs=crs_name(tile.crs),
            # JSON has no NaN; that floats which are none have no data goes without saying.
            nodata=None if tile.nodata is None or tile.nodata != tile.nodata else tile.nodata,
            validity=tile.validity.value,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRecord:
    """A grid. `transform` has GDAL's six numbers, `bounds` west, south, east and north."""

    crs: str
    width: int
    height: int
    transform: tuple[float, ...]
    bounds: tuple[float, ...]

    @classmethod
    def of(cls, grid: Grid) -> GridRecord:
        """Record a grid."""
        return cls(
            crs=crs_name(grid.crs),
            width=grid.width,
            height=grid.height,
            transform=grid.transform.to_gdal(),
            bounds=grid.bounds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BandRecord:
    """What the valid pixels of one band of the raw mosaic hold. `low` and `high` are percentiles."""

    band: int
    minimum: float
    maximum: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRecord:
    """A file that came out. `path` is below the outputs folder.

    `role` is `raw`, `processed` or `preview`, or, of a layer, `valid_area` or `footprints`.
    """

    role: str
    path: str
    sha256: str
    bytes: int

    @classmethod
    def of(cls, role: str, path: Path, name: str) -> OutputRecord:
        """Record a file that is still elsewhere and will be called `name`."""
        return cls(role=role, path=name, sha256=sha256_of(path), bytes=path.stat().st_size)

    def is_intact(self, folder: Path) -> bool:
        """Whether the file is in `folder` as it was written."""
        path = folder / self.path
        return path.is_file() and path.stat().st_size == self.bytes and sha256_of(path) == self.sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageryManifest:
    """The record of one event's preparation.

    `grid` is the raw mosaic's and `processed_grid` the processed image's. `decisions` are sentences.
    `shown_bands` are counted from 1. `valid_share` is that of the processed image's pixels with data.
    `options` is what was chosen, as `ImageryOptions.record` says it.
    """

    event: Event
    project: str
    layer: str
    inputs: tuple[InputRecord, ...]
    grid: GridRecord
    processed_grid: GridRecord
    options: dict[str, Any]
    decisions: tuple[str, ...]
    bands: tuple[BandRecord, ...]
    shown_bands: tuple[int, int, int]
    valid_share: float
    outputs: tuple[OutputRecord, ...]
    seconds: float
    created: str
    versions: dict[str, str]

    def output(self, role: str) -> OutputRecord:
        """Return the output of a role. Raises `KeyError` where there is none."""
        for record in self.outputs:
            if record.role == role:
                return record
        raise KeyError(role)

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> ImageryManifest:
        """Read a record back from JSON. Raises `KeyError` or `TypeError` where it is none."""
        red, green, blue = record["shown_bands"]
        return cls(
            **record
            | {
                "inputs": tuple(InputRecord(**entry) for entry in record["inputs"]),
                "grid": _grid_from(record["grid"]),
                "processed_grid": _grid_from(record["processed_grid"]),
                "decisions": tuple(record["decisions"]),
                "bands": tuple(BandRecord(**entry) for entry in record["bands"]),
                "shown_bands": (red, green, blue),
                "outputs": tuple(OutputRecord(**entry) for entry in record["outputs"]),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerManifest:
    """The record of what belongs to both events: the valid area, and the footprints, if any were given.

    `events` are those that the area is common to. `footprints` names the file given, with its checksum.
    """

    project: str
    layer: str
    events: tuple[Event, ...]
    footprints: dict[str, Any] | None
    decisions: tuple[str, ...]
    outputs: tuple[OutputRecord, ...]
    created: str


def _grid_from(record: dict[str, Any]) -> GridRecord:
    return GridRecord(**record | {"transform": tuple(record["transform"]), "bounds": tuple(record["bounds"])})


def now() -> str:
    """Return the time in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Return the versions that decide what comes out."""
    return {
        "hastegeo": version("hastegeo"),
        "gdal": rasterio.__gdal_version__,
        "rasterio": rasterio.__version__,
        "numpy": version("numpy"),
        "python": platform.python_version(),
    }


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_CHUNK):
            digest.update(piece)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Document:
    """The manifest file of a folder: records by event, and the layer's."""

    events: dict[str, Any]
    layer: dict[str, Any] | None

    @classmethod
    def read(cls, folder: Path) -> Document:
        """Read the manifest of a folder; an absent or unreadable one is empty."""
        try:
            document = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
            if document["schema"] == SCHEMA:
                return cls(dict(document["events"]), document["layer"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return cls({}, None)

    def with_event(self, event: Event, manifest: ImageryManifest | None) -> Document:
        """Return the document with another record of an event, or none of it, and none of the layer."""
        others = {name: record for name, record in self.events.items() if name != event}
        if manifest is not None:
            others[event] = dataclasses.asdict(manifest)
        return Document(dict(sorted(others.items())), None)

    def with_layer(self, manifest: LayerManifest | None) -> Document:
        """Return the document with another record of the layer, or none."""
        return Document(self.events, None if manifest is None else dataclasses.asdict(manifest))

    def write(self, folder: Path) -> None:
        """Put the manifest into a folder in one step; an empty one is removed."""
        target = folder / MANIFEST_NAME
        if not self.events:
            target.unlink(missing_ok=True)
            return
        unfinished = folder / f".{MANIFEST_NAME}.partial"
        document = {"schema": SCHEMA, "events": self.events, "layer": self.layer}
        with unfinished.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(target)
