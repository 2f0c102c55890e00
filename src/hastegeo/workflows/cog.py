"""Whether a file is a valid cloud-optimised GeoTIFF, fit to be shown and measured on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from affine import Affine
from rasterio.enums import MaskFlags
from rio_cogeo.cogeo import cog_validate

from hastegeo.workflows.imagery.gdal import closed_gdal, open_geotiff


@dataclass(frozen=True, slots=True, kw_only=True)
class CogReport:
    """What a check found. `problems` are sentences, and empty for a file that passes.

    `overviews` are the reduction factors; `validity` says how pixels without data are marked: `nodata`,
    `alpha`, `mask`, or `none` where all pixels count.
    """

    path: Path
    width: int
    height: int
    bands: int
    dtype: str
    crs: str
    bounds: tuple[float, float, float, float]
    resolution: tuple[float, float]
    overviews: tuple[int, ...]
    validity: str
    problems: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether the file passed."""
        return not self.problems


def check_cog(path: Path) -> CogReport:
    """Check a file by rio-cogeo's rules, warnings counted as errors, and look at what they leave out.

    Beyond layout (overviews first and in order, tiles, their offsets) it must have a CRS, a position, and say
    which pixels hold data. Raises `InputError` where the path is no readable GeoTIFF at all.
    """
    with closed_gdal(), open_geotiff(path) as source:
        _, errors, warnings = cog_validate(source.name, strict=True, quiet=True)
        problems = [*errors, *warnings]
        if not source.crs:
            problems.append("It has no coordinate reference system.")
        if source.transform == Affine.identity():
            problems.append("It has no position.")
        flags = source.mask_flag_enums[0]
        validity = next(
            (
                name
                for flag, name in (
                    (MaskFlags.nodata, "nodata"),
                    (MaskFlags.alpha, "alpha"),
                    (MaskFlags.per_dataset, "mask"),
                )
                if flag in flags
            ),
            "none",
        )
        if validity == "none":
            problems.append("It does not say which pixels hold data: no nodata value, alpha band or mask.")
        return CogReport(
            path=path,
            width=source.width,
            height=source.height,
            bands=source.count,
            dtype=source.dtypes[0],
            crs=source.crs.to_string() if source.crs else "",
            bounds=tuple(source.bounds),
            resolution=source.res,
            overviews=tuple(source.overviews(1)),
            validity=validity,
            problems=tuple(problems),
        )


__all__ = ["CogReport", "check_cog"]
