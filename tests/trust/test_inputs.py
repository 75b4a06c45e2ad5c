"""Hypothesis: what comes in is taken for what it is, or refused with the way out; never for something else."""

import datetime
import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

import ltinet
from support.tiers import n_examples

EPS = np.finfo(float).eps
T = np.arange(11.0)
ONES = np.ones(11)
SECOND = np.timedelta64(1, "s")
HOLDS = st.sampled_from(["linear", "zero"])


def examples(count):
    return settings(max_examples=n_examples(count), deadline=None, derandomize=True)


@pytest.fixture(scope="module")
def net():
    return ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))


def peak(values):
    return float(np.abs(values).max(initial=0.0))


# Times and their offset


def test_a_jump_is_not_lost_at_a_large_offset():
    h = 2.0**-20
    k = np.array([0, 1, 2, 3, 3, 4, 5, 9, 10])
    u = np.array([0, 0, 0, 0, 1.0, 1, 1, 1, 1])
    net = ltinet.construct(([[-1 / h]], [[1 / h]], [[1.0]]))
    # h and the offset are dyadic: all times are exact, and so are their differences.
    assert peak(net.simulate(u, 1.7e9 + k * h).y - net.simulate(u, k * h).y) <= 4 * EPS


@st.composite
def shifted_runs(draw):
    """A system of one to four states, whole numbers of a step with jumps and gaps, and an offset that is exact."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 4))
    steps = rng.choice([0, 1, 1, 1, 2, 7], draw(st.integers(2, 60)))
    steps[1::2] = np.maximum(steps[1::2], 1)
    if draw(st.booleans()):
        steps = np.ones_like(steps)
    k = np.cumsum(steps)
    offset = draw(st.sampled_from([1.7e9, -1.7e9, 2.0**40, 1e15]))
    ulp = float(np.spacing(abs(offset) + 1e6))
    h = ulp * 2.0 ** draw(st.integers(0, 30))
    A = rng.standard_normal((n, n)) - 2.0 * np.eye(n)
    net = ltinet.construct((A / h, rng.standard_normal((n, 2)) / h, rng.standard_normal((2, n))))
    x0 = rng.standard_normal(n) if draw(st.booleans()) else None
    return net, offset, k * h, rng.standard_normal((len(k), 2)), x0


@examples(60)
@given(shifted_runs(), HOLDS)
def test_an_exact_offset_changes_nothing(run, hold):
    """Steps of 1 to 2³⁰ units in the last place of the offset; times and their differences have no rounding."""
    net, offset, t, u, x0 = run
    assert np.array_equal((offset + t) - offset, t)
    here, there = (net.simulate(u, times, x0=x0, hold=hold) for times in (t, offset + t))
    np.testing.assert_allclose(there.y, here.y, rtol=0.0, atol=1e-13 * peak(here.y))
    np.testing.assert_allclose(there.states, here.states, rtol=0.0, atol=1e-13 * peak(here.states))
    between = t[:-1] + 0.5 * np.diff(t)
    between = between[(offset + between) - offset == between]
    if len(between):
        np.testing.assert_allclose(there(offset + between), here(between), rtol=0.0, atol=1e-13 * peak(here.y))


def one_state(u, t, *, rate):
    """States of x' = rate (u − x) on straight lines, by steps of the differences of times, which are exact."""
    x = [0.0]
    for width, now, after in zip(np.diff(t).tolist(), u[:-1].tolist(), u[1:].tolist(), strict=True):
        z = -rate * width
        # With (eᶻ − 1)/z the mean of a decaying weight: x → eᶻ x + (φ₁ − eᶻ) u₀ + (1 − φ₁) u₁.
        mean = np.expm1(z) / z if z else 1.0
        x.append(np.exp(z) * x[-1] + (mean - np.exp(z)) * now + (1.0 - mean) * after)
    return np.array(x)


@examples(60)
@given(st.sampled_from([0.0, 1e3, 86_400.0, 1.7e9, -1.7e9]), st.floats(-5.0, 1.0), st.floats(-1.0, 1.0))
def test_an_offset_rounds_the_times_and_nothing_else(offset, decades, share):
    """A decimal step: the times that come are rounded, and the result is that of the times that came."""
    h = 10.0**decades
    t = offset + h * np.arange(200)
    if np.any(np.diff(t) <= 0.0):
        return
    rate = 10.0**share / h
    u = np.random.default_rng(3).standard_normal(200)
    net = ltinet.construct(([[-rate]], [[rate]], [[1.0]]))
    # Even times may stand for times that are off by 1e-6 of a step, and by no more than rounding.
    off = min(8 * EPS * np.abs(t).max(), 1e-6 * h)
    assert peak(net.simulate(u, t).y[:, 0] - one_state(u, t, rate=rate)) <= (1e-13 + 4 * max(rate, 1 / h) * off) * peak(
        u
    )


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("h", [0.01, 0.1, 1.0 / 3.0])
def test_the_bound_counts_that_decimal_times_are_rounded(h, offset):
    """The times that came are run as an even grid: their distance from it is an error, and within the bound."""
    t = offset + h * np.arange(1001)
    u = np.random.default_rng(4).standard_normal(len(t))
    sol = ltinet.construct(([[-1.0 / h]], [[1.0 / h]], [[1.0]])).simulate(u, t)
    with mpmath.workprec(120):
        x, errors = mpmath.mpf(0), [0.0]
        for k in range(len(t) - 1):
            z = -mpmath.mpf(1.0 / h) * (mpmath.mpf(t[k + 1]) - mpmath.mpf(t[k]))
            decay, mean = mpmath.exp(z), mpmath.expm1(z) / z
            x = decay * x + (mean - decay) * mpmath.mpf(u[k]) + (1 - mean) * mpmath.mpf(u[k + 1])
            errors.append(float(abs(x - mpmath.mpf(sol.y[k + 1, 0]))))
    assert max(errors) <= sol.error_bound()[0]
    assert sol.stats["grid"] == "uniform"


# Functions of time


def test_a_sine_that_vanishes_at_every_sample(net):
    sol = net.simulate(lambda s: np.sin(np.pi * s), np.arange(11.0))
    w, t = np.pi, np.arange(11.0)
    exact = (w * np.exp(-t) + np.sin(w * t) - w * np.cos(w * t)) / (1.0 + w**2)
    assert peak(sol.y[:, 0] - exact) <= 1e-8  # the default tolerance, and a gain of one
    assert np.all(np.abs(sol.y[:, 0] - exact) <= sol.error_bound())


@pytest.mark.parametrize("start", [0.0, -1.0])
def test_one_over_t_is_refused_within_a_bounded_number_of_calls(net, start):
    for function in (lambda s: 1.0 / s, lambda s: np.divide(1.0, s), lambda s: 1.0 / s if s else 0.0):
        calls = 0

        def counted(s, function=function):
            nonlocal calls
            calls += 1
            return function(s)

        with np.errstate(divide="ignore"), pytest.raises(ltinet.LtinetError, match=r"not finite|without bound"):
            net.simulate(counted, np.linspace(start, 10.0, 12 + int(-start) * 11))
        assert calls < 500_000


@pytest.mark.parametrize("tolerance", [np.nan, -1, 0.0, np.inf, "1e-8"])
def test_input_tolerances_are_positive_and_finite(net, tolerance):
    with pytest.raises(ltinet.SimulationError, match=r"input_tolerance must be .*positive, finite"):
        net.simulate(np.sin, T, input_tolerance=tolerance)


# Inputs that would be taken for something else


def calls_of(net):
    """Every door that takes u, t or x0, by the name of what it takes."""
    return {
        "u": [lambda u: net.simulate(u, T), lambda u: ltinet.SampledSignal(T, u)],
        "t": [lambda t: net.simulate(ONES, t), lambda t: ltinet.SampledSignal(t, ONES)],
        "x0": [lambda x0: net.simulate(ONES, T, x0=x0), lambda x0: net.stepper(0.1, x0=x0)],
        "dt": [lambda dt: net.stepper(dt), lambda dt: next(net.simulate_stream([ONES], dt))],
    }


VALUES = {"u": ONES, "t": T, "x0": np.ones(1), "dt": np.array(0.1)}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda value: np.ma.array(value, mask=np.ones(np.shape(value), bool)), r"{}\.filled"),
        (lambda value: value + 0j, r"{} is complex.*pass {}\.real"),
        (lambda value: value + 1e-3j, r"{} is complex"),
        (lambda value: value.astype(str), r"{} is text"),
        (lambda _: "text", r"{} is text, 'text'"),
        (lambda value: np.array(value, dtype=object) + object.__new__(_Anything), r"{} has entries of type"),
    ],
    ids=["masked", "complex of real numbers", "complex", "numbers as text", "text", "objects"],
)
def test_what_is_no_real_number_is_refused_at_every_door(net, name, spoil, message):
    for call in calls_of(net)[name]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ltinet.InvalidSignalError, match=message.format(name, name)):
                call(spoil(VALUES[name]))


class _Anything:
    """Something that adds to anything and is no number."""

    def __radd__(self, _):
        return self


@examples(40)
@given(st.integers(0, 10), st.sampled_from(["u", "t"]))
def test_a_single_masked_entry_is_enough(place, name):
    net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    hidden = np.ma.array(VALUES[name].copy(), mask=np.arange(11) == place)
    hidden.data[place] = -1e300
    with pytest.raises(ltinet.InvalidSignalError, match=rf"~np\.ma\.getmaskarray\({name}\)"):
        calls_of(net)[name][0](hidden)
    keep = ~np.ma.getmaskarray(hidden)  # the way out leads out
    assert len(net.simulate(ONES[keep], T[keep]).y) == 10


@examples(60)
@given(st.sampled_from(["D", "h", "m", "s", "ms", "us", "ns"]), st.integers(1, 10**6))
def test_durations_are_seconds(unit, count):
    net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    durations = (count * np.arange(11)).astype(f"m8[{unit}]")
    seconds = count * float(np.timedelta64(1, unit) / SECOND) * np.arange(11.0)
    expected = net.simulate(ONES, seconds).y
    np.testing.assert_allclose(net.simulate(ONES, durations).y, expected, rtol=1e-12)
    if unit != "ns":
        as_python = [datetime.timedelta(microseconds=int(own / np.timedelta64(1, "us"))) for own in durations]
        np.testing.assert_allclose(net.simulate(ONES, as_python).y, expected, rtol=1e-12)


@pytest.mark.parametrize("unit", ["D", "s", "ms", "ns"])
def test_dates_are_refused_and_the_way_out_leads_out(net, unit):
    t = np.datetime64("2024-03-01", unit) + np.arange(11).astype(f"m8[{unit}]")
    with pytest.raises(ltinet.InvalidSignalError, match="made of dates") as caught:
        net.simulate(ONES, t)
    way_out = '(t - t[0]) / np.timedelta64(1, "s")'
    assert way_out in str(caught.value)
    assert net.simulate(ONES, (t - t[0]) / np.timedelta64(1, "s")).t[-1] == 10.0 * float(
        np.timedelta64(1, unit) / SECOND
    )


NO_TIMES = {
    "constant": lambda n: np.full(n, 2.0),
    "zero": np.zeros,
    "step": lambda n: 1.0 * (np.arange(n) >= n // 3),
    "staircase": lambda n: np.floor(np.arange(n) / 4.0),
    "sine": lambda n: np.sin(np.arange(n)),
    "noise": lambda n: np.random.default_rng(n).standard_normal(n),
    "channels": lambda n: np.ones((n, 1)),
    "channels first": lambda n: np.ones((1, n)),
    "batch": lambda n: np.ones((3, n, 1)),
    "a number": lambda _: 1.0,
    "nothing": lambda _: None,
    "a function": lambda _: np.sin,
    "a signal": lambda n: ltinet.SampledSignal(np.arange(float(n)), np.ones(n)),
}


@examples(80)
@given(st.sampled_from(sorted(NO_TIMES)), st.integers(9, 600), st.floats(1e-3, 10.0))
def test_exchanged_inputs_and_times_are_recognised(kind, n_times, h):
    net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0]]))
    with pytest.raises(ltinet.InvalidSignalError, match=r"The order is simulate\(u, t\)"):
        net.simulate(h * np.arange(n_times), NO_TIMES[kind](n_times))


def test_the_hint_is_given_only_where_it_may_be_true(net):
    for u in (ONES, np.sin(T), None, np.sin):
        with pytest.raises(ltinet.InvalidSignalError) as caught:
            net.simulate(u, T[::-1])
        assert "u comes first" not in str(caught.value)
    # A ramp ascends like times do, and a time that comes twice is a jump of it.
    assert len(net.simulate([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 1.0, 2.0]).y) == 4


def test_equal_times_are_a_jump_twice_and_no_time_axis_three_times(net):
    assert len(net.simulate([0.0, 1.0], [2.0, 2.0]).y) == 2
    for count in (3, 501):
        with pytest.raises(ltinet.InvalidSignalError, match=f"all {count} times are 2.0"):
            net.simulate(np.ones(count), np.full(count, 2.0))


@pytest.mark.parametrize("step", [0.1, 2, True, 1e-9])
def test_discrete_objects_keep_their_time_step(step):
    matrices = [np.array([[0.5]])] * 4
    objects = [
        signal.StateSpace(*matrices, dt=step),
        signal.dlti(*matrices, dt=step),
        signal.TransferFunction([1.0], [1.0, 0.5], dt=step),
        signal.ZerosPolesGain([], [0.5], 1.0, dt=step),
    ]
    for obj in objects:
        if step is True:  # an unspecified one
            with pytest.raises(ltinet.InvalidSystemError, match=r"is discrete in time \(dt = .*StateSpace\("):
                ltinet.construct(obj)
            continue
        net = ltinet.construct(obj)
        assert net.dt == step
        pulse = net.simulate([1.0, 0.0, 0.0, 0.0]).y
        assert pulse[2:, 0] == pytest.approx(obj.poles[0].real * pulse[1:-1, 0])


# Options that do not apply


def test_options_that_do_not_apply_are_refused(net):
    with pytest.raises(ltinet.SimulationError, match="does not accept method, rtol and across_knots"):
        net.simulate(ONES, T, method="nonsense", rtol=-3, across_knots=True)
    with pytest.raises(ltinet.SimulationError, match="does not accept input_tolerance"):
        net.simulate(ONES, T, engine="per_neuron", input_tolerance=1e-3)
