"""The steps from tiles to images, each on files in a working folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import rasterio

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.checks import EventImagery
from hastegeo.workflows.imagery.grid import Grid
from hastegeo.workflows.imagery.mosaic import Mosaic
from hastegeo.workflows.imagery.options import ImageryOptions, Seams
from hastegeo.workflows.imagery.output import (
    PROCESSED_COMPRESSION,
    RAW_COMPRESSION,
    PassingFile,
    count_again,
    write_cog,
    write_preview,
    write_processed,
    write_raw,
)
from hastegeo.workflows.imagery.percentiles import BandStatistics
from hastegeo.workflows.imagery.profiles import Profile
from hastegeo.workflows.imagery.progress import Report, say, stepper
from hastegeo.workflows.imagery.stretch import Stretch, keep_bytes, linear_stretch
from hastegeo.workflows.imagery.tiles import Tile, counted, listing

_BYTES_A_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """What was made. `files` has the unfinished place of each role: `raw`, `processed`, `preview`.

    `valid_share` is that of the processed image's pixels.
    """

    files: dict[str, Path]
    statistics: tuple[BandStatistics, ...]
    shown: tuple[int, int, int]
    valid_share: float
    decisions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Raw:
    """The raw mosaic in its passing file."""

    path: Path
    dtype: str
    block_size: int
    statistics: tuple[BandStatistics, ...]


def make_images(
    imagery: EventImagery, shown_grid: Grid, options: ImageryOptions, workspace: Path, report: Report
) -> Images:
    """Make the raw mosaic, the processed image and the preview of an event, in `workspace`.

    The processed image is on `shown_grid`, the raw mosaic on the imagery's own. Raises `InputError` where a
    tile turns out to be damaged, or the disk is too small.
    """
    decisions = list(imagery.notes)
    raw = _make_raw(imagery, options, workspace, report, decisions)
    files = {
        "raw": workspace / "raw.tif",
        "processed": workspace / "processed.tif",
        "preview": workspace / "preview.png",
    }
    say(report, "raw", "Writing the raw mosaic with its overviews")
    write_cog(raw.path, files["raw"], compression=RAW_COMPRESSION)

    shown, why = options.profile.shown(imagery.tiles[0].colours)
    if max(shown) >= len(raw.statistics):
        raise InputError(
            f"The profile {options.profile.name} shows band {max(shown) + 1}, and the tiles have "
            f"{len(raw.statistics)}.",
            hint="Choose another profile.",
        )
    stretches, how = _choose_stretches(raw.dtype, [raw.statistics[band] for band in shown], options.profile)
    decisions += [why, how]
    shown_file = workspace / "shown.tif"
    valid_pixels = _make_shown(imagery, shown_grid, options, raw, shown_file, shown, stretches, report)
    raw.path.unlink()
    if not valid_pixels:
        raise InputError(
            f"The {imagery.event}-event tiles have no data where the other event's image is.",
            hint="Check that both folders belong to one area, or prepare them unaligned (--own-grid).",
        )
    if shown_grid != imagery.plan.grid:
        decisions.append("The processed image is on the grid of the post-event one, resampled (bilinear).")
    say(report, "processed", "Writing the processed image with its overviews")
    write_cog(shown_file, files["processed"], compression=PROCESSED_COMPRESSION)
    shown_file.unlink()
    say(report, "preview", "Writing the preview")
    write_preview(files["processed"], files["preview"])
    return Images(
        files=files,
        statistics=raw.statistics,
        shown=(shown[0] + 1, shown[1] + 1, shown[2] + 1),
        valid_share=valid_pixels / (shown_grid.width * shown_grid.height),
        decisions=tuple(decisions),
    )


def _make_raw(
    imagery: EventImagery, options: ImageryOptions, workspace: Path, report: Report, decisions: list[str]
) -> _Raw:
    path = workspace / "mosaic.tif"
    with Mosaic(imagery.tiles, imagery.plan.grid, seams=options.seams, area=options.area) as mosaic:
        _check_space(workspace, mosaic)
        nodata, why = _choose_nodata(imagery.tiles, mosaic.dtype)
        decisions += [why, *_describe_placing(mosaic, options.seams)]
        counters, valid_pixels = write_raw(
            mosaic,
            path,
            nodata=nodata,
            percentiles=options.profile.percentiles,
            advance=stepper(report, "mosaic", f"Laying {counted(len(imagery.tiles), 'tile')} on one grid"),
        )
        block_size, dtype = mosaic.block_size, mosaic.dtype
    if not valid_pixels:
        raise InputError(
            "No pixel of the mosaic has data.",
            hint="Check the nodata value of the tiles and the area of interest, or choose others.",
        )
    if counters[0].needs_second_pass:
        advance = stepper(report, "count", "Finding the percentiles")
        count_again(path, counters, block_size=block_size, advance=advance)
    return _Raw(path, dtype, block_size, tuple(counter.result() for counter in counters))


def _make_shown(
    imagery: EventImagery,
    grid: Grid,
    options: ImageryOptions,
    raw: _Raw,
    path: Path,
    bands: tuple[int, int, int],
    stretches: list[Stretch],
    report: Report,
) -> int:
    advance = stepper(report, "stretch", "Bringing the bands shown to 8 bits")
    if grid == imagery.plan.grid:
        with rasterio.open(raw.path, driver="GTiff") as source:
            blocks = PassingFile(source, raw.block_size)
            return write_processed(blocks, path, grid, bands=bands, stretches=stretches, advance=advance)
    # From the tiles again, not from the raw mosaic: what is resampled once is sharper than what is twice.
    with Mosaic(imagery.tiles, grid, seams=options.seams, area=options.area) as mosaic:
        return write_processed(mosaic, path, grid, bands=bands, stretches=stretches, advance=advance)


def _choose_nodata(tiles: tuple[Tile, ...], dtype: str) -> tuple[float | None, str]:
    """Return the nodata value of the raw mosaic (None: an internal mask marks empty pixels), and why."""
    declared = {None if tile.nodata is None else float(tile.nodata) for tile in tiles}
    kind = np.dtype(dtype)
    if len(declared) == 1 and (value := declared.pop()) is not None and _fits(value, kind):
        return value, f"Pixels without data hold {value:g} in the raw mosaic, as in the tiles."
    if kind.kind == "f":
        return float("nan"), "Pixels without data hold NaN in the raw mosaic."
    return None, "Pixels without data are marked by a mask in the raw mosaic: every value may be data."


def _fits(value: float, kind: np.dtype[Any]) -> bool:
    if kind.kind == "f":
        return True
    limits = np.iinfo(kind)
    return value.is_integer() and limits.min <= value <= limits.max


def _choose_stretches(dtype: str, shown: list[BandStatistics], profile: Profile) -> tuple[list[Stretch], str]:
    if dtype == "uint8":
        return [keep_bytes] * 3, "8-bit values are kept, but for 0, which becomes 1: 0 means no data."
    if profile.fixed_range is not None:
        low, high = profile.fixed_range
        return (
            [linear_stretch(dtype, low, high)] * 3,
            f"Values from {low:g} to {high:g} are stretched to 1-255, as the profile {profile.name} has it.",
        )
    first, last = profile.percentiles
    return (
        [linear_stretch(dtype, band.low, band.high) for band in shown],
        f"Each band shown is stretched to 1-255 from percentile {first} to percentile {last}; "
        "0 means no data.",
    )


def _describe_placing(mosaic: Mosaic, seams: Seams) -> list[str]:
    warped = [placement.tile.name for placement in mosaic.placements if placement.offset is None]
    copied = len(mosaic.placements) - len(warped)
    notes = [f"{counted(copied, 'tile', 'lies')} on the grid: copied exactly."] if copied else []
    if warped:
        notes.append(f"Resampled (bilinear) to the grid: {listing(warped)}.")
    types = sorted({placement.tile.dtype for placement in mosaic.placements})
    if len(types) > 1:
        notes.append(f"Tiles hold {' and '.join(types)} pixels; their values are kept, as {mosaic.dtype}.")
    if seams is Seams.FEATHER:
        notes.append("Where tiles overlap, they are blended, each the weaker the nearer its edge is.")
    else:
        notes.append("Where tiles overlap, the finer lies on top, then the one whose name sorts last.")
    return notes


def _check_space(workspace: Path, mosaic: Mosaic) -> None:
    """Refuse early where the disk cannot hold the passing file and the results, were nothing compressible."""
    pixels = mosaic.grid.width * mosaic.grid.height
    # The passing file and the raw image with a third more for overviews, and the 8-bit image likewise.
    needed = round(pixels * (mosaic.count * np.dtype(mosaic.dtype).itemsize * 2.4 + 3 * 1.4))
    free = shutil.disk_usage(workspace).free
    if needed > free:
        raise InputError(
            f"The results may need {needed // _BYTES_A_MEGABYTE} MB of disk space and "
            f"{free // _BYTES_A_MEGABYTE} MB are free.",
            hint="Choose an outputs folder on a larger disk, or prepare the tiles in parts.",
        )
