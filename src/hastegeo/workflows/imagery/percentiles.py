"""Exact percentiles of imagery of any size, in one small table.

Values of up to 16 bits are counted one by one. Wider ones are counted by the upper half of an
order-preserving 32-bit key, and a second look at the same pixels counts the lower half where the answer lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_HALF: Final = 1 << 16
_SIGN: Final = np.uint32(0x80000000)
_LIMIT: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class BandStatistics:
    """What the valid pixels of a band hold. `low` and `high` are the percentiles that were asked for."""

    count: int
    minimum: float
    maximum: float
    mean: float
    low: float
    high: float


class BandCounter:
    """Counts the values of one band.

    Feed it everything with `add`; if it then says `needs_second_pass`, call `begin_second_pass` and feed it
    everything again. 64-bit floats are counted to the precision and range of 32 bits.
    """

    def __init__(self, dtype: str, percentiles: tuple[int, int]) -> None:
        """Count a band of `dtype`, for two whole percentiles between 0 and 100."""
        self._dtype = np.dtype(dtype)
        self._percentiles = percentiles
        self._counts = np.zeros(_HALF, dtype=np.int64)
        self._sum = 0.0
        self._minimum = np.inf
        self._maximum = -np.inf
        self._lower: dict[int, NDArray[np.int64]] = {}
        self._second = False

    @property
    def needs_second_pass(self) -> bool:
        """Whether exact percentiles need the values a second time."""
        return self._dtype.itemsize > 2 and self.count > 0

    @property
    def count(self) -> int:
        """How many values were added."""
        return int(self._counts.sum())

    def add(self, values: NDArray[Any]) -> None:
        """Count valid values, which must be finite."""
        if not values.size:
            return
        if self._dtype.itemsize <= 2:
            self._counts += np.bincount(values.astype(np.int32) - self._offset, minlength=_HALF)
            return
        keys = _keys(values)
        if self._second:
            upper = keys >> np.uint32(16)
            for half in self._lower:
                chosen = keys[upper == half] & np.uint32(0xFFFF)
                self._lower[half] += np.bincount(chosen.astype(np.int32), minlength=_HALF)
            return
        self._counts += np.bincount((keys >> np.uint32(16)).astype(np.int32), minlength=_HALF)
        if self._dtype.kind == "f":
            values = np.clip(values, -_LIMIT, _LIMIT)
        self._sum += float(values.sum(dtype=np.float64))
        self._minimum = min(self._minimum, float(values.min()))
        self._maximum = max(self._maximum, float(values.max()))

    def begin_second_pass(self) -> None:
        """Say that every value now comes once more."""
        self._second = True
        self._lower = {
            self._find(self._counts, self._rank(percent))[0]: np.zeros(_HALF, dtype=np.int64)
            for percent in self._percentiles
        }

    def result(self) -> BandStatistics:
        """Return the statistics. A band without a valid pixel has zeros."""
        count = self.count
        if not count:
            return BandStatistics(count=0, minimum=0.0, maximum=0.0, mean=0.0, low=0.0, high=0.0)
        low, high = (self._value(self._rank(percent)) for percent in self._percentiles)
        if self._dtype.itemsize <= 2:
            present = np.flatnonzero(self._counts)
            minimum, maximum = float(present[0] + self._offset), float(present[-1] + self._offset)
            total = float((self._counts[present] * (present + self._offset)).sum())
        else:
            minimum, maximum, total = self._minimum, self._maximum, self._sum
        return BandStatistics(
            count=count, minimum=minimum, maximum=maximum, mean=total / count, low=low, high=high
        )

    @property
    def _offset(self) -> int:
        return int(np.iinfo(self._dtype).min)

    def _rank(self, percent: int) -> int:
        # The smallest value that at least this share of all values does not exceed, in whole numbers.
        return max(1, -(-percent * self.count // 100))

    @staticmethod
    def _find(counts: NDArray[np.int64], rank: int) -> tuple[int, int]:
        """Return the bin that holds the value of a rank (from 1), and its rank within the bin."""
        running = counts.cumsum()
        index = int(np.searchsorted(running, rank))
        return index, rank - int(running[index] - counts[index])

    def _value(self, rank: int) -> float:
        upper, within = self._find(self._counts, rank)
        if self._dtype.itemsize <= 2:
            return float(upper + self._offset)
        lower, _ = self._find(self._lower[upper], within)
        return _value_of_key((upper << 16) | lower, self._dtype)


def add_to_all(counters: Sequence[BandCounter], data: NDArray[Any], valid: NDArray[np.bool_]) -> None:
    """Count the valid, finite pixels of every band of a block."""
    whole = bool(valid.all())
    for counter, band in zip(counters, data, strict=True):
        values = band.ravel() if whole else band[valid]
        counter.add(values[np.isfinite(values)] if values.dtype.kind == "f" else values)


def _keys(values: NDArray[Any]) -> NDArray[np.uint32]:
    """Map 32-bit numbers (or 64-bit floats, rounded) to unsigned integers of the same order."""
    if values.dtype == np.uint32:
        return values
    if values.dtype == np.int32:
        return values.view(np.uint32) ^ _SIGN
    # Adding zero turns -0.0 into 0.0: they are equal, so they must have one key.
    bits = (np.clip(values, -_LIMIT, _LIMIT).astype(np.float32) + np.float32(0)).view(np.uint32)
    keys: NDArray[np.uint32] = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return keys


def _value_of_key(key: int, dtype: np.dtype[Any]) -> float:
    bits = np.uint32(key)
    if dtype == np.uint32:
        return float(bits)
    if dtype == np.int32:
        return float((bits ^ _SIGN).view(np.int32))
    return float((bits ^ _SIGN if bits & _SIGN else ~bits).view(np.float32))
