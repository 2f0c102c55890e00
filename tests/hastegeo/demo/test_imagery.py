"""The imagery of the demo: whose it is, what is uploaded, and which tasks prepare it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from batch_emulator.nodes.images import load_images
from hastegeo.demo import images
from hastegeo.demo.imagery import (
    PreparationJob,
    Scene,
    generated_scenes,
    interleaved,
    upload_tiles,
    user_scene,
)
from hastegeo.demo.results import collect, previews
from hastegeo.demo.tenants import DemoTenant
from hastegeo.errors import InputError
from hastegeo.samples import make_scene
from hastegeo.workflows.prepare_imagery import prepare_imagery

# rasterio itself still multiplies transforms with `*`, of which affine 3 warns.
pytestmark = pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")


@dataclass
class Tenant:
    """A tenant whose container is a dictionary of names and what is stored under them."""

    name: str = "dev1"
    container_url: str = "https://127.0.0.1:1/hastedev1/imagery"
    blobs: dict[str, bytes] = field(default_factory=dict)

    def upload(self, folder: Path, *, prefix: str) -> int:
        files = [path for path in folder.rglob("*") if path.is_file()]
        self.blobs |= {f"{prefix}/{path.relative_to(folder)}": path.read_bytes() for path in files}
        return len(files)

    def download(self, *, prefix: str, folder: Path) -> list[Path]:
        written = []
        for name, content in self.blobs.items():
            if name.startswith(f"{prefix}/"):
                target = folder / name.removeprefix(f"{prefix}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                written.append(target)
        return written


def job(tenant: Tenant, scene: Scene, event: str) -> PreparationJob:
    return PreparationJob(cast("DemoTenant", tenant), scene, event)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    make_scene(folder, seed=7, size=256)
    return folder


def test_a_folder_of_tiles_is_a_scene_of_its_name(generated: Path, tmp_path: Path) -> None:
    for name, expected in (("Joplin 2011", "Joplin-2011"), ("b_2-c", "b_2-c")):
        folder = shutil.copytree(generated, tmp_path / name)
        assert user_scene(folder) == Scene(expected, folder, ("pre", "post"))


def test_a_folder_without_tiles_is_no_scene(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        user_scene(tmp_path)


def test_tenants_get_scenes_of_their_own_from_the_same_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []  # dev1's second scene must not be dev2's first either
    monkeypatch.setattr("hastegeo.demo.imagery.make_scene", lambda place, *, seed: seeds.append(seed))
    for seed in (1, 2):
        for tenant in ("dev1", "dev2"):
            scenes = generated_scenes(tmp_path, tenant, seed=seed)
            assert [scene.folder for scene in scenes] == [tmp_path / tenant / scene.name for scene in scenes]
            assert all(scene.events == ("pre", "post") for scene in scenes)
    assert len(set(seeds)) == len(seeds) == 8


def test_only_the_tiles_of_the_events_are_uploaded(generated: Path) -> None:
    tenant = Tenant()
    scene = Scene("town", generated, ("pre", "post"))
    count = upload_tiles(cast("DemoTenant", tenant), scene)
    assert count == len(tenant.blobs) == len(list(generated.glob("p*/*.tif")))
    assert {name.rpartition("/")[0] for name in tenant.blobs} == {"raw/town/pre", "raw/town/post"}


def test_tiles_that_lie_in_the_folder_itself_are_uploaded_as_they_lie(generated: Path) -> None:
    tenant = Tenant()
    upload_tiles(cast("DemoTenant", tenant), Scene("town", generated / "post", ("post",)))
    assert {name.rpartition("/")[0] for name in tenant.blobs} == {"raw/town"}


def test_a_task_reads_and_writes_its_own_tenants_container_only() -> None:
    tenant = Tenant()
    spec = job(tenant, Scene("town", Path("anywhere"), ("pre",)), "pre").spec()
    assert spec.tenant == "dev1"
    (taken,) = spec.inputs
    (given,) = spec.outputs
    assert taken.container_url == given.container_url == tenant.container_url
    assert (taken.prefix, given.prefix) == ("raw/town/", "prepared/town/pre")
    assert spec.command[0] == "prepare_imagery"
    assert "inputs/raw/town" in spec.command
    assert spec.image == images.IMAGERYPREP_IMAGE


def test_tasks_of_tenants_come_in_turns() -> None:
    scene = Scene("town", Path("anywhere"), ("pre", "post"))
    first, second = Tenant("dev1"), Tenant("dev2")
    one = [job(first, scene, event) for event in ("pre", "post")]
    other = [job(second, scene, "pre")]
    assert list(interleaved([one, other])) == [one[0], other[0], one[1]]
    assert list(interleaved([])) == []


def prepared(generated: Path, folder: Path, tenant: Tenant) -> PreparationJob:
    """Put the real results of one task into the tenant's container."""
    prepare_imagery(generated, folder, event="post", project="dev1", layer="town")
    done = job(tenant, Scene("town", generated, ("pre", "post")), "post")
    tenant.upload(folder, prefix=done.result_prefix)
    return done


def test_results_are_downloaded_checked_and_shown(generated: Path, tmp_path: Path) -> None:
    tenant = Tenant()
    done = prepared(generated, tmp_path / "outputs", tenant)
    found = collect(done, tmp_path / "results")
    assert [image.label for image in found] == ["dev1 town post raw", "dev1 town post processed"]
    assert [image.problems for image in found] == [(), ()]
    assert "uint16" in found[0].description
    assert "uint8" in found[1].description
    assert all(image.path.is_relative_to(tmp_path / "results/dev1/town/post") for image in found)
    (picture,) = previews(found, tmp_path)
    assert picture == tmp_path / "preview_dev1_town_post.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_missing_and_damaged_results_are_problems(generated: Path, tmp_path: Path) -> None:
    tenant = Tenant()
    done = prepared(generated, tmp_path / "outputs", tenant)
    raw, processed = (
        next(name for name in tenant.blobs if f"/{role}_imagery" in name) for role in ("raw", "processed")
    )
    del tenant.blobs[raw]
    tenant.blobs[processed] = tenant.blobs[processed][:100]
    missing, damaged = collect(done, tmp_path / "results")
    assert missing.problems == ("It was not produced.",)
    assert len(damaged.problems) == 1
    assert previews([missing], tmp_path) == []


def test_the_image_table_is_what_the_local_batch_reads(tmp_path: Path) -> None:
    image = load_images(images.write_images_file(tmp_path / "images.toml")).find("haste/imageryprep")
    assert image is not None
    assert image.command == (sys.executable, "-m", "hastegeo", "workload")
    (source,) = image.read_only_paths
    assert (source / "hastegeo" / "demo").is_dir()


@pytest.mark.parametrize("name", ['a "quoted" path', "back\\slash", "Übung", "🗺 maps"])
def test_the_image_table_holds_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys, "executable", f"/opt/{name}/bin/python")
    image = load_images(images.write_images_file(tmp_path / "images.toml")).find(images.IMAGERYPREP_IMAGE)
    assert image is not None
    assert image.command[0] == f"/opt/{name}/bin/python"
