"""E x' = A x + B u with a regular E in any units gives E⁻¹A and E⁻¹B to working precision; a singular E is refused."""

import mpmath
import numpy as np
import pytest
from scipy.io import loadmat
from scipy.linalg import matrix_balance

from ltinet._util.floating_point import EPS
from ltinet.errors import InvalidSystemError
from ltinet.state_space import StateSpace
from ltinet.systems.descriptor import eliminate_descriptor


def exact_quotient(E, A):
    """E⁻¹A in 60 digits."""
    with mpmath.workdps(60):
        return mpmath.matrix(E.tolist()) ** -1 * mpmath.matrix(A.tolist())


def rounded(matrix):
    return np.array(matrix.tolist(), dtype=float)


@pytest.fixture(scope="module")
def lf10(data_dir):
    contents = loadmat(data_dir / "lf10_beam_descriptor.mat")
    E, A = contents["E"].toarray(), contents["A"].toarray()
    return contents, E, A, exact_quotient(E, A)


@pytest.mark.slow
def test_lf10_beam_entries_agree_with_sixty_digits(lf10):
    contents, E, _, exact = lf10
    system = StateSpace(contents["A"], contents["B"], contents["C"], E=contents["E"])
    reference = rounded(exact)
    assert np.linalg.cond(E) > 1e10  # scaling, not elimination, must deal with this
    error = np.abs(system.A - reference).max(axis=1) / np.abs(reference).max(axis=1)
    assert error.max() < 36 * EPS
    B = rounded(exact_quotient(E, contents["B"]))
    assert np.abs(system.B - B).max() < 36 * EPS * np.abs(B).max()
    np.testing.assert_array_equal(system.C, contents["C"])


@pytest.mark.slow
def test_lf10_beam_eigenvalues_agree_with_sixty_digits(lf10):
    _, E, A, exact = lf10
    with mpmath.workdps(60):
        reference = np.array([complex(value) for value in mpmath.eig(exact, left=False, right=False)])
    balanced, _ = matrix_balance(eliminate_descriptor(E, A), permute=False)
    values, vectors = np.linalg.eig(balanced)
    # Bauer–Fike: an eigenvalue moves by at most cond(V) times the error of the balanced matrix. cond(V) is 75 for the
    # exact quotient and up to 350 when its entries are perturbed in the last bit: many eigenvalues crowd near −100.
    condition = np.linalg.cond(vectors)
    assert condition < 1e3
    bound = condition * 36 * EPS * np.linalg.norm(balanced, 2)
    distance = np.abs(reference[:, None] - values[None, :]).min(axis=1)
    assert (distance < bound).all()


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_units_alone_make_no_e_singular(scale):
    E = np.diag([1.0, scale])
    system = StateSpace(np.diag([-1.0, -2.0 * scale]), [1.0, scale], [1.0, 1.0], E=E)
    np.testing.assert_allclose(system.A, np.diag([-1.0, -2.0]), rtol=2 * EPS)
    np.testing.assert_allclose(system.B, [[1.0], [1.0]], rtol=2 * EPS)


def test_badly_scaled_rows_and_columns_agree_with_sixty_digits():
    rng = np.random.default_rng(3)
    core, A = rng.standard_normal((8, 8)), rng.standard_normal((8, 8))
    E = core * 10.0 ** rng.integers(-9, 9, (8, 1)) * 10.0 ** rng.integers(-9, 9, (1, 8))
    reference = rounded(exact_quotient(E, A))
    error = np.abs(eliminate_descriptor(E, A) - reference).max(axis=1) / np.abs(reference).max(axis=1)
    assert error.max() < 100 * 8 * EPS * np.linalg.cond(core)


def test_identity_changes_no_bit_and_no_state_is_none():
    A = np.random.default_rng(0).standard_normal((5, 5))
    assert StateSpace(A, A, A, E=np.eye(5)) == StateSpace(A, A, A)
    assert StateSpace([], [], [], [[1.0]], E=[]).n_states == 0


@pytest.mark.parametrize(
    ("E", "message"),
    [
        (np.diag([1.0, 0.0, 2.0]), r"E is singular: its row 1 is zero.*algebraic equations.*non-singular E"),
        (np.array([[1.0, 0, 0], [2, 0, 1], [0, 0, 1]]), r"E is singular: its column 1 is zero"),
        (np.ones((3, 3)), r"E is singular to working precision.*reciprocal condition number.*algebraic"),
        (
            np.vander([1.0, 2.0, 3.0]) @ np.diag([1.0, 1.0, 0.0]) @ np.vander([4.0, 5.0, 7.0]),
            "singular to working precision",
        ),
        (np.diag([1e-20, 1.0, 1e20]) @ np.ones((3, 3)), "singular to working precision"),
    ],
)
def test_a_singular_e_is_refused_with_a_way_out(E, message):
    with pytest.raises(InvalidSystemError, match=message):
        StateSpace(np.eye(3), np.eye(3), np.eye(3), E=E)


def test_a_quotient_beyond_float64_is_refused():
    with pytest.raises(InvalidSystemError, match="overflows float64; choose other units"):
        StateSpace(1e200, 1, 1, E=1e-200)
