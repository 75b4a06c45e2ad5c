"""Hypothesis: a system comes back from its frequency response as the result that records give, with its confidence."""

import numpy as np
import pytest

import ltinet
from identified_systems import relative_noise

OMEGA = np.geomspace(0.1, 100.0, 150)
RIG = ltinet.StateSpace(
    [[-0.4, 3.0, 0.0], [-3.0, -0.4, 0.0], [0.0, 0.0, -12.0]],
    [[1.0], [0.5], [8.0]],
    [[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]],
)
TRUE = RIG.frequency_response(OMEGA)


def noisy(seed: int, *, floor: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if not floor:
        return TRUE + relative_noise(rng, TRUE, 0.02)
    size = 0.02 * np.sqrt(np.mean(np.abs(TRUE) ** 2, axis=0))
    return TRUE + size * (rng.standard_normal(TRUE.shape) + 1j * rng.standard_normal(TRUE.shape)) / np.sqrt(2.0)


@pytest.fixture(scope="module")
def found() -> ltinet.IdentificationResult:
    return ltinet.identify_frequency(OMEGA, noisy(1), order=range(1, 6), outputs=["a", "b"])


def test_a_system_comes_back():
    system = ltinet.named_system("mass_spring_damper")
    omega = np.geomspace(1e-2, 1e2, 200)
    H = system.frequency_response(omega)
    found = ltinet.identify_frequency(omega, H, outputs=[f"z{i}" for i in range(system.n_outputs)])
    assert np.abs(found.system.frequency_response(omega) - H).max() <= 1e-8 * np.abs(H).max()
    assert ltinet.construct(found).n_outputs == system.n_outputs
    assert found.net.n_inputs == system.n_inputs
    assert "z0" in str(found)
    assert str(found.order) in repr(found)
    assert found.covariance is None  # rounding is no noise whose size could be told


def test_frequency_result_interface(found):
    u = np.random.default_rng(0).standard_normal(500)
    t = 0.05 * np.arange(500)
    other = ltinet.identify(u, ltinet.construct(RIG).simulate(u, t, hold="zero").y, dt=0.05, order=3)
    assert type(found) is type(other) is ltinet.IdentificationResult
    assert found.order == other.order == 3
    assert found.dt is None
    assert found.delay == (0,)
    assert {own.method for own in found.candidates} == {"vector fitting"}
    assert "a frequency response" in str(found)
    assert "[±" in str(found)


def test_fits_are_those_of_the_formula(found):
    H = noisy(2)
    left = np.linalg.norm(H - found.system.frequency_response(OMEGA), axis=(0, 2))
    expected = 100.0 * (1.0 - left / np.linalg.norm(H - H.mean(axis=0), axis=(0, 2)))
    np.testing.assert_allclose(found.fit(OMEGA, H), expected, rtol=1e-9)
    np.testing.assert_allclose(found.fit(), found.fits)
    with pytest.raises(ltinet.InvalidSignalError, match="1 outputs and 1 inputs; the model has 2 and 1"):
        found.fit(OMEGA, H[:, 0, 0])


@pytest.mark.parametrize(
    "call", [lambda own: own.discrete, lambda own: own.simulate([1.0]), lambda own: own.residuals()]
)
def test_methods_that_need_samples_raise(found, call):
    with pytest.raises(ltinet.InvalidSignalError, match=r"frequency response.*result\."):
        call(found)


@pytest.mark.slow
@pytest.mark.parametrize("floor", [False, True])
def test_regions_and_bands_contain_truth(floor):
    """40 measurements, a pair and a real pole, and the band of one channel at a resonance and beyond."""
    poles, at = RIG.poles(), np.array([3.0, 30.0])
    truth = RIG.frequency_response(at)[:, 0, 0]
    held, within = [], []
    for seed in range(40):
        one = ltinet.identify_frequency(OMEGA, noisy(seed, floor=floor), order=3, feedthrough=False)
        regions = one.pole_uncertainty()
        held += [any(own.contains(complex(pole)) for own in regions) for pole in poles[poles.imag >= 0.0]]
        band = one.frequency_band(at)
        off = 20.0 * np.log10(np.abs(band.response[:, 0, 0] / truth))
        within += (np.abs(off) <= 2.576 * band.magnitude_deviation[:, 0, 0]).tolist()
    # 99 % of 80, less three spreads of 0.9.
    assert np.mean(held) >= 0.95
    assert np.mean(within) >= 0.95


def test_gradients_match_differences(found):
    """The deviation of a step response at rest is that of the gain at ω = 0."""
    late = found.step_band([60.0])
    gain = found.frequency_band([0.0])
    np.testing.assert_allclose(late.response, gain.response.real, rtol=1e-6)
    np.testing.assert_allclose(late.deviation, np.sqrt(gain.covariance[..., 0, 0]), rtol=1e-4)


def test_pictures(found):
    above, below = found.plot.compare().axes
    assert len(above.get_lines()) == len(below.get_lines()) == 4  # lines and dots of two channels
    assert f"{found.fits[0]:.1f} %" in above.get_title()
    (dots,) = (line for line in found.plot.compare(outputs=["b"]).axes[0].get_lines() if line.get_marker() == ".")
    np.testing.assert_allclose(dots.get_ydata(), 20.0 * np.log10(np.abs(noisy(1)[:, 1, 0])))
    found.plot.orders()
    found.plot.poles()
    found.plot.bode()


def test_bad_data_are_refused():
    with pytest.raises(ltinet.InvalidSignalError):
        ltinet.identify_frequency([-1.0, 1.0], [1.0, 1.0])
