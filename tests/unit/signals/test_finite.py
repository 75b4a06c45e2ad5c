"""Check of finiteness for arrays of any size and memory layout."""

import numpy as np
import pytest

from ltinet.signals.arrays import all_finite

SIZES = [0, 1, 999, 1_000, 1_001, 9_999, 10_000, 10_001, 25_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("largest", [5e-324, 1.0, np.finfo(np.float64).max])
def test_all_finite_with_overflowing_sum(size, largest):
    assert all_finite(np.full(size, largest))
    assert all_finite(np.full((size, 3), -largest)[:, 1])


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_single_one_that_is_not(size, value):
    for place in {0, size // 2, size - 1}:
        values = np.random.default_rng(0).standard_normal((size, 2))
        values[place, 1] = value
        assert not all_finite(values)
        assert not all_finite(values[:, 1])
        assert all_finite(values[:, 0])
        assert not all_finite(values.astype(np.float32))


def test_all_finite_with_opposite_infinities():
    values = np.ones(5_000)
    values[[3, 4_000]] = np.inf, -np.inf
    assert not all_finite(values)
