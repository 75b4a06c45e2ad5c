"""Hypothesis: models in innovations form are those of the Kalman filter, also in closed loops and with unstable poles."""

import numpy as np
import pytest
from scipy import linalg

import ltinet
from ltinet.identification.innovations import (
    InnovationModel,
    decompose_predictor,
    innovation_covariance,
    refine_prediction_error,
)
from ltinet.identification.linear_parameters import fit_inputs
from ltinet.identification.modal_model import undriven_modal_model
from ltinet.identification.order_selection import split_records
from ltinet.identification.records import Record
from ltinet.identification.subspace import compress_hankel


def known_model() -> InnovationModel:
    """A pair and a real pole, one input, two outputs; K and the covariance by a Riccati equation."""
    A = np.array([[0.9, 0.2, 0.0], [-0.2, 0.9, 0.0], [0.0, 0.0, 0.7]])
    B, C = np.array([[1.0], [0.5], [-0.8]]), np.array([[1.0, 0.3, 0.5], [-0.4, 0.8, 1.0]])
    P = linalg.solve_discrete_are(A.T, C.T, 0.02 * np.eye(3), 0.05 * np.eye(2))
    covariance = C @ P @ C.T + 0.05 * np.eye(2)
    return InnovationModel(A, B, C, np.array([[0.2], [0.0]]), A @ P @ C.T @ np.linalg.inv(covariance), covariance)


def drawn_record(model: InnovationModel, n: int, seed: int, feedback: float = 0.0) -> Record:
    """Sample by sample, from the definition; the input is white, plus a share of the first output before."""
    rng = np.random.default_rng(seed)
    x, u, y = np.zeros(len(model.A)), rng.standard_normal((n, model.n_inputs)), np.empty((n, len(model.C)))
    e = rng.standard_normal(y.shape) @ np.linalg.cholesky(model.covariance).T
    for k in range(n):
        y[k] = model.C @ x + model.D @ u[k] + e[k]
        x = model.A @ x + model.B @ u[k] + model.K @ e[k]
        if k + 1 < n:
            u[k + 1] -= feedback * y[k, 0]
    return Record(u, y)


def markov(model: InnovationModel, inputs: np.ndarray) -> np.ndarray:
    """Responses C Aⁱ B, which do not depend on the coordinates of the states."""
    return np.stack([model.C @ np.linalg.matrix_power(model.A, i) @ inputs for i in range(6)])


def test_kalman_gain_of_a_known_model() -> None:
    true = known_model()
    record = drawn_record(true, 20000, seed=1)
    found = decompose_predictor(compress_hankel((record,), 15), feedthrough=True).model(3)
    refined = refine_prediction_error(found, (record,), True, "none")
    assert refined is not None
    # 1/√20000 = 0.7 % of gains of order 1, six times.
    for model in (found, refined):
        assert markov(model, model.K) == pytest.approx(markov(true, true.K), abs=0.045)
        assert markov(model, model.B) == pytest.approx(markov(true, true.B), abs=0.045)
        assert model.covariance == pytest.approx(true.covariance, rel=0.05, abs=0.005)


def test_predictions_are_those_of_the_recursion() -> None:
    true = known_model()
    record = drawn_record(true, 300, seed=2)
    x = np.zeros(3)
    expected = {1: [], 4: []}
    for k in range(300):
        expected[1].append(true.C @ x + true.D @ record.u[k])
        ahead = x
        for j in range(k, min(k + 3, 300)):
            ahead = true.A @ ahead + true.B @ record.u[j]
        if k + 3 < 300:
            expected[4].append(true.C @ ahead + true.D @ record.u[k + 3])
        x = true.A @ x + true.B @ record.u[k] + true.K @ (record.y[k] - expected[1][-1])
    # The first state is fitted, and forgotten after some samples.
    assert true.predicted(record.u, record.y, 1)[100:] == pytest.approx(np.array(expected[1])[100:], abs=1e-6)
    assert true.predicted(record.u, record.y, 4)[103:] == pytest.approx(np.array(expected[4])[100:], abs=1e-6)


def test_modes_and_back() -> None:
    true = known_model()
    modes = true.modes()
    assert modes is not None
    same = InnovationModel.of_modes(*modes)
    assert markov(same, same.B) == pytest.approx(markov(true, true.B), abs=1e-12)
    assert markov(same, same.K) == pytest.approx(markov(true, true.K), abs=1e-12)
    predictor = true.predictor()
    assert predictor is not None
    back = InnovationModel.of_predictor(predictor, 1, true.covariance)
    assert markov(back, back.B) == pytest.approx(markov(true, true.B), abs=1e-12)
    assert markov(back, back.K) == pytest.approx(markov(true, true.K), abs=1e-12)


@pytest.mark.slow
def test_pole_deviations_are_those_of_repetition() -> None:
    """Poles of 40 records from a loop, in deviations of their covariance."""
    true, distances = known_model(), []
    for seed in range(40):
        record = drawn_record(true, 1500, seed=seed, feedback=0.3)
        found = decompose_predictor(compress_hankel((record,), 10), feedthrough=True).model(3)
        refined = refine_prediction_error(found, (record,), True, "none")
        modes = (refined or found).modes()
        assert modes is not None
        covariance = innovation_covariance(*modes, (record,), n_direct=1, trend="none")
        assert covariance is not None
        deviations = np.sqrt(covariance.matrix.diagonal())
        if modes[0].is_pair.sum() == 1:
            at = 0 if modes[0].is_pair[0] else 1
            pole = modes[0].poles[modes[0].is_pair][0]
            distances.append([(pole.real - 0.9) / deviations[at], (pole.imag - 0.2) / deviations[at + 1]])
    assert len(distances) >= 38
    # The deviation of 40 normal numbers has the deviation 1/√80 = 0.11: four times; the mean 0.16, four times.
    assert np.abs(np.std(distances, axis=0) - 1.0).max() < 0.45
    assert np.abs(np.mean(distances, axis=0)).max() < 0.65


def unstable_loop(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A pole at 1.02 and one at 0.7, u = r − 0.25 y: closed-loop poles within the unit circle."""
    rng = np.random.default_rng(seed)
    r, e = np.repeat(rng.standard_normal(200), 5), 0.1 * rng.standard_normal(1000)
    A, B, C, K = np.diag([1.02, 0.7]), np.array([0.3, 0.5]), np.array([1.0, 0.6]), np.array([0.3, 0.05])
    assert np.abs(np.linalg.eigvals(A - 0.25 * np.outer(B, C))).max() < 1.0
    x, u, y = np.zeros(2), np.empty(1000), np.empty(1000)
    for k in range(1000):
        y[k] = C @ x + e[k]
        u[k] = r[k] - 0.25 * y[k]
        x = A @ x + B * u[k] + K * e[k]
    return u, y


@pytest.mark.slow
def test_unstable_plant_in_a_loop_is_found() -> None:
    u, y = unstable_loop(3)
    result = ltinet.identify(u, y, dt=1.0, order=2, method="pbsid")
    assert any("unstable" in warning for warning in result.warnings)
    slow = max(result.pole_uncertainty(), key=lambda it: it.pole.real)
    assert slow.pole.real == pytest.approx(np.log(1.02), abs=0.005)
    assert slow.contains(complex(np.log(1.02)))
    assert max(ltinet.identify(u, y, dt=1.0, order=2, stable=True).poles().real) <= 0.0
    chosen = ltinet.identify(u, y, dt=1.0, order=2)
    assert chosen.family == "predictor"
    assert max(chosen.poles().real) == pytest.approx(np.log(1.02), abs=0.005)
    fresh_u, fresh_y = unstable_loop(4)
    ahead = result.predict(fresh_u, fresh_y, horizon=5)
    errors = fresh_y - ahead[:, 0]
    assert errors[10:].std() < 0.25  # noise of 0.1 in 5 steps: 0.1 √(1 + 4 · 0.33²) = 0.12; twice


def test_noise_of_a_result() -> None:
    true = known_model()
    record = drawn_record(true, 4000, seed=5)
    for method in ("moesp", "pbsid"):
        result = ltinet.identify(record.u, record.y, dt=0.1, order=3, method=method)
        # 1/√4000 = 1.6 %, four times; K of a simulated model has its own errors.
        assert result.noise_covariance == pytest.approx(true.covariance, rel=0.1, abs=0.01)
        model = result.discrete
        found = InnovationModel(model.A, model.B, model.C, model.D, result.K, result.noise_covariance)
        assert markov(found, result.K) == pytest.approx(markov(true, true.K), abs=0.15)
        errors = record.y - result.predict(record.u, record.y)
        assert errors.T @ errors / len(errors) == pytest.approx(true.covariance, rel=0.1, abs=0.01)
        assert result.residuals(one_step=True).is_white.all()
        assert "one-step errors" in str(result)


@pytest.mark.slow
def test_predictions_in_units_of_the_records() -> None:
    """Offsets, and channels in other units: predictions are those of scaled records."""
    record = drawn_record(known_model(), 1500, seed=6)
    first = ltinet.identify(record.u, record.y, dt=1.0, order=3)
    u, y = 50.0 + 1e3 * record.u, record.y * [1e-3, 20.0] + [5.0, -7.0]
    second = ltinet.identify(u, y, dt=1.0, order=3)
    ahead = (second.predict(u, y, horizon=3) - [5.0, -7.0]) / [1e-3, 20.0]
    # Gains of noise are found to 1/√1500 = 2.6 %, and units of outputs weight their errors: innovations of 0.3, four times.
    assert ahead == pytest.approx(first.predict(record.u, record.y, horizon=3), abs=0.06)


def test_invalid_predictions() -> None:
    record = drawn_record(known_model(), 500, seed=7)
    result = ltinet.identify(record.u, record.y, dt=1.0, order=3, method="pbsid", refine=False)
    with pytest.raises(ltinet.InvalidSignalError, match="horizon"):
        result.predict(record.u, record.y, horizon=0)
    with pytest.raises(ltinet.InvalidSignalError, match="channels"):
        result.predict(record.u, record.y[:, :1])
    gap = record.y.copy()
    gap[100] = np.nan
    with pytest.raises(ltinet.InvalidSignalError, match="without gaps"):
        result.predict(record.u, gap)
    omega = np.linspace(0.1, 3.0, 50)
    response = ltinet.identify_frequency(omega, 1.0 / (1j * omega + 1.0), order=1)
    with pytest.raises(ltinet.InvalidSignalError, match="frequency response"):
        response.predict(record.u, record.y[:, :1])


@pytest.mark.parametrize("n", [30, 31, 47])
def test_folds_hold_out_every_sample_once_for_each_number_of_parts(n: int) -> None:
    u, y = np.arange(float(n))[:, None], np.arange(float(n))[:, None]
    folds = split_records((Record(u, y),))
    held = np.concatenate([fold.test[0].y[:, 0] for fold in folds])
    assert len(held) == 2 * n
    assert sorted(held.tolist()) == sorted(2 * list(range(n)))
    for fold in folds:
        (train,), (test,), (position,) = fold.train, fold.test, fold.positions
        used = train.y[~np.isnan(train.y[:, 0]), 0]
        assert set(used).isdisjoint(test.y[:, 0])
        assert len(used) + len(test) == n
        assert test.y[0, 0] - train.u[0, 0] == position


def test_input_that_never_moves_in_a_piece() -> None:
    """An offset and the gain of an input that does not move are one and the same: the smallest pair of them is taken."""
    rng = np.random.default_rng(9)
    y = 1.0 + 0.1 * rng.standard_normal((200, 1))
    model = undriven_modal_model(np.array([[0.8]]), np.array([[1.0]]), n_inputs=1, linear=False)
    found = fit_inputs(
        model, (Record(np.full((200, 1), 0.3), y),), feedthrough=True, trend="constant", scale=np.ones(1)
    )
    assert np.abs(found.model.B).max() < 10.0
    assert np.abs(found.starts[0].trends).max() < 10.0
