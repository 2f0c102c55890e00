"""A preparation as a whole: of one event, or of a layer with all that belongs to it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from hastegeo.workflows.imagery.checks import EventImagery, events_in, survey
from hastegeo.workflows.imagery.coverage import common_area, write_area
from hastegeo.workflows.imagery.footprints import write_footprints
from hastegeo.workflows.imagery.gdal import closed_gdal
from hastegeo.workflows.imagery.grid import Grid, crs_name
from hastegeo.workflows.imagery.manifest import (
    BandRecord,
    Document,
    GridRecord,
    ImageryManifest,
    InputRecord,
    LayerManifest,
    OutputRecord,
    now,
    sha256_of,
    versions,
)
from hastegeo.workflows.imagery.options import ImageryOptions
from hastegeo.workflows.imagery.pipeline import Images, make_images
from hastegeo.workflows.imagery.progress import Progress, Report, say, silent, within
from hastegeo.workflows.imagery.tiles import Event, counted
from hastegeo.workflows.imagery.vectors import check_polygons, crs_of
from hastegeo.workflows.imagery.workspace import (
    check_apart,
    check_name,
    layer_output_names,
    output_names,
    workspace_in,
)

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    inputs_dir: PathLike
    outputs: Path
    project: str
    layer: str
    options: ImageryOptions
    force: bool

    def check(self) -> None:
        for what, name in (("project", self.project), ("layer", self.layer)):
            check_name(what, name)
        check_apart(self.inputs_dir, self.outputs)


def prepare_imagery(
    inputs_dir: PathLike,
    outputs_dir: PathLike,
    *,
    event: Event,
    project: str,
    layer: str,
    options: ImageryOptions | None = None,
    force: bool = False,
    progress: Report | None = None,
) -> ImageryManifest:
    """Prepare the tiles of one event, and return the manifest that was written.

    `inputs_dir` holds the tiles, or `pre/` and `post/` folders of which one is taken. Memory does not grow
    with the mosaic; `outputs_dir` needs free disk space of about three times the raw mosaic. A run for the
    other event in the same folder keeps what is there of this one. Where the same tiles were prepared with
    the same options before, nothing is done again, unless `force`.

    Raises `InputError`, with nothing half-written left behind, where the tiles cannot be used.
    """
    job = _Job(
        inputs_dir=inputs_dir,
        outputs=Path(outputs_dir),
        project=project,
        layer=layer,
        options=options or ImageryOptions(),
        force=force,
    )
    job.check()
    with closed_gdal(), workspace_in(job.outputs) as workspace:
        return _prepare_event(job, event, workspace, progress or silent)


def prepare_layer(
    inputs_dir: PathLike,
    outputs_dir: PathLike,
    *,
    project: str,
    layer: str,
    footprints: PathLike | None = None,
    options: ImageryOptions | None = None,
    force: bool = False,
    progress: Report | None = None,
) -> tuple[tuple[ImageryManifest, ...], LayerManifest]:
    """Prepare every event in a folder, and what belongs to all: the valid area, and building footprints.

    Tiles that lie in no `pre/` or `post/` folder count as post-event imagery. Otherwise as `prepare_imagery`.
    """
    job = _Job(
        inputs_dir=inputs_dir,
        outputs=Path(outputs_dir),
        project=project,
        layer=layer,
        options=options or ImageryOptions(),
        force=force,
    )
    job.check()
    report = progress or silent
    with closed_gdal(), workspace_in(job.outputs) as workspace:
        if footprints is not None:
            check_polygons(Path(footprints))
        events = events_in(inputs_dir)
        manifests = tuple(
            _prepare_event(
                job, event, workspace, within(report, index / len(events), (index + 1) / len(events))
            )
            for index, event in enumerate(events)
        )
        return manifests, _prepare_area(job, manifests, footprints, workspace, report)


def _prepare_event(job: _Job, event: Event, workspace: Path, report: Report) -> ImageryManifest:
    started = time.monotonic()
    say(report, "check", "Reading the tiles")
    imagery = survey(job.inputs_dir, event, job.options)
    inputs = tuple(InputRecord.of(tile) for tile in imagery.tiles)
    shown_grid = _shown_grid(job, imagery)
    before = None if job.force else _unchanged(job, event, inputs, shown_grid)
    if before is not None:
        report(Progress(fraction=1, step="finish", message="Nothing to do: tiles and options are unchanged"))
        return before
    say(report, "mosaic", f"{counted(len(inputs), 'tile')} can be used")
    images = make_images(imagery, shown_grid, job.options, workspace, report)
    names = output_names(event, job.project, job.layer)
    manifest = ImageryManifest(
        event=event,
        project=job.project,
        layer=job.layer,
        inputs=inputs,
        grid=GridRecord.of(imagery.plan.grid),
        processed_grid=GridRecord.of(shown_grid),
        options=job.options.record(),
        decisions=images.decisions,
        bands=_band_records(images),
        shown_bands=images.shown,
        valid_share=images.valid_share,
        outputs=tuple(OutputRecord.of(role, path, names[role]) for role, path in images.files.items()),
        seconds=round(time.monotonic() - started, 3),
        created=now(),
        versions=versions(),
    )
    # Until the last step there is no manifest of this event, so that none describes files it does not know.
    without = Document.read(job.outputs).with_event(event, None)
    without.write(job.outputs)
    for record in manifest.outputs:
        images.files[record.role].replace(job.outputs / record.path)
    without.with_event(event, manifest).write(job.outputs)
    report(Progress(fraction=1, step="finish", message=f"Done in {manifest.seconds:.1f} s"))
    return manifest


def _shown_grid(job: _Job, imagery: EventImagery) -> Grid:
    """Return the grid of the processed image: the post-event one for both, where both are there."""
    if imagery.event == "post" or not job.options.align or events_in(job.inputs_dir) != ("pre", "post"):
        return imagery.plan.grid
    return survey(job.inputs_dir, "post", job.options).plan.grid


def _unchanged(
    job: _Job, event: Event, inputs: tuple[InputRecord, ...], shown_grid: Grid
) -> ImageryManifest | None:
    """Return the manifest of an earlier run that would come out the same, if its files are all there."""
    try:
        before = ImageryManifest.from_record(Document.read(job.outputs).events[event])
    except (KeyError, TypeError, ValueError):
        return None
    same = (
        (before.project, before.layer) == (job.project, job.layer)
        and before.inputs == inputs
        and before.options == job.options.record()
        and before.processed_grid == GridRecord.of(shown_grid)
        and before.versions == versions()
        and all(record.is_intact(job.outputs) for record in before.outputs)
    )
    return before if same else None


def _band_records(images: Images) -> tuple[BandRecord, ...]:
    return tuple(
        BandRecord(
            band=band,
            minimum=found.minimum,
            maximum=found.maximum,
            mean=round(found.mean, 6),
            low=found.low,
            high=found.high,
        )
        for band, found in enumerate(images.statistics, start=1)
    )


def _prepare_area(
    job: _Job,
    manifests: tuple[ImageryManifest, ...],
    footprints: PathLike | None,
    workspace: Path,
    report: Report,
) -> LayerManifest:
    say(report, "finish", "Outlining where there is data")
    processed = [job.outputs / manifest.output("processed").path for manifest in manifests]
    area = common_area(processed)
    names = layer_output_names(job.project, job.layer)
    files = {"valid_area": workspace / "area.geojson"}
    events = tuple(manifest.event for manifest in manifests)
    properties = {"project": job.project, "layer": job.layer, "events": list(events)}
    write_area(area, files["valid_area"], properties)
    decisions: tuple[str, ...] = ()
    given = None
    if footprints is not None:
        say(report, "finish", "Cutting the building footprints")
        files["footprints"] = workspace / "footprints.gpkg"
        source = Path(footprints)
        crs = crs_of(processed[-1])
        found = write_footprints(source, files["footprints"], area=area, crs=crs)
        given = {"name": source.name, "sha256": sha256_of(source), "kept": found.kept, "cut": found.cut}
        decisions = (
            *found.notes,
            f"{counted(found.kept, 'footprint', 'lies')} where there is data, {found.cut} of them cut at its "
            f"edge, now in {crs_name(crs)}.",
        )
    layer = LayerManifest(
        project=job.project,
        layer=job.layer,
        events=events,
        footprints=given,
        decisions=decisions,
        outputs=tuple(OutputRecord.of(role, path, names[role]) for role, path in files.items()),
        created=now(),
    )
    without = Document.read(job.outputs).with_layer(None)
    without.write(job.outputs)
    if footprints is None:
        (job.outputs / names["footprints"]).unlink(missing_ok=True)
    for record in layer.outputs:
        files[record.role].replace(job.outputs / record.path)
    without.with_layer(layer).write(job.outputs)
    return layer
