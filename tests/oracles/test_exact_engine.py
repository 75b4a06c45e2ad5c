"""Hypothesis: the exact engine errs by 1e-13·cond(T) of max |y| at most, or ten times what lsim does, in 50 digits."""

import mpmath
import numpy as np
import pytest
from scipy import signal
from scipy.linalg import block_diag

import ltinet

mpmath.mp.dps = 50


def _pair(a, w):
    return np.array([[a, w], [-w, a]])


def _jordan(value, n):
    return value * np.eye(n) + np.eye(n, k=1)


def _mixed(seed, n_real, n_pairs, coupling):
    rng = np.random.default_rng(seed)
    blocks = [np.array([[-rng.uniform(0.2, 3.0)]]) for _ in range(n_real)]
    blocks += [_pair(-rng.uniform(0.1, 1.0), rng.uniform(0.5, 5.0)) for _ in range(n_pairs)]
    A = block_diag(*blocks)
    upper = np.triu(rng.uniform(-1.0, 1.0, A.shape), 2)
    return A + coupling * upper


def _similar(A, seed):
    S = np.random.default_rng(seed).standard_normal(A.shape)
    return np.linalg.solve(S, A @ S)


CASES = {
    "real": np.diag([-0.5, -1.0, -2.0]),
    "complex": block_diag(_pair(-0.1, 2.0), _pair(-0.3, 5.0)),
    "undamped": _pair(0.0, 3.0),
    "mixed": _mixed(0, 2, 2, 0.0),
    "mixed, skew coordinates": _similar(_mixed(1, 2, 2, 0.0), 1),
    "coupled": _mixed(2, 3, 2, 1.0),
    "coupled pairs": _mixed(3, 0, 4, 1.0),
    "eight reals": _similar(np.diag(-np.arange(1.0, 9.0)), 4),
    "jordan 2": _jordan(-1.0, 2),
    "jordan 4": _jordan(-0.7, 4),
    "jordan, skew coordinates": _similar(_jordan(-1.0, 3), 5),
    "jordan of pairs": np.kron(np.eye(2), _pair(-0.2, 1.5)) + np.kron(np.eye(2, k=1), np.eye(2)),
    "unstable real": np.diag([0.4, -1.0]),
    "unstable pair": block_diag(_pair(0.3, 2.0), [[-1.0]]),
    "integrator": np.zeros((1, 1)),
    "double integrator": _jordan(0.0, 2),
    "integrator and decay": np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, -2.0]]),
    "stiff reals": np.diag([-1e6, -1.0, -1e3]),
    "stiff pair": block_diag(_pair(-1.0, 1e3), [[-1e-3]], [[-1e6]]),
    "stiff and coupled": np.array([[-1.0, 2.0, 0.5], [0.0, -1e3, 1.0], [0.0, 0.0, -1e6]]),
    "critical damping": np.array([[0.0, 1.0], [-1.0, -2.0]]),
    "almost critical damping": np.array([[0.0, 1.0], [-1.0, -2.0 + 1e-9]]),
    "companion": np.array([[0.0, 1.0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [-4.0, -6.0, -5.0, -2.0]]),
}
ONE_LAYER = {"coupled", "jordan 4", "stiff and coupled", "coupled pairs", "mixed"}


def _system(A, seed, m=2, p=2):
    rng = np.random.default_rng(seed)
    n = len(A)
    return A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))


def _reference(system, t, u, x0, hold):
    """Outputs in 50 digits: one exponential of the augmented matrix per distinct step length."""
    A, B, C, D = (mpmath.matrix(M.tolist()) for M in system)
    n, m = A.rows, B.cols
    steps, x, y = {}, mpmath.matrix(x0.tolist()), []
    samples = [mpmath.matrix(row.tolist()) for row in u]
    times = [mpmath.mpf(float(time)) for time in t]
    for k, value in enumerate(samples):
        y.append([float(entry) for entry in C * x + D * value])
        if k + 1 == len(samples):
            break
        h = times[k + 1] - times[k]
        if h not in steps:
            augmented = mpmath.zeros(n + 2 * m)
            augmented[:n, :n], augmented[:n, n : n + m] = A * h, B * h
            augmented[n : n + m, n + m :] = mpmath.eye(m)
            steps[h] = mpmath.expm(augmented, method="taylor")
        E = steps[h]
        x = E[:n, :n] * x + E[:n, n : n + m] * value
        if hold == "linear":
            x += E[:n, n + m :] * (samples[k + 1] - value)
    return np.array(y)


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("name", CASES)
def test_error_is_within_the_bound_or_near_that_of_lsim(name, hold):
    A = CASES[name]
    system = _system(A, seed=len(name))
    rng = np.random.default_rng(1)
    # Steps that are exact in binary, so that all times and their differences are the same numbers for everybody.
    t = np.arange(25) * (2.0**-4 if np.abs(A).max() < 1e3 else 2.0**-10)
    u, x0 = rng.standard_normal((len(t), 2)), rng.standard_normal(len(A))
    truth = _reference(system, t, u, x0, hold)
    theirs = signal.lsim(system, u, t, X0=x0, interp=hold == "linear")[1]
    size = np.abs(truth).max()
    for n_layers in (None, 1) if name in ONE_LAYER else (None,):
        net = ltinet.construct(system, n_layers=n_layers)
        error = np.abs(net.simulate(u, t, x0=x0, hold=hold).y - truth).max() / size
        assert error <= max(1e-13 * net.form.condition_raw, 10.0 * np.abs(theirs - truth).max() / size)


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("name", ["coupled", "mixed", "jordan 4", "double integrator"])
def test_irregular_times_are_as_exact(name, hold):
    system = _system(CASES[name], seed=3)
    rng = np.random.default_rng(2)
    t = np.cumsum(rng.integers(0, 5, 20)) * 2.0**-5  # lengths of zero are jumps
    u, x0 = rng.standard_normal((len(t), 2)), rng.standard_normal(len(CASES[name]))
    truth = _reference(system, t, u, x0, hold)
    for n_layers in (None, 1):
        net = ltinet.construct(system, n_layers=n_layers)
        error = np.abs(net.simulate(u, t, x0=x0, hold=hold).y - truth).max() / np.abs(truth).max()
        assert error <= 1e-13 * net.form.condition_raw


@pytest.mark.parametrize("n_layers", [None, 1])
def test_nanoseconds_are_as_exact_as_seconds(n_layers):
    A, B, C, D = _system(CASES["coupled"], seed=4)
    rng = np.random.default_rng(3)
    unit = 2.0**-30
    t = np.arange(25) * 2.0**-4
    u, x0 = rng.standard_normal((len(t), 2)), rng.standard_normal(len(A))
    truth = _reference((A, B, C, D), t, u, x0, "linear")
    net = ltinet.construct((A / unit, B / unit, C, D), n_layers=n_layers)
    error = np.abs(net.simulate(u, t * unit, x0=x0).y - truth).max() / np.abs(truth).max()
    assert error <= 1e-13 * net.form.condition_raw


def test_a_slow_system_on_a_nanosecond_grid_keeps_its_digits():
    system = _system(CASES["coupled"], seed=5)
    rng = np.random.default_rng(4)
    t = np.arange(30) * 2.0**-30
    u = rng.standard_normal((len(t), 2))
    A, B, C, D = system
    system = A, B, C, np.zeros_like(D)
    truth = _reference(system, t, u, np.zeros(len(A)), "linear")
    for n_layers in (None, 1):
        net = ltinet.construct(system, n_layers=n_layers)
        y = net.simulate(u, t).y
        theirs = signal.lsim(system, u, t)[1]
        size = np.abs(truth).max()
        # Ψ of the second-order form stands for D = 0 as a difference, which rounding leaves at eps of its terms.
        terms = np.abs(net.Psi).max() + np.finfo(float).tiny
        bound = max(1e-13 * net.form.condition_raw, 10.0 * np.abs(theirs - truth).max() / size)
        assert np.abs(y - truth).max() / size <= bound + 8.0 * 2.0**-52 * terms * np.abs(u).max() / size
