"""What a picture of a town is made with: the canvas, the sun, and what there is to see."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hastegeo.samples.canvas import Canvas
from hastegeo.samples.layout import Building, Damage, Town, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Sun:
    """Where the light comes from, in radians: `azimuth` in the town's frame, `elevation` over the horizon."""

    azimuth: float
    elevation: float

    @property
    def direction(self) -> tuple[float, float, float]:
        """The unit vector to the sun, along u, along v, and up."""
        flat = math.cos(self.elevation)
        return flat * math.cos(self.azimuth), flat * math.sin(self.azimuth), math.sin(self.elevation)

    def shadow(self, height: float, turn: float) -> tuple[float, float]:
        """Return how far a shadow falls, along and across a shape that is turned by `turn`."""
        length = height / math.tan(self.elevation)
        away = self.azimuth + math.pi - turn
        return length * math.cos(away), length * math.sin(away)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture in the making. `after` says whether the storm has been."""

    canvas: Canvas
    town: Town
    sun: Sun
    after: bool
    rng: np.random.Generator

    def stands(self, tree: Tree) -> bool:
        """Whether a tree is there."""
        return tree.standing or not self.after

    def damage(self, building: Building) -> Damage:
        """Return the damage that is seen on a building."""
        return building.damage if self.after else Damage.NONE
