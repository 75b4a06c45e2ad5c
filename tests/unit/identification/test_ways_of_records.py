"""Parts of record identification on drawn systems: each does what its equation says."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg, signal

import ltinet
from drawn_records import drawn_system, record, run
from ltinet.errors import InvalidSignalError
from ltinet.identification.delay_estimation import bound_delays, estimate_delays
from ltinet.identification.linear_parameters import (
    ModalDrive,
    compress_regressors,
    compute_regressors,
    fit_inputs,
    forced_outputs,
    simulated_outputs,
)
from ltinet.identification.modal_model import to_continuous_time, undriven_modal_model
from ltinet.identification.order_selection import EstimationSettings
from ltinet.identification.output_error import ParameterLayout
from ltinet.identification.preprocessing import fit_autoregression, whiten
from ltinet.identification.records import Record
from ltinet.identification.subspace import METHODS, compress_hankel, decompose_subspace


def hankel(one, s):
    z = np.hstack([one.u, one.y])
    n, m = len(z) - 2 * s + 1, one.u.shape[1]
    rows = [z[k : k + n] for k in range(2 * s)]
    parts = [
        [r[:, :m] for r in rows[s:]],
        [r[:, :m] for r in rows[:s]],
        [r[:, m:] for r in rows[:s]],
        [r[:, m:] for r in rows[s:]],
    ]
    return np.hstack([own for part in parts for own in part])


@pytest.mark.parametrize("noise", [0.1, 0.0], ids=["by products", "by rotations"])
def test_hankel_factor(noise):
    rng = np.random.default_rng(0)
    system = drawn_system(rng, 3, 2, 2)
    records = (record(rng, system, 150, noise=noise), record(rng, system, 90, noise=noise))
    H = np.vstack([hankel(own, 6) for own in records])
    for s in (6, 4):
        found = compress_hankel(records, 6).with_block_rows(s)
        own = np.vstack([hankel(one.part(slice(6 - s, len(one) - 6 + s)), s) for one in records])
        assert np.allclose(found.R.T @ found.R, own.T @ own, rtol=0.0, atol=1e-10 * np.abs(H.T @ H).max())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_poles_of_clean_records(seed, method):
    rng = np.random.default_rng(seed)
    order, n_inputs, n_outputs = rng.integers(1, 6), *rng.integers(1, 4, 2)
    system = drawn_system(rng, order, n_inputs, n_outputs, negative=True)
    found = decompose_subspace(compress_hankel((record(rng, system, 800),), 8), method)
    A, _ = found.model(order)
    true = np.linalg.eigvals(system[0])
    # The Hankel values that are left after the weakest state decide; 1e-6 is far above their rounding and far below
    # the distance of drawn poles.
    assert all(np.abs(np.linalg.eigvals(A) - pole).min() < 1e-6 for pole in true)


@pytest.mark.parametrize("method", METHODS)
def test_subspace_values_match_their_definitions(method):
    """Projections of future outputs on the past, with inputs removed, computed from the Hankel matrix itself."""
    rng = np.random.default_rng(2)
    s, one = 3, record(rng, drawn_system(rng, 2, 1, 2), 200, noise=0.1)
    H = hankel(one, s)
    future_u, past, future_y = H[:, :s], H[:, s : 4 * s], H[:, 4 * s :]
    without_u = np.eye(len(H)) - future_u @ np.linalg.pinv(future_u)
    if method == "moesp":  # orthogonal projection of the outputs on the past
        on_past = without_u @ past
        expected = np.linalg.svd(on_past @ np.linalg.pinv(on_past) @ future_y, compute_uv=False)
    elif method == "n4sid":  # oblique projection on the past along the future inputs
        gain = np.linalg.lstsq(np.hstack([past, future_u]), future_y, rcond=None)[0][: past.shape[1]]
        expected = np.linalg.svd(past @ gain, compute_uv=False)
    else:  # canonical correlations
        expected = np.sort(np.cos(linalg.subspace_angles(without_u @ past, without_u @ future_y)))[::-1]
    values = decompose_subspace(compress_hankel((one,), s), method).values
    assert values == pytest.approx(expected[: len(values)], rel=1e-8)


def test_compressed_regressors_have_the_same_products():
    rng = np.random.default_rng(3)
    system = drawn_system(rng, 3, 2, 1)
    one = record(rng, system, 60, noise=0.1)
    model = undriven_modal_model(system[0], system[2], n_inputs=2, linear=False)
    products = []
    for part in (compress_regressors(model, one), compute_regressors(model, one)):
        Z = np.hstack(
            [part.decays, part.responses.reshape(len(part.inputs), -1), part.inputs, part.trends, part.outputs]
        )
        products.append(Z.conj().T @ Z)
    assert np.allclose(products[0], products[1], rtol=0.0, atol=1e-12 * np.abs(products[1]).max())


def test_sequences_are_what_modes_do():
    rng = np.random.default_rng(1)
    system = drawn_system(rng, 5, 2, 3)
    one = record(rng, system, 400)
    modes = undriven_modal_model(system[0], system[2], n_inputs=2, linear=False)
    whole = compute_regressors(modes, one)
    for i, pole in enumerate(modes.poles):
        assert np.allclose(whole.decays[:, i], pole ** np.arange(400))
        v = np.zeros(400, complex)
        for k in range(399):
            v[k + 1] = pole * v[k] + one.u[k, 1]
        assert np.allclose(whole.responses[:, i, 1], v)
    small = compress_regressors(modes, one)
    assert len(small.outputs) < 60
    assert np.allclose(small.responses[:, 0].conj().T @ small.outputs, whole.responses[:, 0].conj().T @ whole.outputs)


@pytest.mark.parametrize("linear", [False, True])
def test_output_derivatives(linear):
    rng = np.random.default_rng(2)
    one = record(rng, drawn_system(rng, 4, 2, 2), 200, noise=0.1)
    A, C = decompose_subspace(compress_hankel((one,), 6), "moesp").model(4)
    modes = undriven_modal_model(A, C, n_inputs=2, linear=linear)
    found = fit_inputs(modes, (one,), feedthrough=True, trend="constant", scale=np.ones(2))
    own = ParameterLayout(found.model, n_direct=2, trend="constant", n_records=1)
    theta = own.packed(found.model, found.starts)
    model, (start,) = own.unpacked(theta)
    columns = own.derivatives(compute_regressors(model, one, ModalDrive(model.B, start.states)), model, start, record=0)
    for place in range(len(theta)):
        step = 1e-6 * max(1.0, abs(theta[place]))
        ends = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[place] += sign * step
            other, (first,) = own.unpacked(moved)
            ends.append(simulated_outputs(compute_regressors(other, one), other, first))
        slope = (ends[0] - ends[1]).T / (2.0 * step)
        assert np.abs(slope - columns[:, :, place]).max() <= 1e-6 * (1e-3 + np.abs(slope).max())


@pytest.mark.parametrize("seed", range(4))
def test_continuous_time_conversion(seed):
    rng = np.random.default_rng(seed)
    system = drawn_system(rng, 5, 2, 2, negative=True)
    one = record(rng, system, 300, noise=0.01)
    modes = undriven_modal_model(system[0], system[2], n_inputs=2, linear=False)
    model = fit_inputs(modes, (one,), feedthrough=True, trend="none", scale=np.ones(2)).model
    found = to_continuous_time(model, 0.1)
    net = ltinet.construct(ltinet.StateSpace(found.A, found.B, found.C, found.D))
    y = net.simulate(one.u, 0.1 * np.arange(300), hold="zero").y
    expected = forced_outputs(compute_regressors(model, one), model)
    assert np.abs(y - expected).max() <= 1e-10 * np.abs(expected).max()
    A, B, C, D = model.sampled()
    assert np.allclose(run(A, B, C, one.u) + one.u @ D.T, expected)


def test_first_order_hold():
    """A system driven by lines, identified with lines: D is that of continuous time, 0, and poles are true."""
    rng = np.random.default_rng(5)
    system = ltinet.StateSpace([[-1.0, 3.0], [-3.0, -1.0]], [[1.0], [0.5]], [[1.0, 0.0]])
    t = 0.2 * np.arange(600)
    u = rng.standard_normal((600, 1))
    y = ltinet.construct(system).simulate(u, t, hold="linear").y
    found = ltinet.identify(u, y, dt=0.2, order=2, hold="linear", trend="none", delay=0)
    assert np.sort_complex(found.poles()) == pytest.approx(np.sort_complex(system.poles()), abs=1e-8)
    assert np.abs(found.system.D).max() <= 1e-8
    omega = np.geomspace(0.1, 10.0, 20)
    assert found.system.frequency_response(omega) == pytest.approx(system.frequency_response(omega), abs=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_delays_are_found(seed):
    rng = np.random.default_rng([3, seed])
    system = drawn_system(rng, 3, 2, 2)
    one = record(rng, system, 2000, noise=0.03)
    delays = tuple(rng.integers(0, 6, 2).tolist())
    longest = max(delays)
    early = np.stack([one.u[d : len(one) - longest + d, j] for j, d in enumerate(delays)], axis=1)
    late = Record(early, one.y[: len(one) - longest])
    assert bound_delays((late,)) == delays
    assert np.array_equal(late.shifted(delays).u, one.u[longest : len(late)])


def test_whitening():
    rng = np.random.default_rng(4)
    noise = np.zeros((5000, 1))
    for k in range(1, 5000):
        noise[k] = 0.9 * noise[k - 1] + rng.standard_normal()
    coefficients = fit_autoregression([noise])
    assert coefficients[:2] == pytest.approx([1.0, -0.9], abs=0.05)  # three standard deviations: √(0.19/5000) each
    system = drawn_system(rng, 2, 1, 1)
    one = record(rng, system, 300)
    (filtered,) = whiten((one,), coefficients)
    A, _ = decompose_subspace(compress_hankel((filtered,), 5), "moesp").model(2)
    assert all(np.abs(np.linalg.eigvals(A) - pole).min() < 1e-6 for pole in linalg.eigvals(system[0]))


def test_linear_trend():
    """A drift of ten times the outputs: to a subspace method that sees it, it is a state at 1."""
    rng = np.random.default_rng(31)
    u = rng.standard_normal(2000)
    true = np.array([0.8, -0.5])
    y = signal.lfilter([0.0, 1.0, 0.3], np.poly(true), u)
    drift = 10.0 * y.std() * np.linspace(-1.0, 1.0, len(y))
    found = ltinet.identify(
        u, y + drift + 0.01 * rng.standard_normal(len(y)), dt=1.0, order=2, method="moesp", block_rows=10,
        trend="linear", delay=0, refine=False,
    )  # fmt: skip
    poles = np.sort(np.linalg.eigvals(found.discrete.A).real)
    # √(2 / 2000) of noise beside the outputs' one, 3e-4, and ten times that for what weighs slow states.
    np.testing.assert_allclose(poles, np.sort(true), atol=3e-3)
    assert found.fits.min() > 99.0


def test_fit_from_free_responses_in_parts(monkeypatch):
    """Free responses of two states at a time give the start that the record has."""
    from ltinet.identification import record_comparison

    monkeypatch.setattr(record_comparison, "_CHUNK_SIZE", 100)  # as if 50 samples were many
    A, B, C = np.diag([-0.5, -1.0, -2.0]), np.ones((3, 1)), np.array([[1.0, 2.0, -1.0]])
    system = ltinet.StateSpace(A, B, C, np.zeros((1, 1)))
    t = np.linspace(0.0, 4.9, 50)
    free = (C @ (np.array([[3.0], [-1.0], [2.0]]) * np.exp(np.diag(A)[:, None] * t))).T
    assert system.fit(np.zeros((50, 1)), free, t=t) == pytest.approx([100.0])


@pytest.mark.parametrize(("n_samples", "n_held"), [(1500, 8), (40_000, 8), (70_000, 16), (200_000, 10)])
def test_delays_of_inputs_that_are_held_for_several_samples(n_samples, n_held):
    """A regression of fixed length is biased by what it cuts off, which long records make significant."""
    rng = np.random.default_rng(5)
    u = np.repeat(rng.choice([-1.0, 1.0], n_samples // n_held + 1), n_held)[:n_samples, None]
    plant = ltinet.construct(([[-1.0, 3.0**0.5], [-(3.0**0.5), -1.0]], [[0.0], [1.0]], [[1.0, 0.0]]))
    y = plant.simulate(np.vstack([np.zeros((6, 1)), u[:-6]]), 0.1 * np.arange(n_samples), hold="zero").y
    noise = 0.05 * np.std(y) * rng.standard_normal(y.shape)
    assert bound_delays((Record(u, y + noise),)) == (6,)


@pytest.mark.parametrize(("every", "order"), [(5, None), (12, 2), (37, None), (37, 2)])
def test_records_with_gaps_every_few_samples(every, order):
    """Parts between gaps may be shorter than the whitening filter, the Hankel matrix and the initial states."""
    rng = np.random.default_rng(7)
    u = np.repeat(rng.choice([-1.0, 1.0], 200), 8)
    plant = ltinet.construct(([[-1.0, 3.0**0.5], [-(3.0**0.5), -1.0]], [[0.0], [1.0]], [[1.0, 0.0]]))
    y = plant.simulate(u, 0.1 * np.arange(1600), hold="zero").y[:, 0] + 0.001 * rng.standard_normal(1600)
    y[::every] = y[1] = y[3] = np.nan
    if every == 5:
        with pytest.raises(InvalidSignalError, match="no 10 samples follow each other without a gap"):
            ltinet.identify(u, y, dt=0.1, order=order)
        return
    found = ltinet.identify(u, y, dt=0.1, order=order)
    assert "pole " in str(found)
    if order == 2:
        assert np.abs(found.poles() - plant.poles()).max() < 0.05


def test_delay_of_an_overdamped_plant():
    """The first coefficients of a smooth response are tiny: the first significant one comes some samples late."""
    rng = np.random.default_rng(20)
    plant = ltinet.construct(
        ([[-0.625, -0.0625], [1.0, 0.0]], [[1.0], [0.0]], [[0.0, 0.0625]])
    )  # 1/((8 s + 1)(2 s + 1))
    u = np.repeat(rng.choice([-1.0, 1.0], 80), 50)
    y = plant.simulate(np.concatenate([np.zeros(7), u[:-7]]), 0.1 * np.arange(len(u)), hold="zero").y
    y += 0.005 * rng.standard_normal(y.shape)
    records = (Record(u[:, None] - u.mean(), y - y.mean()),)
    settings = EstimationSettings(
        1, True, "constant", linear=False, scale=y.std(axis=0), stable=True, may_grow=False, longest=len(u)
    )
    bound = bound_delays(records)
    assert bound is not None
    assert bound[0] is None or bound[0] > 8
    estimate = estimate_delays(records, settings)
    assert estimate.samples[0] in (6, 7)
    first, last = estimate.ranges[0]
    assert first <= 7 <= last


def test_parts_shorter_than_the_estimated_delay():
    """A part between gaps that is no longer than the delay holds no input that belongs to its outputs."""
    rng = np.random.default_rng(21)
    u = np.repeat(rng.choice([-1.0, 1.0], 300), 5)
    y = signal.lfilter([0.0, 0.2], [1.0, -0.8], np.concatenate([np.zeros(15), u[:-15]]))
    y += 0.02 * rng.standard_normal(len(u))
    y[[700, 713, 726]] = np.nan
    result = ltinet.identify(u, y, dt=0.1, order=1, refine=False)
    assert result.delay == (15,)
    assert result.residuals(u, y).residuals[0].shape[1] == 1


def test_drift_warning():
    rng = np.random.default_rng(22)
    u = np.repeat(rng.choice([-1.0, 1.0], 100), 20)
    y = signal.lfilter([0.0, 0.1], [1.0, -0.9], u) + 0.01 * rng.standard_normal(len(u))
    drift = 2.0 * np.linspace(0.0, 1.0, len(u))
    warned = ltinet.identify(u, y + drift, dt=1.0, order=2, delay=0, refine=False)
    assert any('trend="linear"' in warning for warning in warned.warnings)
    for known in (
        ltinet.identify(u, y, dt=1.0, order=1, delay=0, refine=False),
        ltinet.identify(u, y + drift, dt=1.0, order=1, delay=0, trend="linear", refine=False),
    ):
        assert not any('trend="linear"' in warning for warning in known.warnings)


def test_summary_has_gain_time_constant_and_units():
    rng = np.random.default_rng(23)
    t = 0.5 * np.arange(1500)
    u = np.repeat(rng.choice([-1.0, 1.0], 150), 10)
    pole = np.exp(-0.5 / 4.0)
    y = signal.lfilter([0.0, 3.0 * (1.0 - pole)], [1.0, -pole], np.concatenate([np.zeros(4), u[:-4]]))
    y += 0.03 * rng.standard_normal(len(u))
    lines = ["time (s),u,y", *(f"{a},{b},{c}" for a, b, c in zip(t, u, y, strict=True))]
    table = ltinet.read_table(io.BytesIO("\n".join(lines).encode()))
    result = ltinet.identify(table.values[:, :1], table.values[:, 1:], t=t, order=1)
    text = str(replace(result, time_unit=table.time_unit))
    assert "4 samples (2 s)" in text
    assert result.system.dcgain()[0, 0] == pytest.approx(3.0, rel=0.01)
    gain = re.search(r"gain +(\S+) \[±(\S+)\]", text)
    assert gain is not None
    assert abs(float(gain[1]) - 3.0) <= float(gain[2]) < 0.1
    constant = re.search(r"τ (\S+) s", text)
    assert constant is not None
    assert float(constant[1]) == pytest.approx(4.0, rel=0.02)
