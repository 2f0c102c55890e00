"""The imagery of the demo: generated scenes or the user's own tiles, and the tasks that prepare it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hastegeo.demo.images import IMAGERYPREP_IMAGE
from hastegeo.demo.tenants import DemoTenant
from hastegeo.domain import BlobInput, BlobOutput, TaskSpec, Workload
from hastegeo.samples import make_scene
from hastegeo.workflows.prepare_imagery import check_imagery

# Two scenes a tenant, each before and after the event, make eight tasks for three nodes.
SCENES_PER_TENANT = 2


@dataclass(frozen=True)
class Scene:
    """Raw imagery of one place: a folder, and the events that it holds."""

    name: str
    folder: Path
    events: tuple[str, ...]


@dataclass(frozen=True)
class PreparationJob:
    """One task to submit: which tenant prepares which event of which scene."""

    tenant: DemoTenant
    scene: Scene
    event: str

    @property
    def label(self) -> str:
        """A short name for tables."""
        return f"{self.scene.name} {self.event}"

    @property
    def result_prefix(self) -> str:
        """Where the results go in the tenant's container."""
        return f"prepared/{self.scene.name}/{self.event}"

    def spec(self) -> TaskSpec:
        """Return the task: the scene's tiles in, the prepared images out, both by grants of its own."""
        raw = raw_prefix(self.scene)
        return TaskSpec(
            key=f"prepare/{self.scene.name}/{self.event}",
            tenant=self.tenant.name,
            workload=Workload.IMAGERYPREP,
            image=IMAGERYPREP_IMAGE,
            command=(
                "prepare_imagery",
                *("--inputs", f"inputs/{raw}", "--outputs", "outputs"),
                *("--event", self.event, "--project", self.tenant.name, "--layer", self.scene.name),
            ),
            inputs=(BlobInput(container_url=self.tenant.container_url, prefix=f"{raw}/", path="inputs"),),
            outputs=(
                BlobOutput(
                    pattern="outputs/*",
                    container_url=self.tenant.container_url,
                    prefix=self.result_prefix,
                ),
            ),
        )


def raw_prefix(scene: Scene) -> str:
    """Return where a scene's raw tiles are in its tenant's container."""
    return f"raw/{scene.name}"


def user_scene(folder: Path) -> Scene:
    """Check the user's folder and return it as a scene. Raises `InputError` with what to do about it."""
    found = check_imagery(folder)
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in folder.resolve().name) or "imagery"
    return Scene(name, folder, tuple(found))


def generated_scenes(folder: Path, tenant: str, *, seed: int) -> list[Scene]:
    """Make the scenes of one tenant; another tenant with the same seed gets other ones."""
    scenes = []
    for number in range(1, SCENES_PER_TENANT + 1):
        name = f"scene{number}"
        place = folder / tenant / name
        make_scene(place, seed=zlib.crc32(f"{seed}/{tenant}/{number}".encode()))
        scenes.append(Scene(name, place, ("pre", "post")))
    return scenes


def upload_tiles(tenant: DemoTenant, scene: Scene) -> int:
    """Upload what a scene's preparation reads, as the tenant itself; returns the number of files."""
    folders = [scene.folder / event for event in scene.events if (scene.folder / event).is_dir()]
    if not folders:
        return tenant.upload(scene.folder, prefix=raw_prefix(scene))
    return sum(tenant.upload(folder, prefix=f"{raw_prefix(scene)}/{folder.name}") for folder in folders)


def interleaved(jobs_by_tenant: list[list[PreparationJob]]) -> Iterator[PreparationJob]:
    """Yield the tenants' tasks in turns, as independent environments would submit them."""
    for turn in range(max(map(len, jobs_by_tenant), default=0)):
        for jobs in jobs_by_tenant:
            if turn < len(jobs):
                yield jobs[turn]
