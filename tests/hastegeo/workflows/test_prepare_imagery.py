"""The whole preparation: what comes out, when it appears, and what the manifest says."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rasterio.enums import ColorInterp

from hastegeo.errors import InputError
from hastegeo.samples import make_scene
from hastegeo.workflows import prepare_imagery as module
from hastegeo.workflows.cog import check_cog
from hastegeo.workflows.imagery.gdal import closed_gdal
from hastegeo.workflows.prepare_imagery import (
    ImageryManifest,
    Progress,
    main,
    output_names,
    prepare_imagery,
)

# A preview is a plain PNG.
pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")

TileWriter = Callable[..., Path]
Noise = Callable[..., np.ndarray]


def check_results(outputs: Path, manifest: ImageryManifest) -> None:
    """Check what every preparation promises about its files."""
    names = output_names(manifest.event, manifest.project, manifest.layer)
    record = json.loads((outputs / "imagery_manifest.json").read_text())["events"][manifest.event]
    assert record["outputs"] == [
        {
            "role": role,
            "path": names[role],
            "sha256": hashlib.sha256((outputs / names[role]).read_bytes()).hexdigest(),
            "bytes": (outputs / names[role]).stat().st_size,
        }
        for role in ("raw", "processed", "preview")
    ]
    for role in ("raw", "processed"):
        report = check_cog(outputs / names[role])
        assert report.valid, report.problems
        grid = manifest.grid if role == "raw" else manifest.processed_grid
        assert report.crs == grid.crs
        assert (report.width, report.height) == (grid.width, grid.height)
        assert report.bounds == pytest.approx(grid.bounds)
        assert bool(report.overviews) == (max(report.width, report.height) > 512)
    with (
        rasterio.open(outputs / names["raw"]) as raw,
        rasterio.open(outputs / names["processed"]) as processed,
        rasterio.open(outputs / names["preview"]) as preview,
    ):
        assert processed.dtypes == ("uint8",) * 3
        assert processed.nodata == 0
        assert processed.colorinterp == (ColorInterp.red, ColorInterp.green, ColorInterp.blue)
        shown = processed.read()
        valid = (shown > 0).any(axis=0)
        assert np.array_equal(valid, (shown > 0).all(axis=0))
        assert valid.mean() == pytest.approx(manifest.valid_share)
        if manifest.grid == manifest.processed_grid:
            # What has data in one has data in the other.
            assert np.array_equal(valid, raw.dataset_mask() > 0)
        assert max(preview.width, preview.height) <= 800
        assert preview.count == 4


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_scene(tmp_path_factory.mktemp("scene"), seed=3, size=620).directory


@pytest.mark.parametrize(("event", "dtype"), [("pre", "uint8"), ("post", "uint16")])
def test_a_generated_scene_becomes_images_on_the_ground_it_shows(
    scene: Path, tmp_path: Path, event: module.Event, dtype: str
) -> None:
    manifest = prepare_imagery(scene, tmp_path, event=event, project="storm", layer="first")
    check_results(tmp_path, manifest)
    assert len(manifest.inputs) == 4
    with rasterio.open(tmp_path / manifest.output("raw").path) as raw:
        assert raw.dtypes == (dtype,) * 3
        for tile_path in (scene / event).iterdir():
            with rasterio.open(tile_path) as tile:
                window = raw.window(*tile.bounds).round_offsets().round_lengths()
                valid = tile.dataset_mask() > 0
                assert np.array_equal(raw.read(window=window)[:, valid], tile.read()[:, valid])


def test_both_events_in_one_folder_share_a_manifest(scene: Path, tmp_path: Path) -> None:
    pre = prepare_imagery(scene, tmp_path, event="pre", project="p", layer="l")
    post = prepare_imagery(scene, tmp_path, event="post", project="p", layer="l")
    check_results(tmp_path, pre)
    check_results(tmp_path, post)
    assert {path.name for path in tmp_path.iterdir()} == {
        "imagery_manifest.json",
        *output_names("pre", "p", "l").values(),
        *output_names("post", "p", "l").values(),
    }


def test_the_same_tiles_give_the_same_images(scene: Path, tmp_path: Path) -> None:
    first = prepare_imagery(scene, tmp_path / "a", event="post", project="p", layer="l")
    second = prepare_imagery(scene, tmp_path / "b", event="post", project="p", layer="l")
    assert first.outputs == second.outputs


@pytest.mark.parametrize("event", ["pre", "post"])
def test_real_tiles_of_joplin(test_data: Path, tmp_path: Path, event: module.Event) -> None:
    folder = test_data / "joplin"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    manifest = prepare_imagery(folder, tmp_path, event=event, project="joplin", layer="tornado")
    check_results(tmp_path, manifest)
    # The processed pre-event image is on the post-event grid, of which the pre-event tiles show about half.
    assert manifest.valid_share == pytest.approx({"pre": 0.51, "post": 1}[event], abs=0.005)
    assert manifest.processed_grid.crs == "EPSG:4326"
    assert (manifest.processed_grid.width, manifest.processed_grid.height) == (3072, 2048)
    assert manifest.grid.crs == {"pre": "EPSG:26915", "post": "EPSG:4326"}[event]
    assert (manifest.grid.width, manifest.grid.height) == {"pre": (2048, 2048), "post": (3072, 2048)}[event]
    with rasterio.open(tmp_path / manifest.output("raw").path) as raw:
        for tile_path in (folder / event).iterdir():
            with rasterio.open(tile_path) as tile:
                window = raw.window(*tile.bounds).round_offsets().round_lengths()
                assert np.array_equal(raw.read(window=window), tile.read())


def test_a_real_16_bit_tile_of_atlanta(test_data: Path, tmp_path: Path) -> None:
    folder = test_data / "atlanta_uint16"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    manifest = prepare_imagery(folder, tmp_path, event="pre", project="atlanta", layer="pan")
    check_results(tmp_path, manifest)
    with (
        rasterio.open(folder / "sample_geotiff.tif") as tile,
        rasterio.open(tmp_path / manifest.output("raw").path) as raw,
        rasterio.open(tmp_path / manifest.output("processed").path) as processed,
    ):
        values = tile.read(1)
        assert raw.nodata == 0
        assert np.array_equal(raw.read(1), values)
        low, high = np.percentile(values[values > 0], (2, 98), method="inverted_cdf")
        assert (manifest.bands[0].low, manifest.bands[0].high) == (low, high)
        exact = 1 + 254 * np.clip((values.astype(float) - low) / (high - low), 0, 1)
        for band in (1, 2, 3):
            assert np.abs(processed.read(band) - exact)[values > 0].max() <= 0.5


def test_real_imagery_of_two_events_is_checked_up_front(test_data: Path) -> None:
    found = module.check_imagery(test_data / "joplin")
    assert {event: len(imagery.tiles) for event, imagery in found.items()} == {"pre": 4, "post": 6}


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    dtype=st.sampled_from(["uint8", "int16", "uint16", "int32", "float32", "float64"]),
    bands=st.integers(1, 5),
    width=st.integers(1, 90),
    height=st.integers(1, 90),
    mark=st.sampled_from(["none", "nodata", "mask"]),
    seed=st.integers(0, 1000),
)
def test_the_promises_hold_for_imagery_of_any_kind(
    tmp_path_factory: pytest.TempPathFactory,
    write_tile: TileWriter,
    noise: Noise,
    dtype: str,
    bands: int,
    width: int,
    height: int,
    mark: str,
    seed: int,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    data = noise(bands, height, width, dtype, seed=seed)
    empty = np.random.default_rng(seed).random((height, width)) < 0.4
    empty[0, 0] = False
    # GDAL takes the fourth of four bands of bytes for alpha, unless told otherwise.
    options: dict[str, object] = {"alpha": "unspecified"}
    if mark == "nodata":
        data[:, empty] = 7
        data[:, ~empty] = np.where(data[:, ~empty] == 7, 8, data[:, ~empty])
        options["nodata"] = 7
    elif mark == "mask":
        options["mask"] = ~empty
    write_tile(folder / "in" / "a.tif", data, **options)
    manifest = prepare_imagery(folder / "in", folder / "out", event="pre", project="p", layer="l")
    check_results(folder / "out", manifest)
    with rasterio.open(folder / "out" / manifest.output("raw").path) as raw:
        assert raw.count == bands
        valid = raw.dataset_mask() > 0
        assert np.array_equal(valid, np.ones_like(empty) if mark == "none" else ~empty)
        assert np.array_equal(raw.read()[:, valid], data[:, valid])


def test_names_with_spaces_and_of_other_scripts_are_fine(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    write_tile(tmp_path / "入力 データ" / "タイル 1.tif", noise(3, 40, 40))
    manifest = prepare_imagery(
        tmp_path / "入力 データ", tmp_path / "aus gang", event="post", project="Überflutung", layer="día 1"
    )
    check_results(tmp_path / "aus gang", manifest)
    assert manifest.inputs[0].name == "タイル 1.tif"


@pytest.mark.parametrize("name", ["", "a/b", "..", ".hidden", "a\nb", "x" * 81, "back\\slash"])
def test_names_that_cannot_be_file_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a project"):
        prepare_imagery(tmp_path, tmp_path / "out", event="pre", project=name, layer="l")
    with pytest.raises(InputError, match="cannot be the name of a layer"):
        prepare_imagery(tmp_path, tmp_path / "out", event="pre", project="p", layer=name)


def test_one_file_may_stand_for_a_folder(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    path = write_tile(tmp_path / "a.tif", noise(3, 40, 40))
    manifest = prepare_imagery(path, tmp_path / "out", event="pre", project="p", layer="l")
    assert [record.name for record in manifest.inputs] == ["a.tif"]


def test_the_manifest_comes_last_and_old_results_stay_until_then(
    tmp_path: Path, write_tile: TileWriter, noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, outputs = tmp_path / "in", tmp_path / "out"
    write_tile(inputs / "a.tif", noise(3, 40, 40))
    first = prepare_imagery(inputs, outputs, event="pre", project="p", layer="l")
    before = {path.name: path.read_bytes() for path in outputs.iterdir()}

    # A run that breaks before its images are whole changes nothing.
    write_tile(inputs / "a.tif", noise(3, 40, 40, seed=1))
    with monkeypatch.context() as patch:
        patch.setattr(
            "hastegeo.workflows.imagery.pipeline.write_preview",
            lambda *_: (_ for _ in ()).throw(OSError("full")),
        )
        with pytest.raises(OSError, match="full"):
            prepare_imagery(inputs, outputs, event="pre", project="p", layer="l")
    assert {path.name: path.read_bytes() for path in outputs.iterdir()} == before

    # One that breaks while its images appear leaves no manifest that describes others.
    with monkeypatch.context() as patch:
        real = Path.replace

        def broken(self: Path, target: Path) -> Path:
            if self.name == "processed.tif":
                raise OSError("gone")
            return real(self, target)

        patch.setattr(Path, "replace", broken)
        with pytest.raises(OSError, match="gone"):
            prepare_imagery(inputs, outputs, event="pre", project="p", layer="l")
    assert not (outputs / "imagery_manifest.json").exists()
    assert not [path for path in outputs.iterdir() if path.name.startswith(".")]

    second = prepare_imagery(inputs, outputs, event="pre", project="p", layer="l")
    check_results(outputs, second)
    assert second.inputs != first.inputs


def test_what_a_killed_run_left_is_cleared_and_a_running_one_is_not_disturbed(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    inputs, outputs = tmp_path / "in", tmp_path / "out"
    write_tile(inputs / "a.tif", noise(3, 40, 40))
    leftover = outputs / ".prepare.partial"
    leftover.mkdir(parents=True)
    (leftover / "mosaic.tif").write_bytes(b"half")
    running = os.open(outputs, os.O_RDONLY)
    try:
        fcntl.flock(running, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="Another run is writing"):
            prepare_imagery(inputs, outputs, event="pre", project="p", layer="l")
        assert (leftover / "mosaic.tif").exists()
    finally:
        os.close(running)
    prepare_imagery(inputs, outputs, event="pre", project="p", layer="l")
    assert not leftover.exists()


def test_results_are_not_taken_for_tiles(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    write_tile(tmp_path / "a.tif", noise(3, 40, 40))
    for outputs in (tmp_path, tmp_path / "out"):
        with pytest.raises(InputError, match="lies in the inputs folder"):
            prepare_imagery(tmp_path, outputs, event="pre", project="p", layer="l")


def test_progress_rises_from_the_beginning_to_the_end(scene: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    prepare_imagery(scene, tmp_path, event="pre", project="p", layer="l", progress=seen.append)
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0, 1)
    assert len({progress.step for progress in seen}) >= 6


def test_gdal_s_settings_are_as_before_afterwards() -> None:
    with rasterio.Env(GDAL_PAM_ENABLED="YES"):
        with closed_gdal():
            assert rasterio.env.getenv()["GDAL_PAM_ENABLED"] == "NO"
        assert rasterio.env.getenv()["GDAL_PAM_ENABLED"] == "YES"


def test_the_command_line_shows_progress_and_results(
    scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--inputs", str(scene), "--outputs", str(tmp_path / "out")]
    assert main([*arguments, "--event", "pre", "--project", "p", "--layer", "l"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("[  0%] Reading the tiles\n[  5%] 4 tiles can be used\n")
    assert "[100%] Done in " in out
    assert "imagery_manifest.json, pre: 4 tiles in, " in out


def test_the_command_line_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    # As a process of its own, so that GDAL's own words on standard error would be seen as well.
    (tmp_path / "bad.tif").write_text("nothing")
    command = [sys.executable, "-m", "hastegeo.workflows.prepare_imagery", "--event", "pre"]
    command += ["--project", "p", "--layer", "l"]
    done = subprocess.run(
        [*command, "--inputs", tmp_path, "--outputs", tmp_path.parent / "o"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "Error: bad.tif is not a GeoTIFF. Convert it first: gdal_translate -of GTiff INPUT OUTPUT.tif\n"
    )
