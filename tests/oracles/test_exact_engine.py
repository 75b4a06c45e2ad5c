"""Hypothesis: the exact engine errs by 1e-13·cond(T) of max |y| at most, or ten times what lsim does.

Truth comes from ball arithmetic, which proves its own digits.
"""

import numpy as np
import pytest
from scipy import signal
from scipy.linalg import block_diag

import ltinet
from ball_oracle import respond
from hard_matrices import pair
from small_systems import HIDDEN_SCALES, SMALL_SYSTEMS

EPS = float(np.finfo(float).eps)
CHANNELS = ((2, 2), (1, 1), (3, 1), (1, 3), (2, 4))
ONE_LAYER = {
    "coupled",
    "coupled, n = 12",
    "coupled pairs",
    "jordan 4",
    "mixed",
    "stiff and coupled",
    "unstable, coupled",
}


def _system(A, seed, m=2, p=2):
    rng = np.random.default_rng(seed)
    n = len(A)
    return A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))


def test_there_are_sixty_small_systems():
    assert len(SMALL_SYSTEMS) == 60
    assert max(map(len, SMALL_SYSTEMS.values())) == 12


def _runs(name, A):
    """A system with inputs and x0, its truth and the error of lsim, for short and long steps and both holds."""
    seed = sum(map(ord, name))
    system = _system(A, seed, *CHANNELS[seed % len(CHANNELS)])
    rng = np.random.default_rng(1)
    u, x0 = rng.standard_normal((20, system[1].shape[1])), rng.standard_normal(len(A))
    # Steps that are exact in binary, so that all times and their differences are the same numbers for everybody.
    short = 2.0**-4 if np.abs(A).max() < 1e3 else 2.0**-10
    for t in (np.arange(20) * short, np.arange(20) * 64.0 * short):
        for hold in ("linear", "zero"):
            truth = respond(*system, u=u, t=t, x0=x0, hold=hold).y.mid
            theirs = signal.lsim(system, u, t, X0=x0, interp=hold == "linear")[1].reshape(truth.shape)
            yield system, (u, t), {"x0": x0, "hold": hold}, truth, _relative(theirs, truth)


def _relative(y, truth):
    return np.abs(y - truth).max() / np.abs(truth).max()


@pytest.mark.default_cases(10)
@pytest.mark.parametrize("name", SMALL_SYSTEMS)
def test_error_is_within_the_bound_or_near_that_of_lsim(name):
    for system, run, options, truth, lsim_error in _runs(name, SMALL_SYSTEMS[name]):
        for n_layers in (None, 1) if name in ONE_LAYER else (None,):
            net = ltinet.construct(system, n_layers=n_layers)
            error = _relative(net.simulate(*run, **options).y, truth)
            assert error <= max(1e-13 * net.form.condition_raw, 10.0 * lsim_error)


@pytest.mark.parametrize("name", [name for name in SMALL_SYSTEMS if name.startswith("reals 1e")])
def test_eigenvalues_that_are_nearly_equal_cost_no_digits(name):
    for system, run, options, truth, _ in _runs(name, SMALL_SYSTEMS[name]):
        net = ltinet.construct(system)
        assert _relative(net.simulate(*run, **options).y, truth) <= 1e-13 * net.form.condition_raw


@pytest.mark.parametrize("name", HIDDEN_SCALES)
def test_slow_states_hidden_among_fast_ones(name):
    # No decomposition knows an eigenvalue better than to n·eps·‖A‖, and over a time t this is what it costs.
    A = HIDDEN_SCALES[name]
    for system, run, options, truth, _ in _runs(name, A):
        net = ltinet.construct(system)
        error = _relative(net.simulate(*run, **options).y, truth)
        assert error <= 1e-13 * net.form.condition_raw + len(A) * EPS * np.linalg.norm(A, 2) * run[1][-1]


@pytest.mark.parametrize("omega", [1e-2, 1e-4, 1e-6])
def test_a_pair_near_the_real_axis_with_any_initial_state(omega):
    # η = (ξ̇ − a ξ)/b is a difference, of which eps·|λ|/ω is lost; as for its transfer function, ten of these.
    A = block_diag(pair(-1.0, omega), pair(-2.0, 3.0))
    for system, run, options, truth, _ in _runs("pair", A):
        net = ltinet.construct(system)
        error = _relative(net.simulate(*run, **options).y, truth)
        assert error <= 1e-13 * net.form.condition_raw + 10.0 * EPS / omega


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("name", ["coupled", "mixed", "jordan 4", "double integrator"])
def test_irregular_times_are_as_exact(name, hold):
    system = _system(SMALL_SYSTEMS[name], seed=3)
    rng = np.random.default_rng(2)
    t = np.cumsum(rng.integers(0, 5, 20)) * 2.0**-5  # lengths of zero are jumps
    u, x0 = rng.standard_normal((len(t), 2)), rng.standard_normal(len(SMALL_SYSTEMS[name]))
    truth = respond(*system, u=u, t=t, x0=x0, hold=hold).y.mid
    for n_layers in (None, 1):
        net = ltinet.construct(system, n_layers=n_layers)
        error = np.abs(net.simulate(u, t, x0=x0, hold=hold).y - truth).max() / np.abs(truth).max()
        assert error <= 1e-13 * net.form.condition_raw


@pytest.mark.parametrize("n_layers", [None, 1])
def test_nanoseconds_are_as_exact_as_seconds(n_layers):
    A, B, C, D = _system(SMALL_SYSTEMS["coupled"], seed=4)
    rng = np.random.default_rng(3)
    unit = 2.0**-30
    t = np.arange(25) * 2.0**-4
    u, x0 = rng.standard_normal((len(t), 2)), rng.standard_normal(len(A))
    truth = respond(A, B, C, D, u=u, t=t, x0=x0).y.mid
    net = ltinet.construct((A / unit, B / unit, C, D), n_layers=n_layers)
    error = np.abs(net.simulate(u, t * unit, x0=x0).y - truth).max() / np.abs(truth).max()
    assert error <= 1e-13 * net.form.condition_raw


def test_a_slow_system_on_a_nanosecond_grid_keeps_its_digits():
    system = _system(SMALL_SYSTEMS["coupled"], seed=5)
    rng = np.random.default_rng(4)
    t = np.arange(30) * 2.0**-30
    u = rng.standard_normal((len(t), 2))
    A, B, C, D = system
    system = A, B, C, np.zeros_like(D)
    truth = respond(*system, u=u, t=t).y.mid
    for n_layers in (None, 1):
        net = ltinet.construct(system, n_layers=n_layers)
        y = net.simulate(u, t).y
        theirs = signal.lsim(system, u, t)[1]
        size = np.abs(truth).max()
        # Ψ of the second-order form stands for D = 0 as a difference, which rounding leaves at eps of its terms.
        terms = np.abs(net.Psi).max() + np.finfo(float).tiny
        bound = max(1e-13 * net.form.condition_raw, 10.0 * np.abs(theirs - truth).max() / size)
        assert np.abs(y - truth).max() / size <= bound + 8.0 * 2.0**-52 * terms * np.abs(u).max() / size
