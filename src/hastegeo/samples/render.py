"""Painting a town as a camera far above sees it, before and after a storm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hastegeo.samples.canvas import Canvas, Image, Mask, Patch, rectangle, swept
from hastegeo.samples.layout import (
    AVENUE_EVERY,
    AVENUE_WIDTH,
    BLOCK_DEPTH,
    BLOCK_LENGTH,
    STREET_WIDTH,
    Building,
    Damage,
    Slab,
    Town,
    Tree,
)

Colour = tuple[float, float, float]

# Pixels of the canvas in one pixel of the image, along each side.
FINER: Final = 2

_GRASS: Final[Colour] = (0.27, 0.32, 0.16)
_STRAW: Final[Colour] = (0.42, 0.38, 0.24)
_EARTH: Final[Colour] = (0.38, 0.30, 0.21)
_ASPHALT: Final[Colour] = (0.38, 0.38, 0.38)
_CONCRETE: Final[Colour] = (0.60, 0.58, 0.54)
_WATER: Final[Colour] = (0.12, 0.17, 0.17)
_POOL: Final[Colour] = (0.25, 0.58, 0.66)
_TARP: Final[Colour] = (0.13, 0.30, 0.68)
_ROOFS: Final[tuple[Colour, ...]] = (
    (0.36, 0.33, 0.31),
    (0.27, 0.26, 0.27),
    (0.44, 0.36, 0.29),
    (0.50, 0.43, 0.36),
    (0.40, 0.27, 0.22),
    (0.55, 0.53, 0.50),
    (0.33, 0.36, 0.39),
    (0.47, 0.32, 0.25),
    (0.66, 0.64, 0.60),
)
_FLAT_ROOFS: Final[tuple[Colour, ...]] = ((0.78, 0.77, 0.74), (0.62, 0.61, 0.60), (0.70, 0.66, 0.58))
_LEAVES: Final[tuple[Colour, ...]] = (
    (0.16, 0.24, 0.10),
    (0.20, 0.29, 0.11),
    (0.13, 0.20, 0.10),
    (0.25, 0.31, 0.13),
    (0.18, 0.25, 0.13),
    (0.30, 0.27, 0.15),
)
_CARS: Final[tuple[Colour, ...]] = (
    (0.85, 0.85, 0.85),
    (0.12, 0.12, 0.13),
    (0.55, 0.56, 0.58),
    (0.50, 0.10, 0.10),
    (0.16, 0.22, 0.40),
    (0.75, 0.74, 0.70),
    (0.30, 0.31, 0.32),
    (0.62, 0.58, 0.48),
)
_RUBBLE: Final = np.array(
    [
        (0.62, 0.52, 0.40),  # raw wood
        (0.74, 0.64, 0.50),
        (0.48, 0.38, 0.29),
        (0.78, 0.76, 0.72),  # plaster board
        (0.36, 0.33, 0.31),  # shingles
        (0.66, 0.50, 0.46),  # insulation
        (0.30, 0.24, 0.19),
    ],
    dtype=np.float32,
)


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


MORNING: Final = Sun(azimuth=-0.85, elevation=0.86)
NOON: Final = Sun(azimuth=-1.95, elevation=0.98)


def render(town: Town, *, seed: int, pixel_size: float, after: bool) -> Image:
    """Paint the town and return its image: reflectances from 0 to 1, (rows, columns, 3)."""
    sun = NOON if after else MORNING
    canvas = Canvas(
        extent=town.extent,
        scale=FINER / pixel_size,
        angle=town.angle,
        rng=np.random.default_rng([seed, 2]),
    )
    painter = _Painter(canvas, town, sun, after=after, rng=np.random.default_rng([seed, 3]))
    painter.ground()
    painter.slabs()
    painter.shadows()
    painter.buildings()
    if after:
        painter.debris()
    painter.trees()
    return canvas.develop(FINER)


class _Painter:
    def __init__(
        self, canvas: Canvas, town: Town, sun: Sun, *, after: bool, rng: np.random.Generator
    ) -> None:
        self.canvas = canvas
        self.town = town
        self.sun = sun
        self.after = after
        self.rng = rng

    # The ground

    def ground(self) -> None:
        """Paint lawns, woods floor, streets and sidewalks."""
        canvas = self.canvas
        u, v = canvas.town_frame()
        coarse, fine = canvas.coarse_noise(), canvas.fine_noise()
        dry = np.clip(0.34 + 0.30 * coarse + 0.55 * _lot_tones(u, v) + (0.0 if self.after else 0.10), 0, 1)
        colour = _mix(_GRASS, _STRAW, dry[..., None])
        bare = np.clip((canvas.coarse_noise(300) - 0.55) * 2.2, 0, 0.8)
        colour = _mix(colour, _EARTH, bare[..., None])
        if self.after:
            struck = np.clip(self.town.storm.strength(u, v) * 1.1 + 0.25 * coarse - 0.25, 0, 0.75)
            colour = _mix(colour, (0.40, 0.33, 0.24), struck[..., None].astype(np.float32))
        colour *= (1 + 0.10 * fine)[..., None]
        canvas.colour[:] = colour
        self._streets(u, v)

    def _streets(self, u: Image, v: Image) -> None:
        canvas = self.canvas
        fine, coarse = canvas.fine_noise(77), canvas.coarse_noise(500)
        for position, pitch in ((u, BLOCK_LENGTH), (v, BLOCK_DEPTH)):
            index = np.round(position / pitch)
            distance = np.abs(position - index * pitch)
            avenue = np.mod(index, AVENUE_EVERY) == 0
            half = np.where(avenue, AVENUE_WIDTH / 2, STREET_WIDTH / 2)
            walk = (distance > half + 1.6) & (distance < half + 2.9)
            canvas.colour[walk] = (np.array(_CONCRETE) * 0.95 * (1 + 0.05 * fine[walk])[:, None]).astype(
                np.float32
            )
        for position, pitch in ((v, BLOCK_DEPTH), (u, BLOCK_LENGTH)):
            index = np.round(position / pitch)
            distance = np.abs(position - index * pitch)
            avenue = np.mod(index, AVENUE_EVERY) == 0
            half = np.where(avenue, AVENUE_WIDTH / 2, STREET_WIDTH / 2)
            road = distance < half
            # Streets were paved in different years.
            age = 0.10 * np.sin(index * 12.9898 + (0 if pitch == BLOCK_DEPTH else 4)) + np.where(
                avenue, 0.04, 0
            )
            tone = 1 + age + 0.05 * coarse + 0.05 * fine
            # Tyres darken the middle of each lane.
            lane = np.abs(distance - half / 2) / half
            tone = tone - 0.07 * np.exp(-((lane * 5) ** 2))
            canvas.colour[road] = (np.array(_ASPHALT) * tone[road][:, None]).astype(np.float32)
            kerb = road & (distance > half - 0.35)
            canvas.colour[kerb] = (np.array(_CONCRETE) * 0.98).astype(np.float32)
            along = u if position is v else v
            line = road & avenue & (distance > 0.12) & (distance < 0.38)
            canvas.colour[line] = np.array((0.72, 0.62, 0.26), dtype=np.float32)
            dashes = road & avenue & (np.abs(distance - half * 0.52) < 0.16) & (np.mod(along, 9) < 3)
            canvas.colour[dashes] = np.array((0.8, 0.8, 0.78), dtype=np.float32)

    def slabs(self) -> None:
        """Paint what lies flat: driveways, car parks, pools, ponds, cars."""
        order = {"parking": 0, "pond": 1, "driveway": 2, "patio": 3, "pool": 4, "car": 5}
        for slab in sorted(self.town.slabs, key=lambda slab: order[slab.kind]):
            self._slab(slab)

    def _slab(self, slab: Slab) -> None:
        canvas = self.canvas
        strength = float(self.town.storm.strength(slab.u, slab.v)) if self.after else 0.0
        turn, u, v = slab.turn, slab.u, slab.v
        if slab.kind == "car" and strength > 0.45:
            # Cars are thrown about.
            turn, u, v = turn + slab.tone * 0.8, u + (slab.tone - 4) * 0.9, v + (slab.tone % 3 - 1) * 1.5
        patch = canvas.patch(u, v, turn=turn, reach=math.hypot(slab.length, slab.width) / 2 + 3)
        if patch is None:
            return
        shape = rectangle(patch, slab.length, slab.width)
        grain = canvas.grain(patch, slab.tone)
        tint = 1 + 0.03 * (slab.tone - 4)
        match slab.kind:
            case "driveway" | "patio":
                canvas.paint(patch, shape, _grained(_CONCRETE, tint, 0.05 * grain))
            case "parking":
                canvas.paint(patch, shape, _grained(_ASPHALT, 0.86 * tint, 0.06 * grain))
                marked = shape & (np.mod(patch.along, 2.8) < 0.16)
                rows = np.zeros_like(shape)
                for row in (17, 24.5):
                    rows |= np.abs(patch.across + slab.width / 2 + 10 - row) < 2.5
                canvas.paint(patch, marked & rows, (0.75, 0.75, 0.72))
            case "pool":
                canvas.paint(patch, rectangle(patch, slab.length + 2, slab.width + 2), _CONCRETE)
                water = _POOL if strength < 0.5 else (0.24, 0.30, 0.24)
                canvas.paint(patch, _round(patch, slab.length, slab.width, 2.0), water)
            case "pond":
                edge = _blob(patch, slab.length / 2, slab.width / 2, 0.16 * grain)
                canvas.paint(patch, edge < 1.12, _EARTH)
                canvas.paint(patch, edge < 1.0, _grained(_WATER, tint, 0.08 * grain))
            case _:
                self._car(patch, slab, turn)

    def _car(self, patch: Patch, slab: Slab, turn: float) -> None:
        canvas = self.canvas
        shift = self.sun.shadow(1.5, turn)
        canvas.shade(patch, swept(patch, slab.length, slab.width, shift), 0.35)
        body = _round(patch, slab.length, slab.width, 0.6)
        canvas.paint(patch, body, _CARS[slab.tone])
        canvas.lit(patch, body, 1.0)
        glass = rectangle(patch, slab.length * 0.62, slab.width * 0.82) & ~rectangle(
            patch, slab.length * 0.36, slab.width
        )
        canvas.paint(patch, glass, (0.10, 0.12, 0.14))

    # What stands

    def shadows(self) -> None:
        """Let buildings and trees take the light from the ground."""
        for building in self.town.buildings:
            height = building.height
            if self.after:
                height *= {Damage.MAJOR: 0.55, Damage.DESTROYED: 0.1}.get(building.damage, 1.0)
            shift = self.sun.shadow(height, building.turn)
            reach = math.hypot(building.length, building.width) / 2 + math.hypot(*shift)
            patch = self.canvas.patch(building.u, building.v, turn=building.turn, reach=reach)
            if patch is not None:
                shape = swept(patch, building.length, building.width, shift)
                self.canvas.shade(patch, shape, 0.25)
        for tree in self.town.trees:
            if self._stands(tree):
                self._tree_shadow(tree)

    def _tree_shadow(self, tree: Tree) -> None:
        height = tree.radius * 1.7
        shift = self.sun.shadow(height, 0.0)
        patch = self.canvas.patch(tree.u, tree.v, turn=0.0, reach=tree.radius + math.hypot(*shift))
        if patch is None:
            return
        ragged = 0.18 * self.canvas.grain(patch, tree.tone)
        for share in (0.35, 0.7, 1.0):
            distance = np.hypot(patch.along - share * shift[0], patch.across - share * shift[1])
            self.canvas.shade(patch, distance < tree.radius * (0.9 + ragged), 0.3)

    def buildings(self) -> None:
        """Paint roofs, or what is left of them."""
        for building in self.town.buildings:
            reach = math.hypot(building.length, building.width) / 2 + 2
            patch = self.canvas.patch(building.u, building.v, turn=building.turn, reach=reach)
            if patch is None:
                continue
            damage = building.damage if self.after else Damage.NONE
            if damage is Damage.DESTROYED:
                self._rubble(building, patch)
                continue
            self._roof(building, patch)
            if damage is not Damage.NONE:
                self._wounds(building, patch, damage)

    def _roof(self, building: Building, patch: Patch) -> None:
        canvas = self.canvas
        shape = rectangle(patch, building.length, building.width)
        grain = canvas.grain(patch, building.tone)
        if building.roof == "flat":
            base = _FLAT_ROOFS[building.tone % len(_FLAT_ROOFS)]
            canvas.paint(patch, shape, _grained(base, 1.0, 0.04 * grain))
            rim = shape & ~rectangle(patch, building.length - 1.2, building.width - 1.2)
            canvas.paint(patch, rim, _scaled(base, 0.8))
            units = shape & (np.mod(patch.along + 5, 11) < 2.2) & (np.abs(patch.across - 2) < 1.2)
            canvas.paint(patch, units, (0.52, 0.53, 0.54))
            canvas.lit(patch, shape, 1.0)
            return
        base = _ROOFS[building.tone]
        light = np.where(patch.across > 0, self._facet(building.turn, 1), self._facet(building.turn, -1))
        if building.roof == "hip":
            ends = building.length / 2 - np.abs(patch.along) < building.width / 2 - np.abs(patch.across)
            hip = np.where(
                patch.along > 0,
                self._facet(building.turn - math.pi / 2, 1),
                self._facet(building.turn - math.pi / 2, -1),
            )
            light = np.where(ends, hip, light)
        # Rows of shingles, and their weathering.
        courses = 0.03 * np.sin(patch.across * 9)
        colour = _grained(base, 1.0, 0.07 * grain + courses) * light[..., None]
        canvas.paint(patch, shape, colour.astype(np.float32))
        canvas.lit(patch, shape, 1.0)
        ridge = shape & (np.abs(patch.across) < 0.16)
        if building.roof == "hip":
            ridge &= np.abs(patch.along) < (building.length - building.width) / 2
        canvas.paint(patch, ridge, _scaled(base, 1.22))
        if building.tone % 3 == 0:
            chimney = (np.abs(patch.along - building.length / 4) < 0.5) & (np.abs(patch.across - 1) < 0.45)
            canvas.paint(patch, chimney, (0.36, 0.22, 0.18))

    def _facet(self, turn: float, side: int) -> float:
        """Return the light on a slope that falls towards `side` across the ridge."""
        pitch = 0.42
        sun_u, sun_v, sun_up = self.sun.direction
        normal_u, normal_v = -math.sin(turn) * side, math.cos(turn) * side
        facing = math.sin(pitch) * (normal_u * sun_u + normal_v * sun_v) + math.cos(pitch) * sun_up
        return 0.45 + 0.72 * max(facing, 0.0)

    # Damage

    def _wounds(self, building: Building, patch: Patch, damage: Damage) -> None:
        """Tear at a roof: shingles off for minor damage, the roof itself for major."""
        canvas = self.canvas
        shape = rectangle(patch, building.length, building.width)
        torn_noise = canvas.grain(patch, 400 + building.tone) * 0.5 + _tilt(patch, building)
        if damage is Damage.MINOR:
            bare = shape & (torn_noise > 0.62)
            canvas.paint(patch, bare, _grained((0.52, 0.42, 0.31), 1.0, 0.1 * canvas.grain(patch, 9)))
            if building.tone % 4 == 0:
                tarp = (
                    (np.abs(patch.along + building.length / 6) < building.length / 5)
                    & (patch.across > 0.2)
                    & (patch.across < building.width / 2 - 0.5)
                )
                canvas.paint(patch, tarp, _grained(_TARP, 1.0, 0.06 * canvas.grain(patch, 5)))
            return
        gone = shape & (torn_noise > 0.1)
        rooms = _grained((0.40, 0.34, 0.28), 1.0, 0.35 * canvas.grain(patch, 11))
        canvas.paint(patch, gone, rooms)
        rafters = gone & (np.mod(patch.along, 1.3) < 0.22)
        canvas.paint(patch, rafters, (0.64, 0.53, 0.40))
        walls = gone & (
            (np.abs(np.mod(patch.along + 2, 4.2)) < 0.28)
            | (np.abs(patch.across) < 0.16)
            | ~rectangle(patch, building.length - 0.6, building.width - 0.6)
        )
        canvas.paint(patch, walls, (0.76, 0.73, 0.67))
        inside = gone & (np.mod(patch.along + 2, 4.2) > 0.28) & (np.mod(patch.along + 2, 4.2) < 1.5)
        canvas.shade(patch, inside, 0.5)

    def _rubble(self, building: Building, patch: Patch) -> None:
        """Leave a slab with a heap on it."""
        canvas = self.canvas
        grain = canvas.grain(patch, 40 + building.tone)
        slab = rectangle(patch, building.length, building.width)
        canvas.paint(patch, slab, _grained((0.52, 0.47, 0.40), 1.0, 0.12 * grain))
        heap = _blob(patch, building.length * 0.56, building.width * 0.62, 0.35 * grain) < 1
        canvas.paint(patch, heap, _grained((0.46, 0.38, 0.30), 1.0, 0.40 * grain))
        canvas.lit(patch, slab, 1.0)
        canvas.shade(patch, heap & (grain < -0.35), 0.45)

    def debris(self) -> None:
        """Strew pieces around damaged buildings and along the track."""
        for building in self.town.buildings:
            count = {Damage.NONE: 0, Damage.MINOR: 12, Damage.MAJOR: 90, Damage.DESTROYED: 320}[
                building.damage
            ]
            if count:
                area = building.length * building.width / 120
                spread = {Damage.MINOR: 0.7, Damage.MAJOR: 0.75, Damage.DESTROYED: 0.62}[building.damage]
                self._strew(
                    round(count * min(area, 4)),
                    (building.u, building.v),
                    (building.length * spread, building.width * spread),
                )
        reach = self.town.extent * 0.75
        count = round((2 * reach) ** 2 / 26)
        u, v = self.rng.uniform(-reach, reach, (2, count))
        strength = self.town.storm.strength(u, v)
        hit = self.rng.random(count) < strength**1.5 * np.where(_on_street(u, v), 0.25, 1.0)
        self._pieces(u[hit], v[hit])
        self._fallen_trees()

    def _strew(self, count: int, centre: tuple[float, float], spread: tuple[float, float]) -> None:
        # Blown along the track.
        drift = self.town.storm.bearing
        along = self.rng.normal(0, 1, count) * spread[0] + np.abs(self.rng.normal(0, 2.2, count))
        across = self.rng.normal(0, 1, count) * spread[1]
        u = centre[0] + math.cos(drift) * along - math.sin(drift) * across
        v = centre[1] + math.sin(drift) * along + math.cos(drift) * across
        self._pieces(u, v)

    def _pieces(self, u: np.ndarray, v: np.ndarray) -> None:
        count = len(u)
        if not count:
            return
        big = self.rng.random(count) < 0.10
        lengths = np.where(big, self.rng.uniform(1.5, 3.6, count), self.rng.uniform(0.4, 1.9, count))
        widths = np.where(big, self.rng.uniform(0.6, 1.8, count), self.rng.uniform(0.15, 0.55, count))
        colours = _RUBBLE[self.rng.integers(0, len(_RUBBLE), count)]
        colours = colours * self.rng.uniform(0.75, 1.2, (count, 1)).astype(np.float32)
        self.canvas.scatter(
            u.astype(np.float32),
            v.astype(np.float32),
            self.rng.uniform(0, math.pi, count).astype(np.float32),
            lengths.astype(np.float32),
            widths.astype(np.float32),
            np.clip(colours, 0, 0.95).astype(np.float32),
        )

    def _fallen_trees(self) -> None:
        fallen = [tree for tree in self.town.trees if not tree.standing]
        if not fallen:
            return
        u, v, radius = (
            np.array([getattr(tree, name) for tree in fallen], dtype=np.float32)
            for name in ("u", "v", "radius")
        )
        count = len(fallen)
        turns = (self.town.storm.bearing + self.rng.normal(0, 0.35, count)).astype(np.float32)
        trunk = np.tile(np.array([[0.34, 0.27, 0.20]], dtype=np.float32), (count, 1))
        self.canvas.scatter(u, v, turns, radius * 2.1, radius * 0.12 + 0.15, trunk)
        for _ in range(7):
            ends = radius * self.rng.uniform(0.3, 1.0, count).astype(np.float32)
            self.canvas.scatter(
                (u + np.cos(turns) * ends).astype(np.float32),
                (v + np.sin(turns) * ends).astype(np.float32),
                (turns + self.rng.normal(0, 0.7, count)).astype(np.float32),
                radius * 0.7,
                np.full(count, 0.18, dtype=np.float32),
                trunk * np.float32(self.rng.uniform(0.8, 1.25)),
            )

    # Trees

    def _stands(self, tree: Tree) -> bool:
        return tree.standing or not self.after

    def trees(self) -> None:
        """Paint the crowns of the trees that stand."""
        for tree in self.town.trees:
            if self._stands(tree):
                self._crown(tree)

    def _crown(self, tree: Tree) -> None:
        canvas = self.canvas
        patch = canvas.patch(tree.u, tree.v, turn=0.0, reach=tree.radius * 1.35)
        if patch is None:
            return
        shift = round(abs(tree.u * 7.3 + tree.v * 3.1)) % 997
        leaves = canvas.grain(patch, shift)
        distance = np.hypot(patch.along, patch.across) / tree.radius
        edge = distance * (1 + 0.22 * leaves)
        shape = edge < 1
        bulge = np.sqrt(np.clip(1 - np.minimum(edge, 1) ** 2, 0, 1))
        sun_u, sun_v, sun_up = self.sun.direction
        facing = (patch.along * sun_u + patch.across * sun_v) / tree.radius + bulge * sun_up
        light = np.clip(0.42 + 0.55 * facing, 0.22, 1.15) * (1 + 0.30 * leaves)
        base = np.array(_LEAVES[tree.tone], dtype=np.float32)
        if not self.after:
            base = base * np.array([1.08, 1.0, 1.0], dtype=np.float32)
        canvas.paint(patch, shape, (base * light[..., None]).astype(np.float32))
        canvas.lit(patch, shape, 1.0)


def _mix(first: Image | Colour, second: Image | Colour, share: np.ndarray) -> Image:
    a, b = np.asarray(first, dtype=np.float32), np.asarray(second, dtype=np.float32)
    mixed: Image = (a + (b - a) * share).astype(np.float32)
    return mixed


def _grained(colour: Colour, tint: float, grain: np.ndarray) -> Image:
    image: Image = (np.asarray(colour) * (tint + grain)[..., None]).astype(np.float32)
    return image


def _scaled(colour: Colour, factor: float) -> Colour:
    red, green, blue = (min(1.0, factor * part) for part in colour)
    return red, green, blue


def _lot_tones(u: Image, v: Image) -> Image:
    """Return a tone for each lot, from -1 to 1: neighbours water their lawns differently."""
    column, row = np.floor(u / 18.0), np.floor(v / (BLOCK_DEPTH / 2))
    mixed = np.sin(column * 127.1 + row * 311.7) * 43758.5453
    tones: Image = ((mixed - np.floor(mixed)) * 2 - 1).astype(np.float32) * np.float32(0.6)
    return tones


def _on_street(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    distance_u = np.abs(u - np.round(u / BLOCK_LENGTH) * BLOCK_LENGTH)
    distance_v = np.abs(v - np.round(v / BLOCK_DEPTH) * BLOCK_DEPTH)
    streets: np.ndarray = np.minimum(distance_u, distance_v) < STREET_WIDTH / 2
    return streets


def _round(patch: Patch, length: float, width: float, corner: float) -> Mask:
    outside_a = np.maximum(np.abs(patch.along) - (length / 2 - corner), 0)
    outside_b = np.maximum(np.abs(patch.across) - (width / 2 - corner), 0)
    shape: Mask = np.hypot(outside_a, outside_b) < corner
    return shape


def _blob(patch: Patch, half_length: float, half_width: float, ragged: Image) -> Image:
    """Return each pixel's distance from the centre, 1 on the edge of a ragged ellipse."""
    blob: Image = np.hypot(patch.along / half_length, patch.across / half_width) + ragged
    return blob


def _tilt(patch: Patch, building: Building) -> Image:
    """Return a slope over a building, so that the storm takes one side of its roof first."""
    sign = 1 if building.tone % 2 else -1
    slope: Image = sign * patch.along / building.length + 0.6 * patch.across / building.width
    return slope
