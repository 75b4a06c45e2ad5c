"""Hypothesis: what `step_info` reads off is that of the exact curve, on real systems: six digits or more of everything.

Truth is a sum of modes in balls, looked at closely and bisected; nothing of the library takes part in it.
"""

import math

import numpy as np
import pytest

import ltinet
from step_curve import StepCurve, modal_system

# Of data sets that settle: pairs (output, input), every input and every output at least once.
PAIRS = {
    "beam": [(0, 0)],
    "building": [(0, 0)],
    "cdplayer": [(0, 0), (1, 1)],
    "drum_boiler": [(0, 0), (1, 1), (0, 2), (1, 2)],
    "heat": [(0, 0)],
    "helicopter_v73": [(0, 0), (1, 1), (2, 2), (0, 3), (1, 4), (2, 5)],
    "iss": [(0, 0), (1, 1), (2, 2)],
    "j100_jet_engine": [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1)],
    "lf10_beam_descriptor": [(0, 0)],
    "mr_demo": [(0, 0), (1, 1), (0, 1)],
    "pde": [(0, 0)],
}
CLOSE = 1e-6  # of each number
NOTHING = 1e-12  # of the peak: what goes the other way by less is rounding, and none


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_six_digits_of_the_exact_curve(name, data_dir):
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    extra = {"C": np.eye(28)[[0, 11, 27]]} if name == "helicopter_v73" else {}
    system = ltinet.load_system(data_dir / f"{name}.mat", **extra)
    E, A, B = (None, system.A, system.B) if system.descriptor is None else system.descriptor
    modes, info = modal_system(E, A, B, system.C, system.D), system.step_info()
    for i, j in PAIRS[name]:
        curve = StepCurve.of(modes, i, j)
        assert np.all(curve.moments_missed() <= 1e-13), "the oracle does not know its own curve"
        expected = read_off(curve)
        found = {fact: float(getattr(info, fact)[i, j]) for fact in expected}
        assert found == pytest.approx(expected, rel=CLOSE, abs=0.0), (i, j)


def read_off(curve):
    """Every fact of a step response, of its exact curve."""
    nodes, final = curve.nodes(), float(curve.final)
    (top_time, top), (bottom_time, bottom) = nodes.highest(1.0), nodes.highest(-1.0)
    peak_time, peak = max((top_time, top), (bottom_time, bottom), key=lambda own: own[1])
    if abs(final) >= peak:
        peak_time, peak = math.inf, abs(final)
    facts = {"final_value": final, "peak": peak, "peak_time": peak_time}
    if final == 0.0:
        return facts
    beyond, against = (top, bottom) if final > 0.0 else (bottom, top)
    return facts | {
        "rise_time": nodes.first_reaching(0.9 * final) - nodes.first_reaching(0.1 * final),
        "settling_time": nodes.settling_time(0.02 * abs(final)),
        "overshoot": 100.0 * max(0.0, beyond / abs(final) - 1.0),
        "undershoot": 100.0 * against / abs(final) if against > NOTHING * peak else 0.0,
    }
