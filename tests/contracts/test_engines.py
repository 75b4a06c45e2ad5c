"""What every engine promises: one set of tests for all of them, and for one that is written here.

The truth is a chain of matrix exponentials by mpmath with 40 digits, in the user's own states: an augmented matrix for
each interval between samples, which is exact for straight lines and steps.
"""

import mpmath
import numpy as np
import pytest

import ltinet
from ltinet.simulation.engines import ENGINES

from .toy_engine import ToyEngine

NAMES = ["exact", "per_neuron", "per_interval", "toy"]
A = np.array([[-0.3, 2.0, 0.0, 0.1], [-2.0, -0.3, 0.4, 0.0], [0.0, 0.0, -1.0, 0.5], [0.0, 0.0, 0.0, -4.0]])
B = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, -0.5], [2.0, 1.0]])
C = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0]])
D = np.array([[0.0, 0.5], [0.0, 0.0]])
# Engines by solvers follow their tolerance of 1e-10, a thousand times looser than the closed form is.
CLOSE = {"exact": 1e-13, "per_neuron": 1e-7, "per_interval": 1e-7, "toy": 1e-7}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(ENGINES, "toy", ToyEngine())


@pytest.fixture(scope="module")
def net():
    return ltinet.construct(ltinet.StateSpace(A, B, C, D))


def truth(u, t, *, hold, x0=None):
    """States and outputs at the samples, as float64."""
    with mpmath.workdps(40):
        x = mpmath.matrix([mpmath.mpf(float(own)) for own in (np.zeros(4) if x0 is None else x0)])
        states = []
        for k in range(len(t)):
            if k and t[k] > t[k - 1]:
                h = mpmath.mpf(float(t[k])) - mpmath.mpf(float(t[k - 1]))
                now, after = u[k - 1], u[k] if hold == "linear" else u[k - 1]
                # d/dt (x, s, 1) with s the time since the sample: ẋ = A x + B u_k + (B (u_{k+1} − u_k)/h) s, ṡ = 1
                big = mpmath.zeros(6)
                big[:4, :4] = mpmath.matrix(A.tolist())
                big[:4, 4] = mpmath.matrix([mpmath.mpf(float(own)) / h for own in B @ (after - now)])
                big[:4, 5] = mpmath.matrix((B @ now).tolist())
                big[4, 5] = 1
                E = mpmath.expm(big * h)
                x = mpmath.matrix([sum(E[i, j] * x[j] for j in range(4)) + E[i, 5] for i in range(4)])
            states.append([float(own) for own in x])
        states = np.array(states)
    return states, states @ C.T + np.asarray(u) @ D.T


def drawn(seed, *, jumps=False, offset=0.0):
    rng = np.random.default_rng(seed)
    t = offset + np.cumsum(rng.integers(1, 6, 14)) / 8.0
    if jumps:
        t[5], t[9] = t[4], t[8]
    return t, rng.standard_normal((len(t), 2))


def close(found, exact, engine):
    assert np.abs(found - exact).max() <= CLOSE[engine] * max(1.0, np.abs(exact).max())


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("jumps", [False, True])
def test_outputs_states_and_bound(net, engine, hold, jumps):
    t, u = drawn(1, jumps=jumps)
    x0 = np.array([1.0, -2.0, 0.5, 0.0])
    options = {} if engine == "exact" else {"rtol": 1e-10}
    solution = net.simulate(u, t, hold=hold, x0=x0, engine=engine, **options)
    states, y = truth(u, t, hold=hold, x0=x0)
    # Of a time given twice the first output is the one before the jump; a sample that is held for no time is none.
    keep = np.append(t[1:] > t[:-1], True) | (hold == "linear")
    close(solution.y[keep], y[keep], engine)
    close(solution.states, states, engine)
    rounding = 1e-15 * np.abs(y).max()  # sums of the truth itself, which are formed in double precision
    assert np.all(np.abs(solution.y[keep] - y[keep]) <= solution.error_bound(t)[keep] + rounding)
    assert np.all(np.abs(solution.y[keep] - y[keep]).max(axis=0) <= solution.error_bound() + rounding)
    assert solution.stats["engine"] == engine


@pytest.mark.parametrize("engine", NAMES)
def test_dense_output_at_samples_is_the_output(net, engine):
    t, u = drawn(2)
    solution = net.simulate(u, t, engine=engine)
    close(solution(t), solution.y, engine)
    between = np.array([t[3], 0.5 * (t[3] + t[4])])
    extended = net.simulate(np.insert(u, 4, 0.5 * (u[3] + u[4]), axis=0), np.insert(t, 4, between[1]), engine=engine)
    close(solution(between), extended.y[3:5], engine)
    assert solution(float(t[2])).shape == (2,)
    with pytest.raises(ltinet.InvalidSignalError, match="times must be within the solution"):
        solution(t[-1] + 1.0)


@pytest.mark.parametrize("engine", NAMES)
def test_a_batch_is_its_members(net, engine):
    t, _ = drawn(3)
    u = np.random.default_rng(3).standard_normal((3, len(t), 2))
    x0 = np.random.default_rng(4).standard_normal((3, 4))
    together = net.simulate(u, t, x0=x0, engine=engine)
    assert together.y.shape == (3, len(t), 2)
    assert together.error_bound().shape == (3, 2)
    for own, values, start in zip(together.y, u, x0, strict=True):
        close(own, net.simulate(values, t, x0=start, engine=engine).y, engine)


@pytest.mark.parametrize("engine", NAMES)
def test_a_batch_of_signals_with_jumps_at_different_times_is_its_members(net, engine):
    t, u = drawn(4, jumps=True)
    other = ltinet.SampledSignal([t[0], t[6], t[6], t[-1]], np.random.default_rng(5).standard_normal((4, 2)))
    twice = np.sort(np.append(t, t[6]))
    batch = ltinet.SignalBatch([ltinet.SampledSignal(t, u), other])
    found = net.simulate(batch, twice, engine=engine)
    for member, own in zip(found.y, batch.signals, strict=True):
        close(member, net.simulate(own, twice, engine=engine).y, engine)


@pytest.mark.parametrize("engine", NAMES)
def test_neurons_are_read_off_the_states(net, engine):
    t, u = drawn(5)
    exact = net.simulate(u, t).neuron_states
    close(net.simulate(u, t, engine=engine).neuron_states, exact, engine)


@pytest.mark.parametrize("engine", NAMES)
def test_no_input_and_one_time(net, engine):
    x0 = np.array([1.0, 0.0, 0.0, -1.0])
    t = np.linspace(0.0, 2.0, 5)
    _, y = truth(np.zeros((5, 2)), t, hold="linear", x0=x0)
    close(net.simulate(None, t, x0=x0, engine=engine).y, y, engine)
    once = net.simulate(np.ones((1, 2)), [0.0], x0=x0, engine=engine)
    close(once.y, (C @ x0 + D @ np.ones(2))[None], engine)
    assert np.all(np.isfinite(once.error_bound()))


@pytest.mark.parametrize("engine", NAMES)
def test_an_offset_of_time_changes_nothing(net, engine):
    """Times are multiples of 1/8: exact at any offset, and so are their differences."""
    t, u = drawn(6)
    far, same = drawn(6, offset=2.0**30)
    np.testing.assert_array_equal(u, same)
    close(net.simulate(u, far, engine=engine).y, net.simulate(u, t, engine=engine).y, engine)


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x0": np.ones(3)}, "4 entries"),
        ({"u": np.ones((14, 3))}, "3 channels"),
        ({"u": np.ones((13, 2))}, "14 times"),
        ({"hold": "cubic"}, "hold is 'cubic'"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"telepathy": True}, r"does not accept telepathy\. No engine has it"),
    ],
)
def test_bad_input_is_refused_in_the_same_words(net, engine, changes, words):
    t, u = drawn(7)
    with pytest.raises(ltinet.LtinetError, match=words):
        net.simulate(**({"u": u, "t": t, "engine": engine} | changes))


def test_an_unknown_engine_is_told_which_there_are(net):
    t, u = drawn(7)
    with pytest.raises(ltinet.SimulationError, match='one of "exact", "per_neuron", "per_interval" and "toy"'):
        net.simulate(u, t, engine="magic")


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_the_engine_that_streams_gives_the_same(net, hold):
    t = 0.1 * np.arange(50)
    u = np.random.default_rng(8).standard_normal((50, 2))
    stepper = net.stepper(0.1, hold=hold)
    streamed = np.array([stepper.step(own) for own in u])
    np.testing.assert_allclose(streamed, net.simulate(u, t, hold=hold).y, rtol=0.0, atol=1e-13)
