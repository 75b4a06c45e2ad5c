"""Hypothesis: real numbers of any type are taken, and whatever else NumPy would make numbers of is refused."""

import warnings
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import ltinet
from ltinet.signals.arrays import as_real_array


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float16, np.float32, float, ">f8", np.longdouble])
def test_real_numbers_of_every_type_are_taken(kind):
    given = np.array([[0, 1], [1, 0]], dtype=kind)
    found = as_real_array(given, "u")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [[0.0, 1.0], [1.0, 0.0]])


def test_an_array_that_is_right_already_is_not_copied():
    given = np.ones(3)
    assert as_real_array(given, "u") is given


def masked(values, *, at):
    return np.ma.array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) == at)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (masked([1.0, 2.0], at=1), r"u\.filled"),
        (masked(np.ones((3, 2)), at=4), r"~np\.ma\.getmaskarray\(u\)"),
        ([masked([1.0, 2.0], at=0), [3.0, 4.0]], "masked"),
        ([[1.0, np.ma.masked]], "masked"),
        (np.array([1.0 + 0j]), r"u is complex \(complex128\).*pass u\.real"),
        ([1.0, 2j], "complex"),
        ("0.5", "u is text, '0.5'"),
        (["1.0", "2.0"], "u is text, '1.0'"),
        (b"1.0", "u is text"),
        (np.array([], dtype="U5"), "u is text"),
        (["\x1b[31mred"], r"u is text, '\\x1b\[31mred'"),
        (None, "NoneType"),
        ([Decimal(1)], "entries of type Decimal"),
        (np.array([1.0, None]), "entries of type float"),
        ({}, "entries of type dict"),
        (SimpleNamespace(), "entries of type SimpleNamespace"),
        (sparse.eye_array(3), r"pass u\.toarray\(\)"),
        (np.array([1], dtype="m8[s]"), "dtype timedelta64"),
        (np.array(["2024-01-01"], dtype="M8[D]"), "dtype datetime64"),
        (np.zeros(2, dtype=[("a", float)]), "dtype"),
        ([[1.0], [1.0, 2.0]], "cannot be read as an array"),
    ],
)
def test_everything_else_is_refused(value, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ltinet.InvalidSignalError, match=message):
            as_real_array(value, "u")


def test_a_mask_that_hides_nothing_does_not_matter():
    np.testing.assert_array_equal(as_real_array(np.ma.array([1.0, 2.0]), "u"), [1.0, 2.0])
    np.testing.assert_array_equal(as_real_array(np.ma.array([1.0, 2.0], mask=[False, False]), "u"), [1.0, 2.0])


def test_numbers_beyond_float64_become_infinite_and_are_reported_as_that():
    if np.finfo(np.longdouble).max == np.finfo(float).max:
        pytest.skip("long double is double here")
    huge = np.array([np.longdouble(10) ** 400])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(as_real_array(huge, "u")[0])
