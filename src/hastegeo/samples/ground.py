"""Painting what lies flat: lawns, streets, driveways, water, cars."""

from __future__ import annotations

import math

import numpy as np

from hastegeo.samples.canvas import Image, Patch, ragged_ellipse, rectangle, rounded, swept
from hastegeo.samples.layout import AVENUE_EVERY, AVENUE_WIDTH, BLOCK_DEPTH, BLOCK_LENGTH, STREET_WIDTH, Slab
from hastegeo.samples.palette import ASPHALT, CARS, CONCRETE, EARTH, GRASS, POOL, STRAW, WATER, grained, mix
from hastegeo.samples.shot import Shot


def paint_ground(shot: Shot) -> None:
    """Paint lawns, woods floor, streets and sidewalks."""
    canvas = shot.canvas
    u, v = canvas.town_frame()
    coarse, fine = canvas.coarse_noise(), canvas.fine_noise()
    dry = np.clip(0.34 + 0.30 * coarse + 0.55 * _lot_tones(u, v) + (0.0 if shot.after else 0.10), 0, 1)
    colour = mix(GRASS, STRAW, dry[..., None])
    bare = np.clip((canvas.coarse_noise(300) - 0.55) * 2.2, 0, 0.8)
    colour = mix(colour, EARTH, bare[..., None])
    if shot.after:
        struck = np.clip(shot.town.storm.strength(u, v) * 1.1 + 0.25 * coarse - 0.25, 0, 0.75)
        colour = mix(colour, (0.40, 0.33, 0.24), struck[..., None].astype(np.float32))
    colour *= (1 + 0.10 * fine)[..., None]
    canvas.colour[:] = colour
    _streets(shot, u, v)


def _streets(shot: Shot, u: Image, v: Image) -> None:
    canvas = shot.canvas
    fine, coarse = canvas.fine_noise(77), canvas.coarse_noise(500)
    for position, pitch in ((u, BLOCK_LENGTH), (v, BLOCK_DEPTH)):
        index = np.round(position / pitch)
        distance = np.abs(position - index * pitch)
        avenue = np.mod(index, AVENUE_EVERY) == 0
        half = np.where(avenue, AVENUE_WIDTH / 2, STREET_WIDTH / 2)
        walk = (distance > half + 1.6) & (distance < half + 2.9)
        canvas.colour[walk] = (np.array(CONCRETE) * 0.95 * (1 + 0.05 * fine[walk])[:, None]).astype(
            np.float32
        )
    for position, pitch in ((v, BLOCK_DEPTH), (u, BLOCK_LENGTH)):
        index = np.round(position / pitch)
        distance = np.abs(position - index * pitch)
        avenue = np.mod(index, AVENUE_EVERY) == 0
        half = np.where(avenue, AVENUE_WIDTH / 2, STREET_WIDTH / 2)
        road = distance < half
        # Streets were paved in different years.
        age = 0.10 * np.sin(index * 12.9898 + (0 if pitch == BLOCK_DEPTH else 4)) + np.where(avenue, 0.04, 0)
        tone = 1 + age + 0.05 * coarse + 0.05 * fine
        # Tyres darken the middle of each lane.
        lane = np.abs(distance - half / 2) / half
        tone = tone - 0.07 * np.exp(-((lane * 5) ** 2))
        canvas.colour[road] = (np.array(ASPHALT) * tone[road][:, None]).astype(np.float32)
        kerb = road & (distance > half - 0.35)
        canvas.colour[kerb] = (np.array(CONCRETE) * 0.98).astype(np.float32)
        along = u if position is v else v
        line = road & avenue & (distance > 0.12) & (distance < 0.38)
        canvas.colour[line] = np.array((0.72, 0.62, 0.26), dtype=np.float32)
        dashes = road & avenue & (np.abs(distance - half * 0.52) < 0.16) & (np.mod(along, 9) < 3)
        canvas.colour[dashes] = np.array((0.8, 0.8, 0.78), dtype=np.float32)


def paint_slabs(shot: Shot) -> None:
    """Paint what lies flat: driveways, car parks, pools, ponds, cars."""
    order = {"parking": 0, "pond": 1, "driveway": 2, "patio": 3, "pool": 4, "car": 5}
    for slab in sorted(shot.town.slabs, key=lambda slab: order[slab.kind]):
        _slab(shot, slab)


def _slab(shot: Shot, slab: Slab) -> None:
    canvas = shot.canvas
    strength = float(shot.town.storm.strength(slab.u, slab.v)) if shot.after else 0.0
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
            canvas.paint(patch, shape, grained(CONCRETE, tint, 0.05 * grain))
        case "parking":
            canvas.paint(patch, shape, grained(ASPHALT, 0.86 * tint, 0.06 * grain))
            marked = shape & (np.mod(patch.along, 2.8) < 0.16)
            rows = np.zeros_like(shape)
            for row in (17, 24.5):
                rows |= np.abs(patch.across + slab.width / 2 + 10 - row) < 2.5
            canvas.paint(patch, marked & rows, (0.75, 0.75, 0.72))
        case "pool":
            canvas.paint(patch, rectangle(patch, slab.length + 2, slab.width + 2), CONCRETE)
            water = POOL if strength < 0.5 else (0.24, 0.30, 0.24)
            canvas.paint(patch, rounded(patch, slab.length, slab.width, 2.0), water)
        case "pond":
            edge = ragged_ellipse(patch, slab.length / 2, slab.width / 2, 0.16 * grain)
            canvas.paint(patch, edge < 1.12, EARTH)
            canvas.paint(patch, edge < 1.0, grained(WATER, tint, 0.08 * grain))
        case _:
            _car(shot, patch, slab, turn)


def _car(shot: Shot, patch: Patch, slab: Slab, turn: float) -> None:
    canvas = shot.canvas
    shift = shot.sun.shadow(1.5, turn)
    canvas.shade(patch, swept(patch, slab.length, slab.width, shift), 0.35)
    body = rounded(patch, slab.length, slab.width, 0.6)
    canvas.paint(patch, body, CARS[slab.tone])
    canvas.lit(patch, body, 1.0)
    glass = rectangle(patch, slab.length * 0.62, slab.width * 0.82) & ~rectangle(
        patch, slab.length * 0.36, slab.width
    )
    canvas.paint(patch, glass, (0.10, 0.12, 0.14))


def _lot_tones(u: Image, v: Image) -> Image:
    """Return a tone for each lot, from -1 to 1: neighbours water their lawns differently."""
    column, row = np.floor(u / 18.0), np.floor(v / (BLOCK_DEPTH / 2))
    mixed = np.sin(column * 127.1 + row * 311.7) * 43758.5453
    tones: Image = ((mixed - np.floor(mixed)) * 2 - 1).astype(np.float32) * np.float32(0.6)
    return tones
