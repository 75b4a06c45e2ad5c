"""Responses of sparse models by sparse factorisations equal closed forms and those of the same numbers as arrays."""

import numpy as np
import pytest
from scipy import sparse

from ltinet import InvalidSystemError, StateSpace, named_system
from ltinet._util.floating_point import EPS, rounding_tolerance
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU

OMEGA = np.r_[0.0, np.logspace(-1, 6, 15)]


def rod(n):
    """tridiag(1, −2, 1) with a force at the first state and the output at the last."""
    A = sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    return A, np.eye(n, 1), np.eye(1, n, n - 1)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("V", [0.0, 40.0])
@pytest.mark.parametrize("with_E", [False, True])
def test_it_is_that_of_the_filled_in_system(V, with_E):
    plate = named_system("convection_diffusion_plate", n=600, V=V)
    E = sparse.diags_array(1.0 + np.arange(plate.n_states) % 3) if with_E else None
    system = StateSpace(plate.sparse.A, plate.B, plate.C, [[1, 2], [3, 4]], E)
    dense = StateSpace(plate.A, plate.B, plate.C, [[1, 2], [3, 4]], E if E is None else E.toarray())
    H, expected = system.frequency_response(OMEGA), dense.frequency_response(OMEGA)
    assert H.shape == (len(OMEGA), 2, 2)
    # Both are backward stable: eps times the condition of jωE − A, which is at most |A|/|λ|min ≈ 4 (g + 1)²/π².
    assert np.all(np.abs(H - expected).max(axis=0) <= 1e3 * EPS * np.abs(expected).max(axis=0))


@pytest.mark.parametrize("n", [600, 4000])
def test_a_rod_answers_by_its_closed_form(n):
    # Of tridiag(1, −2 − s, 1) the last entry of the first column of the inverse is 1/det, det = sinh((n + 1) θ)/sinh θ.
    system, omega = StateSpace(*rod(n)), np.array([1e-6, 1e-4, 0.01])
    theta = np.arccosh(1.0 + 0.5j * omega)
    expected = np.sinh(theta) / np.sinh((n + 1) * theta)
    H = system.frequency_response(omega)[:, 0, 0]
    assert np.all(np.abs(H - expected) <= rounding_tolerance(n) * np.abs(expected).max())
    assert abs(system.dcgain()[0, 0] - 1.0 / (n + 1)) <= rounding_tolerance(n) / (n + 1) * n


def test_more_inputs_than_outputs_and_discrete_time():
    A, _, C = rod(700)
    rng = np.random.default_rng(3)
    system = StateSpace(0.2 * A, rng.standard_normal((700, 5)), C, dt=0.1)
    dense = StateSpace(0.2 * A.toarray(), system.B, C, dt=0.1)
    H, expected = (own.frequency_response([0.0, 3.0, 30.0]) for own in (system, dense))
    assert np.all(np.abs(H - expected) <= 1e3 * EPS * np.abs(expected).max())


def test_a_pole_is_infinite_and_a_large_model_with_an_integrator_says_so():
    A = sparse.csr_array(rod(3500)[0]).tolil()
    A[0, 0] = A[-1, -1] = -1.0  # insulated ends: constants stay
    system = StateSpace(A, np.eye(3500, 1), np.eye(1, 3500))
    assert np.isinf(system.frequency_response([0.0])).all()
    assert np.isfinite(system.frequency_response([1e-3])).all()
    with pytest.raises(InvalidSystemError, match=r"A is singular to working precision.*integrators"):
        system.dcgain()
    rounded = StateSpace(A.tocsr() * (1.0 / 3.0), np.eye(3500, 1), np.eye(1, 3500))
    with pytest.raises(InvalidSystemError, match="A is singular to working precision"):
        rounded.dcgain()


def test_pivots_off_the_diagonal_are_found_where_the_cheap_ones_fail():
    # The symmetric pattern is ordered for pivots on its diagonal, which are zero or next to it here.
    n = 400
    rng = np.random.default_rng(11)
    off = sparse.random_array((n, n), density=0.01, random_state=rng)
    M = sparse.csr_array(off + off.T + sparse.diags_array(1e-14 * rng.standard_normal(n)))
    M = M + sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1])
    right = rng.standard_normal((n, 2))
    for transposed in (False, True):
        X = SparseLU(M, has_symmetric_pattern=True).solve(right, transposed=transposed)
        assert np.max(np.abs(M @ X - right)) <= rounding_tolerance(n, np.max(np.abs(X)) * abs(M).sum(axis=1).max())


def test_singular_matrices_are_told():
    with pytest.raises(SingularMatrixError):
        SparseLU(sparse.csr_array((3, 3)), has_symmetric_pattern=True)
    units = SparseLU(sparse.diags_array([1.0, 1e-30]), has_symmetric_pattern=True)
    assert units.condition() < 4.0
    near = SparseLU(sparse.csr_array([[1.0, 1.0], [1.0, 1.0 + 2.0**-50]]), has_symmetric_pattern=True)
    assert near.condition() == pytest.approx(2.0**52, rel=1e-6)  # 4/2⁻⁵⁰
