"""The 8 bits that are shown: monotone, all of 1 to 255, and 0 for no data alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hastegeo.workflows.imagery.stretch import keep_bytes, linear_stretch


@given(
    values=hnp.arrays("uint16", st.integers(1, 100)),
    limits=st.tuples(st.integers(0, 65535), st.integers(0, 65535)).map(sorted),
)
def test_the_table_says_what_the_formula_says(values: np.ndarray, limits: list[int]) -> None:
    low, high = limits
    shown = linear_stretch("uint16", low, high)(values)
    assert shown.dtype == np.uint8
    if low == high:
        assert (shown == 128).all()
        return
    exact = 1 + 254 * np.clip((values.astype(float) - low) / (high - low), 0, 1)
    assert (np.abs(shown - exact) <= 0.5 + 1e-9).all()


@pytest.mark.parametrize("dtype", ["uint16", "int16", "int32", "uint32", "float32", "float64"])
@given(data=st.data())
def test_a_brighter_pixel_is_never_shown_darker(dtype: str, data: st.DataObject) -> None:
    finite = {"allow_nan": False, "allow_infinity": False} if dtype.startswith("float") else {}
    values = np.sort(
        data.draw(hnp.arrays(dtype, st.integers(1, 60), elements=hnp.from_dtype(np.dtype(dtype), **finite)))
    )
    middle = data.draw(st.integers(0, len(values) - 1))
    with np.errstate(over="ignore"):
        shown = linear_stretch(dtype, float(values[0]), float(values[middle]))(values)
    assert (np.diff(shown.astype(int)) >= 0).all()
    assert shown.min() >= 1


def test_the_limits_become_the_ends() -> None:
    shown = linear_stretch("int16", -100, 300)(np.array([-32768, -100, 100, 300, 32767], dtype=np.int16))
    assert shown.tolist() == [1, 1, 128, 255, 255]


def test_not_a_number_is_shown_dark_and_never_as_no_data() -> None:
    shown = linear_stretch("float32", 0, 1)(np.array([np.nan, np.inf, -np.inf, 0.5], dtype=np.float32))
    assert shown.tolist() == [1, 255, 1, 128]


def test_bytes_are_kept_but_for_zero() -> None:
    values = np.arange(256, dtype=np.uint8)
    assert keep_bytes(values).tolist() == [1, *range(1, 256)]
