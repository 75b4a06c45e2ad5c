"""Hypothesis: from clean data comes the true response to 1e-8 of its peak, from noisy data with less than the noise.

Truth is the closed form of systems drawn at random, and the response of real ones; it is compared at every channel by
itself. The noise is one per cent of every number.
"""

import numpy as np
import pytest

import ltinet
from identified_systems import draw_modes, relative_noise, root_mean_square
from ltinet.identification.frequency_fit import fit_response

PEAK = 1e-8
NOISE = 0.01
SYSTEMS = (
    "building", "helicopter_v73", "j100_jet_engine", "drum_boiler", "b767_flutter", "mr_demo", "lf10_beam_descriptor",
)  # fmt: skip
FAMILIES = {
    "one input, one output": {},
    "two by two without direct path": {"p": 2, "m": 2, "direct": False},
    "four by four": {"p": 4, "m": 4},
    "three inputs": {"m": 3},
    "three outputs": {"p": 3},
    "unstable": {"p": 2, "m": 2, "unstable": 1},
    "integrator": {"p": 2, "integrators": 1, "direct": False},
    "lightly damped": {"damping": (0.003, 0.02)},
    "eight decades of frequencies": {"decades": 8.0},
    "eight decades between channels": {"p": 2, "m": 2, "spread": 8.0},
}


def assert_clean(found, H, omega):
    assert np.all(np.abs(found.response(omega) - H).max(axis=0) <= PEAK * np.abs(H).max(axis=0))


def assert_below_noise(found, H, noise, omega):
    assert np.all(root_mean_square(found.response(omega) - H) <= root_mean_square(noise))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("family", FAMILIES)
def test_drawn_systems(family, seed):
    options = FAMILIES[family]
    rng = np.random.default_rng([list(FAMILIES).index(family), seed])
    system = draw_modes(rng, **options)
    omega = np.geomspace(0.1, 10.0 ** (options.get("decades", 2.0) + 1.0), 200)
    H, direct = system.response(omega), options.get("direct", True)
    clean = fit_response(omega, H, feedthrough=direct)
    assert clean.model.n_states == system.order
    assert_clean(clean, H, omega)
    noise = relative_noise(rng, H, NOISE)
    assert_below_noise(fit_response(omega, H + noise, feedthrough=direct), H, noise, omega)


@pytest.fixture(scope="module", params=SYSTEMS)
def measured(request, data_dir):
    """Frequencies over the range of the poles, slowest ones at the origin left out, and the response there."""
    pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    extra = {"C": np.eye(28)[:4]} if request.param == "helicopter_v73" else {}
    system = ltinet.load_system(data_dir / f"{request.param}.mat", **extra)
    sizes = np.abs(system.poles())
    sizes = sizes[sizes > 1e-8 * sizes.max()]
    omega = np.geomspace(sizes.min() / 2.0, sizes.max() * 2.0, 300)
    return omega, system.frequency_response(omega)


@pytest.mark.default_cases(1)
def test_real_systems(measured):
    omega, H = measured
    assert_clean(fit_response(omega, H), H, omega)


@pytest.mark.default_cases(1)
def test_real_systems_in_noise(measured):
    omega, H = measured
    noise = relative_noise(np.random.default_rng(1), H, NOISE)
    assert_below_noise(fit_response(omega, H + noise), H, noise, omega)
