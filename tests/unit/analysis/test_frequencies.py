"""Hypothesis: frequencies to draw go around what a system has, not what rounding left of a zero at the origin."""

import numpy as np
import pytest

import ltinet

POLES = np.array([-1.0, -100.0, -10.0 + 20.0j, -10.0 - 20.0j])


def test_they_go_a_decade_beyond_poles_and_zeros():
    omega = ltinet.frequencies_for(POLES, [-0.5])
    assert omega[0] == pytest.approx(0.05)
    assert omega[-1] == pytest.approx(1000.0)
    assert np.all(np.diff(omega) > 0.0)


@pytest.mark.parametrize("zero", [0.0, 1e-14, -3e-14 + 1e-14j])
def test_a_zero_within_the_rounding_of_eigenvalues_is_one_at_the_origin(zero):
    np.testing.assert_array_equal(ltinet.frequencies_for(POLES, [zero]), ltinet.frequencies_for(POLES))


def test_a_slow_pole_that_is_more_than_rounding_is_shown():
    assert ltinet.frequencies_for([-1.0, -1e-9])[0] == pytest.approx(1e-10)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 0)])
def test_a_static_gain_answers_every_frequency_alike(shape):
    D = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    system = ltinet.StateSpace(np.zeros((0, 0)), np.zeros((0, shape[1])), np.zeros((shape[0], 0)), D)
    np.testing.assert_array_equal(system.frequency_response([0.1, 1.0]), np.stack([D, D]))
