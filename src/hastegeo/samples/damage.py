"""Painting what a storm does: torn roofs, rubble, debris, fallen trees."""

from __future__ import annotations

import math

import numpy as np

from hastegeo.samples.canvas import Image, Patch, ragged_ellipse, rectangle
from hastegeo.samples.layout import BLOCK_DEPTH, BLOCK_LENGTH, STREET_WIDTH, Building, Damage
from hastegeo.samples.palette import RUBBLE, TARP, grained
from hastegeo.samples.shot import Shot


def paint_wounds(shot: Shot, building: Building, patch: Patch, damage: Damage) -> None:
    """Tear at a roof: shingles off for minor damage, the roof itself for major."""
    canvas = shot.canvas
    shape = rectangle(patch, building.length, building.width)
    torn_noise = canvas.grain(patch, 400 + building.tone) * 0.5 + _tilt(patch, building)
    if damage is Damage.MINOR:
        bare = shape & (torn_noise > 0.62)
        canvas.paint(patch, bare, grained((0.52, 0.42, 0.31), 1.0, 0.1 * canvas.grain(patch, 9)))
        if building.tone % 4 == 0:
            tarp = (
                (np.abs(patch.along + building.length / 6) < building.length / 5)
                & (patch.across > 0.2)
                & (patch.across < building.width / 2 - 0.5)
            )
            canvas.paint(patch, tarp, grained(TARP, 1.0, 0.06 * canvas.grain(patch, 5)))
        return
    gone = shape & (torn_noise > 0.1)
    rooms = grained((0.40, 0.34, 0.28), 1.0, 0.35 * canvas.grain(patch, 11))
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


def paint_rubble(shot: Shot, building: Building, patch: Patch) -> None:
    """Leave a slab with a heap on it."""
    canvas = shot.canvas
    grain = canvas.grain(patch, 40 + building.tone)
    slab = rectangle(patch, building.length, building.width)
    canvas.paint(patch, slab, grained((0.52, 0.47, 0.40), 1.0, 0.12 * grain))
    heap = ragged_ellipse(patch, building.length * 0.56, building.width * 0.62, 0.35 * grain) < 1
    canvas.paint(patch, heap, grained((0.46, 0.38, 0.30), 1.0, 0.40 * grain))
    canvas.lit(patch, slab, 1.0)
    canvas.shade(patch, heap & (grain < -0.35), 0.45)


def strew_debris(shot: Shot) -> None:
    """Strew pieces around damaged buildings and along the track."""
    for building in shot.town.buildings:
        count = {Damage.NONE: 0, Damage.MINOR: 12, Damage.MAJOR: 90, Damage.DESTROYED: 320}[building.damage]
        if count:
            area = building.length * building.width / 120
            spread = {Damage.MINOR: 0.7, Damage.MAJOR: 0.75, Damage.DESTROYED: 0.62}[building.damage]
            _strew(
                shot,
                round(count * min(area, 4)),
                (building.u, building.v),
                (building.length * spread, building.width * spread),
            )
    reach = shot.town.extent * 0.75
    count = round((2 * reach) ** 2 / 26)
    u, v = shot.rng.uniform(-reach, reach, (2, count))
    strength = shot.town.storm.strength(u, v)
    hit = shot.rng.random(count) < strength**1.5 * np.where(_on_street(u, v), 0.25, 1.0)
    _pieces(shot, u[hit], v[hit])
    _fallen_trees(shot)


def _strew(shot: Shot, count: int, centre: tuple[float, float], spread: tuple[float, float]) -> None:
    # Blown along the track.
    drift = shot.town.storm.bearing
    along = shot.rng.normal(0, 1, count) * spread[0] + np.abs(shot.rng.normal(0, 2.2, count))
    across = shot.rng.normal(0, 1, count) * spread[1]
    u = centre[0] + math.cos(drift) * along - math.sin(drift) * across
    v = centre[1] + math.sin(drift) * along + math.cos(drift) * across
    _pieces(shot, u, v)


def _pieces(shot: Shot, u: np.ndarray, v: np.ndarray) -> None:
    count = len(u)
    if not count:
        return
    big = shot.rng.random(count) < 0.10
    lengths = np.where(big, shot.rng.uniform(1.5, 3.6, count), shot.rng.uniform(0.4, 1.9, count))
    widths = np.where(big, shot.rng.uniform(0.6, 1.8, count), shot.rng.uniform(0.15, 0.55, count))
    colours = RUBBLE[shot.rng.integers(0, len(RUBBLE), count)]
    colours = colours * shot.rng.uniform(0.75, 1.2, (count, 1)).astype(np.float32)
    shot.canvas.scatter(
        u.astype(np.float32),
        v.astype(np.float32),
        shot.rng.uniform(0, math.pi, count).astype(np.float32),
        lengths.astype(np.float32),
        widths.astype(np.float32),
        np.clip(colours, 0, 0.95).astype(np.float32),
    )


def _fallen_trees(shot: Shot) -> None:
    fallen = [tree for tree in shot.town.trees if not tree.standing]
    if not fallen:
        return
    u, v, radius = (
        np.array([getattr(tree, name) for tree in fallen], dtype=np.float32) for name in ("u", "v", "radius")
    )
    count = len(fallen)
    turns = (shot.town.storm.bearing + shot.rng.normal(0, 0.35, count)).astype(np.float32)
    trunk = np.tile(np.array([[0.34, 0.27, 0.20]], dtype=np.float32), (count, 1))
    shot.canvas.scatter(u, v, turns, radius * 2.1, radius * 0.12 + 0.15, trunk)
    for _ in range(7):
        ends = radius * shot.rng.uniform(0.3, 1.0, count).astype(np.float32)
        shot.canvas.scatter(
            (u + np.cos(turns) * ends).astype(np.float32),
            (v + np.sin(turns) * ends).astype(np.float32),
            (turns + shot.rng.normal(0, 0.7, count)).astype(np.float32),
            radius * 0.7,
            np.full(count, 0.18, dtype=np.float32),
            trunk * np.float32(shot.rng.uniform(0.8, 1.25)),
        )


def _on_street(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    distance_u = np.abs(u - np.round(u / BLOCK_LENGTH) * BLOCK_LENGTH)
    distance_v = np.abs(v - np.round(v / BLOCK_DEPTH) * BLOCK_DEPTH)
    streets: np.ndarray = np.minimum(distance_u, distance_v) < STREET_WIDTH / 2
    return streets


def _tilt(patch: Patch, building: Building) -> Image:
    """Return a slope over a building, so that the storm takes one side of its roof first."""
    sign = 1 if building.tone % 2 else -1
    slope: Image = sign * patch.along / building.length + 0.6 * patch.across / building.width
    return slope
