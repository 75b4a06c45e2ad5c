"""Hypothesis: zeros are all there and nothing else is, for any number of inputs and outputs."""

import numpy as np
import pytest
from scipy import linalg, signal

import ltinet
from data_sets import DATA_SETS
from ltinet import StateSpace, as_state_space, construct
from whole_number_bases import whole_number_basis


def nearest(found, expected):
    """The largest distance of an expected number from one that was found."""
    return max((np.abs(found - value).min() for value in expected), default=0.0)


@pytest.mark.parametrize("seed", range(40))
def test_zeros_of_a_polynomial(seed):
    """Of one input and one output they are the roots of the numerator, and no others: not even large ones."""
    rng = np.random.default_rng(seed)
    n_poles, n_zeros = int(rng.integers(1, 9)), int(rng.integers(0, 5))
    n_zeros = min(n_zeros, n_poles)
    zeros, poles = rng.uniform(-4, 4, n_zeros), -rng.uniform(0.5, 6, n_poles)
    if n_zeros >= 2:
        zeros = np.array([*zeros[2:], complex(zeros[0], 1.5), complex(zeros[0], -1.5)])
    scale = 10.0 ** rng.uniform(-6, 6, n_poles)
    system = as_state_space(signal.ZerosPolesGain(zeros, poles, rng.uniform(0.1, 10)))
    system = StateSpace(system.A * scale[:, None] / scale, system.B * scale[:, None], system.C / scale, system.D)
    found = system.zeros()
    assert len(found) == n_zeros
    # The condition of such zeros: poles and zeros are of order one, a few close together.
    assert nearest(found, zeros) <= 1e-7


@pytest.mark.parametrize("seed", range(40))
def test_the_system_matrix_loses_rank_at_every_zero_and_nowhere_else(seed):
    """Of any number of inputs and outputs, with zeros put there by hand: modes that no input reaches.

    With more outputs than inputs the rank does not depend on such a mode, and it is none.
    """
    rng = np.random.default_rng(seed)
    (n, m, p), hidden = (int(size) for size in rng.integers([2, 1, 1], [7, 4, 4])), int(rng.integers(0, 3))

    def whole(*shape):  # numbers, so that nothing is rounded and what is hidden stays so
        return rng.integers(-9, 10, shape).astype(float)

    A = linalg.block_diag(whole(n, n), np.diag(-50.0 - np.arange(hidden)))
    B = np.vstack([whole(n, m), np.zeros((hidden, m))])
    C, D = whole(p, n + hidden), whole(p, m) * (seed % 2)
    S, S_inv = whole_number_basis(rng, n + hidden)
    system = StateSpace(S @ A @ S_inv, S @ B, C @ S_inv, D)
    found = system.zeros()
    usual = rank_at(system, 0.37 + 0.21j)
    hidden = hidden if p <= m else 0
    assert len(found) == hidden + (0 if m != p else n if seed % 2 else n - m)
    for value in found:
        assert rank_at(system, value) < usual
    assert nearest(found, -50.0 - np.arange(hidden)) <= 1e-6


def rank_at(system, s):
    n = system.n_states
    pencil = np.block([[system.A - s * np.eye(n), system.B], [system.C, system.D]])
    return np.linalg.matrix_rank(pencil, tol=1e-8 * np.linalg.norm(pencil, 2))


def test_degenerate_systems_answer():
    assert len(StateSpace(-1.0, 0.0, 1.0).zeros()) == 0  # the rank is 1 everywhere
    assert len(StateSpace(-1.0, 1.0, 1.0).zeros()) == 0
    np.testing.assert_allclose(StateSpace(-1.0, 1.0, 1.0, 1.0).zeros(), [-2.0])
    assert len(StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), 2.0).zeros()) == 0
    assert len(StateSpace(-1.0, np.zeros((1, 0)), np.zeros((0, 1))).zeros()) == 1
    rank_one = StateSpace(np.diag([-1.0, -2.0]), [[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(rank_one.zeros(), [-1.5])


def test_a_network_has_the_zeros_of_its_system():
    system = StateSpace([[0.0, 1.0], [-2.0, -3.0]], [0.0, 1.0], [5.0, 1.0])
    np.testing.assert_allclose(construct(system).zeros(), [-5.0])
    bare = ltinet.DynamicNetwork.from_parameters(construct(system).parameters)
    np.testing.assert_allclose(bare.zeros(), [-5.0], rtol=1e-12)


def load(data_dir, name):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    return ltinet.load_system(data_dir / f"{name}.mat", **({"C": np.eye(28)} if name == "helicopter_v73" else {}))


def test_there_are_none_at_infinity(data_dir):
    found = load(data_dir, "cdplayer").zeros()
    assert len(found) == 116
    assert np.abs(found).max() < 2e5


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", DATA_SETS)
def test_as_slycot_finds_them(data_dir, name):
    slycot = pytest.importorskip("slycot", reason="slycot is not installed")
    system = load(data_dir, name)
    n, m, p = system.n_states, system.n_inputs, system.n_outputs
    count, *_, Af, Bf = slycot.ab08nd(n, m, p, system.A, system.B, system.C, system.D, equil="S")[:10]
    theirs = linalg.eigvals(Af[:count, :count], Bf[:count, :count])
    ours = system.zeros()
    # Its tolerance takes more for infinite where units differ by decades (j100, lf10): those it has, we have.
    assert len(ours) >= len(theirs)
    for value in theirs:
        assert np.abs(ours - value).min() <= 1e-6 * max(abs(value), 1e-4 * np.abs(theirs).max())


@pytest.mark.parametrize("power", [-900, -300, 300, 600])
def test_a_unit_of_time_scales_them_and_adds_none(power):
    rng = np.random.default_rng(power % 7)
    A, B, C = rng.standard_normal((4, 4)), rng.standard_normal((4, 2)), rng.standard_normal((2, 4))
    plain, unit = StateSpace(A, B, C).zeros(), 2.0**power
    np.testing.assert_array_equal(StateSpace(unit * A, unit * B, C).zeros() / unit, plain)
    assert StateSpace(-unit, unit, 1.0).zeros().size == 0
