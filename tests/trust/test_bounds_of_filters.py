"""Filters as textbooks write them: companion matrices, whose states are derivatives in powers of a unit of time.

A unit of time changes all sizes, up to 1e±100 between states, and no result; nor may it change what is known of one.
"""

import warnings

import numpy as np
import pytest
from scipy import linalg, signal

import ltinet
from ball_oracle import respond

_KNOWN = 1e-6  # of the output's peak: what bounds of filters of up to twelve states stay below, most of them far below
_KNOWN_OF_SHORT = 1e-9  # of runs in which little has happened yet: nothing is near cancelling there

_KINDS = {
    "butter": signal.butter,
    "cheby1": lambda n, w, band, **how: signal.cheby1(n, 1.0, w, band, **how),
    "ellip": lambda n, w, band, **how: signal.ellip(n, 1.0, 40.0, w, band, **how),
    "bessel": signal.bessel,
}


def _companion(numerator, denominator, *, observable=False, upside_down=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", signal.BadCoefficients)
        A, B, C, D = signal.tf2ss(numerator, denominator)
    if observable:
        A, B, C = A.T, C.T, B.T
    if upside_down:
        A, B, C = A[::-1, ::-1], B[::-1], C[:, ::-1]
    return tuple(np.ascontiguousarray(part) for part in (A, B, C, D))


def _filter(rng, kind):
    """One of any order, band and cut-off frequency in a companion form, and that frequency."""
    band = str(rng.choice(["lowpass", "highpass", "bandpass"]))
    w, order = 10.0 ** rng.uniform(-6.0, 9.0), int(rng.integers(2, 13))
    where = [w, w * rng.choice([1.5, 4.0])] if band == "bandpass" else w
    observable, upside_down = rng.random(2) < 0.5
    design = _KINDS[kind](order // 2 if band == "bandpass" else order, where, band, analog=True)
    return _companion(*design, observable=observable, upside_down=upside_down), w


def _times(rng, step, n_times):
    """Even ones, of two lengths, or of any."""
    steps = [np.ones(n_times - 1), rng.choice([0.5, 1.0], n_times - 1), rng.uniform(0.1, 1.0, n_times - 1)]
    chosen = int(rng.integers(3))
    return step * (np.arange(n_times) if chosen == 0 else np.concatenate([[0.0], np.cumsum(steps[chosen])]))


def _shares(system, **run):
    """The error of an output and its bound, both relative to its peak."""
    truth = respond(*system, **run).y
    solution = ltinet.construct(system).simulate(**run)
    error, bound = truth.distance(solution.y).max(), float(solution.error_bound()[0])
    return error / truth.peak[0], bound / truth.peak[0]


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_filters_of_any_frequency_have_bounds(kind, seed):
    rng = np.random.default_rng([31, seed, list(_KINDS).index(kind)])
    system, w = _filter(rng, kind)
    n_times, x0 = int(rng.integers(20, 50)), None
    t = _times(rng, 10.0 ** rng.uniform(-2.0, 0.5) / w, n_times)
    u, hold = rng.standard_normal((n_times, 1)), str(rng.choice(["zero", "linear"]))
    if rng.random() < 0.4:
        A, _, C, _ = system
        x0 = linalg.lapack.dgebal(A, scale=1, permute=0)[3] * rng.standard_normal(len(A))
        x0 /= np.abs(C * x0).max()
    error, bound = _shares(system, u=u, t=t, hold=hold, x0=x0)
    assert error <= bound <= _KNOWN


@pytest.mark.parametrize(("order", "w"), [(4, 1e6), (6, 1e6), (8, 1e4), (12, 1e3)])
def test_units_of_time_do_not_change_a_bound(order, w):
    n_times, shares = 60, []
    for own in (1.0, w):
        system = _companion(*signal.butter(order, own, analog=True))
        shares.append(_shares(system, u=np.ones((n_times, 1)), t=0.5 / own * np.arange(n_times)))
    (_, expected), (error, bound) = shares
    assert error <= bound <= 5.0 * expected


@pytest.mark.parametrize("w", [1.0, 1e6])
@pytest.mark.parametrize("order", [4, 10])
@pytest.mark.parametrize("step", [1e-5])
@pytest.mark.parametrize("even", [True, False])
def test_runs_so_short_that_hardly_anything_passed_a_filter(order, step, w, even):
    steps = np.ones(40)
    steps[10:20] = 1.0 if even else 0.5
    t = step / w * np.concatenate([[0.0], np.cumsum(steps)])
    system = _companion(*signal.butter(order, w, analog=True))
    error, bound = _shares(system, u=np.ones((len(t), 1)), t=t)
    assert error <= bound <= _KNOWN_OF_SHORT


def test_uneven_steps_of_states_far_from_the_units_of_inputs():
    w, n_times = 5e8, 60
    system = _companion(*signal.ellip(4, 1.0, 40.0, [w, 1.1 * w], "bandstop", analog=True))
    t = 0.004 / w * np.concatenate([[0.0], np.cumsum(np.repeat([1.0, 0.5], [40, n_times - 41]))])
    error, bound = _shares(system, u=np.sin(w * t)[:, None], t=t)
    assert error <= bound <= _KNOWN_OF_SHORT
