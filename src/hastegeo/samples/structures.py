"""Painting what stands: buildings and trees, and their shadows."""

from __future__ import annotations

import math

import numpy as np

from hastegeo.samples.canvas import Patch, rectangle, swept
from hastegeo.samples.damage import paint_rubble, paint_wounds
from hastegeo.samples.layout import Building, Damage, Tree
from hastegeo.samples.palette import FLAT_ROOFS, LEAVES, ROOFS, grained, scaled
from hastegeo.samples.shot import Shot


def paint_shadows(shot: Shot) -> None:
    """Let buildings and trees take the light from the ground."""
    for building in shot.town.buildings:
        left = {Damage.MAJOR: 0.55, Damage.DESTROYED: 0.1}.get(shot.damage(building), 1.0)
        height = building.height * left
        shift = shot.sun.shadow(height, building.turn)
        reach = math.hypot(building.length, building.width) / 2 + math.hypot(*shift)
        patch = shot.canvas.patch(building.u, building.v, turn=building.turn, reach=reach)
        if patch is not None:
            shape = swept(patch, building.length, building.width, shift)
            shot.canvas.shade(patch, shape, 0.25)
    for tree in shot.town.trees:
        if shot.stands(tree):
            _tree_shadow(shot, tree)


def _tree_shadow(shot: Shot, tree: Tree) -> None:
    height = tree.radius * 1.7
    shift = shot.sun.shadow(height, 0.0)
    patch = shot.canvas.patch(tree.u, tree.v, turn=0.0, reach=tree.radius + math.hypot(*shift))
    if patch is None:
        return
    ragged = 0.18 * shot.canvas.grain(patch, tree.tone)
    for share in (0.35, 0.7, 1.0):
        distance = np.hypot(patch.along - share * shift[0], patch.across - share * shift[1])
        shot.canvas.shade(patch, distance < tree.radius * (0.9 + ragged), 0.3)


def paint_buildings(shot: Shot) -> None:
    """Paint roofs, or what is left of them."""
    for building in shot.town.buildings:
        reach = math.hypot(building.length, building.width) / 2 + 2
        patch = shot.canvas.patch(building.u, building.v, turn=building.turn, reach=reach)
        if patch is None:
            continue
        damage = shot.damage(building)
        if damage is Damage.DESTROYED:
            paint_rubble(shot, building, patch)
            continue
        _roof(shot, building, patch)
        if damage is not Damage.NONE:
            paint_wounds(shot, building, patch, damage)


def _roof(shot: Shot, building: Building, patch: Patch) -> None:
    canvas = shot.canvas
    shape = rectangle(patch, building.length, building.width)
    grain = canvas.grain(patch, building.tone)
    if building.roof == "flat":
        base = FLAT_ROOFS[building.tone % len(FLAT_ROOFS)]
        canvas.paint(patch, shape, grained(base, 1.0, 0.04 * grain))
        rim = shape & ~rectangle(patch, building.length - 1.2, building.width - 1.2)
        canvas.paint(patch, rim, scaled(base, 0.8))
        units = shape & (np.mod(patch.along + 5, 11) < 2.2) & (np.abs(patch.across - 2) < 1.2)
        canvas.paint(patch, units, (0.52, 0.53, 0.54))
        canvas.lit(patch, shape, 1.0)
        return
    base = ROOFS[building.tone]
    light = np.where(patch.across > 0, _facet(shot, building.turn, 1), _facet(shot, building.turn, -1))
    if building.roof == "hip":
        ends = building.length / 2 - np.abs(patch.along) < building.width / 2 - np.abs(patch.across)
        hip = np.where(
            patch.along > 0,
            _facet(shot, building.turn - math.pi / 2, 1),
            _facet(shot, building.turn - math.pi / 2, -1),
        )
        light = np.where(ends, hip, light)
    # Rows of shingles, and their weathering.
    courses = 0.03 * np.sin(patch.across * 9)
    colour = grained(base, 1.0, 0.07 * grain + courses) * light[..., None]
    canvas.paint(patch, shape, colour.astype(np.float32))
    canvas.lit(patch, shape, 1.0)
    ridge = shape & (np.abs(patch.across) < 0.16)
    if building.roof == "hip":
        ridge &= np.abs(patch.along) < (building.length - building.width) / 2
    canvas.paint(patch, ridge, scaled(base, 1.22))
    if building.tone % 3 == 0:
        chimney = (np.abs(patch.along - building.length / 4) < 0.5) & (np.abs(patch.across - 1) < 0.45)
        canvas.paint(patch, chimney, (0.36, 0.22, 0.18))


def _facet(shot: Shot, turn: float, side: int) -> float:
    """Return the light on a slope that falls towards `side` across the ridge."""
    pitch = 0.42
    sun_u, sun_v, sun_up = shot.sun.direction
    normal_u, normal_v = -math.sin(turn) * side, math.cos(turn) * side
    facing = math.sin(pitch) * (normal_u * sun_u + normal_v * sun_v) + math.cos(pitch) * sun_up
    return 0.45 + 0.72 * max(facing, 0.0)


def paint_trees(shot: Shot) -> None:
    """Paint the crowns of the trees that stand."""
    for tree in shot.town.trees:
        if shot.stands(tree):
            _crown(shot, tree)


def _crown(shot: Shot, tree: Tree) -> None:
    canvas = shot.canvas
    patch = canvas.patch(tree.u, tree.v, turn=0.0, reach=tree.radius * 1.35)
    if patch is None:
        return
    shift = round(abs(tree.u * 7.3 + tree.v * 3.1)) % 997
    leaves = canvas.grain(patch, shift)
    distance = np.hypot(patch.along, patch.across) / tree.radius
    edge = distance * (1 + 0.22 * leaves)
    shape = edge < 1
    bulge = np.sqrt(np.clip(1 - np.minimum(edge, 1) ** 2, 0, 1))
    sun_u, sun_v, sun_up = shot.sun.direction
    facing = (patch.along * sun_u + patch.across * sun_v) / tree.radius + bulge * sun_up
    light = np.clip(0.42 + 0.55 * facing, 0.22, 1.15) * (1 + 0.30 * leaves)
    base = np.array(LEAVES[tree.tone], dtype=np.float32)
    if not shot.after:
        base = base * np.array([1.08, 1.0, 1.0], dtype=np.float32)
    canvas.paint(patch, shape, (base * light[..., None]).astype(np.float32))
    canvas.lit(patch, shape, 1.0)
