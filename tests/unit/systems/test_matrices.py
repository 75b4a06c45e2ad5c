"""Whatever a user calls a matrix becomes the float64 matrix it stands for, or is refused by name with a way out."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import as_real_matrix, as_square_matrix

EXPECTED = np.array([[1.0, 0.0], [2.0, 3.0]])


@pytest.mark.parametrize(
    "value",
    [
        [[1, 0], [2, 3]],
        ((1.0, 0.0), (2.0, 3.0)),
        EXPECTED.astype(np.int8),
        EXPECTED.astype(np.uint64),
        EXPECTED.astype(np.float16),
        EXPECTED.astype(np.longdouble),
        EXPECTED.astype(">f8"),
        np.asfortranarray(EXPECTED),
        EXPECTED.view(np.matrix),
        sparse.csc_array(EXPECTED),
        sparse.coo_matrix(EXPECTED),
        np.ma.masked_array(EXPECTED, mask=False),
    ],
    ids=lambda value: type(value).__name__ + str(getattr(value, "dtype", "")),
)
def test_every_real_kind_becomes_the_same_read_only_float64_matrix(value):
    matrix = as_real_matrix(value, "A")
    assert type(matrix) is np.ndarray
    assert matrix.dtype == np.float64
    assert matrix.dtype.isnative
    assert matrix.flags.c_contiguous
    assert not matrix.flags.writeable
    np.testing.assert_array_equal(matrix, EXPECTED)


def test_booleans_are_zeros_and_ones():
    np.testing.assert_array_equal(as_real_matrix([[True, False]], "C"), [[1.0, 0.0]])


def test_the_result_is_a_copy():
    source = EXPECTED.copy()
    matrix = as_real_matrix(source, "A")
    source[0, 0] = 99.0
    assert matrix[0, 0] == 1.0


def test_negative_zero_becomes_zero_and_the_smallest_numbers_survive():
    matrix = as_real_matrix([[-0.0, 5e-324, -5e-324]], "A")
    assert not np.signbit(matrix[0, 0])
    assert matrix[0, 1] == 5e-324
    assert matrix[0, 2] == -5e-324


def test_a_number_is_one_by_one_and_a_vector_needs_a_direction():
    assert as_real_matrix(2, "A").shape == (1, 1)
    assert as_real_matrix([1, 2, 3], "B", vector="column").shape == (3, 1)
    assert as_real_matrix([1, 2, 3], "C", vector="row").shape == (1, 3)
    with pytest.raises(InvalidSystemError, match=r"B has 1 axis.*B\[:, None\].*column.*B\[None, :\].*row"):
        as_real_matrix([1, 2, 3], "B")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.eye(2) + 0j, r"Mat is complex \(complex128\).*pass Mat\.real"),
        (sparse.eye_array(2, dtype=complex), r"Mat is complex.*pass Mat\.real"),
        ([["1", "2"]], r"Mat has dtype <U1.*np\.asarray\(Mat, dtype=float\)"),
        ([[Fraction(1, 2)]], r"Mat has dtype object.*np\.asarray\(Mat, dtype=float\)"),
        (None, r"Mat has dtype object"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), r"Mat has dtype datetime64"),
        ([[1, 2], [3]], r"Mat cannot be read as a matrix.*rows of equal length"),
        ([[1.0, 2.0], [3.0, np.nan]], r"Mat\[1, 1\] = nan"),
        ([[1.0, -np.inf]], r"Mat\[0, 1\] = -inf; replace"),
        pytest.param(
            np.array([[np.longdouble("1e400")]]),
            r"Mat\[0, 0\] = inf.*beyond float64",
            marks=pytest.mark.skipif(
                np.finfo(np.longdouble).max == np.finfo(float).max,
                reason="long double reaches no farther than double here",
            ),
        ),
        (np.zeros((2, 2, 2)), r"Mat has 3 axes, shape \(2, 2, 2\)"),
        (np.ma.masked_array(np.eye(2), mask=[[True, False], [False, False]]), r"Mat has masked entries.*filled"),
        (sparse.coo_array(([1.0], ([0], [0])), shape=(2**40, 2**40)), r"Mat is 1099511627776×1099511627776.*memory"),
    ],
)
def test_what_is_not_a_real_matrix_is_refused_by_name_with_a_way_out(value, message):
    with pytest.raises(InvalidSystemError, match=message):
        as_real_matrix(value, "Mat")


def test_square_means_square():
    np.testing.assert_array_equal(as_square_matrix(EXPECTED, "A"), EXPECTED)
    assert as_square_matrix(-3, "A").shape == (1, 1)
    assert as_square_matrix([], "A").shape == (0, 0)
    with pytest.raises(InvalidSystemError, match=r"A is 2×3; it must be square"):
        as_square_matrix(np.zeros((2, 3)), "A")
    with pytest.raises(InvalidSystemError, match="A has 1 axis"):
        as_square_matrix([1, 2], "A")
