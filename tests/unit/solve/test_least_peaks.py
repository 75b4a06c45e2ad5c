"""Hypothesis: a trial speaks for outputs in which what its two ways differ by, or may differ by, does not show."""

import numpy as np
import pytest

from ltinet.networks import construct
from ltinet.solve.exact import second_look, surest
from ltinet.solve.exact.least_peaks import LeastPeaks
from ltinet.solve.exact.trials import Trial
from ltinet.systems import StateSpace

TRIAL = Trial(0.1, 64.0, "linear", (1.0,))
LONG = TRIAL._replace(number=512.0)


def network():
    A = np.array([[-1.0, 2.0, 0.3], [-2.0, -1.0, 0.4], [0.5, 0.1, -3.0]])
    return construct(StateSpace(A, np.ones((3, 1)), np.array([[1.0, -1.0, 1.0], [1.0, 1.0, 0.0]])))


@pytest.fixture
def least():
    return network()._prepared.keep(LeastPeaks)


@pytest.mark.parametrize(("trial", "share"), [(TRIAL, 0.01), (LONG, 0.02)])
def test_without_a_second_way_it_is_what_the_two_may_differ_by(least, trial, share):
    y = network().simulate(trial.samples.u, trial.samples.t).y
    np.testing.assert_allclose(least.of(trial), share * np.abs(y).max(axis=0), rtol=1e-12)


def test_what_is_forgotten_is_not_taken_for_less(least):
    """Notes are few; whoever made one relies on it."""
    least.note(LONG, np.ones(2), np.array([1e-13, 1e-12]))
    noted = least.of(LONG) * np.abs(network().simulate(LONG.samples.u, LONG.samples.t).y).max(axis=0)
    for number in range(1, 40):
        least.of(TRIAL._replace(number=float(number)))
    assert np.all(least.of(LONG) >= noted * (1.0 - 1e-12))


def test_a_trial_that_exceeds_all_numbers_leaves_those_of_fewer_steps():
    grows = construct(StateSpace(np.diag([3.0, -1.0]), np.ones((2, 1)), np.ones((1, 2))))._prepared.keep(LeastPeaks)
    found = grows.of(LONG._replace(number=8192.0))
    assert np.all((found > 0.0) & np.isfinite(found))


@pytest.mark.parametrize(
    ("trial", "is_guarded", "is_enough"),
    [
        (LONG, True, True),
        (LONG, False, False),
        (TRIAL, True, False),
        (LONG._replace(start=(1.0, 0.0, 0.0)), True, False),
    ],
)
def test_only_runs_that_are_looked_at_again_may_differ_by_more(monkeypatch, trial, is_guarded, is_enough):
    """Steppers and exports are not, nor do trials of few steps or from a state say how small outputs may be."""
    careful, prepared = [], network()._prepared
    finite, hasty = surest._finite_outputs, surest.hasty_outputs
    monkeypatch.setattr(surest, "hasty_outputs", lambda path: (1.0 + 7e-13) * hasty(path))
    monkeypatch.setattr(surest, "_finite_outputs", lambda path: careful.append(path) or finite(path))
    surest._compared(prepared, prepared.as_given, trial, is_guarded=is_guarded)
    assert (not careful) == is_enough


def test_what_a_run_notes_is_known_of_each_output():
    prepared = network()._prepared
    surest._compared(prepared, prepared.as_given, LONG, is_guarded=True)
    usual = prepared.keep(LeastPeaks).of(LONG)
    assert usual.shape == (2,)
    y = network().simulate(LONG.samples.u, LONG.samples.t).y
    np.testing.assert_allclose(usual, 0.01 * np.abs(y).max(axis=0), rtol=1e-12)  # they hardly differ


def test_what_differs_must_not_show(least):
    least.note(TRIAL, np.array([1.0, 1.0]), np.array([1e-13, 1e-12]))
    np.testing.assert_allclose(least.of(TRIAL), [0.01, 0.02], rtol=1e-12)  # of which 1e-12 is 5e-11


def test_a_trial_from_a_state_says_nothing_of_inputs(least):
    least.note(TRIAL._replace(start=(1.0, 0.0, 0.0)), np.ones(2), np.ones(2))
    assert np.all(least.of(TRIAL) < 0.5)


@pytest.mark.parametrize(("begin", "looks"), [(0, []), (63, ["in a hurry"])])
def test_runs_that_show_less_are_looked_at_in_a_hurry_first(monkeypatch, begin, looks):
    """What agrees in a hurry needs no run of more digits."""
    seen, hasty, true = [], second_look.hasty_outputs, second_look.true_outputs
    monkeypatch.setattr(second_look, "hasty_outputs", lambda path: seen.append("in a hurry") or hasty(path))
    monkeypatch.setattr(second_look, "true_outputs", lambda path: seen.append("more digits") or true(path))
    A = np.diag([-1.0, -1.5, -2.0]) + np.diag([1.0, 1.0], 1)  # the input arrives last at the output
    t = np.linspace(0.0, 6.4, 65)
    construct(StateSpace(A, np.eye(3)[:, 2:], np.eye(3)[:1])).simulate((t >= t[begin]).astype(float), t)
    assert seen == looks
