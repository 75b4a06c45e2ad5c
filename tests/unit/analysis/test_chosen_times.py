"""Hypothesis: chosen times reach as far as anything is seen, and follow what swings or say that they do not."""

import control
import numpy as np
import pytest

from ltinet import InvalidSignalError, StateSpace, as_state_space


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("order", range(3, 13))
@pytest.mark.parametrize("delay", [0.01, 1.0, 300.0])
def test_what_comes_later_is_waited_for(order, delay):
    """A delay by Padé is quiet between its first impulse and the one that comes out: nothing has settled there."""
    system = as_state_space(control.pade(delay, order))
    sol = system.impulse_response()
    assert sol.t[-1] <= 10.0 * delay
    longer = system.impulse_response(np.linspace(0.0, 4.0 * sol.t[-1], 8001))
    after = longer.t >= sol.t[-1]
    assert np.abs(longer.y[0, after]).max() <= 0.02 * np.abs(longer.y).max()


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("seed", range(40))
def test_oscillations_are_followed_or_it_is_told(seed):
    rng = np.random.default_rng(seed)
    decay, omega = 10.0 ** rng.uniform(-4, 0), 10.0 ** rng.uniform(-1, 4)
    slow = 10.0 ** rng.uniform(-4, -1)
    A = np.zeros((3, 3))
    A[:2, :2] = [[-decay, omega], [-omega, -decay]]
    A[2, 2] = -slow
    sol = StateSpace(A, [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]).impulse_response(input=0)
    assert len(sol.t) <= 5000
    seen = sol.t[:-1] < np.log(1e3) / decay  # a thousandth of it is left
    followed = bool((omega * np.diff(sol.t)[seen] <= 1.0 + 1e-9).all())
    assert followed == (not sol.notes), (sol.notes, omega, decay)
    if not followed:  # what can be drawn is drawn: at least half of all times are spent where it is seen
        assert np.count_nonzero(seen) >= 2000
        assert "pass other times to see it" in sol.notes[0]


def test_a_single_time_is_told_what_a_list_is():
    for ask in (
        lambda s: s.step_response(5.0),
        lambda s: s.impulse_response(5),
        lambda s: s.initial_response([1.0], 5),
    ):
        with pytest.raises(
            InvalidSignalError, match=r"t must be a list of times from 0 on, got 5; pass np\.linspace\(0, 5, 501\)"
        ):
            ask(StateSpace(-1.0, 1.0, 1.0))
