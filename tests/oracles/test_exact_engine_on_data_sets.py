"""Hypothesis: on real systems up to 348 states the exact engine errs no more than on small ones.

Truth comes from ball arithmetic, which proves its own digits.
"""

import numpy as np
import pytest
from scipy import signal

import ltinet
from ball_oracle import respond
from data_sets import DATA_SETS

N_TIMES = 101
LARGE = 150  # states, of which a second exponential in balls would take half a minute


def _load(data_dir, name):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    extra = {"C": np.eye(28)} if name == "helicopter_v73" else {}
    return ltinet.load_system(data_dir / f"{name}.mat", **extra)


def _step(system):
    """A power of two, so that all times are exact, with which the run takes one time constant of the slowest mode.

    Shorter runs of `heat` end before its output has moved: see the last test. Eigenvalues at zero have no scale.
    """
    values = np.linalg.eigvals(system.A)
    rates = np.abs(values.real)
    slowest = np.min(rates[rates > 1e-8 * np.max(np.abs(values))])
    return float(2.0 ** np.round(np.log2(1.0 / slowest / N_TIMES)))


def _assert_right(net, system, truth, *, u, t, x0, hold):
    matrices = system.A, system.B, system.C, system.D
    theirs = signal.lsim(matrices, u, t, X0=x0, interp=hold == "linear")[1].reshape(truth.shape)
    ours = net.simulate(u, t, x0=x0, hold=hold).y
    error, lsim_error = (np.abs(y - truth).max() / np.abs(truth).max() for y in (ours, theirs))
    # However badly scaled the states are, ten digits are right, or as many as lsim has.
    assert error <= max(min(1e-13 * net.form.condition_raw, 1e-10), 10.0 * lsim_error)


@pytest.mark.default_cases(1)
@pytest.mark.timeout(900)  # beam in balls, as in test_responses_on_data_sets
@pytest.mark.parametrize("name", DATA_SETS)
def test_runs_are_as_exact_as_their_conditioning_allows_or_as_lsim(data_dir, name):
    system = _load(data_dir, name)
    A, B, C, D = system.A, system.B, system.C, system.D
    t = _step(system) * np.arange(N_TIMES)
    u = np.random.default_rng(0).standard_normal((N_TIMES, system.n_inputs))
    starts = np.zeros((2, system.n_states))  # from rest, and from any state
    starts[1] = np.random.default_rng(1).standard_normal(system.n_states)
    net = ltinet.construct(system)
    truth = respond(A, B, C, D, u=np.stack([u, u]), t=t, x0=starts).y.mid
    for x0, outputs in zip(starts, truth, strict=True):
        _assert_right(net, system, outputs, u=u, t=t, x0=x0, hold="linear")
    if system.n_states <= LARGE:
        held = respond(A, B, C, D, u=u, t=t, hold="zero").y.mid
        _assert_right(net, system, held, u=u, t=t, x0=starts[0], hold="zero")


@pytest.mark.slow
def test_before_heat_arrives_rounding_is_that_of_the_modes(data_dir):
    # After 0.2 s the output is 1e-9 of what it will be, the difference of modes that are as large as ever: rounding is
    # relative to their sum without signs, to which the output of one mode after the other adds up.
    system = _load(data_dir, "heat")
    u = np.random.default_rng(0).standard_normal((N_TIMES, 1))
    t = np.arange(N_TIMES) * 2.0**-9
    truth = respond(system.A, system.B, system.C, system.D, u=u, t=t).y.mid
    net = ltinet.construct(system)
    sol = net.simulate(u, t)
    modes = np.abs(sol.neuron_states) @ np.abs(np.hstack(net.Phi)).T
    assert np.abs(truth).max() < 1e-4 * modes.max()
    assert np.abs(sol.y - truth).max() <= 1e-13 * net.form.condition_raw * modes.max()
