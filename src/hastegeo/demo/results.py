"""What came out: the prepared images, checked, and the promises of the demo, each kept or broken."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from hastegeo.demo.imagery import PreparationJob
from hastegeo.demo.pools import POOLS
from hastegeo.demo.state import Road
from hastegeo.domain import TaskState
from hastegeo.errors import InputError
from hastegeo.verification import RowResult, Verdict
from hastegeo.workflows.cog import check_cog
from hastegeo.workflows.prepare_imagery import output_names


@dataclass(frozen=True)
class PreparedImage:
    """One prepared image on this machine. `problems` is empty where it is a valid cloud-optimised GeoTIFF."""

    label: str
    path: Path
    preview: Path | None
    description: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Promise:
    """Something that the demo promises, and whether it held."""

    text: str
    held: bool
    detail: str = ""


def collect(job: PreparationJob, folder: Path) -> list[PreparedImage]:
    """Download the results of one task and check its images."""
    place = folder / job.tenant.name / job.scene.name / job.event
    files = {path.name: path for path in job.tenant.download(prefix=job.result_prefix, folder=place)}
    names = output_names("pre" if job.event == "pre" else "post", job.tenant.name, job.scene.name)
    images = []
    for role in ("raw", "processed"):
        path = files.get(names[role])
        label = f"{job.tenant.name} {job.label} {role}"
        if path is None:
            images.append(PreparedImage(label, place / names[role], None, "", ("It was not produced.",)))
            continue
        images.append(_checked(label, path, files.get(names["preview"])))
    return images


def _checked(label: str, path: Path, preview: Path | None) -> PreparedImage:
    try:
        report = check_cog(path)
    except InputError as error:
        return PreparedImage(label, path, preview, "", (error.message,))
    count = len(report.overviews)
    description = (
        f"{report.width} x {report.height} x {report.bands} {report.dtype}, {report.crs}, "
        f"{count} overview{'' if count == 1 else 's'}, {report.validity}"
    )
    return PreparedImage(label, path, preview, description, tuple(report.problems))


def promises(
    road: Road, images: list[PreparedImage], table: list[RowResult], *, pools_empty: bool
) -> list[Promise]:
    """Judge the run by what the demo promises."""
    failed = [task for task in road.tasks if task.state is not TaskState.SUCCEEDED]
    preparations = [task for task in road.tasks if not task.label.startswith("isolation")]
    nodes = sum(pool.max_nodes for pool in POOLS)
    bad_images = [image for image in images if image.problems]
    undecided = [task for task in road.tasks if not task.decision.reason]
    kept = [
        Promise(
            "every task succeeded",
            not failed,
            ", ".join(f"{t.tenant} {t.label}: {t.status.reason if t.status else t.state}" for t in failed),
        ),
        Promise("every routing decision has its reason", not undecided),
        Promise(
            "every image is a valid cloud-optimised GeoTIFF",
            bool(images) and not bad_images,
            "; ".join(f"{image.label}: {' '.join(image.problems)}" for image in bad_images),
        ),
        Promise(
            "every attack was denied, and every control succeeded",
            bool(table) and all(result.verdict in {Verdict.DENIED, Verdict.NOT_TESTED} for result in table),
            ", ".join(
                f"{result.row.id}: {result.verdict.value}"
                for result in table
                if result.verdict is not Verdict.DENIED
            ),
        ),
        Promise("the pools went back to zero nodes", pools_empty),
    ]
    if len(preparations) > nodes:
        kept.insert(
            1,
            Promise(
                "tasks spilled over and queued, for there were more of them than nodes",
                road.spills > 0 and road.queued_at_submission > 0,
                f"{road.spills} spilled, {road.queued_at_submission} queued",
            ),
        )
    return kept


def untested(table: list[RowResult]) -> list[RowResult]:
    """Return the rows that could not be tested on this machine."""
    return [result for result in table if result.verdict is Verdict.NOT_TESTED]


def previews(images: list[PreparedImage], folder: Path) -> list[Path]:
    """Copy one preview an image to the top of the results, and return where they are."""
    written = []
    for image in images:
        if image.preview is not None and image.label.endswith("processed"):
            target = folder / f"preview_{image.label.removesuffix(' processed').replace(' ', '_')}.png"
            shutil.copyfile(image.preview, target)
            written.append(target)
    return written
