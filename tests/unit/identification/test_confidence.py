"""Hypothesis: regions and bands of identified models are as wide as closed forms, dense algebra and repetition say."""

import numpy as np
import pytest
from scipy import linalg, signal

import ltinet
from ltinet.identification.linear_parameters import DrivenModel, InitialCondition, fit_inputs
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.order_selection import (
    Candidate,
    EstimationSettings,
    admissible_orders,
    fit_driven_model,
    refine_model,
)
from ltinet.identification.output_error import ParameterLayout, refine_output_error
from ltinet.identification.records import Record
from ltinet.identification.report import format_poles
from ltinet.identification.subspace import compress_hankel, decompose_subspace
from ltinet.identification.uncertainty import (
    AmbiguousPolePair,
    delayed_frequency_band,
    innovation_model,
    parameter_covariance,
    pole_uncertainties,
)

N = 2000


def one_real_pole(pole: float) -> ModalModel:
    ones = np.ones((1, 1), complex)
    return ModalModel(np.array([pole + 0j]), np.array([False]), ones, ones, np.zeros((1, 1)), linear=False)


def closest(pole: float, record: Record) -> DrivenModel:
    start = fit_inputs(one_real_pole(pole), (record,), feedthrough=False, trend="none", scale=np.ones(1))
    found = refine_output_error(start, (record,), n_direct=0, trend="none", scale=np.ones(1))
    return start if found is None else found


def record_of(rng: np.random.Generator, pole: float, gain: float, noise: float, colour: float) -> Record:
    u = rng.standard_normal((N, 1))
    e = noise * signal.lfilter([1.0], [1.0, -colour], rng.standard_normal((N + 500, 1)), axis=0)[500:]
    return Record(u, signal.lfilter([0.0, gain], [1.0, -pole], u, axis=0) + e)


def two_modes(*, linear: bool) -> tuple[ModalModel, InitialCondition]:
    """A real pole and a pair, two inputs, two outputs."""
    B = np.array([[1.0, -0.4], [0.7 + 0.2j, 1.1 - 0.5j]], dtype=complex)
    C = np.array([[0.8, 0.5 - 0.3j], [-0.6, 1.2 + 0.4j]], dtype=complex)
    D = np.array([[0.1, 0.0], [-0.2, 0.3]])
    model = ModalModel(np.array([0.7, 0.6 + 0.5j]), np.array([False, True]), C, B, D, linear=linear)
    return model, InitialCondition(np.array([0.3, -0.2 + 0.1j]), np.array([[0.5], [-0.1]]))


def simulated(model: ModalModel, start: InitialCondition, u: np.ndarray) -> np.ndarray:
    """Sample by sample, from the definition of the modes."""
    v, y = start.states.copy(), np.empty((len(u), model.n_outputs))
    for k, now in enumerate(u):
        entering = model.B @ now
        y[k] = (model.C @ (v + model.direct_shares * entering)).real + model.D @ now + start.trends[:, 0]
        v = model.poles * v + entering
    return y


@pytest.mark.parametrize("pole", [0.3, 0.9])
def test_covariance_matches_cramer_rao(pole: float) -> None:
    gain, noise = 1.5, 0.2
    record = record_of(np.random.default_rng(3), pole, gain, noise, 0.0)
    found = parameter_covariance(closest(pole, record), (record,), n_direct=0, trend="none")
    assert found is not None
    bound = noise**2 * (1.0 - pole**2) ** 3 / (N * gain**2)
    # Sums over 2,000 samples stand for expectations; with |λ| = 0.9 about 200 of them count: 3/√200, twice in variance.
    assert found.matrix[0, 0] == pytest.approx(bound, rel=0.3)


@pytest.mark.slow
def test_covariance_matches_spread_in_colored_noise() -> None:
    pole, colour = 0.8, 0.95
    poles, told, usual = [], [], []
    for number in range(100):
        record = record_of(np.random.default_rng([4, number]), pole, 1.0, 0.1, colour)
        linear = closest(pole, record)
        found = parameter_covariance(linear, (record,), n_direct=0, trend="none")
        assert found is not None
        poles.append(linear.model.poles[0].real)
        told.append(found.matrix[0, 0])
        usual.append(linear.errors[0] / N * (1.0 - pole**2) ** 3 / N)
    ratio = np.var(poles) / np.mean(told)
    # 100 draws: variance to √(2/100) = 14 %; three times that. The formula for white noise is outside.
    assert abs(ratio - 1.0) < 0.45
    assert abs(np.var(poles) / np.mean(usual) - 1.0) > 0.45


@pytest.mark.slow
@pytest.mark.parametrize("linear", [False, True])
def test_sandwich_covariance(linear: bool) -> None:
    rng = np.random.default_rng(5)
    model, start = two_modes(linear=linear)
    u = rng.standard_normal((300, 2))
    e = signal.lfilter([1.0], [1.0, -0.8], rng.standard_normal((300, 2)), axis=0) @ np.array([[0.1, 0.05], [0.0, 0.2]])
    record = Record(u, simulated(model, start, u) + e)
    fitted = fit_inputs(model, (record,), feedthrough=True, trend="constant", scale=np.ones(2))
    found = parameter_covariance(fitted, (record,), n_direct=2, trend="constant")
    assert found is not None
    parameters = ParameterLayout(fitted.model, 2, "constant", 1)
    theta = parameters.packed(fitted.model, fitted.starts)

    def outputs(at: np.ndarray) -> np.ndarray:
        own, starts = parameters.unpacked(at)
        return simulated(own, starts[0], u).T

    left = record.y.T - outputs(theta)
    scale = np.sqrt((left**2).mean(axis=1))
    J = np.stack([(outputs(theta + h) - outputs(theta - h)) / 2e-5 for h in 1e-5 * np.eye(len(theta))], axis=-1)
    J = (J / scale[:, None, None]).reshape(-1, len(theta))
    filters, W = innovation_model([(left / scale[:, None]).T])
    L = linalg.block_diag(
        *(np.linalg.inv(linalg.toeplitz(np.r_[f, np.zeros(300 - len(f))], np.eye(300)[0])) for f in filters)
    )
    half = np.linalg.solve(J.T @ J, J.T @ L)
    dense = half @ np.kron(W, np.eye(300)) @ half.T * 600.0 / (600.0 - len(theta))
    step = np.linalg.lstsq(J, (left / scale[:, None]).ravel(), rcond=None)[0]  # the model is not the closest one
    dense += np.outer(step, step)
    kept = parameters.n_shared
    # Central differences with steps of 1e-5 have about 1e-9; the condition of J, below 1e3, comes on top.
    np.testing.assert_allclose(found.matrix, dense[:kept, :kept], rtol=0, atol=1e-6 * np.abs(dense).max())


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_bands_match_differences(hold: str) -> None:
    rng = np.random.default_rng(6)
    model, start = two_modes(linear=hold == "linear")
    u = rng.standard_normal((1500, 2)) * [1.0, 300.0]
    y = simulated(model, start, u) + rng.standard_normal((1500, 2))
    found = ltinet.identify(u, y * [1.0, 1e-3], dt=0.1, order=3, delay=0, hold=hold)
    assert found.covariance is not None
    omega, t = np.array([0.0, 0.5, 3.0, 20.0]), np.array([0.0, 0.1, 0.7, 5.0])
    frequency, step = found.frequency_band(omega), found.step_band(t)
    np.testing.assert_allclose(frequency.response, found.system.frequency_response(omega), rtol=1e-9)
    exact = found.system.step_response(t).y.transpose(1, 2, 0)
    np.testing.assert_allclose(step.response, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())

    def moved(direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Responses with all parameters moved along a direction: of systems built anew, not of derivatives."""
        own, parameters = found.covariance, found.covariance.parameters
        n_local = parameters.n_records * parameters.n_local
        theta = parameters.packed(own.model, (InitialCondition(np.zeros(2, complex), np.zeros((2, 1))),))
        theta = theta + np.r_[direction, np.zeros(n_local)]
        from ltinet.identification.modal_model import to_continuous_time

        changed = to_continuous_time(parameters.unpacked(theta)[0], 0.1)
        system = ltinet.StateSpace(changed.A, changed.B, changed.C, changed.D)
        steps = system.step_response(t).y.transpose(1, 2, 0)
        return own.gain * system.frequency_response(omega), own.gain * steps

    root = np.linalg.cholesky(found.covariance.matrix)
    small = 1e-3
    changes = [(moved(small * column), moved(-small * column)) for column in root.T]
    by_frequency = np.stack([(a[0] - b[0]) / (2.0 * small) for a, b in changes], axis=-1)
    by_step = np.stack([(a[1] - b[1]) / (2.0 * small) for a, b in changes], axis=-1)
    magnitude = 20.0 / np.log(10.0) * (by_frequency / frequency.response[..., None]).real
    phase = (by_frequency / frequency.response[..., None]).imag
    # Differences over a thousandth of a deviation: the second order is below 1e-5 of the first.
    np.testing.assert_allclose(frequency.magnitude_deviation, np.linalg.norm(magnitude, axis=-1), rtol=1e-4)
    # At rest there is no phase but what rounding leaves of two responses, hundreds of eps of each, over their distance.
    rounding = 200.0 * np.finfo(float).eps / small
    np.testing.assert_allclose(frequency.phase_deviation, np.linalg.norm(phase, axis=-1), rtol=1e-4, atol=rounding)
    np.testing.assert_allclose(step.deviation, np.linalg.norm(by_step, axis=-1), rtol=1e-4)


def test_region_quantile() -> None:
    pair = ltinet.PoleUncertainty(-1.0 + 2.0j, np.array([[0.04, 0.01], [0.01, 0.09]]), True)
    axes, turn = np.linalg.eigh(pair.covariance)
    for radius, inside in ((np.sqrt(9.20), True), (np.sqrt(9.22), False)):  # χ² with 2 degrees: 9.2103
        for angle in np.linspace(0.0, 6.0, 7):
            re, im = turn @ (np.sqrt(axes) * radius * np.array([np.cos(angle), np.sin(angle)]))
            assert pair.contains(pair.pole + complex(re, im)) is inside
    assert pair.contains(-1.0 - 2.0j)
    assert pair.contains(pair.pole, level=0.0)
    real = ltinet.PoleUncertainty(-1.0 + 0.0j, np.array([[0.01]]), False)
    assert real.contains(-1.0 + 0.257j * -1j)
    assert not real.contains(-1.0 + 0.258j * -1j)
    assert not real.contains(-1.0 + 0.01j)
    assert real.contains(-1.19, level=0.95) is True
    assert real.contains(-1.2, level=0.95) is False


def test_continuous_pole_deviations() -> None:
    record = record_of(np.random.default_rng(7), 0.8, 1.0, 0.1, 0.0)
    found = parameter_covariance(closest(0.8, record), (record,), n_direct=0, trend="none")
    assert found is not None
    (own,) = pole_uncertainties(found, 0.25)
    pole = found.model.poles[0].real
    assert own.pole == pytest.approx(np.log(pole) / 0.25)
    assert own.deviation.real == pytest.approx(np.sqrt(found.matrix[0, 0]) / (0.25 * pole))


def test_summary_shows_pole_uncertainty() -> None:
    record = record_of(np.random.default_rng(8), 0.8, 1.0, 0.1, 0.0)
    found = ltinet.identify(record.u, record.y, dt=0.5, order=1)
    (own,) = found.pole_uncertainty()
    assert f"[±{2.5758 * own.deviation.real:.2g}]" in str(found)
    with pytest.raises(ltinet.InvalidSignalError, match="omega"):
        found.frequency_band([-1.0])
    unknown = parameter_covariance(
        fit_inputs(one_real_pole(0.8), (record.part(slice(0, 3)),), feedthrough=True, trend="linear", scale=np.ones(1)),
        (record.part(slice(0, 3)),),
        n_direct=1,
        trend="linear",
    )
    assert unknown is None


def test_meeting_poles_share_a_region() -> None:
    """Against all pairs of real poles on a fine grid, and the one point that a pair of conjugates is."""
    two = AmbiguousPolePair(0.7, -1e-4, np.array([[1e-4, 2e-6], [2e-6, 1e-6]]), None)
    W, limit = np.linalg.inv(two.covariance), -2.0 * np.log(0.01)  # χ² with 2 degrees at 99 %
    assert two.reaches_zero(0.99)
    partners = np.linspace(0.0, 1.5, 30_001)
    for pole in np.linspace(0.6, 0.85, 26):
        steps = np.stack([0.5 * (pole + partners) - two.mean, (0.5 * (pole - partners)) ** 2 - two.discriminant])
        nearest = np.einsum("ik,ij,jk->k", steps, W, steps).min()
        assert abs(nearest / limit - 1.0) > 1e-3  # what lies on the edge would be decided by the grid
        assert two.contains(complex(pole), level=0.99) is bool(nearest < limit)
    for imaginary in np.linspace(0.001, 0.1, 26):
        step = np.array([0.01, -(imaginary**2) - two.discriminant])
        assert two.contains(complex(0.71, imaginary), level=0.99) is bool(step @ W @ step < limit)
        assert two.contains(complex(0.71, -imaginary), level=0.99) is bool(step @ W @ step < limit)
    assert AmbiguousPolePair(0.7, -1e-2, two.covariance, None).reaches_zero(0.99) is False


def test_discrete_region_contains_continuous_poles() -> None:
    two = AmbiguousPolePair(-0.8, 0.0, np.diag([1e-6, 1e-6]), 0.5)
    pair = complex(np.log(-0.8 + 0.02j)) / 0.5
    assert two.contains(pair, level=0.99)
    assert two.contains(complex(np.log(-0.81 + 0j)) / 0.5, level=0.99)  # a real one, at half the sampling frequency
    assert not two.contains(pair + 2.0j * np.pi / 0.5, level=0.99)  # the same at samples, and another pole


@pytest.mark.slow
def test_nearly_meeting_poles_are_contained() -> None:
    """Regions by the slope of the root hold half of these, whose estimates are pairs as often as real."""
    true, held, n_pairs = (0.72, 0.7), [], 0
    setting = EstimationSettings(1, False, "none", False, np.ones(1), False, True, N)
    for seed in range(40):
        rng = np.random.default_rng([91, seed])
        u = rng.standard_normal(N)
        y = signal.lfilter([0.0, 1.0, -0.5], np.poly(true), u)
        records = (Record(u[:, None], (y + 0.1 * y.std() * rng.standard_normal(N))[:, None]),)
        start = fit_driven_model(*decompose_subspace(compress_hankel(records, 10), "moesp").model(2), records, setting)
        assert start is not None
        best = refine_model(start, records, setting) or start
        found = parameter_covariance(best, records, n_direct=0, trend="none")
        assert found is not None
        regions = pole_uncertainties(found, 1.0)
        n_pairs += regions[0].is_pair
        held += [any(own.contains(complex(np.log(pole))) for own in regions) for pole in true]
    assert 5 <= n_pairs <= 35
    assert np.mean(held) >= 0.95  # 99 % of 80, less two and a half spreads of dependent twos


def test_refinement_with_as_many_samples_as_parameters() -> None:
    """Pole, input weight and start are three parameters: they reproduce three samples exactly."""
    u = np.array([[1.0], [-0.5], [2.0]])
    record = Record(u, signal.lfilter([0.0, 1.0], [1.0, -0.8], u, axis=0) + 0.3 * 0.8 ** np.arange(3.0)[:, None])
    start = fit_inputs(one_real_pole(0.5), (record,), feedthrough=False, trend="none", scale=np.ones(1))
    refined = refine_output_error(start, (record,), n_direct=0, trend="none", scale=np.ones(1))
    assert refined is not None
    assert refined.errors[0] <= 1e-12 * start.errors[0]
    assert refined.model.poles.real == pytest.approx([0.8], rel=1e-6)


@pytest.mark.parametrize("n_poles", [7, 8, 9])
def test_summary_lists_eight_poles(n_poles: int) -> None:
    poles = -np.arange(1.0, n_poles + 1.0) + 0j
    lines = format_poles(poles, ())
    assert [line.split()[:2] for line in lines[:8]] == [["pole", f"-{k}"] for k in range(1, min(n_poles, 8) + 1)]
    assert [line.split() for line in lines[8:]] == ([["…", "1", "more"]] if n_poles == 9 else [])


@pytest.mark.parametrize(("score", "is_admissible"), [(1.010, True), (1.013, False)])
def test_orders_within_chance_are_admissible(score: float, is_admissible: bool) -> None:
    """Eight states fewer, with an input and an output: 4 √(16 · 1000/2000)/1000 = 0.0113 is due to chance."""
    driven, errors = DrivenModel(one_real_pole(0.5), (), np.array([2000.0])), np.array([1000.0])
    best = {
        order: (Candidate(order, "moesp", 10, "simulation", False, (driven,), (driven,), errors, errors), value)
        for order, value in ((2, score), (10, 1.0))
    }
    assert admissible_orders(best, 2000, 1000) == ([2, 10] if is_admissible else [10])


def test_bands_contain_delays() -> None:
    rng = np.random.default_rng(11)
    rig = ltinet.StateSpace([[-1.0]], [[2.0, -1.0]], [[1.0], [0.5]], input_delay=[0.7, 0.2])
    t = 0.1 * np.arange(1200)
    u = rng.standard_normal((1200, 2))
    y = rig.simulate(u, t, hold="zero").y + 0.01 * rng.standard_normal((1200, 2))
    found = ltinet.identify(u, y, dt=0.1, order=1, delay=[7, 2], hold="zero")
    omega, times = np.array([0.0, 0.3, 2.0, 9.0]), np.array([0.0, 0.15, 0.65, 0.75, 4.0])
    frequency, step = found.frequency_band(omega), found.step_band(times)
    np.testing.assert_allclose(frequency.response, found.system.frequency_response(omega), rtol=1e-9)
    np.testing.assert_allclose(
        step.response, found.system.step_response(times).y.transpose(1, 2, 0), rtol=1e-9, atol=1e-12
    )
    assert np.all(step.deviation[:2] == 0.0, axis=(0, 1))[0]
    # A delay known exactly changes neither deviation; at rest there is no phase but rounding.
    core = delayed_frequency_band(frequency, -found.system.signal_settings.total_delay(2, 2))
    np.testing.assert_allclose(frequency.magnitude_deviation, core.magnitude_deviation, rtol=1e-12)
    np.testing.assert_allclose(frequency.phase_deviation[1:], core.phase_deviation[1:], rtol=1e-12)
    phase = found.plot.bode(omega[1:], pairs=[(0, 0)]).axes[1].get_lines()[0].get_ydata()
    exact = np.rad2deg(np.angle(rig.frequency_response(omega[1:])[:, 0, 0]))
    assert np.all(np.abs((phase - exact + 180.0) % 360.0 - 180.0) < 1.0)
