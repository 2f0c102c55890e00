"""The plan of a small town, and what a storm does to it: pure data from a seed.

Lengths are metres. The town has its own frame: `u` along its east-west streets and `v` along the others, both
from the centre of the scene; `Town.angle` turns it against the map.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

BLOCK_LENGTH: Final = 104.0
BLOCK_DEPTH: Final = 72.0
STREET_WIDTH: Final = 7.0
AVENUE_WIDTH: Final = 12.0
# Every so many streets, one is an avenue.
AVENUE_EVERY: Final = 3
_LOT_WIDTH: Final = 18.0
_SETBACK: Final = 9.0


class Damage(IntEnum):
    """How badly a building is hit, in the four classes that damage maps use."""

    NONE = 0
    MINOR = 1
    MAJOR = 2
    DESTROYED = 3


class Use(IntEnum):
    """What a block of the town is used for."""

    HOUSES = 0
    PARK = 1
    SHOPS = 2
    WOODS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """A rectangular building. `turn` is its angle in the town's frame, in radians; `tone` picks its roof."""

    id: str
    u: float
    v: float
    length: float
    width: float
    turn: float
    height: float
    roof: str
    tone: int
    damage: Damage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree, or a bush. `standing` is false where the storm takes it."""

    u: float
    v: float
    radius: float
    tone: int
    standing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """A flat rectangle on the ground: `driveway`, `parking`, `pool`, `pond`, `patio` or `car`."""

    kind: str
    u: float
    v: float
    length: float
    width: float
    turn: float
    tone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """A track through the scene: a line at `bearing` in the town's frame, `offset` from the centre."""

    bearing: float
    offset: float
    half_width: float

    def strength(self, u: np.ndarray | float, v: np.ndarray | float) -> np.ndarray:
        """Return how hard it strikes, from 1 on the track's line to 0 far away."""
        across = -np.sin(self.bearing) * np.asarray(u) + np.cos(self.bearing) * np.asarray(v) - self.offset
        # The track is not straight.
        along = np.cos(self.bearing) * np.asarray(u) + np.sin(self.bearing) * np.asarray(v)
        across = across + 0.25 * self.half_width * np.sin(along / (3.1 * self.half_width))
        strength: np.ndarray = np.exp(-((across / self.half_width) ** 2))
        return strength


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """Everything that stands and lies in the scene, a square of `extent` metres."""

    angle: float
    extent: float
    buildings: tuple[Building, ...]
    trees: tuple[Tree, ...]
    slabs: tuple[Slab, ...]
    storm: Storm

    def to_map(self, u: float, v: float) -> tuple[float, float]:
        """Return (east, south) in metres from the scene's north-west corner."""
        cos, sin = math.cos(self.angle), math.sin(self.angle)
        return cos * u - sin * v + self.extent / 2, sin * u + cos * v + self.extent / 2

    def outline(self, building: Building) -> list[tuple[float, float]]:
        """Return a building's corners as (east, south) in metres, in order."""
        half_length, half_width = building.length / 2, building.width / 2
        cos, sin = math.cos(building.turn), math.sin(building.turn)
        corners = [
            (-half_length, -half_width),
            (half_length, -half_width),
            (half_length, half_width),
            (-half_length, half_width),
        ]
        return [
            self.to_map(building.u + cos * a - sin * b, building.v + sin * a + cos * b) for a, b in corners
        ]


def plan_town(seed: int, extent: float) -> Town:
    """Plan a town on a square of `extent` metres a side. The same seed gives the same town."""
    rng = np.random.default_rng([seed, 1])
    storm = Storm(
        bearing=float(rng.uniform(-0.5, 0.5)),
        offset=float(rng.uniform(-0.06, 0.06)) * extent,
        half_width=max(0.19 * extent, 50.0),
    )
    reach = extent * 0.75
    columns = range(math.floor(-reach / BLOCK_LENGTH), math.ceil(reach / BLOCK_LENGTH))
    rows = range(math.floor(-reach / BLOCK_DEPTH), math.ceil(reach / BLOCK_DEPTH))
    builder = _Builder(rng, storm)
    weights = [0.8, 0.07, 0.08, 0.05]
    for row in rows:
        for column in columns:
            use = Use(int(rng.choice(4, p=weights)))
            builder.fill(use, column * BLOCK_LENGTH, row * BLOCK_DEPTH)
    return Town(
        angle=float(rng.uniform(0.04, 0.14) * rng.choice([-1, 1])),
        extent=extent,
        buildings=tuple(builder.buildings),
        trees=tuple(builder.trees),
        slabs=tuple(builder.slabs),
        storm=storm,
    )


class _Builder:
    """Fills blocks. Blocks begin at the centre lines of the streets to their north and west."""

    def __init__(self, rng: np.random.Generator, storm: Storm) -> None:
        self.rng = rng
        self.storm = storm
        self.buildings: list[Building] = []
        self.trees: list[Tree] = []
        self.slabs: list[Slab] = []

    def fill(self, use: Use, u: float, v: float) -> None:
        if use is Use.HOUSES:
            self._houses(u, v)
        elif use is Use.PARK:
            self._park(u, v)
        elif use is Use.SHOPS:
            self._shops(u, v)
        else:
            self._woods(u, v)

    def _houses(self, u: float, v: float) -> None:
        rng = self.rng
        margin = AVENUE_WIDTH / 2 + 2
        lots = int((BLOCK_LENGTH - 2 * margin) // _LOT_WIDTH)
        lot_width = (BLOCK_LENGTH - 2 * margin) / lots
        for north in (True, False):
            street_v = v if north else v + BLOCK_DEPTH
            inward = 1 if north else -1
            for lot in range(lots):
                lot_u = u + margin + (lot + 0.5) * lot_width
                if rng.random() < 0.07:
                    self._scatter_trees(lot_u, street_v + inward * 20, 7, 12, int(rng.integers(1, 4)))
                    continue
                length, width = float(rng.uniform(11, 14.5)), float(rng.uniform(8, 10.5))
                setback = STREET_WIDTH / 2 + _SETBACK + float(rng.uniform(-1, 3)) + width / 2
                house_v = street_v + inward * setback
                turn = float(rng.normal(0, 0.02))
                if rng.random() < 0.2:
                    turn += math.pi / 2
                roof = "hip" if rng.random() < 0.45 else "gable"
                house_u = lot_u + float(rng.uniform(-1, 1))
                self._build(house_u, house_v, length, width, turn, float(rng.uniform(4.2, 6)), roof)
                self._yard(lot_u, street_v, inward, setback, lot_width)

    def _yard(self, lot_u: float, street_v: float, inward: int, setback: float, lot_width: float) -> None:
        rng = self.rng
        side = float(rng.choice([-1, 1])) * (lot_width / 2 - 2.4)
        drive = setback - STREET_WIDTH / 2
        drive_v = street_v + inward * (STREET_WIDTH / 2 + drive / 2)
        self._slab("driveway", lot_u + side, drive_v, drive, 3.2, math.pi / 2)
        if rng.random() < 0.55:
            self._slab("car", lot_u + side, drive_v + float(rng.uniform(-2, 2)), 4.5, 1.9, math.pi / 2)
        back_v = street_v + inward * (setback + 12)
        if rng.random() < 0.07:
            self._slab("pool", lot_u, back_v, 8, 4.5, float(rng.normal(0, 0.2)))
        elif rng.random() < 0.4:
            self._slab("patio", lot_u, street_v + inward * (setback + 6.5), 5, 3.5, 0.0)
        if rng.random() < 0.25:
            shed_u = lot_u - side * 0.8
            self._build(shed_u, back_v + inward * 4, 4, 3, 0.0, 2.5, "gable", keep=False)
        self._scatter_trees(lot_u, back_v + inward * 2, lot_width / 2, 5.5, int(rng.poisson(1.7)))
        if rng.random() < 0.5:
            front_v = street_v + inward * (STREET_WIDTH / 2 + 3.5)
            self._tree(lot_u - side * 0.6, front_v, float(rng.uniform(2, 4.2)))

    def _park(self, u: float, v: float) -> None:
        rng = self.rng
        middle_u, middle_v = u + BLOCK_LENGTH / 2, v + BLOCK_DEPTH / 2
        self._slab("pond", middle_u + float(rng.uniform(-15, 15)), middle_v, 30, 17, float(rng.uniform(0, 1)))
        for _ in range(46):
            tree_u = u + float(rng.uniform(12, BLOCK_LENGTH - 12))
            tree_v = v + float(rng.uniform(12, BLOCK_DEPTH - 12))
            if math.hypot((tree_u - middle_u) / 26, (tree_v - middle_v) / 16) > 1:
                self._tree(tree_u, tree_v, float(rng.uniform(2.5, 5.5)))

    def _woods(self, u: float, v: float) -> None:
        rng = self.rng
        for _ in range(190):
            self._tree(
                u + float(rng.uniform(9, BLOCK_LENGTH - 9)),
                v + float(rng.uniform(9, BLOCK_DEPTH - 9)),
                float(rng.uniform(2.5, 5.8)),
            )

    def _shops(self, u: float, v: float) -> None:
        rng = self.rng
        length, width = float(rng.uniform(48, 66)), float(rng.uniform(18, 23))
        middle_u = u + BLOCK_LENGTH / 2
        self._slab("parking", middle_u, v + BLOCK_DEPTH / 2, BLOCK_LENGTH - 20, BLOCK_DEPTH - 20, 0.0)
        self._build(middle_u, v + BLOCK_DEPTH - 14 - width / 2, length, width, 0.0, 6.5, "flat")
        for row in (0, 1):
            for stall in range(int((BLOCK_LENGTH - 30) // 2.8)):
                if rng.random() < 0.42:
                    stall_u = u + 16 + stall * 2.8
                    self._slab("car", stall_u, v + 17 + row * 7.5, 4.5, 1.9, math.pi / 2)
        for corner in (-1, 1):
            self._tree(middle_u + corner * 44, v + 14, float(rng.uniform(2, 3)))

    def _scatter_trees(self, u: float, v: float, spread_u: float, spread_v: float, count: int) -> None:
        for _ in range(count):
            self._tree(
                u + float(self.rng.uniform(-spread_u, spread_u)),
                v + float(self.rng.uniform(-spread_v, spread_v)),
                float(self.rng.uniform(1.8, 5.2)),
            )

    def _tree(self, u: float, v: float, radius: float) -> None:
        taken = float(self.storm.strength(u, v)) + float(self.rng.normal(0, 0.12)) > 0.5
        self.trees.append(
            Tree(u=u, v=v, radius=radius, tone=int(self.rng.integers(0, 6)), standing=not taken)
        )

    def _slab(self, kind: str, u: float, v: float, length: float, width: float, turn: float) -> None:
        tone = int(self.rng.integers(0, 8))
        self.slabs.append(Slab(kind=kind, u=u, v=v, length=length, width=width, turn=turn, tone=tone))

    def _build(
        self,
        u: float,
        v: float,
        length: float,
        width: float,
        turn: float,
        height: float,
        roof: str,
        *,
        keep: bool = True,
    ) -> None:
        """Add a building. Sheds (`keep` false) have no footprint in the data, as in real footprints."""
        strength = float(self.storm.strength(u, v)) + float(self.rng.normal(0, 0.1))
        if height > 6:  # steel frames stand longer
            strength -= 0.12
        damage = Damage(int(np.searchsorted([0.3, 0.52, 0.74], strength)))
        self.buildings.append(
            Building(
                id=f"b{sum(bool(other.id) for other in self.buildings) + 1:05d}" if keep else "",
                u=u,
                v=v,
                length=length,
                width=width,
                turn=turn,
                height=height,
                roof=roof,
                tone=int(self.rng.integers(0, 9)),
                damage=damage,
            )
        )
