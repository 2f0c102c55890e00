"""Profiles: those that come along, those that users add, and what they decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rasterio

from hastegeo.errors import InputError
from hastegeo.workflows.imagery.profiles import find_profile
from hastegeo.workflows.prepare_imagery import ImageryOptions, prepare_imagery

TileWriter = Callable[..., Path]
Noise = Callable[..., np.ndarray]


@pytest.mark.parametrize(
    ("name", "colours", "bands"),
    [
        ("generic", ("red", "green", "blue"), (0, 1, 2)),
        ("generic", ("blue", "green", "red", "undefined"), (2, 1, 0)),
        ("generic", ("gray",), (0, 0, 0)),
        ("generic", ("gray", "undefined"), (0, 0, 0)),
        ("generic", ("gray", "undefined", "undefined", "undefined"), (0, 1, 2)),
        ("skysat", ("gray", "undefined", "undefined", "undefined"), (2, 1, 0)),
        ("planet_scope", ("gray", *["undefined"] * 7), (5, 3, 1)),
        ("maxar", ("gray", *["undefined"] * 7), (4, 2, 1)),
        ("maxar", ("red", "green", "blue"), (0, 1, 2)),
        ("mercy_corps", ("blue", "green", "red", "undefined"), (0, 1, 2)),
    ],
)
def test_the_bands_shown_are_the_profile_s_or_else_those_that_tiles_name(
    name: str, colours: tuple[str, ...], bands: tuple[int, int, int]
) -> None:
    assert find_profile(name).shown(colours)[0] == bands


def test_stretches_are_those_of_the_sources() -> None:
    assert find_profile("generic").percentiles == (2, 98)
    assert find_profile("planet_scope").percentiles == (1, 99)
    assert find_profile("skysat").fixed_range == (0, 600)


def test_users_add_their_own_and_may_change_those_that_come_along(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        "[drone]\nbands = { 5 = [3, 2, 1] }\npercentiles = [0, 100]\n[maxar]\nrange = [0, 2047]\n"
    )
    assert find_profile("drone", file=file).shown(["undefined"] * 5)[0] == (2, 1, 0)
    assert find_profile("maxar", file=file).fixed_range == (0, 2047)
    assert find_profile("skysat", file=file) == find_profile("skysat")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[x", "not TOML"),
        ("x = 1", "not a table"),
        ("[x]\ncolour = 1", "not a table"),
        ("[x]\nrange = [5, 1]", "range of two rising numbers"),
        ("[x]\npercentiles = [2, 101]", "percentiles from 0 to 100"),
        ("[x]\npercentiles = [2.5, 98]", "percentiles from 0 to 100"),
        ("[x]\nbands = { 3 = [1, 2, 4] }", "three bands"),
        ("[x]\nbands = { three = [1, 2, 3] }", "three bands"),
        ("[x]\nbands = { 3 = [1, 2] }", "three bands"),
        ("[y]", "no source profile 'x'.*generic.*y"),
    ],
)
def test_profiles_that_are_wrong_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        find_profile("x", file=file)


def test_a_fixed_range_and_the_profile_s_bands_reach_the_image(
    tmp_path: Path, write_tile: TileWriter
) -> None:
    values = np.array([0, 300, 600, 5000], dtype="uint16")
    data = np.stack([values, values[::-1], np.full(4, 600, "uint16"), np.full(4, 9, "uint16")])
    write_tile(tmp_path / "in" / "a.tif", data.reshape(4, 2, 2))
    manifest = prepare_imagery(
        tmp_path / "in",
        tmp_path / "out",
        event="pre",
        project="p",
        layer="l",
        options=ImageryOptions(profile=find_profile("skysat")),
    )
    assert manifest.shown_bands == (3, 2, 1)
    with rasterio.open(tmp_path / "out" / manifest.output("processed").path) as image:
        red, green, blue = image.read()
    assert red.ravel().tolist() == [255] * 4
    assert blue.ravel().tolist() == [1, 128, 255, 255]
    assert green.ravel().tolist() == [255, 255, 128, 1]
