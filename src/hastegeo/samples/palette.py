"""The colours of a town from above, as reflectances from 0 to 1."""

from __future__ import annotations

from typing import Final

import numpy as np

from hastegeo.samples.canvas import Image

Colour = tuple[float, float, float]

GRASS: Final[Colour] = (0.27, 0.32, 0.16)
STRAW: Final[Colour] = (0.42, 0.38, 0.24)
EARTH: Final[Colour] = (0.38, 0.30, 0.21)
ASPHALT: Final[Colour] = (0.38, 0.38, 0.38)
CONCRETE: Final[Colour] = (0.60, 0.58, 0.54)
WATER: Final[Colour] = (0.12, 0.17, 0.17)
POOL: Final[Colour] = (0.25, 0.58, 0.66)
TARP: Final[Colour] = (0.13, 0.30, 0.68)
ROOFS: Final[tuple[Colour, ...]] = (
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
FLAT_ROOFS: Final[tuple[Colour, ...]] = ((0.78, 0.77, 0.74), (0.62, 0.61, 0.60), (0.70, 0.66, 0.58))
LEAVES: Final[tuple[Colour, ...]] = (
    (0.16, 0.24, 0.10),
    (0.20, 0.29, 0.11),
    (0.13, 0.20, 0.10),
    (0.25, 0.31, 0.13),
    (0.18, 0.25, 0.13),
    (0.30, 0.27, 0.15),
)
CARS: Final[tuple[Colour, ...]] = (
    (0.85, 0.85, 0.85),
    (0.12, 0.12, 0.13),
    (0.55, 0.56, 0.58),
    (0.50, 0.10, 0.10),
    (0.16, 0.22, 0.40),
    (0.75, 0.74, 0.70),
    (0.30, 0.31, 0.32),
    (0.62, 0.58, 0.48),
)
RUBBLE: Final = np.array(
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


def mix(first: Image | Colour, second: Image | Colour, share: np.ndarray) -> Image:
    """Return a colour between two, by the share of the second."""
    a, b = np.asarray(first, dtype=np.float32), np.asarray(second, dtype=np.float32)
    mixed: Image = (a + (b - a) * share).astype(np.float32)
    return mixed


def grained(colour: Colour, tint: float, grain: np.ndarray) -> Image:
    """Return a colour with a tint and a grain, as a picture."""
    image: Image = (np.asarray(colour) * (tint + grain)[..., None]).astype(np.float32)
    return image


def scaled(colour: Colour, factor: float) -> Colour:
    """Return a colour made brighter or darker."""
    red, green, blue = (min(1.0, factor * part) for part in colour)
    return red, green, blue
