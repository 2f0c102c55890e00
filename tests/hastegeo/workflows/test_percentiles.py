"""Percentiles are exact for every kind of pixel, however the pixels are cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hastegeo.workflows.imagery.percentiles import BandCounter, BandStatistics, add_to_all

DTYPES = ["uint8", "int16", "uint16", "int32", "uint32", "float32"]


def values_of(dtype: str) -> st.SearchStrategy[np.ndarray]:
    elements = (
        {"allow_nan": False, "allow_infinity": False, "min_value": -(2.0**100), "max_value": 2.0**100}
        if dtype == "float32"
        else {}
    )
    return hnp.arrays(dtype, st.integers(1, 200), elements=hnp.from_dtype(np.dtype(dtype), **elements))


def count(values: np.ndarray, percentiles: tuple[int, int], pieces: int = 1) -> BandStatistics:
    counter = BandCounter(values.dtype.name, percentiles)
    for piece in np.array_split(values, pieces):
        counter.add(piece)
    if counter.needs_second_pass:
        counter.begin_second_pass()
        for piece in np.array_split(values, pieces):
            counter.add(piece)
    return counter.result()


@pytest.mark.parametrize("dtype", DTYPES)
@given(
    data=st.data(),
    percentiles=st.tuples(st.integers(0, 100), st.integers(0, 100)),
    pieces=st.integers(1, 5),
)
def test_a_percentile_is_the_value_of_that_rank(
    dtype: str, data: st.DataObject, percentiles: tuple[int, int], pieces: int
) -> None:
    values = data.draw(values_of(dtype))
    found = count(values, percentiles, pieces)
    ordered = np.sort(values)
    for percent, value in zip(percentiles, (found.low, found.high), strict=True):
        rank = max(1, -(-percent * len(values) // 100))
        assert value == ordered[rank - 1]
    assert found.count == len(values)
    assert (found.minimum, found.maximum) == (values.min(), values.max())
    assert found.mean == pytest.approx(values.mean(dtype=np.float64), rel=1e-9, abs=1e-9)


@given(hnp.arrays("uint16", st.integers(1, 500)), st.integers(0, 100))
def test_it_agrees_with_numpy(values: np.ndarray, percent: int) -> None:
    assert count(values, (percent, 100)).low == np.percentile(values, percent, method="inverted_cdf")


@given(hnp.arrays("float64", st.integers(1, 50), elements=st.floats(-1e30, 1e30)))
def test_wide_floats_are_right_to_the_precision_of_32_bits(values: np.ndarray) -> None:
    assert count(values, (50, 98)).low == pytest.approx(
        float(np.sort(values)[-(-50 * len(values) // 100) - 1]), rel=1e-6, abs=1e-37
    )


def test_values_beyond_32_bits_do_not_break_the_sums() -> None:
    found = count(np.array([1e308, 1e308, -1e308]), (2, 98))
    assert all(np.isfinite([found.mean, found.low, found.high, found.minimum, found.maximum]))


def test_an_empty_band_has_zeros_and_needs_no_second_look() -> None:
    counter = BandCounter("float32", (2, 98))
    counter.add(np.array([], dtype=np.float32))
    assert not counter.needs_second_pass
    assert counter.result() == BandStatistics(count=0, minimum=0, maximum=0, mean=0, low=0, high=0)


def test_only_valid_and_finite_pixels_are_counted() -> None:
    data = np.array([[[1.0, np.nan], [np.inf, 4.0]]], dtype=np.float32)
    valid = np.array([[True, True], [True, False]])
    counter = BandCounter("float32", (0, 100))
    add_to_all([counter], data, valid)
    counter.begin_second_pass()
    add_to_all([counter], data, valid)
    found = counter.result()
    assert (found.count, found.low, found.high) == (1, 1.0, 1.0)
