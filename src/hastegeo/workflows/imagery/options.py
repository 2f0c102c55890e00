"""What a user may choose about imagery preparation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import shapely
from rasterio.crs import CRS

from hastegeo.workflows.imagery.profiles import GENERIC, Profile, find_profile

FEATHER_PIXELS: Final = 64


class Seams(StrEnum):
    """What is seen where tiles overlap: the upper one alone, or a blend that hides their edges."""

    TOP = "top"
    FEATHER = "feather"


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A polygon or several, and the CRS of its coordinates. `name` says where it came from."""

    name: str
    geometry: shapely.Geometry
    crs: CRS


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageryOptions:
    """Choices for a preparation.

    `align` brings the processed pre-event image to the grid of the post-event one, where both are there; the
    raw mosaic keeps its own. `keep_black` takes black borders for data, where no tag says otherwise. `area`
    cuts everything to an area of interest.
    """

    profile: Profile = field(default_factory=lambda: find_profile(GENERIC))
    seams: Seams = Seams.TOP
    align: bool = True
    keep_black: bool = False
    area: Area | None = None

    def record(self) -> dict[str, Any]:
        """Return the choices as plain data, for the manifest and to tell whether they are still the same."""
        profile = self.profile
        return {
            "profile": profile.name,
            "profile_bands": {str(count): list(bands) for count, bands in sorted(profile.bands.items())},
            "percentiles": list(profile.percentiles),
            "range": None if profile.fixed_range is None else list(profile.fixed_range),
            "seams": self.seams.value,
            "align": self.align,
            "keep_black": self.keep_black,
            "area": None if self.area is None else shapely.to_wkb(self.area.geometry, hex=True),
        }
