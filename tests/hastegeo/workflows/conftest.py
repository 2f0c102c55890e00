"""What these tests share: tiles written in one line, and the real imagery where it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent.parent

TileWriter = Callable[..., Path]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # rasterio itself still multiplies transforms with `*`, of which affine 3 warns.
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"))


@pytest.fixture
def test_data() -> Path:
    """The folder of real imagery, which lies outside the repository."""
    folder = Path(os.environ.get("HASTE_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"there is no real imagery in {folder}; HASTE_TEST_DATA names its folder")
    return folder


@pytest.fixture
def write_tile() -> TileWriter:
    """A function that writes a GeoTIFF of (bands, rows, columns), 1 m a pixel in EPSG:32615 unless told."""

    def write(
        path: Path,
        data: np.ndarray,
        *,
        west: float = 500_000,
        north: float = 4_000_000,
        pixel: float = 1.0,
        crs: str | None = "EPSG:32615",
        transform: Affine | None = None,
        colours: tuple[Any, ...] | None = None,
        mask: np.ndarray | None = None,
        **options: Any,
    ) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        count, height, width = data.shape
        with (
            rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True, GDAL_PAM_ENABLED=False),
            rasterio.open(
                path,
                "w",
                driver="GTiff",
                width=width,
                height=height,
                count=count,
                dtype=data.dtype.name,
                crs=crs,
                transform=transform or Affine(pixel, 0, west, 0, -pixel, north),
                **options,
            ) as target,
        ):
            if colours is not None:
                target.colorinterp = colours
            target.write(data)
            if mask is not None:
                target.write_mask(mask)
        return path

    return write


@pytest.fixture
def noise() -> Callable[..., np.ndarray]:
    """A function that gives the same random pixels for the same arguments."""

    def make(bands: int, height: int, width: int, dtype: str = "uint8", *, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        kind = np.dtype(dtype)
        if kind.kind == "f":
            return rng.normal(100, 30, (bands, height, width)).astype(kind)
        limits = np.iinfo(kind)
        low, high = max(limits.min, -3000), min(limits.max, 5000)
        return rng.integers(low, high, (bands, height, width), endpoint=True).astype(kind)

    return make
