"""Hypothesis: on real systems up to 348 states the exact engine keeps the bound that it keeps on small ones.

The oracle is in extended precision: long double with at least 64 bits, the step from one matrix exponential by scaling
and squaring. It is itself compared with mpmath, and with twice as many steps of half the length.
"""

import numpy as np
import pytest
from scipy import signal

import ltinet
from data_sets import DATA_SETS
from exact_trajectories import ExtendedStep, outputs_in_50_digits
from extended_precision import need_extended_precision
from small_systems import SMALL_SYSTEMS

N_TIMES = 101


def _load(data_dir, name):
    need_extended_precision()
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


def _errors(system, h, *, x0, holds):
    """For each hold the errors of the network and of lsim, relative to max |y|, and the network."""
    u = np.random.default_rng(0).standard_normal((N_TIMES, system.n_inputs))
    t = np.arange(N_TIMES) * h
    step, net = ExtendedStep.of(system, h), ltinet.construct(system)
    for hold in holds:
        truth = step.outputs(u, x0=x0, hold=hold)
        matrices = system.A, system.B, system.C, system.D
        theirs = signal.lsim(matrices, u, t, X0=x0, interp=hold == "linear")[1].reshape(truth.shape)
        ours = net.simulate(u, t, x0=x0, hold=hold).y
        yield *(float(np.abs(y - truth).max() / np.abs(truth).max()) for y in (ours, theirs)), net


@pytest.mark.parametrize("name", DATA_SETS)
def test_from_rest(data_dir, name):
    system = _load(data_dir, name)
    for ours, theirs, net in _errors(system, _step(system), x0=np.zeros(system.n_states), holds=("linear", "zero")):
        assert ours <= max(1e-13 * net.form.condition_raw, 10.0 * theirs)


@pytest.mark.parametrize("name", DATA_SETS)
def test_from_any_state(data_dir, name):
    system = _load(data_dir, name)
    x0 = np.random.default_rng(1).standard_normal(system.n_states)
    for ours, theirs, net in _errors(system, _step(system), x0=x0, holds=("linear",)):
        assert ours <= max(1e-13 * net.form.condition_raw, 10.0 * theirs)


def test_before_heat_arrives_rounding_is_that_of_the_modes(data_dir):
    # After 0.2 s the output is 1e-9 of what it will be, the difference of modes that are as large as ever: rounding is
    # relative to their sum without signs, to which the output of one mode after the other adds up.
    system = _load(data_dir, "heat")
    h = 2.0**-9
    u = np.random.default_rng(0).standard_normal((N_TIMES, 1))
    truth = ExtendedStep.of(system, h).outputs(u, x0=np.zeros(200), hold="linear")
    net = ltinet.construct(system)
    sol = net.simulate(u, np.arange(N_TIMES) * h)
    modes = np.abs(sol.neuron_states) @ np.abs(np.hstack(net.Phi)).T
    assert np.abs(truth).max() < 1e-4 * modes.max()
    assert np.abs(sol.y - truth).max() <= 1e-13 * net.form.condition_raw * modes.max()


@pytest.mark.parametrize("name", ["coupled", "jordan 8", "stiff and coupled", "unstable, coupled"])
def test_the_oracle_agrees_with_50_digits(name):
    need_extended_precision()
    A = SMALL_SYSTEMS[name]
    rng = np.random.default_rng(2)
    system = ltinet.StateSpace(A, rng.standard_normal((len(A), 2)), rng.standard_normal((1, len(A))))
    u, x0, h = rng.standard_normal((20, 2)), rng.standard_normal(len(A)), 2.0**-3
    truth = outputs_in_50_digits((system.A, system.B, system.C, system.D), h * np.arange(20), u, x0=x0, hold="linear")
    found = ExtendedStep.of(system, h).outputs(u, x0=x0, hold="linear")
    assert np.abs(found.astype(float) - truth).max() <= np.finfo(float).eps * np.abs(truth).max()


@pytest.mark.parametrize("name", ["b767_flutter", "building", "pde"])
def test_the_oracle_agrees_with_itself_at_half_the_step(data_dir, name):
    system = _load(data_dir, name)
    h, x0 = _step(system), np.random.default_rng(3).standard_normal(system.n_states)
    u = np.random.default_rng(4).standard_normal((N_TIMES, system.n_inputs)).astype(np.longdouble)
    finer = np.empty((2 * N_TIMES - 1, system.n_inputs), dtype=np.longdouble)
    finer[::2], finer[1::2] = u, (u[:-1] + u[1:]) / 2
    whole = ExtendedStep.of(system, h).outputs(u, x0=x0, hold="linear")
    halves = ExtendedStep.of(system, h / 2).outputs(finer, x0=x0, hold="linear")[::2]
    # A hundredth of the smallest bound that the oracle decides about.
    assert np.abs(whole - halves).max() <= 1e-15 * np.abs(whole).max()
