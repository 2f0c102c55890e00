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

from hastegeo.workflows.imagery.tiles import Event

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRecord:
    """The grid of the results. `transform` has GDAL's six numbers, `bounds` west, south, east and north."""

    crs: str
    width: int
    height: int
    transform: tuple[float, ...]
    bounds: tuple[float, ...]


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
    """A file that came out. `role` is `raw`, `processed` or `preview`; `path` is below the outputs folder."""

    role: str
    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageryManifest:
    """The record of one preparation. `decisions` are sentences; `valid_share` is that of pixels with data."""

    event: Event
    project: str
    layer: str
    inputs: tuple[InputRecord, ...]
    grid: GridRecord
    decisions: tuple[str, ...]
    bands: tuple[BandRecord, ...]
    shown_bands: tuple[int, int, int]
    percentiles: tuple[int, int] | None
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


def read_events(folder: Path) -> dict[str, Any]:
    """Return the records by event of the manifest in a folder: none where there is no readable one."""
    try:
        document = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
        events = document["events"] if document["schema"] == SCHEMA else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return dict(events) if isinstance(events, dict) else {}


def write_events(folder: Path, events: dict[str, Any]) -> None:
    """Put the manifest into a folder in one step; without events it is removed."""
    target = folder / MANIFEST_NAME
    if not events:
        target.unlink(missing_ok=True)
        return
    unfinished = folder / f".{MANIFEST_NAME}.partial"
    text = json.dumps({"schema": SCHEMA, "events": events}, indent=2, ensure_ascii=False, allow_nan=False)
    with unfinished.open("w", encoding="utf-8") as stream:
        stream.write(text + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.replace(target)


def as_record(manifest: ImageryManifest) -> dict[str, Any]:
    """Return a manifest as plain data for JSON."""
    return dataclasses.asdict(manifest)
