"""Responses of models with delays: those of the core, later by the delays of input and output."""

import mpmath as mp
import numpy as np
import pytest

import ltinet

CORE = ltinet.StateSpace(
    [[0.0, 1.0], [-4.0, -0.8]], [[0.0, 1.0], [4.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 0.0]]
)
TAU, SIGMA = np.array([0.6, 0.25]), np.array([0.0, 1.1])
DELAYED = CORE.with_signal_settings(input_delay=TAU, output_delay=SIGMA, u0=[1.0, 2.0], y0=[300.0, -5.0])
T = np.linspace(0.0, 12.0, 241)


def late(core, delay):
    """A response of the core `(T,)` at T, read `delay` earlier."""
    source = T - delay
    now = source >= -1e-12
    found = np.zeros(len(T))
    found[now] = core(np.clip(source[now], 0.0, None))
    return found


@pytest.mark.parametrize("kind", ["step_response", "impulse_response"])
@pytest.mark.parametrize("model", [DELAYED, ltinet.construct(DELAYED)])
def test_responses_are_those_of_the_core_later(kind, model):
    whole, core = getattr(model, kind)(T), getattr(CORE, kind)(T)
    for j in range(2):
        for i in range(2):
            expected = late(lambda s, j=j, i=i: core(s)[j, :, i], TAU[j] + SIGMA[i])
            assert np.allclose(whole.y[j, :, i], expected, rtol=0.0, atol=1e-13)
    alone = getattr(model, kind)(T, input=1, output=1)
    assert np.allclose(alone.y[:, 0], whole.y[1, :, 1], rtol=0.0, atol=1e-14)
    assert alone.error_bound().shape == (1,)
    assert np.all(whole.error_bound() < 1e-11)
    assert whole.states.shape == (2, 241, 2)
    assert not whole.states[0, T < 0.59].any()


def test_initial_responses_wait_for_the_output_alone():
    whole, core = DELAYED.initial_response([1.0, -1.0], T), CORE.initial_response([1.0, -1.0], T)
    for i in range(2):
        expected = late(lambda s, i=i: core(s)[:, i], SIGMA[i])
        assert np.allclose(whole.y[:, i], expected, rtol=0.0, atol=1e-13)
    assert np.all(whole.error_bound() < 1e-11)


def test_chosen_times_show_the_whole_response():
    chosen = DELAYED.step_response()
    final = DELAYED.dcgain()
    assert np.allclose(chosen.y[:, -1, :].T, final, rtol=0.0, atol=0.02 * np.abs(final).max())
    assert chosen.t[0] == 0.0


def test_frequency_responses_turn_by_exact_phases():
    omega = np.array([0.1, 3.0, 1e3, 1e9])
    with mp.workdps(40):
        phase = [
            [[complex(mp.exp(-1j * mp.mpf(w) * (mp.mpf(s) + mp.mpf(t)))) for t in TAU] for s in SIGMA]
            for w in omega.tolist()
        ]
    total = SIGMA[:, None] + TAU
    for model, core in ((DELAYED, CORE), (ltinet.construct(DELAYED), ltinet.construct(CORE))):
        H, own = model.frequency_response(omega), core.frequency_response(omega)
        rounded = 4.0 * np.finfo(float).eps * (1.0 + omega[:, None, None] * total)  # the sum of both delays is rounded
        assert np.all(np.abs(H - own * np.array(phase)) <= rounded * np.abs(own))


def test_step_info_tells_the_dead_time():
    info, core = DELAYED.step_info(), CORE.step_info()
    total = SIGMA[:, None] + TAU
    assert np.array_equal(info.dead_time, total)
    assert np.allclose(info.settling_time, core.settling_time + total, equal_nan=True)
    assert np.array_equal(info.rise_time, core.rise_time, equal_nan=True)
    assert "dead time" in str(info)
    assert "dead time" not in str(core)
    assert DELAYED.step_info(input=1, output=0).dead_time.tolist() == [[0.25]]


def test_gains_poles_and_zeros_do_not_depend_on_delays():
    assert np.array_equal(DELAYED.dcgain(), CORE.dcgain())
    assert np.array_equal(DELAYED.poles(), CORE.poles())
    assert np.array_equal(DELAYED.zeros(), CORE.zeros())
    assert np.allclose(DELAYED.bandwidth(), CORE.bandwidth(), equal_nan=True)


def test_phases_are_drawn_through_all_their_turns():
    pytest.importorskip("matplotlib")
    omega = np.array([0.1, 1.0, 10.0, 100.0])
    system = ltinet.StateSpace(-1.0, 1.0, 1.0, input_delay=2.0)
    phase = system.plot.bode(omega).axes[1].lines[0].get_ydata()
    assert np.allclose(phase, np.rad2deg(-2.0 * omega - np.arctan(omega)))
