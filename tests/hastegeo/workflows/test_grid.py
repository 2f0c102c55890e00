"""The grid: its CRS, pixel size and edges, and tiles that do not lie together."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from affine import Affine
from hypothesis import given, reject
from hypothesis import strategies as st
from rasterio.crs import CRS

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.grid import connected_groups, place_on, plan_grid
from hastegeo.workflows.imagery.tiles import Tile, Validity

UTM = CRS.from_epsg(32615)


def tile(
    name: str = "a.tif",
    *,
    column: float = 0,
    row: float = 0,
    width: int = 100,
    height: int = 100,
    pixel: float = 1.0,
    crs: CRS = UTM,
    transform: Affine | None = None,
) -> Tile:
    """A tile whose corner lies `column` metres east and `row` metres south of a common corner."""
    return Tile(
        path=Path(name),
        name=name,
        width=width,
        height=height,
        bands=(1, 2, 3),
        alpha=None,
        dtype="uint8",
        crs=crs,
        transform=transform or Affine(pixel, 0, 500_000 + column, 0, -pixel, 4_000_000 - row),
        nodata=None,
        validity=Validity.ALL,
        colours=("red", "green", "blue"),
    )


tiles_on_one_grid = st.lists(
    st.tuples(st.integers(-200, 200), st.integers(-200, 200), st.integers(1, 300), st.integers(1, 300)),
    min_size=1,
    max_size=6,
)


@given(tiles_on_one_grid, st.sampled_from([0.3, 0.5, 1.0, 1 / 3]), st.floats(0, 1))
def test_tiles_on_one_grid_keep_it_and_are_all_covered(
    places: list[tuple[int, int, int, int]], pixel: float, phase: float
) -> None:
    tiles = [
        tile(
            f"{index}.tif",
            column=column * pixel + phase,
            row=row * pixel + phase,
            width=width,
            height=height,
            pixel=pixel,
        )
        for index, (column, row, width, height) in enumerate(places)
    ]
    try:
        grid = plan_grid(tiles).grid
    except InputError:
        reject()  # too far apart, which other tests are about
    left, top = min(place[0] for place in places), min(place[1] for place in places)
    assert grid.width == max(place[0] + place[2] for place in places) - left
    assert grid.height == max(place[1] + place[3] for place in places) - top
    for one, (column, row, _, _) in zip(tiles, places, strict=True):
        assert place_on(one, grid) == (column - left, row - top)


def test_the_crs_of_most_pixels_wins_and_the_others_are_named() -> None:
    degrees = CRS.from_epsg(4326)
    foreign = tile(
        "b.tif", crs=degrees, transform=Affine(1e-5, 0, -93, 0, -1e-5, 36.1435), width=50, height=50
    )
    plan = plan_grid([tile(), foreign])
    assert plan.grid.crs == UTM
    assert plan.notes == ("Tiles in EPSG:4326 are warped to EPSG:32615, the CRS of most pixels.",)
    turned = plan_grid([replace(tile(), width=20, height=20), replace(foreign, width=200, height=200)])
    assert turned.grid.crs == degrees


def test_the_finest_pixel_size_wins() -> None:
    plan = plan_grid([tile(pixel=2), tile("b.tif", column=10, pixel=0.5)])
    assert (plan.grid.transform.a, plan.grid.transform.e) == (0.5, -0.5)
    assert "2 pixel sizes" in plan.notes[0]


def test_a_foreign_tile_sets_the_pixel_size_only_where_it_is_clearly_finer() -> None:
    degrees = CRS.from_epsg(4326)

    def size_with(pixel: float) -> float:
        transform = Affine(pixel, 0, -93.0, 0, -pixel, 36.144)
        foreign = tile("b.tif", crs=degrees, transform=transform, width=50, height=50)
        return plan_grid([tile(width=400, height=400), foreign]).grid.transform.a

    assert size_with(9.5e-6) == 1.0  # about 0.95 m
    assert size_with(4.0e-6) < 0.6


def test_a_tile_off_the_grid_or_turned_is_not_copied() -> None:
    grid = plan_grid([tile()]).grid
    assert place_on(tile(), grid) == (0, 0)
    assert place_on(tile(column=0.5), grid) is None
    assert place_on(tile(pixel=1.001), grid) is None
    turned = Affine.translation(500_000, 4_000_000) @ Affine.rotation(5) @ Affine.scale(1, -1)
    assert place_on(tile(transform=turned), grid) is None
    assert place_on(tile(crs=CRS.from_epsg(32616)), grid) is None


def test_a_turned_tile_lies_inside_its_grid() -> None:
    turned = Affine.translation(500_000, 4_000_000) @ Affine.rotation(30) @ Affine.scale(1, -1)
    one = tile(transform=turned)
    grid = plan_grid([one]).grid
    west, south, east, north = grid.bounds
    assert west <= one.bounds[0] + 1e-6
    assert south <= one.bounds[1] + 1e-6
    assert east >= one.bounds[2] - 1e-6
    assert north >= one.bounds[3] - 1e-6
    assert math.isclose(grid.transform.a, 1.0)


def test_tiles_far_apart_are_refused_with_their_names_and_distance() -> None:
    with pytest.raises(InputError, match=r"about 142 km from a\.tif to b\.tif, and 99 % of the mosaic"):
        plan_grid([tile(), tile("b.tif", column=100_000, row=100_900)])


def test_tiles_in_the_wrong_zone_are_refused() -> None:
    with pytest.raises(InputError, match=r"check their coordinate reference systems"):
        plan_grid([tile(), tile("b.tif", crs=CRS.from_epsg(32633))])


def test_a_diagonal_line_of_touching_tiles_is_together_and_so_is_a_small_gap() -> None:
    track = [tile(f"{index:02}.tif", column=index * 95, row=index * 95) for index in range(30)]
    assert plan_grid(track).grid.width == 29 * 95 + 100
    assert plan_grid([tile(), tile("b.tif", column=240)]).grid.width == 340


def test_a_mosaic_of_absurd_size_is_refused() -> None:
    with pytest.raises(InputError, match="more than can be meant"):
        plan_grid([tile(), tile("b.tif", pixel=1e-5)])


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 2000)), min_size=1, max_size=12))
def test_groups_are_a_partition_and_close_boxes_are_in_one(corners: list[tuple[int, int]]) -> None:
    boxes = {
        f"{index:02}": (float(x), float(y), x + 100.0, y + 100.0) for index, (x, y) in enumerate(corners)
    }
    groups = connected_groups(boxes)
    assert sorted(name for group in groups for name in group) == sorted(boxes)
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    for first, a in boxes.items():
        for second, b in boxes.items():
            gap_x = max(a[0], b[0]) - min(a[2], b[2])
            gap_y = max(a[1], b[1]) - min(a[3], b[3])
            if gap_x <= 50 and gap_y <= 50:
                assert group_of[first] == group_of[second]
