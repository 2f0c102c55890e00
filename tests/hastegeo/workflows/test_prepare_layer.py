"""A layer as a whole: aligned events, the valid area, footprints, and nothing done twice."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyogrio.raw
import pytest
import rasterio
import rasterio.features
import shapely
import shapely.geometry
from rasterio.crs import CRS

from hastegeo.errors import InputError
from hastegeo.samples import make_scene
from hastegeo.workflows.cog import check_cog
from hastegeo.workflows.imagery import preparation
from hastegeo.workflows.imagery.vectors import transform
from hastegeo.workflows.prepare_imagery import (
    ImageryOptions,
    find_profile,
    main,
    prepare_imagery,
    prepare_layer,
)

# A preview is a plain PNG.
pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")

TileWriter = Callable[..., Path]
Noise = Callable[..., np.ndarray]
UTM = CRS.from_epsg(32615)
WGS84 = CRS.from_epsg(4326)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_scene(tmp_path_factory.mktemp("scene"), seed=5, size=400).directory


@pytest.fixture(scope="module")
def prepared(scene: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    outputs = tmp_path_factory.mktemp("outputs")
    prepare_layer(scene, outputs, project="p", layer="l", footprints=scene / "buildings.gpkg")
    return outputs


def read_layer(path: Path) -> tuple[dict[str, list[object]], list[shapely.Geometry], CRS]:
    meta, _, geometry, columns = pyogrio.raw.read(path)
    fields = {name: list(column) for name, column in zip(meta["fields"], columns, strict=True)}
    return fields, list(shapely.from_wkb(geometry)), CRS.from_string(meta["crs"])


def test_a_layer_has_all_its_files_and_one_manifest(prepared: Path) -> None:
    names = {path.name for path in prepared.iterdir()}
    assert names == {
        "imagery_manifest.json",
        "valid_area_mask_p_l.geojson",
        "building_footprints_p_l.gpkg",
        *(
            f"{kind}_imagery_{event}_event_mosaic_cog_p_l.tif"
            for kind in ("raw", "processed")
            for event in ("pre", "post")
        ),
        *(f"preview_{event}_event_p_l.png" for event in ("pre", "post")),
    }
    manifest = json.loads((prepared / "imagery_manifest.json").read_text())
    assert set(manifest["events"]) == {"pre", "post"}
    assert manifest["layer"]["events"] == ["pre", "post"]
    assert [record["role"] for record in manifest["layer"]["outputs"]] == ["valid_area", "footprints"]


def test_the_processed_images_of_both_events_are_on_one_grid(prepared: Path) -> None:
    reports = [
        check_cog(prepared / f"processed_imagery_{event}_event_mosaic_cog_p_l.tif")
        for event in ("pre", "post")
    ]
    assert all(report.valid for report in reports)
    first, second = (dataclasses.replace(report, path=Path()) for report in reports)
    assert first == second
    raw = check_cog(prepared / "raw_imagery_pre_event_mosaic_cog_p_l.tif")
    assert raw.crs == "EPSG:26915"


def test_what_is_at_one_pixel_is_one_place_in_both(prepared: Path) -> None:
    # Undamaged roofs are at the same pixels: away from the storm, the two images go together.
    images = []
    for event in ("pre", "post"):
        with rasterio.open(prepared / f"processed_imagery_{event}_event_mosaic_cog_p_l.tif") as image:
            images.append(image.read(1).astype(float))
    valid = (images[0] > 0) & (images[1] > 0)
    valid[40:-40] = False  # the storm goes through the middle

    def likeness(shift: int) -> float:
        moved = np.roll(images[0], shift, axis=1)
        return float(np.corrcoef(moved[valid], images[1][valid])[0, 1])

    likenesses = {shift: likeness(shift) for shift in range(-4, 5)}
    assert max(likenesses, key=likenesses.__getitem__) == 0


def test_unaligned_images_keep_their_own_grid(scene: Path, tmp_path: Path) -> None:
    manifest = prepare_imagery(
        scene, tmp_path, event="pre", project="p", layer="l", options=ImageryOptions(align=False)
    )
    assert manifest.processed_grid == manifest.grid
    assert manifest.grid.crs == "EPSG:26915"


def test_the_valid_area_is_where_both_images_have_data_holes_kept(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    pre = np.maximum(noise(3, 100, 100), 1)
    post = np.maximum(noise(3, 100, 100, seed=1), 1)
    pre[:, 20:40, 20:40] = 0  # a hole
    post[:, :, 60:64] = 0  # a gap that leaves two polygons
    write_tile(tmp_path / "in" / "pre" / "a.tif", pre, nodata=0)
    write_tile(tmp_path / "in" / "post" / "a.tif", post, west=500_010, nodata=0)
    prepare_layer(tmp_path / "in", tmp_path / "out", project="p", layer="l")
    document = json.loads((tmp_path / "out" / "valid_area_mask_p_l.geojson").read_text())
    polygons = [shapely.geometry.shape(feature["geometry"]) for feature in document["features"]]
    assert len(polygons) == 2
    assert sorted(len(polygon.interiors) for polygon in polygons) == [0, 1]
    assert all(polygon.is_valid and polygon.exterior.is_ccw for polygon in polygons)
    # Common ground: 90 columns of 100 rows, less the gap of 4 columns and the hole of 20 x 20.
    area = shapely.area(transform(shapely.union_all(polygons), WGS84, UTM))
    assert area == pytest.approx(90 * 100 - 4 * 100 - 20 * 20, rel=1e-4)
    assert document["features"][0]["properties"] == {"project": "p", "layer": "l", "events": ["pre", "post"]}


def test_events_with_nothing_in_common_are_refused(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> None:
    write_tile(tmp_path / "in" / "pre" / "a.tif", noise(3, 60, 60))
    write_tile(tmp_path / "in" / "post" / "a.tif", noise(3, 60, 60), west=560_000)
    with pytest.raises(InputError, match="no data where the other event's image is"):
        prepare_layer(tmp_path / "in", tmp_path / "out", project="p", layer="l")
    assert list((tmp_path / "out").iterdir()) == []


def test_footprints_of_the_scene_come_through_with_their_ids(scene: Path, prepared: Path) -> None:
    before, outlines, crs = read_layer(scene / "buildings.gpkg")
    after, cut, target = read_layer(prepared / "building_footprints_p_l.gpkg")
    assert target == WGS84  # that of the processed images
    assert after["id"] == before["id"]  # the scene's buildings all lie in both images
    for original, result in zip(outlines, cut, strict=True):
        back = transform(result, WGS84, crs)
        assert shapely.area(shapely.symmetric_difference(original, back)) < 0.01


# Footprints by hand: a tile of 100 x 100 m, in the same CRS.


def square(west: float, south: float, size: float = 10) -> shapely.Polygon:
    return shapely.box(500_000 + west, 3_999_900 + south, 500_000 + west + size, 3_999_900 + south + size)


def write_vectors(path: Path, geometry: list[shapely.Geometry], *, crs: str | None = "EPSG:32615") -> Path:
    ids = np.array([f"b{index}" for index in range(len(geometry))], dtype=object)
    pyogrio.raw.write(
        path,
        geometry=np.array([shapely.to_wkb(one) for one in geometry], dtype=object),
        field_data=[ids, np.arange(len(geometry), dtype="int32") * 10],
        fields=["name", "fid" if path.suffix == ".shp" else "height"],
        geometry_type="Unknown" if path.suffix == ".gpkg" else "Polygon",
        crs=crs,
        driver={".gpkg": "GPKG", ".geojson": "GeoJSON", ".shp": "ESRI Shapefile"}[path.suffix],
    )
    return path


@pytest.fixture
def layer_with(
    tmp_path: Path, write_tile: TileWriter, noise: Noise
) -> Callable[[Path], tuple[dict[str, list[object]], list[shapely.Geometry], tuple[str, ...]]]:
    write_tile(tmp_path / "in" / "a.tif", np.maximum(noise(3, 100, 100), 1))

    def prepare(
        footprints: Path,
    ) -> tuple[dict[str, list[object]], list[shapely.Geometry], tuple[str, ...]]:
        _, layer = prepare_layer(
            tmp_path / "in", tmp_path / "out", project="p", layer="l", footprints=footprints
        )
        fields, geometry, crs = read_layer(tmp_path / "out" / "building_footprints_p_l.gpkg")
        assert crs == UTM
        return fields, geometry, layer.decisions

    return prepare


LayerWith = Callable[[Path], tuple[dict[str, list[object]], list[shapely.Geometry], tuple[str, ...]]]


@pytest.mark.parametrize("suffix", [".gpkg", ".geojson", ".shp"])
def test_footprints_are_cut_at_the_edge_and_those_outside_are_dropped(
    tmp_path: Path, layer_with: LayerWith, suffix: str
) -> None:
    inside, across, outside = square(20, 20), square(95, 50), square(200, 200)
    crs = "EPSG:32615"
    shapes = [inside, outside, across]
    if suffix == ".geojson":
        shapes, crs = [transform(one, UTM, WGS84) for one in shapes], "EPSG:4326"
    fields, geometry, decisions = layer_with(write_vectors(tmp_path / f"f{suffix}", shapes, crs=crs))
    assert fields["name"] == ["b0", "b2"]
    assert [round(one.area) for one in geometry] == [100, 50]
    assert "2 footprints lie where there is data, 1 of them cut" in decisions[-1]
    numbers = fields["fid" if suffix == ".shp" else "height"]
    assert numbers == [0, 20]


def test_a_broken_footprint_is_repaired_and_what_is_no_polygon_is_left_out(
    tmp_path: Path, layer_with: LayerWith
) -> None:
    bow_tie = shapely.Polygon(
        [(500_010, 3_999_910), (500_030, 3_999_930), (500_030, 3_999_910), (500_010, 3_999_930)]
    )
    shapes = [bow_tie, shapely.Point(500_050, 3_999_950), square(60, 60)]
    fields, geometry, decisions = layer_with(write_vectors(tmp_path / "f.gpkg", shapes))
    assert fields["name"] == ["b0", "b2"]
    assert all(one.is_valid for one in geometry)
    assert geometry[0].area == pytest.approx(200)
    assert "1 invalid polygons were repaired." in decisions
    assert "1 features without a polygon were left out." in decisions


def test_footprints_without_a_crs_are_taken_for_degrees_if_they_look_like_it(
    tmp_path: Path, layer_with: LayerWith
) -> None:
    path = write_vectors(tmp_path / "f.shp", [transform(square(20, 20), UTM, WGS84)])
    path.with_suffix(".prj").unlink()
    fields, _, decisions = layer_with(path)
    assert fields["name"] == ["b0"]
    assert "taken for degrees" in decisions[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: write_vectors(path / "f.gpkg", [square(500, 500)]),
            "None of the footprints in f.gpkg lies",
        ),
        (lambda path: write_vectors(path / "f.gpkg", []), "holds no features"),
        (
            lambda path: write_vectors(path / "f.gpkg", [shapely.Point(500_050, 3_999_950)]),
            "holds no polygons",
        ),
        (
            lambda path: write_vectors(path / "f.gpkg", [shapely.box(-93.0, 36.1, -92.9, 36.2)]),
            "its coordinates are in degrees",
        ),
        (lambda path: path / "missing.gpkg", "There is no file"),
        (lambda path: written(path / "f.csv", "WKT\n"), "is not a GeoPackage, GeoJSON or Shapefile"),
        (
            lambda path: written(path / "f.gpkg", "SQLite format 3\0" + "\0" * 52 + "GPKG" + "\0" * 100),
            "is damaged",
        ),
        (
            lambda path: written(path / "f.geojson", '{"type": "FeatureCollection", "features": [{]'),
            "is damaged",
        ),
        (
            lambda path: written(
                path / "f.geojson", "<OGRVRTDataSource><OGRVRTLayer name='x'/></OGRVRTDataSource>"
            ),
            "is not a GeoPackage",
        ),
        (
            lambda path: written(
                path / "f.geojson",
                '{"type": "gdal_streamed_alg", "command_line": "gdal vector", "x": {"type": "Feature"}}',
            ),
            "is not a GeoPackage",
        ),
    ],
)
def test_footprints_that_cannot_be_used(
    tmp_path: Path, layer_with: LayerWith, make: Callable[[Path], Path], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        layer_with(make(tmp_path))
    assert not (tmp_path / "out" / "building_footprints_p_l.gpkg").exists()


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_footprints_in_utm_without_a_crs_are_refused(tmp_path: Path, layer_with: LayerWith) -> None:
    path = write_vectors(tmp_path / "f.shp", [square(20, 20)])
    path.with_suffix(".prj").unlink()
    with pytest.raises(InputError, match="has no coordinate reference system"):
        layer_with(path)


def test_real_footprints_of_joplin(test_data: Path, tmp_path: Path) -> None:
    folder = test_data / "joplin"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    _, layer = prepare_layer(
        folder, tmp_path, project="joplin", layer="tornado", footprints=folder / "footprints_ms.geojson"
    )
    _, geometry, _ = read_layer(tmp_path / "building_footprints_joplin_tornado.gpkg")
    assert layer.footprints is not None
    assert len(geometry) == layer.footprints["kept"]
    assert 300 < len(geometry) < 2000
    area = json.loads((tmp_path / "valid_area_mask_joplin_tornado.geojson").read_text())
    common = shapely.union_all([shapely.geometry.shape(one["geometry"]) for one in area["features"]])
    assert all(shapely.covers(shapely.buffer(common, 1e-7), one) for one in geometry)


# Doing nothing twice


def test_unchanged_tiles_are_not_prepared_again(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare_imagery(scene, tmp_path, event="post", project="p", layer="l")
    made: list[int] = []
    real = preparation.make_images

    def counting(*arguments: object) -> object:
        made.append(1)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(preparation, "make_images", counting)
    assert prepare_imagery(scene, tmp_path, event="post", project="p", layer="l") == first
    assert made == []
    prepare_imagery(scene, tmp_path, event="post", project="p", layer="l", force=True)
    assert len(made) == 1
    options = ImageryOptions(profile=find_profile("planet_scope"))
    prepare_imagery(scene, tmp_path, event="post", project="p", layer="l", options=options)
    assert len(made) == 2
    (tmp_path / "preview_post_event_p_l.png").write_bytes(b"changed")
    prepare_imagery(scene, tmp_path, event="post", project="p", layer="l", options=options)
    assert len(made) == 3


def test_the_command_line_prepares_a_layer(
    scene: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--inputs", str(scene), "--outputs", str(tmp_path), "--project", "p", "--layer", "l"]
    assert main([*arguments, "--footprints", str(scene / "buildings.gpkg"), "--seams", "feather"]) == 0
    out = capsys.readouterr().out
    assert "valid_area_mask_p_l.geojson" in out
    assert "building_footprints_p_l.gpkg" in out
    assert main(arguments) == 0  # other seams, and no footprints any more
    assert not (tmp_path / "building_footprints_p_l.gpkg").exists()
    assert main([*arguments, "--profile", "nonsense"]) == 2
    with pytest.raises(SystemExit):
        main([*arguments, "--event", "pre", "--footprints", "x.gpkg"])
