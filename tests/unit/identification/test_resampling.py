"""Hypothesis: records at uneven times are resampled on request, inputs by their hold, outputs by straight lines."""

import numpy as np
import pytest

import ltinet
from ltinet import InvalidSignalError

SYSTEM = ltinet.StateSpace([[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]])
STEP = 0.05


def zero_held_record() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A switched input and its output at uneven times, all of which lie on a fine grid."""
    rng = np.random.default_rng(4)
    t = STEP * np.cumsum(rng.integers(1, 4, 1500))
    u = rng.choice([-1.0, 1.0], 1500)
    return t, u, SYSTEM.simulate(u, t, hold="zero").y[:, 0]


def test_uneven_times_are_refused_with_a_step_that_works() -> None:
    t, u, y = zero_held_record()
    with pytest.raises(InvalidSignalError, match=r"resample=0\.1 \(the steps are 0\.05 to 0\.15\)"):
        ltinet.identify(u, y, t=t, order=2)


def test_held_inputs_stay_exact_and_outputs_nearly() -> None:
    t, u, y = zero_held_record()
    result = ltinet.identify(u, y, t=t, resample=STEP, order=2, delay=0, trend="none")
    assert result.dt == STEP
    assert any("resampled" in note for note in result.notes)
    # Inputs on the grid are exact; straight lines over at most three steps of 0.1 rad each err by 0.3²/8 = 1 %.
    np.testing.assert_allclose(np.sort_complex(result.system.poles()), np.sort_complex(SYSTEM.poles()), rtol=0.03)


def test_even_times_are_unchanged() -> None:
    rng = np.random.default_rng(5)
    t, u = STEP * np.arange(600), rng.choice([-1.0, 1.0], 600)
    y = SYSTEM.simulate(u, t, hold="zero").y[:, 0] + 0.01 * rng.standard_normal(600)
    first = ltinet.identify(u, y, t=t, order=2, delay=0)
    second = ltinet.identify(u, y, t=t, order=2, delay=0, resample=STEP)
    np.testing.assert_allclose(first.system.poles(), second.system.poles(), rtol=1e-9)


def test_gaps_stay_gaps() -> None:
    t, u, y = zero_held_record()
    y[700:720] = np.nan
    u[900] = np.nan
    result = ltinet.identify(u, y, t=t, resample=STEP, order=2, delay=0, trend="none")
    assert any("3 experiments" in note for note in result.notes)


def test_jumps_and_names_of_tables() -> None:
    t, u, y = zero_held_record()
    table = ltinet.Table(t, np.column_stack([u, y]), ("valve", "T"), None, ())
    inputs = ltinet.Table(t, u[:, None], ("valve",), None, ())
    outputs = ltinet.Table(t, y[:, None], ("T",), None, ())
    assert table.names == ("valve", "T")
    result = ltinet.identify(inputs, outputs, t=t, resample=STEP, order=2, delay=0)
    assert result.system.input_names == ("valve",)
    assert result.system.output_names == ("T",)


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, "fast", 1e-15])
def test_impossible_steps_are_refused(step: object) -> None:
    t, u, y = zero_held_record()
    with pytest.raises(InvalidSignalError, match="resample"):
        ltinet.identify(u, y, t=t, resample=step, order=2)


def test_resampling_needs_times_of_one_record() -> None:
    t, u, y = zero_held_record()
    with pytest.raises(InvalidSignalError, match="resample needs the times"):
        ltinet.identify(u, y, dt=0.1, resample=0.1, order=2)
    with pytest.raises(InvalidSignalError, match="give t as a list of the times of each experiment"):
        ltinet.identify([u, u], [y, y], t=t, resample=0.1, order=2)


def test_experiments_have_their_own_times() -> None:
    t, u, y = zero_held_record()
    parts = [slice(0, 700), slice(700, 1500)]
    records = [[x[part] for part in parts] for x in (u, y, t)]
    result = ltinet.identify(*records[:2], t=records[2], resample=STEP, order=2, delay=0, trend="none")
    assert result.notes[0].startswith("1500 samples at steps of 0.05 to 0.15 resampled to ")
    np.testing.assert_allclose(np.sort_complex(result.system.poles()), np.sort_complex(SYSTEM.poles()), rtol=0.03)
    even = [STEP * np.arange(700), 7.0 + STEP * np.arange(800)]
    inputs = records[0]
    outputs = [SYSTEM.simulate(one, times - times[0], hold="zero").y for one, times in zip(inputs, even, strict=True)]
    result = ltinet.identify(inputs, outputs, t=even, order=2, delay=0, trend="none")
    np.testing.assert_allclose(np.sort_complex(result.system.poles()), np.sort_complex(SYSTEM.poles()), rtol=1e-6)


def test_experiments_need_one_step() -> None:
    _, u, y = zero_held_record()
    times = [0.1 * np.arange(700), 0.2 * np.arange(800)]
    with pytest.raises(InvalidSignalError, match=r"steps of 0\.1 and 0\.2; .*resample=0\.1"):
        ltinet.identify([u[:700], u[700:]], [y[:700], y[700:]], t=times, order=2)
    with pytest.raises(InvalidSignalError, match="t has 2 records of times and u has 1"):
        ltinet.identify([u], [y], t=times, order=2)
    with pytest.raises(InvalidSignalError, match="t has 700 times and u has 800 samples"):
        ltinet.identify([u[:700], u[700:]], [y[:700], y[700:]], t=[times[0], times[0]], order=2)


def test_messages_on_missing_and_repeated_times():
    rng = np.random.default_rng(3)
    t = 0.1 * np.arange(200)
    u, y = rng.standard_normal((2, 200))
    kept = np.delete(np.arange(200), [50, 120])
    with pytest.raises(ltinet.InvalidSignalError, match=r"2 samples missing .* the first after sample 50 at 4\.9"):
        ltinet.identify(u[kept], y[kept], t=t[kept])
    t[60] = t[59]
    with pytest.raises(ltinet.InvalidSignalError, match=r"samples 60 and 61 have the same time, 5\.9"):
        ltinet.identify(u, y, t=t)


def test_a_coarse_step_gives_a_note():
    rng = np.random.default_rng(4)
    t = np.cumsum(rng.uniform(0.05, 0.15, 2000))
    u = np.repeat(rng.choice([-1.0, 1.0], 20), 100)
    y = np.convolve(u, np.exp(-0.05 * np.arange(100)))[:2000]
    notes = ltinet.identify(u, y, t=t, resample=1.0, order=1, delay=0, refine=False).notes
    assert any("times the usual one" in note for note in notes)
