"""Margins against isolated roots of exact polynomials, python-control, and closed forms for delays."""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ltinet
from ltinet.errors import InvalidSystemError
from margin_oracle import crossings, loop_distance
from unit.analysis.python_control_margin_cases import EXCLUDED, IN_SCOPE, LOOPS, SAMPLED, Case

control = pytest.importorskip("control")

POLYNOMIAL_CASES = [case for case in IN_SCOPE if "disk" not in case.test]
# A number agrees if it is this close, or closer to the exact one than python-control's.
RELATIVE = 1e-9


def loop_of(case: Case) -> tuple[Any, Any]:
    """The loop of a case as python-control has it, and as ltinet takes it from there."""
    if case.loop in SAMPLED:
        num, den, dt = SAMPLED[case.loop]
        theirs = control.tf(num, den).sample(dt)
    else:
        num, den, step = LOOPS[case.loop]
        theirs = control.tf(num, den) if step is None else control.tf(num, den, step)
    theirs = theirs * case.gain
    return theirs, ltinet.as_state_space(theirs)


def agree(ours: np.ndarray, theirs: np.ndarray, exact: list[float]) -> None:
    """Every number is that of python-control or closer to the exact one."""
    wanted = np.array(exact)
    assert len(ours) == len(wanted)
    if len(theirs) == len(ours):
        error, limit = np.abs(ours - wanted), np.abs(theirs - wanted)
        assert np.all((np.abs(ours - theirs) <= RELATIVE * np.abs(theirs)) | (error <= limit))
    else:  # it misses a crossing, or counts one twice
        assert_allclose(ours, wanted, rtol=RELATIVE)


@pytest.mark.parametrize("case", POLYNOMIAL_CASES, ids=lambda case: f"{case.test} {case.loop} {case.gain:g}")
def test_margins_match_python_control(case: Case) -> None:
    theirs, ours = loop_of(case)
    num, den = theirs.num[0][0], theirs.den[0][0]
    dt = theirs.dt or None
    found, exact = ours.margin(), crossings(num, den, dt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gm, pm, _, wpc, wgc, _ = control.stability_margins(theirs, returnall=True)
    is_finite = np.isfinite(gm)
    agree(found.phase_crossovers, wpc[is_finite], exact.phase_crossovers)
    agree(found.gain_margins, gm[is_finite], exact.gain_margins)
    agree(found.gain_crossovers, wgc, exact.gain_crossovers)
    agree(found.phase_margins, pm, exact.phase_margins)
    if case.modulus:
        _, _, sm, _, _, ws = control.stability_margins(theirs)
        at_ours, at_theirs = (loop_distance(num, den, omega, dt) for omega in
                              (found.modulus_margin_frequency, float(ws)))  # fmt: skip
        # The distance at the frequency found is what is stated, and no larger than at theirs.
        assert_allclose(found.modulus_margin, at_ours, rtol=RELATIVE)
        assert at_ours <= at_theirs * (1.0 + 1e-12)
        assert_allclose(found.modulus_margin, sm, rtol=1e-4)


def test_every_loop_is_used_and_every_exclusion_has_a_reason() -> None:
    assert {case.loop for case in POLYNOMIAL_CASES} == {*LOOPS, *SAMPLED}
    assert all(reason for reason in EXCLUDED.values())


def test_siso_disk_margin_of_python_control() -> None:
    theirs = control.tf(25, [1, 10, 10, 10])
    found = ltinet.disk_margin(theirs)
    # A peak is flat: a grid of 2.5e-5 gives it to 1e-9.
    expected = control.disk_margins(theirs, np.linspace(1.9, 2.0, 4001), skew=0.0)
    assert_allclose(found.margin, expected[0], rtol=2e-9)
    assert_allclose(20 * np.log10(found.gain_range[1]), expected[1], rtol=1e-8)
    assert_allclose(found.phase, expected[2], rtol=1e-8)


@pytest.mark.parametrize("at_output", [True, False])
def test_mimo_disk_margin_of_python_control(at_output: bool) -> None:
    pytest.importorskip("slycot")
    plant = control.ss([[0, 10], [-10, 0]], np.eye(2), [[1, 10], [-10, 1]], np.zeros((2, 2)))
    gain = control.ss([], [], [], [[1, -2], [0, 1]])
    loop = plant * gain if at_output else gain * plant
    found = ltinet.disk_margin(loop)
    # The peak is at ω = 0, where M = (I + L)⁻¹(I − L) is real. For two channels μ is the least norm of M with its
    # off-diagonal entries scaled by d and 1/d.
    assert found.frequency == 0.0
    L0 = np.array([[1, 10], [-10, 1]]) @ np.linalg.inv([[0, -10], [10, 0]])
    K = np.array([[1, -2], [0, 1]])
    L0 = L0 @ K if at_output else K @ L0
    M = np.linalg.solve(np.eye(2) + L0, np.eye(2) - L0)
    scales = np.geomspace(1e-3, 1e3, 200_001)
    norms = [np.linalg.norm(M * np.array([[1, d], [1 / d, 1]]), 2) for d in scales[::100]]
    near = scales[max(100 * (int(np.argmin(norms)) - 1), 0) :][:201]
    mu = min(np.linalg.norm(M * np.array([[1, d], [1 / d, 1]]), 2) for d in near)
    assert_allclose(found.margin, 2.0 / mu, rtol=1e-7)
    assert_allclose(found.margin, control.disk_margins(loop, np.array([1e-6, 1e-5]), skew=0.0)[0], rtol=1e-5)


@pytest.mark.default_cases(12)
@pytest.mark.parametrize("seed", range(40))
def test_random_loops_have_all_crossings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, dt = int(rng.integers(1, 8)), None if seed % 2 else 0.1
    poles = -rng.exponential(1.0, n) + (0 if n < 2 else 1j * 3 * rng.standard_normal(n))
    poles = np.concatenate([poles[: n // 2], poles[: n // 2].conj(), [-rng.exponential(1.0)] * (n % 2)])
    den = np.poly(poles if dt is None else np.exp(dt * poles)).real
    num = rng.standard_normal(int(rng.integers(1, n + 1))) * np.abs(den).sum()
    found, exact = ltinet.margin(control.tf(num, den, *([] if dt is None else [dt]))), crossings(num, den, dt)
    # Rounding of the coefficients, which ltinet takes in controller form, times the condition of the roots.
    for ours, theirs in zip(
        (found.gain_crossovers, found.phase_margins, found.phase_crossovers, found.gain_margins), exact, strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


def test_first_order_with_dead_time() -> None:
    # K e^{−sθ}/(τs + 1): |L| = 1 at √(K² − 1)/τ; arg L = −π where ωθ + arctan ωτ = π.
    K, tau, theta = 5.0, 2.0, 0.5
    found = ltinet.StateSpace(-1 / tau, 1 / tau, K, output_delay=theta).margin()
    crossover = np.sqrt(K**2 - 1) / tau
    phase = np.pi - np.arctan(crossover * tau) - crossover * theta
    assert_allclose(found.gain_crossovers, [crossover], rtol=1e-14)
    assert_allclose(found.phase_margin, np.rad2deg(phase), rtol=1e-13)
    assert_allclose(found.delay_margin, phase / crossover, rtol=1e-13)
    assert found.is_stable
    omega = found.phase_crossovers
    turns = np.arange(len(omega))
    assert_allclose(omega * theta + np.arctan(omega * tau), np.pi * (1 + 2 * turns), rtol=1e-13)
    assert_allclose(found.gain_margins, np.hypot(1.0, omega * tau) / K, rtol=1e-12)
    assert found.gain_margin == found.gain_margins[0]
    # The last listed crossing is at a gain of 0.01 at least.
    assert found.gain_margins[-1] <= 100.0
    assert_allclose(found.modulus_margin, np.abs(1 + K * np.exp(-1j * found.modulus_margin_frequency * theta) /
                                                 (1 + 1j * found.modulus_margin_frequency * tau)), rtol=1e-12)  # fmt: skip


@pytest.mark.parametrize("gain", [0.9, 1.1])
def test_gain_and_delay_margins_are_where_stability_is_lost(gain: float) -> None:
    loop = ltinet.StateSpace(-0.5, 0.5, 5.0, input_delay=0.5)
    margins = loop.margin()
    scaled = ltinet.StateSpace(-0.5, 0.5, 5.0 * margins.gain_margin * gain, input_delay=0.5)
    assert scaled.margin().is_stable == scaled.nyquist().is_stable == (gain < 1.0)
    later = loop.with_signal_settings(input_delay=0.5 + margins.delay_margin * gain)
    assert later.margin().is_stable == (gain < 1.0)


def test_delay_of_whole_samples_equals_a_shift_register() -> None:
    A, steps, dt = 0.9, 7, 0.1
    delayed = ltinet.StateSpace(A, 1.0, 0.05, dt=dt, input_delay=steps * dt).margin()
    n = steps + 1
    register = np.diag(np.ones(steps), -1)
    register[0, 0], register[1:, 0] = A, 0.0
    # x[k+1] = A x[k] + u[k − 7]: the register holds past inputs, newest first.
    M = np.zeros((n, n))
    M[0, 0], M[0, -1] = A, 1.0
    M[2:, 1:-1] = np.eye(steps - 1)
    whole = ltinet.StateSpace(M, np.eye(n)[:, 1], 0.05 * np.eye(n)[0], dt=dt).margin()
    for name in ("gain_crossovers", "phase_margins", "phase_crossovers", "gain_margins", "delay_margins"):
        assert_allclose(getattr(delayed, name), getattr(whole, name), rtol=1e-11)
    assert_allclose(delayed.modulus_margin, whole.modulus_margin, rtol=1e-9)
    assert delayed.is_stable == whole.is_stable


def test_touching_the_unit_circle_is_a_crossing() -> None:
    # |s/(s² + s + 1)| has its peak 1 at ω = 1, where L = 1.
    found = ltinet.margin(([1.0, 0.0], [1.0, 1.0, 1.0]))
    assert_allclose(found.gain_crossovers, [1.0], rtol=1e-6)
    assert_allclose(np.abs(found.phase_margins), [180.0], rtol=1e-6)


def test_an_interval_on_the_unit_circle_has_no_crossings() -> None:
    found = ltinet.margin(([-1.0, 2.0], [1.0, 2.0]))
    assert len(found.gain_crossovers) == 0
    assert not found.is_stable


def test_a_delayed_gain_of_more_than_one_is_not_stable() -> None:
    assert not ltinet.StateSpace([], [], [], 2.0, input_delay=1.0).margin().is_stable
    small = ltinet.StateSpace([], [], [], 0.5, input_delay=1.0).margin()
    assert small.is_stable
    assert_allclose([small.gain_margin, small.modulus_margin], [2.0, 0.5], rtol=1e-12)


def test_margins_unpack_and_print() -> None:
    margins = ltinet.margin(([4.0], [1.0, 3.0, 3.0, 1.0]))
    gm, pm, wcg, wcp = margins
    assert_allclose([gm, wcg], [2.0, np.sqrt(3.0)], rtol=1e-13)
    assert (pm, wcp) == (margins.phase_margin, margins.phase_margin_frequency)
    assert "2 (6.021 dB)" in str(margins)
    assert str(margins).startswith("closed loop: stable\n")
    assert "frequency (rad/time)" in str(margins)
    assert f"{margins.delay_margin:.5g} time units" in str(margins)
    assert "<p>closed loop: stable</p>" in margins._repr_html_()


def test_infinite_margins_have_no_units() -> None:
    rows = [line.split() for line in str(ltinet.margin(([0.5], [1.0, 1.0]))).splitlines()]
    assert [row[1:] for row in rows[2:5]] == [["inf", "–"]] * 3


def test_changes_of_an_unstable_loop_are_not_called_margins() -> None:
    margins = ltinet.margin(([16.0], [1.0, 3.0, 3.0, 1.0]))
    assert_allclose(margins.gain_margin, 0.5, rtol=1e-13)
    for text in (str(margins), margins._repr_html_()):
        verdict = "closed loop: not stable; it has no margins"
        assert text.removeprefix("<p>").startswith(verdict)
        assert "margin" not in text.replace(verdict, "")
    assert str(ltinet.disk_margin(([16.0], [1.0, 3.0, 3.0, 1.0]))) == "disk margin: 0, the closed loop is not stable"


def test_networks_have_the_margins_of_their_system() -> None:
    system = ltinet.StateSpace([[0, 1], [-4, -0.4]], [0, 1], [8, 0], output_delay=0.1)
    net = ltinet.construct(system)
    assert list(net.margin()) == list(system.margin())
    assert net.isstable()
    assert net.nyquist().closed_loop_unstable_poles == system.nyquist().closed_loop_unstable_poles


def test_several_channels_are_refused_with_the_call_to_use() -> None:
    with pytest.raises(InvalidSystemError, match=r"use disk_margin\(\)"):
        ltinet.margin(ltinet.StateSpace(-np.eye(2), np.eye(2), np.eye(2)))
    with pytest.raises(InvalidSystemError, match="as many outputs as inputs"):
        ltinet.disk_margin(ltinet.StateSpace(-np.eye(2), np.eye(2), np.ones((1, 2))))


def test_disk_margin_of_a_delayed_loop_is_below_its_other_margins() -> None:
    loop = ltinet.StateSpace(-0.5, 0.5, 5.0, output_delay=0.5)
    margins, disk = loop.margin(), loop.disk_margin()
    assert disk.gain_range[1] <= margins.gain_margin
    assert disk.phase <= margins.phase_margin
    # S − T on a fine grid never exceeds its peak by more than the grid can see.
    omega = np.linspace(0.0, 20.0, 200_001)
    L = loop.frequency_response(omega)[:, 0, 0]
    assert_allclose(disk.margin, 2.0 / np.abs((1 - L) / (1 + L)).max(), rtol=1e-7)
