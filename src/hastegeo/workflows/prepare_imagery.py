"""Turn raw tiles into clean, aligned, cloud-optimised images.

The tiles are GeoTIFFs of any CRS, pixel size and depth. For each event (`pre`, `post`) there come out:

- `raw_imagery_{event}_event_mosaic_cog_{project}_{layer}.tif`: all bands, at the depth of the source;
- `processed_imagery_{event}_event_mosaic_cog_{project}_{layer}.tif`: 8-bit RGB for models and the web;
- `preview_{event}_event_{project}_{layer}.png`: the same, at most 800 pixels a side;

for the layer as a whole `valid_area_mask_{project}_{layer}.geojson` and, where footprints are given,
`building_footprints_{project}_{layer}.gpkg`; and `imagery_manifest.json`, which is written last.

The images are cloud-optimised GeoTIFFs. The processed pre-event image is on the grid of the post-event one,
so that their pixels can be compared; raw mosaics keep their own. Files appear under their names only when
they are whole. Run it alone with `haste workload prepare_imagery --help`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rasterio.errors import RasterioError

from hastegeo.errors import HasteError
from hastegeo.workflows.imagery.checks import EventImagery, check_imagery
from hastegeo.workflows.imagery.gdal import closed_gdal
from hastegeo.workflows.imagery.manifest import (
    MANIFEST_NAME,
    ImageryManifest,
    LayerManifest,
    OutputRecord,
)
from hastegeo.workflows.imagery.options import Area, ImageryOptions, Seams
from hastegeo.workflows.imagery.preparation import prepare_imagery, prepare_layer
from hastegeo.workflows.imagery.profiles import GENERIC, Profile, find_profile
from hastegeo.workflows.imagery.progress import Printer, Progress, Report
from hastegeo.workflows.imagery.tiles import EVENTS, Event, counted
from hastegeo.workflows.imagery.vectors import read_area
from hastegeo.workflows.imagery.workspace import layer_output_names, output_names


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="prepare_imagery", description="Turn raw GeoTIFF tiles into clean, cloud-optimised images."
    )
    add = parser.add_argument
    add("--inputs", default="inputs", help="folder of tiles, or of pre/ and post/ (default: %(default)s)")
    add("--outputs", default="outputs", help="folder for the results (default: %(default)s)")
    add("--project", required=True, help="name of the project, part of the file names")
    add("--layer", required=True, help="name of the image layer, part of the file names")
    add(
        "--event",
        choices=(*EVENTS, "all"),
        default="all",
        help="which event (default: all)",
    )
    add(
        "--footprints",
        help="building footprints to cut (GeoPackage, GeoJSON, Shapefile); for all events",
    )
    add("--aoi", metavar="FILE", help="polygons of the area of interest, to which everything is cut")
    add(
        "--profile",
        default=GENERIC,
        help="source of the imagery: its bands, its stretch (default: %(default)s)",
    )
    add("--profiles-file", metavar="FILE", type=Path, help="profiles of your own, as TOML")
    add("--seams", choices=[*Seams], default=Seams.TOP.value, help="what shows where tiles overlap")
    add("--own-grid", action="store_true", help="keep the processed pre-event image on its own grid")
    add("--keep-black", action="store_true", help="take untagged black borders for data")
    add("--force", action="store_true", help="prepare again even if nothing has changed")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program: progress on standard output, a refusal as one sentence on standard error."""
    parser = build_parser()
    choices = parser.parse_args(arguments)
    if choices.footprints and choices.event != "all":
        parser.error("--footprints goes with all events, not with --event")
    try:
        _run(choices)
    except HasteError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    except (RasterioError, OSError) as error:
        print(f"Error: The images could not be written ({error}).", file=sys.stderr)
        return 1
    return 0


def _run(choices: argparse.Namespace) -> None:
    options = ImageryOptions(
        profile=find_profile(choices.profile, file=choices.profiles_file),
        seams=Seams(choices.seams),
        align=not choices.own_grid,
        keep_black=choices.keep_black,
        area=_area(choices.aoi),
    )
    if choices.event == "all":
        manifests, layer = prepare_layer(
            choices.inputs,
            choices.outputs,
            project=choices.project,
            layer=choices.layer,
            footprints=choices.footprints,
            options=options,
            force=choices.force,
            progress=Printer(),
        )
        _print_results(manifests)
        _print_files(layer.outputs)
    else:
        manifest = prepare_imagery(
            choices.inputs,
            choices.outputs,
            event=choices.event,
            project=choices.project,
            layer=choices.layer,
            options=options,
            force=choices.force,
            progress=Printer(),
        )
        _print_results([manifest])


def _area(path: str | None) -> Area | None:
    if path is None:
        return None
    with closed_gdal():
        return read_area(Path(path))


def _print_results(manifests: Iterable[ImageryManifest]) -> None:
    for manifest in manifests:
        _print_files(manifest.outputs)
        print(
            f"{MANIFEST_NAME}, {manifest.event}: {counted(len(manifest.inputs), 'tile')} in, "
            f"{manifest.valid_share:.1%} of the image has data"
        )


def _print_files(records: Iterable[OutputRecord]) -> None:
    for record in records:
        print(f"{record.path}: {record.bytes:,} bytes")


__all__ = [
    "Area",
    "Event",
    "EventImagery",
    "ImageryManifest",
    "ImageryOptions",
    "LayerManifest",
    "Profile",
    "Progress",
    "Report",
    "Seams",
    "build_parser",
    "check_imagery",
    "find_profile",
    "layer_output_names",
    "main",
    "output_names",
    "prepare_imagery",
    "prepare_layer",
    "read_area",
]

if __name__ == "__main__":
    sys.exit(main())
