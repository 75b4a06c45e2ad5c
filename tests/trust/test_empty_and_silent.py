"""Hypothesis: a batch of no signals is a result without entries, and threads are as silent about overflow as one."""

import warnings

import numpy as np
import pytest

import ltinet

RNG = np.random.default_rng(20)
SYSTEMS = {
    "scalars": np.diag([-1.0, -2.0, -30.0]),
    "a pair": np.array([[-1.0, 5.0], [-5.0, -1.0]]),
    "a dense block": np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, -1.0]]),
    "anything": RNG.standard_normal((40, 40)) - 15.0 * np.eye(40),
}
TIMES = {
    "even": 0.1 * np.arange(3000),
    "few": 0.1 * np.arange(7),
    "one": np.zeros(1),
    "offset": 1e6 + 0.1 * np.arange(50),
    "jumps": np.array([0.0, 1.0, 1.0, 2.0]),
    "uneven": np.sort(RNG.uniform(0.0, 5.0, 2000)),
    "a few uneven": np.sort(RNG.uniform(0.0, 5.0, 50)),
}


def _network(A):
    n = len(A)
    B, C, D = RNG.standard_normal((n, 2)), RNG.standard_normal((3, n)), RNG.standard_normal((3, 2))
    return ltinet.construct(ltinet.StateSpace(A, B, C, D))


@pytest.mark.default_cases(20)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_batch_of_no_signals(system, times, hold):
    net, t = _network(SYSTEMS[system]), TIMES[times]
    n, between = len(SYSTEMS[system]), np.linspace(t[0], t[-1], 9)
    for x0 in (None, np.ones(n)):
        solution = net.simulate(np.zeros((0, len(t), 2)), t, hold=hold, x0=x0)
        assert solution.y.shape == (0, len(t), 3)
        assert solution.states.shape == (0, len(t), n)
        assert solution(between).shape == (0, 9, 3)
        assert solution.error_bound().shape == (0, 3)
        assert solution.error_bound(t).shape == (0, len(t), 3)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("rates", [[400.0, -1.0, 3.0], [30.0, 20.0, 10.0]])
def test_growth_beyond_all_numbers_is_told_by_one_error_and_no_warning(rates, n_jobs):
    t, u = 0.1 * np.arange(1000), np.ones((6, 1000, 2))
    net = _network(np.diag(rates))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ltinet.SimulationError, match="overflows at t = "):
            net.simulate(u, t, n_jobs=n_jobs)


@pytest.mark.parametrize("rates", [[7000.0, -1.0, 3.0], [400.0, -1.0, 3.0], [30.0, 20.0, 10.0]])
@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_a_stepper_tells_overflow_as_one_error_and_no_warning(rates, hold):
    net = _network(np.diag(rates))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stepper = net.stepper(0.1, hold=hold)
        with pytest.raises(ltinet.SimulationError, match="overflow at sample "):
            list(stepper.run([np.ones((400, 2)), np.ones((400, 2))]))


def test_a_chunk_whose_outputs_overflow_between_finite_ones_is_refused():
    """What states forget at once must not come out as infinity in silence."""
    net = ltinet.construct(ltinet.StateSpace([[-1e3]], [[1.0]], [[1.0]], [[1e10]]))
    u = np.ones((400, 1))
    u[200] = 1e300
    with pytest.raises(ltinet.SimulationError, match="at sample 200"):
        list(net.stepper(0.1).run([u]))


def test_stiffnesses_beyond_all_numbers_are_told_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ltinet.InvalidNetworkError, match="overflow double precision"):
            ltinet.construct(
                ltinet.StateSpace([[-1e190, 1e190], [-1e190, -1e190]], np.eye(2), np.eye(2), np.zeros((2, 2)))
            )
