"""A town as a camera far above sees it, before and after a storm."""

from __future__ import annotations

from typing import Final

import numpy as np

from hastegeo.samples.canvas import Canvas, Image
from hastegeo.samples.damage import strew_debris
from hastegeo.samples.ground import paint_ground, paint_slabs
from hastegeo.samples.layout import Town
from hastegeo.samples.shot import Shot, Sun
from hastegeo.samples.structures import paint_buildings, paint_shadows, paint_trees

# Pixels of the canvas in one pixel of the image, along each side.
FINER: Final = 2

MORNING: Final = Sun(azimuth=-0.85, elevation=0.86)
NOON: Final = Sun(azimuth=-1.95, elevation=0.98)


def render(town: Town, *, seed: int, pixel_size: float, after: bool) -> Image:
    """Paint the town and return its image: reflectances from 0 to 1, (rows, columns, 3)."""
    shot = Shot(
        canvas=Canvas(
            extent=town.extent,
            scale=FINER / pixel_size,
            angle=town.angle,
            rng=np.random.default_rng([seed, 2]),
        ),
        town=town,
        sun=NOON if after else MORNING,
        after=after,
        rng=np.random.default_rng([seed, 3]),
    )
    paint_ground(shot)
    paint_slabs(shot)
    paint_shadows(shot)
    paint_buildings(shot)
    if after:
        strew_debris(shot)
    paint_trees(shot)
    return shot.canvas.develop(FINER)
