"""Imagery that cannot be used: one sentence with the tile's name and what to do, before anything is made."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rasterio
from affine import Affine

from hastegeo.errors import InputError
from hastegeo.workflows.prepare_imagery import check_imagery, prepare_imagery

TileWriter = Callable[..., Path]
Noise = Callable[..., np.ndarray]


def refusal(folder: Path, tmp_path: Path) -> InputError:
    """Return the error that both the check up front and the preparation give, with nothing left behind."""
    with pytest.raises(InputError) as checked:
        check_imagery(folder)
    outputs = tmp_path / "outputs"
    with pytest.raises(InputError) as prepared:
        prepare_imagery(folder, outputs, event="post", project="p", layer="l")
    assert str(prepared.value) == str(checked.value)
    assert checked.value.hint
    assert "\n" not in str(checked.value)
    assert list(outputs.iterdir()) == []
    return checked.value


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs"
    folder.mkdir()
    return folder


def test_the_control_is_accepted(inputs: Path, tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    write_tile(inputs / "a.tif", noise(3, 60, 60))
    assert set(check_imagery(inputs)) == {"post"}
    prepare_imagery(inputs, tmp_path / "outputs", event="post", project="p", layer="l")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"bad\.tif is an empty file"),
        (b"hello, I am no picture", r"bad\.tif is not a GeoTIFF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), r"bad\.tif is not a GeoTIFF"),
        (b"II*\x00\x08\x00\x00\x00", r"bad\.tif is damaged"),
        (
            b'<VRTDataset rasterXSize="9" rasterYSize="9"><VRTRasterBand dataType="Byte" band="1">'
            b"<SimpleSource><SourceFilename>/etc/passwd</SourceFilename></SimpleSource>"
            b"</VRTRasterBand></VRTDataset>",
            r"bad\.tif is not a GeoTIFF",
        ),
    ],
)
def test_a_file_that_is_no_raster(
    inputs: Path,
    tmp_path: Path,
    content: bytes,
    message: str,
    write_tile: TileWriter,
    noise: Noise,
) -> None:
    write_tile(inputs / "good.tif", noise(3, 60, 60))
    (inputs / "bad.tif").write_bytes(content)
    assert re.match(message, refusal(inputs, tmp_path).message)


@pytest.mark.parametrize("options", [{}, {"tiled": True, "compress": "deflate"}, {"interleave": "band"}])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_copy_that_broke_off(
    inputs: Path,
    tmp_path: Path,
    write_tile: TileWriter,
    noise: Noise,
    options: dict[str, object],
    share: float,
) -> None:
    path = write_tile(inputs / "a.tif", noise(3, 300, 300), **options)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    assert refusal(inputs, tmp_path).message.startswith("a.tif is ")


def test_damage_inside_compressed_data_is_found_when_it_is_read(
    inputs: Path, tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    write_tile(inputs / "a.tif", noise(3, 300, 300))
    path = write_tile(inputs / "b.tif", noise(3, 300, 300), west=500_300, compress="deflate", tiled=True)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 3000] = os.urandom(3000)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"b\.tif is damaged"):
        prepare_imagery(inputs, tmp_path / "outputs", event="post", project="p", layer="l")
    assert list((tmp_path / "outputs").iterdir()) == []


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crs": None}, "has no coordinate reference system"),
        ({"transform": Affine.identity()}, "has no position"),
        ({"crs": "EPSG:4326"}, "says that it is in degrees"),
    ],
)
def test_a_tile_that_cannot_be_placed(
    inputs: Path,
    tmp_path: Path,
    write_tile: TileWriter,
    noise: Noise,
    options: dict[str, object],
    message: str,
) -> None:
    write_tile(inputs / "a.tif", noise(3, 60, 60), **options)
    assert message in refusal(inputs, tmp_path).message


@pytest.mark.parametrize(
    "data", [np.zeros((3, 60, 60), "uint16"), np.full((1, 60, 60), np.nan, "float32")], ids=["zero", "nan"]
)
def test_all_nodata(inputs: Path, tmp_path: Path, write_tile: TileWriter, data: np.ndarray) -> None:
    write_tile(inputs / "a.tif", data, nodata=0 if data.dtype.kind == "u" else None)
    assert "There is nothing in a.tif" in refusal(inputs, tmp_path).message


def test_one_tile_without_data_among_others_is_only_noted(
    inputs: Path, write_tile: TileWriter, noise: Noise
) -> None:
    write_tile(inputs / "a.tif", np.zeros((3, 60, 60), "uint8"), nodata=0)
    write_tile(inputs / "b.tif", noise(3, 60, 60), west=500_060, nodata=0)
    assert check_imagery(inputs)["post"].notes == ("Without a pixel of data: a.tif.",)


def test_tiles_far_apart(inputs: Path, tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    write_tile(inputs / "a.tif", noise(3, 60, 60))
    write_tile(inputs / "b.tif", noise(3, 60, 60), west=600_000, north=4_200_000)
    assert "do not lie together" in refusal(inputs, tmp_path).message


def test_pre_and_post_of_different_places(tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    write_tile(tmp_path / "pre" / "a.tif", noise(3, 60, 60))
    write_tile(tmp_path / "post" / "a.tif", noise(3, 60, 60), west=550_000)
    with pytest.raises(InputError, match="show different places"):
        check_imagery(tmp_path)
    write_tile(tmp_path / "post" / "a.tif", noise(3, 60, 60), west=500_030)
    assert set(check_imagery(tmp_path)) == {"pre", "post"}


@pytest.mark.parametrize("kind", ["int64", "complex64"])
def test_pixels_that_are_no_imagery(inputs: Path, tmp_path: Path, write_tile: TileWriter, kind: str) -> None:
    write_tile(inputs / "a.tif", np.ones((1, 20, 20), kind))
    assert f"holds {kind} pixels" in refusal(inputs, tmp_path).message


def test_palette_indexes(inputs: Path, tmp_path: Path, write_tile: TileWriter, noise: Noise) -> None:
    write_tile(inputs / "a.tif", noise(1, 20, 20), photometric="palette")
    assert "palette indexes" in refusal(inputs, tmp_path).message


def test_folders_without_tiles(inputs: Path, tmp_path: Path) -> None:
    (inputs / "notes.txt").write_text("no tiles here")
    (inputs / ".hidden.tif").write_text("not looked at")
    assert "only notes.txt" in refusal(inputs, tmp_path).message
    (inputs / "pre").mkdir()
    with pytest.raises(InputError, match=r"no post/ folder"):
        prepare_imagery(inputs, tmp_path / "outputs", event="post", project="p", layer="l")


@pytest.mark.parametrize(
    "path",
    [
        "/vsicurl/http://127.0.0.1:9/a.tif",
        "/vsimem/a.tif",
        "http://127.0.0.1:9/a.tif?sig=secret",
        "GTIFF_DIR:1:a.tif",
        "/dev/zero",
        "no-such-folder",
        "nul\0byte",
    ],
)
def test_paths_that_are_no_local_files_never_reach_gdal(path: str, tmp_path: Path) -> None:
    error = refusal(path, tmp_path)  # type: ignore[arg-type]
    assert "secret" not in str(error)


def test_a_tile_may_not_be_a_pipe(inputs: Path, tmp_path: Path) -> None:
    os.mkfifo(inputs / "a.tif")
    assert "is not a file" in refusal(inputs, tmp_path).message


def test_files_beside_a_tile_change_nothing(
    inputs: Path, tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    """A .aux.xml could move the tile, a .ovr or .msk show other pixels, a world file place it elsewhere."""
    path = write_tile(inputs / "a.tif", noise(3, 60, 60))
    before = check_imagery(inputs)["post"].plan.grid
    (inputs / "a.tif.aux.xml").write_text(
        "<PAMDataset><SRS>EPSG:4326</SRS><GeoTransform>1,2,0,3,0,4</GeoTransform></PAMDataset>"
    )
    (inputs / "a.tfw").write_text("9\n0\n0\n-9\n1\n1\n")
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(path, "r+") as target:
        target.write_mask(np.zeros((60, 60), "uint8"))
    assert (inputs / "a.tif.msk").exists()
    with rasterio.open(path) as control:
        assert control.transform.a == 2  # GDAL as it comes does listen to them
        assert not control.dataset_mask().any()
    after = check_imagery(inputs)["post"]
    assert after.plan.grid == before
    manifest = prepare_imagery(inputs, tmp_path / "outputs", event="post", project="p", layer="l")
    assert manifest.valid_share == 1


def test_a_sparse_file_that_claims_a_continent_is_refused_at_once(inputs: Path, tmp_path: Path) -> None:
    with rasterio.open(
        inputs / "a.tif",
        "w",
        driver="GTiff",
        width=200_000,
        height=200_000,
        count=1,
        dtype="uint8",
        crs="EPSG:32615",
        transform=Affine(1, 0, 500_000, 0, -1, 4_000_000),
        tiled=True,
        blockxsize=4096,
        blockysize=4096,
        sparse_ok=True,
        compress="deflate",
    ):
        pass
    assert (inputs / "a.tif").stat().st_size < 100_000
    assert "more than can be meant" in refusal(inputs, tmp_path).message


def test_a_disk_too_small_is_said_before_work_begins(
    inputs: Path, tmp_path: Path, write_tile: TileWriter, noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tile(inputs / "a.tif", noise(3, 60, 60))
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("hastegeo.workflows.imagery.pipeline.shutil.disk_usage", lambda _: usage)
    with pytest.raises(InputError, match="disk space"):
        prepare_imagery(inputs, tmp_path / "outputs", event="post", project="p", layer="l")
    assert list((tmp_path / "outputs").iterdir()) == []
