"""The steps from tiles to images, each on files in a working folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.checks import EventImagery
from hastegeo.workflows.imagery.mosaic import Mosaic
from hastegeo.workflows.imagery.output import (
    PROCESSED_COMPRESSION,
    RAW_COMPRESSION,
    Advance,
    count_again,
    write_cog,
    write_preview,
    write_processed,
    write_raw,
)
from hastegeo.workflows.imagery.percentiles import BandStatistics
from hastegeo.workflows.imagery.stretch import Stretch, keep_bytes, linear_stretch, shown_bands
from hastegeo.workflows.imagery.tiles import Tile, counted, listing

PERCENTILES: Final = (2, 98)
_BYTES_A_MEGABYTE: Final = 1_000_000
# The share of a run's time that has passed when a step begins, for the progress shown.
_BEGINS: Final = {
    "mosaic": 0.05,
    "count": 0.40,
    "raw": 0.50,
    "stretch": 0.70,
    "processed": 0.80,
    "preview": 0.95,
    "finish": 0.97,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: `fraction` from 0 to 1, the `step`, and a message for people."""

    fraction: float
    step: str
    message: str


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """What was made. `files` has the unfinished place of each role: `raw`, `processed`, `preview`."""

    files: dict[str, Path]
    statistics: tuple[BandStatistics, ...]
    shown: tuple[int, int, int]
    percentiles: tuple[int, int] | None
    valid_share: float
    decisions: tuple[str, ...]


def make_images(imagery: EventImagery, workspace: Path, report: Report) -> Images:
    """Make the raw mosaic, the processed image and the preview of an event, in `workspace`.

    Raises `InputError` where a tile turns out to be damaged, or the disk is too small.
    """
    grid = imagery.plan.grid
    decisions = list(imagery.notes)
    with Mosaic(imagery.tiles, grid) as mosaic:
        _check_space(workspace, mosaic)
        nodata, why = _choose_nodata(imagery.tiles, mosaic.dtype)
        decisions.append(why)
        decisions += _describe_placing(mosaic)
        passing = workspace / "mosaic.tif"
        counters, valid_pixels = write_raw(
            mosaic,
            passing,
            nodata=nodata,
            percentiles=PERCENTILES,
            advance=_stepper(report, "mosaic", f"Laying {counted(len(imagery.tiles), 'tile')} on one grid"),
        )
        block_size, dtype = mosaic.block_size, mosaic.dtype
    if not valid_pixels:
        raise InputError(
            "No pixel of the mosaic has data.", hint="Check the nodata value of the tiles, or choose others."
        )
    if counters[0].needs_second_pass:
        advance = _stepper(report, "count", "Finding the percentiles")
        count_again(passing, counters, block_size=block_size, advance=advance)
    statistics = tuple(counter.result() for counter in counters)
    files = {
        "raw": workspace / "raw.tif",
        "processed": workspace / "processed.tif",
        "preview": workspace / "preview.png",
    }
    _say(report, "raw", "Writing the raw mosaic with its overviews")
    write_cog(passing, files["raw"], compression=RAW_COMPRESSION)

    shown, why = shown_bands(imagery.tiles[0].colours)
    stretches, how = _choose_stretches(dtype, [statistics[band] for band in shown])
    decisions += [why, how]
    shown_file = workspace / "shown.tif"
    write_processed(
        passing,
        shown_file,
        grid,
        bands=shown,
        stretches=stretches,
        block_size=block_size,
        advance=_stepper(report, "stretch", "Bringing the bands shown to 8 bits"),
    )
    passing.unlink()
    _say(report, "processed", "Writing the processed image with its overviews")
    write_cog(shown_file, files["processed"], compression=PROCESSED_COMPRESSION)
    shown_file.unlink()
    _say(report, "preview", "Writing the preview")
    write_preview(files["processed"], files["preview"])
    return Images(
        files=files,
        statistics=statistics,
        shown=(shown[0] + 1, shown[1] + 1, shown[2] + 1),
        percentiles=None if dtype == "uint8" else PERCENTILES,
        valid_share=valid_pixels / (grid.width * grid.height),
        decisions=tuple(decisions),
    )


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


def _choose_stretches(dtype: str, shown: list[BandStatistics]) -> tuple[list[Stretch], str]:
    if dtype == "uint8":
        return [keep_bytes] * 3, "8-bit values are kept, but for 0, which becomes 1: 0 means no data."
    low, high = PERCENTILES
    return (
        [linear_stretch(dtype, band.low, band.high) for band in shown],
        f"Each band shown is stretched to 1-255 from percentile {low} to percentile {high}; 0 means no data.",
    )


def _describe_placing(mosaic: Mosaic) -> list[str]:
    warped = [placement.tile.name for placement in mosaic.placements if placement.offset is None]
    copied = len(mosaic.placements) - len(warped)
    notes = [f"{counted(copied, 'tile', 'lies')} on the grid: copied exactly."] if copied else []
    if warped:
        notes.append(f"Resampled (bilinear) to the grid: {listing(warped)}.")
    types = sorted({placement.tile.dtype for placement in mosaic.placements})
    if len(types) > 1:
        notes.append(f"Tiles hold {' and '.join(types)} pixels; their values are kept, as {mosaic.dtype}.")
    return [*notes, "Where tiles overlap, the finer lies on top, then the one whose name sorts last."]


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


def _say(report: Report, step: str, message: str) -> None:
    report(Progress(fraction=_BEGINS[step], step=step, message=message))


def _stepper(report: Report, step: str, message: str) -> Advance:
    """Return a function that reports a share of one step as a share of the whole run."""
    order = list(_BEGINS)
    begin = _BEGINS[step]
    end = _BEGINS[order[order.index(step) + 1]]

    def advance(share: float) -> None:
        report(Progress(fraction=begin + share * (end - begin), step=step, message=message))

    return advance
