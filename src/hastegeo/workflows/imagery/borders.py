"""Black borders that no tag tells of: what a rotated or cut image leaves around itself.

Only black that reaches the edge of a tile counts, row by row from either side, so that shadows and dark water
inside an image stay what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rasterio.windows import Window

# A border is believed in where this share of a tile's outermost pixels is black.
_BELIEVED_SHARE: Final = 0.02
# Lossy compression leaves black not quite black.
_LOSSY: Final = frozenset({"JPEG", "YCbCr JPEG", "WEBP", "LERC", "JXL"})
_LOSSY_BLACK: Final = 6
_ROWS_AT_ONCE: Final = 256


@dataclass(frozen=True, eq=False)
class Border:
    """Where the image lies in each row of a tile: from `first` up to, not with, `end`."""

    first: NDArray[np.int64]
    end: NDArray[np.int64]

    def inside(self, window: Window) -> NDArray[np.bool_]:
        """Return the pixels of a window that are not border."""
        rows = slice(window.row_off, window.row_off + window.height)
        columns = np.arange(window.col_off, window.col_off + window.width)
        inside: NDArray[np.bool_] = (columns >= self.first[rows, None]) & (columns < self.end[rows, None])
        return inside


def find_border(source: Any, bands: tuple[int, ...]) -> Border | None:
    """Return the black border of an open tile, or None where it has none to speak of.

    Raises rasterio's errors where the tile is damaged.
    """
    limit = _LOSSY_BLACK if str(getattr(source.compression, "value", "")) in _LOSSY else 0
    height, width = source.height, source.width
    edges = (
        Window(0, 0, width, 1),
        Window(0, height - 1, width, 1),
        Window(0, 0, 1, height),
        Window(width - 1, 0, 1, height),
    )
    black = np.concatenate([_is_black(source, bands, edge, limit).ravel() for edge in edges])
    if black.mean() < _BELIEVED_SHARE:
        return None
    first = np.empty(height, dtype=np.int64)
    end = np.empty(height, dtype=np.int64)
    for top in range(0, height, _ROWS_AT_ONCE):
        rows = slice(top, min(top + _ROWS_AT_ONCE, height))
        seen = ~_is_black(source, bands, Window(0, top, width, rows.stop - top), limit)
        some = seen.any(axis=1)
        first[rows] = np.where(some, seen.argmax(axis=1), width)
        end[rows] = np.where(some, width - seen[:, ::-1].argmax(axis=1), width)
    return Border(first=first, end=end)


def _is_black(source: Any, bands: tuple[int, ...], window: Window, limit: int) -> NDArray[np.bool_]:
    black: NDArray[np.bool_] = (source.read(list(bands), window=window) <= limit).all(axis=0)
    return black
