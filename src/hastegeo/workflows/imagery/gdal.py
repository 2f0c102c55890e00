"""GDAL, closed down to what imagery preparation needs.

A task opens files that somebody else made. GDAL can follow a file to other files, to the network and to
drivers that run code, so every file is opened by its real path, as a GeoTIFF and as nothing else, with
sidecar files and the network switched off.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import rasterio
from rasterio.errors import RasterioError

from hastegeo.errors import InputError

# GDAL's default cache is a share of the machine's memory, which is not this task's to take.
CACHE_BYTES: Final = 128 * 1024 * 1024
WARP_MEGABYTES: Final = 64

_SETTINGS: Final = {
    "GDAL_CACHEMAX": CACHE_BYTES,
    # No sidecars: an .aux.xml, .ovr, .msk or world file beside a tile changes neither pixels nor position.
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    "GDAL_GEOREF_SOURCES": "INTERNAL",
    # No network: /vsicurl answers only for names that match this, and nothing does; PROJ fetches no grids.
    "CPL_VSIL_CURL_ALLOWED_FILENAME": "none",
    "GDAL_HTTP_MAX_RETRY": 0,
    "PROJ_NETWORK": "OFF",
    "GDAL_TIFF_INTERNAL_MASK": "YES",
    "GDAL_NUM_THREADS": "ALL_CPUS",
    "CPL_DEBUG": "OFF",
}


@contextlib.contextmanager
def closed_gdal() -> Iterator[None]:
    """Run with GDAL limited in memory, network and drivers; the former settings return afterwards."""
    with rasterio.Env(**_SETTINGS):
        yield


def local_file(path: str | os.PathLike[str]) -> Path:
    """Return the real path of a regular local file. Raises `InputError` for anything else.

    Names that GDAL would take to mean something other than a file (`/vsicurl/…`, `https://…`) never reach it.
    """
    text = os.fspath(path)
    if text.startswith("/vsi") or "://" in text:
        raise InputError(
            f"{text.split('?', maxsplit=1)[0]} is not a local file.",
            hint="Download it first and give the path of the file.",
        )
    try:
        real = Path(text).resolve(strict=True)
        mode = real.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"There is no file {text}.", hint="Check the path.") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{text!r} cannot be read ({error}).", hint="Check the path.") from None
    if not stat.S_ISREG(mode) or real.as_posix().startswith("/vsi"):
        raise InputError(f"{text} is not a file.", hint="Give a GeoTIFF, or a folder of GeoTIFFs.")
    return real


def open_geotiff(path: Path) -> Any:
    """Open a GeoTIFF for reading, by the GTiff driver alone. Raises `InputError` that names the file."""
    real = local_file(path)
    if real.stat().st_size == 0:
        raise InputError(
            f"{path.name} is an empty file (0 bytes).", hint="Copy or download it again, or remove it."
        )
    try:
        return rasterio.open(real, driver="GTiff")
    except RasterioError as error:
        raise not_readable(path, error) from None


def not_readable(path: Path, error: Exception) -> InputError:
    """Say in one sentence why a file could not be read as a GeoTIFF."""
    with path.open("rb") as stream:
        magic = stream.read(4)
    if magic[:2] not in {b"II", b"MM"}:
        return InputError(
            f"{path.name} is not a GeoTIFF.",
            hint="Convert it first: gdal_translate -of GTiff INPUT OUTPUT.tif",
        )
    return InputError(
        f"{path.name} is damaged: {_reason(error)}.", hint="Copy or download it again, or remove it."
    )


def _reason(error: Exception) -> str:
    # rasterio says "See previous exception for details" and keeps GDAL's own words in the cause.
    cause = error.__cause__ or error.__context__
    text = str(cause if cause is not None else error).strip().rstrip(".")
    return text.replace("\n", " ")[:200] or type(error).__name__
