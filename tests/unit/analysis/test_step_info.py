"""Hypothesis: what one reads off a step response is that of the exact curve, not of any grid."""

import mpmath
import numpy as np
import pytest
from scipy import optimize

from ltinet import SimulationError, StateSpace, construct


def second_order(zeta, omega, gain=1.0):
    return StateSpace([[0.0, 1.0], [-(omega**2), -2.0 * zeta * omega]], [0.0, omega**2], [gain, 0.0])


def by_formula(zeta, omega):
    """Rise time and settling time of a damped oscillation, from its formula in 30 digits."""
    damped, rate = omega * mpmath.sqrt(1 - mpmath.mpf(zeta) ** 2), mpmath.mpf(zeta) * omega

    def y(t):
        return 1 - mpmath.e ** (-rate * t) * (mpmath.cos(damped * t) + rate / damped * mpmath.sin(damped * t))

    def root(level, start, stop):
        return float(mpmath.findroot(lambda t: y(t) - level, (start, stop), solver="anderson", tol=1e-25))

    half = mpmath.pi / damped
    rise = root(0.9, 0, half) - root(0.1, 0, half)
    turns = [k * half for k in range(1, 400)]
    last = max(k for k, t in enumerate(turns) if abs(y(t) - 1) > 0.02)
    level = 1.02 if y(turns[last]) > 1 else 0.98
    return rise, root(level, turns[last], turns[last + 1])


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("omega", [1e-4, 1.0, 3e7])
@pytest.mark.parametrize("zeta", [0.02, 0.1, 0.3, 0.6])
def test_damped_oscillations_against_their_formula(zeta, omega):
    for own in (second_order(zeta, omega, -2.0), construct(second_order(zeta, omega, -2.0))):
        info = own.step_info()
        with mpmath.workdps(30):
            rise, settling = by_formula(zeta, omega)
        overshoot = 100.0 * np.exp(-np.pi * zeta / np.sqrt(1.0 - zeta**2))
        assert info.final_value[0, 0] == pytest.approx(-2.0, rel=1e-12)
        assert info.rise_time[0, 0] == pytest.approx(rise, rel=1e-9)
        assert info.settling_time[0, 0] == pytest.approx(settling, rel=1e-9)
        assert info.overshoot[0, 0] == pytest.approx(overshoot, rel=1e-9)
        assert info.undershoot[0, 0] == 0.0
        assert info.peak[0, 0] == pytest.approx(2.0 * (1.0 + overshoot / 100.0), rel=1e-11)
        # A turn is flat: its time is known to half of the digits of its height, its slope gives it back.
        assert info.peak_time[0, 0] == pytest.approx(np.pi / (omega * np.sqrt(1.0 - zeta**2)), rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_sums_of_exponentials_many_decades_apart(seed):
    rng = np.random.default_rng(seed)
    rates, shares = 10.0 ** rng.uniform(-4, 4, 4), rng.uniform(-1.0, 2.0, 4)
    system = StateSpace(-np.diag(rates), rates, shares)
    final = shares.sum()
    if abs(final) < 0.3:
        shares[0] += 2.0
        system, final = StateSpace(-np.diag(rates), rates, shares), shares.sum()

    def y(t):
        return -np.expm1(-np.multiply.outer(t, rates)) @ shares

    fine = np.concatenate([[0.0], np.geomspace(1e-7, 1e6, 400_001)])
    values = y(fine) / final
    info = system.step_info()

    def first(level):
        place = int(np.argmax(values >= level))
        return optimize.brentq(lambda t: y(t) / final - level, fine[place - 1], fine[place], xtol=1e-300, rtol=1e-14)

    assert info.rise_time[0, 0] == pytest.approx(first(0.9) - first(0.1), rel=1e-6)
    last = int(np.flatnonzero(np.abs(values - 1.0) > 0.02)[-1])
    edge = optimize.brentq(
        lambda t: abs(y(t) / final - 1.0) - 0.02, fine[last], fine[last + 1], xtol=1e-300, rtol=1e-14
    )
    assert info.settling_time[0, 0] == pytest.approx(edge, rel=1e-6)
    assert info.overshoot[0, 0] == pytest.approx(max(0.0, 100.0 * (values.max() - 1.0)), abs=1e-5)
    assert info.undershoot[0, 0] == pytest.approx(max(0.0, -100.0 * values.min()), abs=1e-5)


def test_what_does_not_exist_is_nan_and_what_never_comes_infinite():
    slow = StateSpace(-1.0, 1.0, 1.0).step_info()
    assert slow.peak == 1.0
    assert slow.peak_time == np.inf
    assert slow.overshoot == 0.0
    np.testing.assert_allclose(slow.rise_time, np.log(9.0), rtol=1e-10)
    np.testing.assert_allclose(slow.settling_time, np.log(50.0), rtol=1e-10)
    for unsettled in (StateSpace(0.0, 1.0, 1.0), StateSpace(1.0, 1.0, 1.0)):
        info = unsettled.step_info()
        assert np.isnan(info.settling_time)
        assert np.isnan(info.rise_time)
        assert np.isinf(info.peak)
    washed_out = StateSpace(-1.0, 1.0, -1.0, 1.0).step_info()
    assert washed_out.final_value == 0.0
    assert washed_out.peak == 1.0
    assert np.isnan(washed_out.settling_time)
    gain = StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), 3.0).step_info()
    assert (gain.rise_time, gain.settling_time, gain.peak) == (0.0, 0.0, 3.0)


def test_it_prints_as_a_table():
    info = StateSpace(-np.eye(2), np.eye(2), np.eye(2)).step_info()
    assert str(info).count("\n") == 4
    assert "settling time" in str(info)
    assert info._repr_html_().count("<tr>") == 5


@pytest.mark.parametrize("options", [{"settling": 0.0}, {"settling": True}, {"rise": 0.5}, {"rise": (0.9, 0.1)}])
def test_shares_that_are_none_are_refused(options):
    with pytest.raises(SimulationError, match=r"rise|settling"):
        StateSpace(-1.0, 1.0, 1.0).step_info(**options)


@pytest.mark.parametrize("beyond", [3e-3, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_overshoot_that_comes_late_is_seen(beyond, sign):
    """In y = 1 − (1 + ε) e^{−t} + ε e^{−t/8}: below the final value for many time constants, then above by a little."""
    system = StateSpace(np.diag([-1.0, -0.125]), [1.0 + beyond, -0.125 * beyond], [sign, sign])
    time = np.log(8.0 * (1.0 + beyond) / beyond) / (1.0 - 0.125)  # where the slope is zero
    top = 1.0 - (1.0 + beyond) * np.exp(-time) + beyond * np.exp(-0.125 * time)
    info = system.step_info()
    assert info.overshoot[0, 0] == pytest.approx(100.0 * (top - 1.0), rel=1e-6, abs=1e-10)
    assert info.peak[0, 0] == pytest.approx(top, rel=1e-12)
    assert info.peak_time[0, 0] == pytest.approx(time, rel=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_the_peak_of_an_oscillation_that_is_not_damped_is_its_largest(seed):
    rng = np.random.default_rng(seed)
    omega, decay, share = rng.uniform(0.2, 20.0), 10.0 ** rng.uniform(-1, 1), rng.uniform(-3.0, 3.0)
    A = np.zeros((3, 3))
    A[:2, :2], A[2, 2] = [[0.0, omega], [-omega, 0.0]], -decay
    info = StateSpace(A, [0.0, omega, decay], [1.0, 0.0, share]).step_info()
    t = np.linspace(0.0, 60.0 / decay + 20.0 / omega, 2_000_001)
    truth = np.abs(1.0 - np.cos(omega * t) + share * (1.0 - np.exp(-decay * t))).max()
    # The grid misses a turn by (ω h)²/8; a largest value that is only approached is taken at e⁻¹⁶ of what is left.
    assert info.peak[0, 0] == pytest.approx(truth, rel=1e-6 + (omega * t[1]) ** 2)
    assert np.isfinite(info.peak_time[0, 0])
    assert np.isnan(info.settling_time[0, 0])


def test_the_peak_of_several_oscillations_that_are_not_damped_is_not_known():
    A = np.zeros((4, 4))
    A[:2, :2], A[2:, 2:] = [[0.0, 1.0], [-1.0, 0.0]], [[0.0, np.sqrt(2.0)], [-np.sqrt(2.0), 0.0]]
    assert np.isnan(StateSpace(A, [0.0, 1.0, 0.0, 1.0], np.ones(4)).step_info().peak[0, 0])
