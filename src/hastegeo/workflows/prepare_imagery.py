"""Turn the raw tiles of one event into one clean image.

`prepare_imagery` reads GeoTIFF tiles of any CRS, pixel size and depth, and leaves, in one folder:

- `raw_imagery_{event}_event_mosaic_cog_{project}_{layer}.tif`: all bands, at the depth of the source;
- `processed_imagery_{event}_event_mosaic_cog_{project}_{layer}.tif`: 8-bit RGB for models and the web;
- `preview_{event}_event_{project}_{layer}.png`: the same, about 800 pixels wide;
- `imagery_manifest.json`, written last.

Both images are cloud-optimised GeoTIFFs on the same grid. They appear under their names only when they are
whole. Run it alone with `haste workload prepare_imagery --help`.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rasterio.errors import RasterioError

from hastegeo.errors import HasteError, InputError
from hastegeo.workflows.imagery.checks import EventImagery, check_imagery, survey
from hastegeo.workflows.imagery.gdal import closed_gdal
from hastegeo.workflows.imagery.grid import Grid, crs_name
from hastegeo.workflows.imagery.manifest import (
    MANIFEST_NAME,
    BandRecord,
    GridRecord,
    ImageryManifest,
    InputRecord,
    OutputRecord,
    as_record,
    now,
    read_events,
    sha256_of,
    versions,
    write_events,
)
from hastegeo.workflows.imagery.percentiles import BandStatistics
from hastegeo.workflows.imagery.pipeline import Images, Progress, Report, make_images
from hastegeo.workflows.imagery.tiles import EVENTS, Event, Tile, counted

_MAX_NAME_BYTES: Final = 80
_CHECKED: Final = 0.05


def prepare_imagery(
    inputs_dir: str | os.PathLike[str],
    outputs_dir: str | os.PathLike[str],
    *,
    event: Event,
    project: str,
    layer: str,
    progress: Report | None = None,
) -> ImageryManifest:
    """Prepare the tiles of one event, and return the manifest that was written.

    `inputs_dir` holds the tiles, or `pre/` and `post/` folders of which one is taken. Memory does not grow
    with the mosaic; `outputs_dir` needs free disk space of about three times the raw mosaic. A run for the
    other event in the same folder keeps what is there of this one.

    Raises `InputError`, with nothing half-written left behind, where the tiles cannot be used.
    """
    started = time.monotonic()
    report = progress or _silent
    for what, name in (("project", project), ("layer", layer)):
        _check_name(what, name)
    outputs = Path(outputs_dir)
    _check_apart(inputs_dir, outputs)
    with closed_gdal(), _workspace(outputs, event) as workspace:
        report(Progress(fraction=0, step="check", message="Reading the tiles"))
        imagery = survey(inputs_dir, event)
        inputs = tuple(_input_record(tile) for tile in imagery.tiles)
        report(
            Progress(fraction=_CHECKED, step="check", message=f"{counted(len(inputs), 'tile')} can be used")
        )
        images = make_images(imagery, workspace, report)
        names = output_names(event, project, layer)
        manifest = ImageryManifest(
            event=event,
            project=project,
            layer=layer,
            inputs=inputs,
            grid=_grid_record(imagery.plan.grid),
            decisions=images.decisions,
            bands=tuple(_band_record(band, found) for band, found in enumerate(images.statistics, start=1)),
            shown_bands=images.shown,
            percentiles=images.percentiles,
            valid_share=images.valid_share,
            outputs=tuple(_output_record(role, path, names[role]) for role, path in images.files.items()),
            seconds=round(time.monotonic() - started, 3),
            created=now(),
            versions=versions(),
        )
        _publish(outputs, manifest, images)
    report(Progress(fraction=1, step="finish", message=f"Done in {manifest.seconds:.1f} s"))
    return manifest


def output_names(event: Event, project: str, layer: str) -> dict[str, str]:
    """Return the file name of each role of output: `raw`, `processed` and `preview`."""
    return {
        "raw": f"raw_imagery_{event}_event_mosaic_cog_{project}_{layer}.tif",
        "processed": f"processed_imagery_{event}_event_mosaic_cog_{project}_{layer}.tif",
        "preview": f"preview_{event}_event_{project}_{layer}.png",
    }


def _publish(outputs: Path, manifest: ImageryManifest, images: Images) -> None:
    events = read_events(outputs)
    # Until the last step there is no manifest of this event, so that none describes files it does not know.
    events.pop(manifest.event, None)
    write_events(outputs, events)
    for record in manifest.outputs:
        images.files[record.role].replace(outputs / record.path)
    write_events(outputs, events | {manifest.event: as_record(manifest)})


@contextlib.contextmanager
def _workspace(outputs: Path, event: Event) -> Iterator[Path]:
    """Give a hidden folder beside the results, on the same disk, and remove it whatever happens.

    One run at a time may write to a folder; a folder that a killed run left behind is cleared.
    """
    try:
        outputs.mkdir(parents=True, exist_ok=True)
        handle = os.open(outputs, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(
            f"The outputs folder {outputs} cannot be used ({error.strerror}).", hint="Choose another folder."
        ) from None
    workspace = outputs / f".prepare-{event}.partial"
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"Another run is writing to {outputs}.", hint="Wait for it, or choose another folder."
            ) from None
        shutil.rmtree(workspace, ignore_errors=True)
        try:
            workspace.mkdir()
            yield workspace
        finally:
            shutil.rmtree(workspace, ignore_errors=True)
    finally:
        os.close(handle)


def _check_name(what: str, name: str) -> None:
    if (
        not name
        or name.startswith(".")
        or "/" in name
        or "\\" in name
        or not name.isprintable()
        or len(name.encode()) > _MAX_NAME_BYTES
    ):
        raise InputError(
            f"{name!r} cannot be the name of a {what}: it becomes part of file names.",
            hint="Use letters, digits, - and _, at most 80 bytes.",
        )


def _check_apart(inputs_dir: str | os.PathLike[str], outputs: Path) -> None:
    if not Path(inputs_dir).is_dir():
        return
    inputs = Path(inputs_dir).resolve()
    if inputs in (outputs.resolve(), *outputs.resolve().parents):
        raise InputError(
            f"The outputs folder {outputs} lies in the inputs folder, so results would be taken for tiles.",
            hint="Choose an outputs folder beside it.",
        )


def _input_record(tile: Tile) -> InputRecord:
    return InputRecord(
        name=tile.name,
        sha256=sha256_of(tile.path),
        bytes=tile.path.stat().st_size,
        width=tile.width,
        height=tile.height,
        bands=len(tile.bands),
        dtype=tile.dtype,
        crs=crs_name(tile.crs),
        nodata=None if tile.nodata is None or tile.nodata != tile.nodata else tile.nodata,
        validity=tile.validity.value,
    )


def _grid_record(grid: Grid) -> GridRecord:
    return GridRecord(
        crs=crs_name(grid.crs),
        width=grid.width,
        height=grid.height,
        transform=grid.transform.to_gdal(),
        bounds=grid.bounds,
    )


def _band_record(band: int, found: BandStatistics) -> BandRecord:
    return BandRecord(
        band=band,
        minimum=found.minimum,
        maximum=found.maximum,
        mean=round(found.mean, 6),
        low=found.low,
        high=found.high,
    )


def _output_record(role: str, path: Path, name: str) -> OutputRecord:
    return OutputRecord(role=role, path=name, sha256=sha256_of(path), bytes=path.stat().st_size)


def _silent(_: Progress) -> None:
    return


class _Printer:
    """Prints a line when a step begins and whenever five more percent of the run are done."""

    def __init__(self) -> None:
        self._step = ""
        self._shown = -1.0

    def __call__(self, progress: Progress) -> None:
        if progress.step == self._step and progress.fraction - self._shown < _CHECKED:
            return
        self._step, self._shown = progress.step, progress.fraction
        print(f"[{progress.fraction:4.0%}] {progress.message}", flush=True)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="prepare_imagery",
        description="Turn the raw GeoTIFF tiles of one event into cloud-optimised images.",
    )
    parser.add_argument(
        "--inputs", default="inputs", help="folder of tiles, or of pre/ and post/ (%(default)s)"
    )
    parser.add_argument("--outputs", default="outputs", help="folder for the results (%(default)s)")
    parser.add_argument("--event", choices=EVENTS, required=True, help="which event the tiles show")
    parser.add_argument("--project", required=True, help="name of the project, part of the file names")
    parser.add_argument("--layer", required=True, help="name of the image layer, part of the file names")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program: progress on standard output, a refusal as one sentence on standard error."""
    options = build_parser().parse_args(arguments)
    try:
        manifest = prepare_imagery(
            options.inputs,
            options.outputs,
            event=options.event,
            project=options.project,
            layer=options.layer,
            progress=_Printer(),
        )
    except HasteError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    except (RasterioError, OSError) as error:
        print(f"Error: The images could not be written ({error}).", file=sys.stderr)
        return 1
    for record in manifest.outputs:
        print(f"{record.path}: {record.bytes:,} bytes")
    print(
        f"{MANIFEST_NAME}: {counted(len(manifest.inputs), 'tile')} in, "
        f"{manifest.valid_share:.1%} of the image has data"
    )
    return 0


__all__ = [
    "EventImagery",
    "ImageryManifest",
    "Progress",
    "build_parser",
    "check_imagery",
    "main",
    "output_names",
    "prepare_imagery",
]

if __name__ == "__main__":
    sys.exit(main())
