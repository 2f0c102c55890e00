"""A picture in the making: colour on a fine raster, and the shapes that scenes are painted with.

Colours are reflectances from 0 to 1. The raster is finer than the image that is made of it, so that edges
come out smooth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.float32]
Mask = NDArray[np.bool_]

_NOISE_SIZE: Final = 1024


def noise_field(rng: np.random.Generator, size: int, scales: tuple[int, ...]) -> Image:
    """Return a square of smooth noise around 0, about -1 to 1, that repeats at its edges.

    `scales` are the sizes of its features in pixels, the first the strongest.
    """
    field = np.zeros((size, size), dtype=np.float32)
    frequencies = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None, :])
    for strength, scale in enumerate(scales):
        white = np.fft.rfft2(rng.standard_normal((size, size)))
        layer = np.fft.irfft2(white * np.exp(-((frequencies * scale) ** 2) * 2.5), s=(size, size))
        field += (layer / layer.std() / (1.6**strength)).astype(np.float32)
    scaled: Image = (field / (field.std() * 2.2)).astype(np.float32)
    return scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A window of a canvas around a shape, in the shape's own frame.

    `along` and `across` are each pixel's distances in metres from the shape's centre.
    """

    rows: slice
    columns: slice
    along: Image
    across: Image


class Canvas:
    """A square picture of `extent` metres with `scale` pixels a metre, seen in a town's frame."""

    def __init__(self, *, extent: float, scale: float, angle: float, rng: np.random.Generator) -> None:
        self.size = round(extent * scale)
        self.scale = scale
        self.extent = extent
        self._cos, self._sin = math.cos(angle), math.sin(angle)
        self.colour: Image = np.zeros((self.size, self.size, 3), dtype=np.float32)
        self.light: Image = np.ones((self.size, self.size), dtype=np.float32)
        self._coarse = noise_field(rng, _NOISE_SIZE, (160, 60, 24))
        self._fine = noise_field(rng, _NOISE_SIZE, (7, 3))

    def town_frame(self) -> tuple[Image, Image]:
        """Return the town coordinates (u, v) of every pixel."""
        ticks = ((np.arange(self.size, dtype=np.float32) + 0.5) / self.scale - self.extent / 2).astype(
            np.float32
        )
        east, south = ticks[None, :], ticks[:, None]
        return self._cos * east + self._sin * south, -self._sin * east + self._cos * south

    def coarse_noise(self, shift: int = 0) -> Image:
        """Return broad noise for the whole picture."""
        return self._tiled(self._coarse, shift)

    def fine_noise(self, shift: int = 0) -> Image:
        """Return grainy noise for the whole picture."""
        return self._tiled(self._fine, shift)

    def _tiled(self, field: Image, shift: int) -> Image:
        index = (np.arange(self.size) + shift) % _NOISE_SIZE
        tiled: Image = field[index[:, None], index[None, :]]
        return tiled

    def grain(self, patch: Patch, shift: int = 0) -> Image:
        """Return grainy noise for a patch."""
        rows = (np.arange(patch.rows.start, patch.rows.stop) + shift) % _NOISE_SIZE
        columns = (np.arange(patch.columns.start, patch.columns.stop) + 3 * shift) % _NOISE_SIZE
        grain: Image = self._fine[rows[:, None], columns[None, :]]
        return grain

    def patch(self, u: float, v: float, *, turn: float, reach: float) -> Patch | None:
        """Return the pixels within `reach` metres of a point, or None where that is outside the picture."""
        x = (self._cos * u - self._sin * v + self.extent / 2) * self.scale
        y = (self._sin * u + self._cos * v + self.extent / 2) * self.scale
        half = reach * self.scale
        left, right = max(0, math.floor(x - half)), min(self.size, math.ceil(x + half))
        top, bottom = max(0, math.floor(y - half)), min(self.size, math.ceil(y + half))
        if left >= right or top >= bottom:
            return None
        east = ((np.arange(left, right) + 0.5 - x) / self.scale).astype(np.float32)[None, :]
        south = ((np.arange(top, bottom) + 0.5 - y) / self.scale).astype(np.float32)[:, None]
        # From the map to the town, and on to the shape.
        cos = self._cos * math.cos(turn) - self._sin * math.sin(turn)
        sin = self._sin * math.cos(turn) + self._cos * math.sin(turn)
        return Patch(
            rows=slice(top, bottom),
            columns=slice(left, right),
            along=cos * east + sin * south,
            across=-sin * east + cos * south,
        )

    def paint(self, patch: Patch, mask: Mask, colour: Image | tuple[float, float, float]) -> None:
        """Cover the pixels of a mask with a colour, or with a picture of the patch's own size."""
        target = self.colour[patch.rows, patch.columns]
        source = np.broadcast_to(np.asarray(colour, dtype=np.float32), target.shape)
        target[mask] = source[mask]

    def lit(self, patch: Patch, mask: Mask, light: float) -> None:
        """Set the light that falls on the pixels of a mask: 1 is full sun."""
        self.light[patch.rows, patch.columns][mask] = light

    def shade(self, patch: Patch, mask: Mask, light: float) -> None:
        """Let no more than `light` fall on the pixels of a mask."""
        window = self.light[patch.rows, patch.columns]
        window[mask] = np.minimum(window[mask], light)

    def scatter(
        self, u: Image, v: Image, turns: Image, lengths: Image, widths: Image, colours: Image
    ) -> None:
        """Paint many small sticks and sheets at once, the later over the earlier.

        All arguments have one entry a piece; lengths and widths are metres.
        """
        step = 0.7 / self.scale
        along = np.arange(-0.5, 0.5001, step / max(float(lengths.max()), step), dtype=np.float32)
        across = np.arange(-0.5, 0.5001, step / max(float(widths.max()), step), dtype=np.float32)
        a = lengths[:, None, None] * along[None, :, None]
        b = widths[:, None, None] * across[None, None, :]
        cos, sin = np.cos(turns)[:, None, None], np.sin(turns)[:, None, None]
        piece_u, piece_v = u[:, None, None] + cos * a - sin * b, v[:, None, None] + sin * a + cos * b
        x = (self._cos * piece_u - self._sin * piece_v + self.extent / 2) * self.scale
        y = (self._sin * piece_u + self._cos * piece_v + self.extent / 2) * self.scale
        columns, rows = x.astype(np.int32), y.astype(np.int32)
        inside = (x >= 0) & (y >= 0) & (columns < self.size) & (rows < self.size)
        painted = np.broadcast_to(colours[:, None, None, :], (*inside.shape, 3))
        self.colour[rows[inside], columns[inside]] = painted[inside]
        self.light[rows[inside], columns[inside]] = 1.0

    def develop(self, factor: int) -> Image:
        """Return the picture as the sensor sees it: lit, with `factor` by `factor` pixels in one."""
        # Shadow is not black but blue: the sky lights it.
        shadow = 1 - self.light[..., None]
        seen = self.colour * (
            self.light[..., None] + shadow * np.array([0.02, 0.035, 0.075], dtype=np.float32)
        )
        side = self.size // factor
        cut = seen[: side * factor, : side * factor]
        pixels: Image = cut.reshape(side, factor, side, factor, 3).mean(axis=(1, 3), dtype=np.float32)
        return pixels


def swept(patch: Patch, length: float, width: float, shift: tuple[float, float]) -> Mask:
    """Return where a rectangle passes that is moved by `shift` (along, across): the shadow of a box."""
    low = np.zeros_like(patch.along)
    high = np.ones_like(patch.along)
    for position, half, move in (
        (patch.along, length / 2, shift[0]),
        (patch.across, width / 2, shift[1]),
    ):
        if abs(move) < 1e-6:
            outside = np.abs(position) > half
            high[outside] = -1
            continue
        first, second = (position - half) / move, (position + half) / move
        low = np.maximum(low, np.minimum(first, second))
        high = np.minimum(high, np.maximum(first, second))
    return low <= high


def rectangle(patch: Patch, length: float, width: float) -> Mask:
    """Return the pixels of a rectangle around the patch's centre."""
    return (np.abs(patch.along) <= length / 2) & (np.abs(patch.across) <= width / 2)


def rounded(patch: Patch, length: float, width: float, corner: float) -> Mask:
    """Return the pixels of a rectangle with round corners of a radius of `corner` metres."""
    outside_a = np.maximum(np.abs(patch.along) - (length / 2 - corner), 0)
    outside_b = np.maximum(np.abs(patch.across) - (width / 2 - corner), 0)
    shape: Mask = np.hypot(outside_a, outside_b) < corner
    return shape


def ragged_ellipse(patch: Patch, half_length: float, half_width: float, ragged: Image) -> Image:
    """Return each pixel's distance from the centre, 1 on the edge of a ragged ellipse."""
    blob: Image = np.hypot(patch.along / half_length, patch.across / half_width) + ragged
    return blob
