"""From any depth to 8 bits.

0 means "no data" in the result, so valid pixels use 1 to 255.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NODATA: Final = 0
_LEVELS: Final = 254
_MIDDLE: Final = 128

Stretch = Callable[[NDArray[Any]], NDArray[np.uint8]]


def keep_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return 8-bit values as they are, but for 0, which becomes 1."""
    lifted: NDArray[np.uint8] = np.maximum(values, 1).astype(np.uint8)
    return lifted


def linear_stretch(dtype: str, low: float, high: float) -> Stretch:
    """Return the function that maps `low` and below to 1, `high` and above to 255, linearly between.

    Up to 16 bits it looks values up in a table, which is exact and fast. A band without contrast becomes 128.
    """

    def compute(values: NDArray[Any]) -> NDArray[np.uint8]:
        if high <= low:
            return np.full(values.shape, _MIDDLE, dtype=np.uint8)
        precision = np.float64 if values.dtype.itemsize > 4 or values.dtype.kind in "iu" else np.float32
        # NaN in one band of a valid pixel is shown as the darkest.
        scaled = (np.nan_to_num(values.astype(precision), nan=low) - low) / (high - low)
        levels: NDArray[np.uint8] = (1.5 + np.clip(scaled, 0, 1) * _LEVELS).astype(np.uint8)
        return levels

    kind = np.dtype(dtype)
    if kind.itemsize > 2 or kind.kind == "f":
        return compute
    limits = np.iinfo(kind)
    table = compute(np.arange(limits.min, limits.max + 1, dtype=np.int32))
    if kind.kind == "u":
        return lambda values: table[values]
    return lambda values: table[values.astype(np.int32) - limits.min]
