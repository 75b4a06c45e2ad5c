"""Predictor-based subspace identification (PBSID) and models in innovations form.

The model x[k+1] = A x[k] + B u[k] + K e[k], y = C x + D u + e has the one-step predictor

    x[k+1] = Ã x[k] + B̃ u[k] + K y[k],   ŷ = C x + D u,   Ã = A − K C,   B̃ = B − K D,

whose inputs are u and y. Past innovations e are independent of the present input also where a controller makes u from
y, so that regressions on the past are valid in closed loops. MOESP, N4SID and CVA regress on future inputs, which are
not independent of the noise there.

PBSID (Chiuso 2007; van der Veen et al. 2013). A regression of y[k] on u[k] and the s samples before it gives the
predictor's impulse response Ξ_j = C Ã^(j−1) (B̃, K), j = 1 … s. With Ξ_j = 0 for j > s the block Toeplitz matrix with
row i = (Ξ_(s+i), …, Ξ_(1+i)) times the past is Γ x[k], with Γ = [C; C Ã; …]; its singular value decomposition, outputs
in units of Σₑ^(1/2), gives the states for all orders at once. Regressions of y[k] on (x[k], u[k]) and of x[k+1] on
(x[k], u[k], e[k]) then give C, D and A, B, K. All of these need the records only through their Hankel factor.

Prediction-error refinement. The predictor is an output-error model with the inputs (u, y) and no direct path from y.
Its refinement with outputs in units of Σₑ^(1/2), and A = Ã + K C, B = B̃ + K D, minimizes the one-step errors.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.identification.linear_parameters import (
    DrivenModel,
    Trend,
    fit_initial_condition,
    fit_inputs,
    scaled_least_squares,
)
from ltinet.identification.modal_model import ModalModel, modal_model_of_system, real_block_form
from ltinet.identification.output_error import ParameterLayout, refine_output_error
from ltinet.identification.records import Record, n_samples
from ltinet.identification.subspace import HankelFactor
from ltinet.identification.uncertainty import ParameterCovariance, parameter_covariance
from ltinet.simulation.recurrence import StepDecay, scan_states
from ltinet.systems.matrices import Matrix

_MAX_PREDICTOR_POLE = 1.0 - 1e-6  # |λ| of Ã: a predictor forgets its start within a million samples


class Innovations(NamedTuple):
    """Noise of a modal model in innovations form."""

    gain: Complex
    """K, mode by mode as the input weights b, `(k, p)`."""
    covariance: Matrix
    """Σₑ `(p, p)`."""


@dataclass(frozen=True, eq=False)
class InnovationModel:
    """Model in innovations form at the samples."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    K: Matrix
    """Gain of the innovations `(n, p)`, the steady Kalman gain."""
    covariance: Matrix
    """Covariance Σₑ of the innovations `(p, p)`."""

    @property
    def n_inputs(self) -> int:
        """Number of inputs u."""
        return int(self.B.shape[1])

    @property
    def has_stable_predictor(self) -> bool:
        """True where the predictor forgets its start."""
        values = np.linalg.eigvals(self.A - self.K @ self.C)
        return bool(np.abs(values).max(initial=0.0) < _MAX_PREDICTOR_POLE)

    def modes(self) -> tuple[ModalModel, Innovations] | None:
        """Return the modes of the model and its noise; None where eigenvectors are nearly dependent."""
        m, p = self.n_inputs, len(self.C)
        both = modal_model_of_system(self.A, np.hstack([self.B, self.K]), self.C, np.hstack([self.D, np.zeros((p, p))]))
        if both is None:
            return None
        return replace(both, B=both.B[:, :m], D=both.D[:, :m]), Innovations(both.B[:, m:], self.covariance)

    @classmethod
    def of_modes(cls, model: ModalModel, noise: Innovations) -> "InnovationModel":
        """Return the model of modes with their noise; its states are those of `model.sampled()`."""
        K = real_block_form(model.poles, noise.gain, model.C, model.is_pair)[1]
        return cls(*model.sampled(), K, noise.covariance)

    def predicted(self, u: Array, y: Array, horizon: int) -> Array:
        """Return predictions of y[k] `(T, p)` from y up to k − horizon and u up to k.

        The first state is the one with the smallest one-step errors; samples before `horizon` are predicted from it.
        """
        A, n = self.A - self.K @ self.C, len(self.A)
        added = np.zeros((1 + n, len(u), n))
        added[0] = u @ (self.B - self.K @ self.D).T + y @ self.K.T
        first = np.vstack([np.zeros(n), np.eye(n)])
        scan_states(added, first, StepDecay(np.zeros(0, complex), np.zeros(0), (A,)))
        states = np.concatenate([first[:, None], added[:, :-1]], axis=1)
        errors, free = y - states[0] @ self.C.T - u @ self.D.T, states[1:] @ self.C.T
        units = np.sqrt(np.maximum(self.covariance.diagonal(), np.finfo(float).tiny))
        start = scaled_least_squares((free / units).reshape(n, -1).T, (errors / units).ravel())
        predicted = states[0] + np.einsum("i,itn->tn", start, states[1:])
        for _ in range(min(horizon, len(u)) - 1):
            predicted = np.vstack([predicted[:1], predicted[:-1] @ self.A.T + u[:-1] @ self.B.T])
        return np.asarray(predicted @ self.C.T + u @ self.D.T)

    def predictor(self) -> ModalModel | None:
        """Return the modes of the predictor with inputs (u, y); None where eigenvectors are nearly dependent."""
        A, B = self.A - self.K @ self.C, np.hstack([self.B - self.K @ self.D, self.K])
        return modal_model_of_system(A, B, self.C, np.hstack([self.D, np.zeros((len(self.C), len(self.C)))]))

    @classmethod
    def of_predictor(cls, predictor: ModalModel, n_inputs: int, covariance: Matrix) -> "InnovationModel":
        """Return the model of a predictor with inputs (u, y)."""
        A, both, C, D = predictor.sampled()
        B, K, D = both[:, :n_inputs], both[:, n_inputs:], D[:, :n_inputs]
        return cls(A + K @ C, B + K @ D, C, D, K, covariance)


# Subspace.


@dataclass(frozen=True, eq=False)
class PredictorDecomposition:
    """States of the past by singular values, with the regressions that give models of all orders."""

    block_rows: int
    values: Array
    rows: Matrix
    """Samples compressed by an orthogonal matrix: states at k, states at k + 1, u[k], e[k], y[k] as columns."""
    n_inputs: int
    n_outputs: int
    n_columns: int
    feedthrough: bool

    @property
    def largest_order(self) -> int:
        """Number of states that the past determines."""
        return len(self.values)

    def model(self, order: int) -> InnovationModel:
        """Return the model of this order."""
        n, m, p, count = order, self.n_inputs, self.n_outputs, self.largest_order
        x, after = self.rows[:, :n], self.rows[:, count : count + n]
        u, e, y = np.split(self.rows[:, 2 * count :], [m, m + p], axis=1)
        outputs = linalg.lstsq(np.hstack([x, u]) if self.feedthrough else x, y, check_finite=False)[0].T
        C, D = outputs[:, :n], outputs[:, n:] if self.feedthrough else np.zeros((p, m))
        states = linalg.lstsq(np.hstack([x, u, e]), after, check_finite=False)[0].T
        covariance = e.T @ e / self.n_columns
        return _with_stable_predictor(
            InnovationModel(states[:, :n], states[:, n : n + m], C, D, states[:, n + m :], covariance)
        )


def decompose_predictor(data: HankelFactor, *, feedthrough: bool) -> PredictorDecomposition:
    """Return the states of the past, whose length is the number of block rows."""
    s, m, p = data.block_rows, data.n_inputs, data.n_outputs
    R = data.R
    u, e_y = R[:, :m], R[:, 2 * s * m + s * p : 2 * s * m + s * p + p]  # at k
    past_u = R[:, s * m : 2 * s * m].reshape(-1, s, m)
    past_y = R[:, 2 * s * m : 2 * s * m + s * p].reshape(-1, s, p)
    past = np.concatenate([past_u, past_y], axis=2)  # (rows, s, m + p), the oldest first
    z = past.reshape(len(R), -1)
    here = np.concatenate([u, e_y], axis=1)[:, None]
    following = np.concatenate([past[:, 1:], here], axis=1).reshape(len(R), -1)
    columns = np.hstack([z, u]) if feedthrough else z
    weights = linalg.lstsq(columns, e_y, cond=columns.shape[1] * EPS, check_finite=False)[0].T
    e = e_y - columns @ weights.T
    root = linalg.sqrtm(_regularized(e.T @ e / data.n_columns)).real
    responses = linalg.solve(root, weights[:, : z.shape[1]]).reshape(p, s, m + p)
    toeplitz = np.zeros((s, p, s, m + p))
    for row in range(s):
        toeplitz[row, :, row:] = responses[:, : s - row]
    gamma = toeplitz.reshape(s * p, -1)
    _, values, V = linalg.svd(z @ gamma.T, full_matrices=False, check_finite=False)
    count = int(np.count_nonzero(values > s * p * EPS * values[0])) if values[0] > 0.0 else 0
    scale = V[:count].T / np.sqrt(values[:count])
    x, after = z @ gamma.T @ scale, following @ gamma.T @ scale
    return PredictorDecomposition(
        s, values[:count], np.hstack([x, after, u, e, e_y]), m, p, data.n_columns, feedthrough
    )


def _regularized(covariance: Matrix) -> Matrix:
    """Return a covariance with a floor on its eigenvalues, so that its root has an inverse."""
    return np.asarray(covariance + max(float(np.trace(covariance)), 1e-300) * 1e-9 * np.eye(len(covariance)))


def _with_stable_predictor(model: InnovationModel) -> InnovationModel:
    """Return the model with the Kalman gain of its noise, whose spectrum is the same, where A − K C is not stable."""
    if model.has_stable_predictor:
        return model
    R, Q = _regularized(model.covariance), model.K @ model.covariance @ model.K.T
    S = model.K @ model.covariance
    try:
        P = linalg.solve_discrete_are(model.A.T, model.C.T, Q, R, s=S)
    except (linalg.LinAlgError, ValueError):
        return model
    covariance = R + model.C @ P @ model.C.T
    K = linalg.solve(covariance, (model.A @ P @ model.C.T + S).T).T
    return replace(model, K=K, covariance=covariance)


# Prediction-error refinement.


def refine_prediction_error(
    model: InnovationModel, records: tuple[Record, ...], feedthrough: bool, trend: Trend
) -> InnovationModel | None:
    """Return the model with smaller one-step errors, None where refinement gave no model."""
    predictor, m = model.predictor(), model.n_inputs
    if predictor is None or not model.has_stable_predictor:
        return None
    problem = _predictor_problem(predictor, model.covariance, records, trend)
    refined = refine_output_error(
        problem.driven, problem.records, n_direct=m * feedthrough, trend=trend, scale=np.ones(len(model.C))
    )
    if refined is None or not refined.model.is_stable:
        return None
    found = replace(refined.model, C=problem.root @ refined.model.C, D=problem.root @ refined.model.D)
    sizes = refined.errors / n_samples(records)  # of the outputs in units of Σₑ, whose correlations are kept
    return InnovationModel.of_predictor(found, m, np.asarray(problem.root @ np.diag(sizes) @ problem.root))


class _PredictorProblem(NamedTuple):
    """Predictor with its starts, records with inputs (u, y), both with outputs in units of the root of Σₑ."""

    driven: DrivenModel
    records: tuple[Record, ...]
    root: Matrix


def _predictor_problem(
    predictor: ModalModel, covariance: Matrix, records: tuple[Record, ...], trend: Trend
) -> _PredictorProblem:
    root = np.asarray(linalg.sqrtm(_regularized(covariance)).real)
    weights = np.asarray(linalg.inv(root))
    joint = tuple(Record(np.hstack([record.u, record.y]), record.y @ weights) for record in records)
    model = replace(predictor, C=weights @ predictor.C, D=weights @ predictor.D)
    pairs = [fit_initial_condition(model, record, trend=trend, scale=np.ones(len(root))) for record in joint]
    driven = DrivenModel(model, tuple(start for start, _ in pairs), np.sum([errors for _, errors in pairs], axis=0))
    return _PredictorProblem(driven, joint, root)


# Noise of a model whose inputs are fitted.

_N_LAGS = 20  # of the autoregressive model of simulation residuals, where records are long enough


def fit_innovations(model: ModalModel, residuals: tuple[Array, ...]) -> InnovationModel:
    """Return the model with the gain that explains its simulation residuals `(T, p)` best.

    They are v = C (q − A)⁻¹ K e + e. Innovations e of an autoregressive model of v leave a linear problem for K.
    """
    p = model.n_outputs
    lags = min(_N_LAGS, max(0, min(map(len, residuals)) // (4 * p)))
    pieces = [np.lib.stride_tricks.sliding_window_view(v, lags + 1, axis=0) for v in residuals]  # (T', p, lags + 1)
    past = np.vstack([piece[:, :, :-1].reshape(len(piece), -1) for piece in pieces])
    present = np.vstack([piece[:, :, -1] for piece in pieces])
    e = present - past @ linalg.lstsq(past, present, check_finite=False)[0] if lags else present
    covariance, still = np.asarray(e.T @ e / len(e)), np.zeros((len(model.poles), p), complex)
    parts = np.split(np.arange(len(e)), np.cumsum([len(piece) for piece in pieces])[:-1])
    records = tuple(Record(e[rows], present[rows] - e[rows]) for rows in parts)
    undriven = replace(model, B=still, D=np.zeros((p, p)), linear=False)
    driven = fit_inputs(undriven, records, feedthrough=False, trend="none", scale=np.ones(p))
    fitted = InnovationModel.of_modes(model, Innovations(driven.model.B, covariance))
    if not fitted.has_stable_predictor:
        fitted = _with_stable_predictor(fitted)
    return fitted if fitted.has_stable_predictor else InnovationModel.of_modes(model, Innovations(still, covariance))


# Uncertainty.


def innovation_covariance(
    model: ModalModel, noise: Innovations, records: tuple[Record, ...], *, n_direct: int, trend: Trend
) -> ParameterCovariance | None:
    """Return the covariance of the parameters of a model that was found by its one-step errors.

    To first order it is T P Tᵀ with the covariance P of the predictor's parameters, whose errors are nearly white, and
    the derivatives T of the poles, b, c and D of the model by them.
    """
    whole = InnovationModel.of_modes(model, noise)
    predictor = whole.predictor()
    if predictor is None or not whole.has_stable_predictor:
        return None
    problem = _predictor_problem(predictor, noise.covariance, records, trend)
    found = parameter_covariance(problem.driven, problem.records, n_direct=n_direct, trend=trend)
    if found is None:
        return None
    parameters = ParameterLayout(model, n_direct, trend, 0)
    T = _model_derivatives(parameters, found.parameters, problem.root)
    return ParameterCovariance(parameters, np.asarray(T @ found.matrix @ T.T), found.gain[:, : model.n_inputs])


def _model_derivatives(parameters: ParameterLayout, predictor: ParameterLayout, root: Matrix) -> Matrix:
    """Return the derivatives of the parameters of the model `(n_shared, n_shared)` by those of its predictor.

    With A = V Λ V⁻¹ and dA, M = V⁻¹ dA V has dλ on its diagonal, and dV = V G with G_ij = M_ij / (λ_j − λ_i). The
    largest b of every mode is held fixed, as in the parameters.
    """
    model, m = parameters.like, parameters.like.n_inputs

    def matrices(theta: Array) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        A, both, C, D = predictor.unpacked(theta)[0].sampled()
        return A, both, root @ C, root @ D[:, :m]

    predictor = replace(predictor, n_records=0)
    theta = predictor.packed(predictor.like, ())
    A, both, C, D = matrices(theta)
    K = both[:, m:]
    values, V = (own.astype(np.complex128) for own in np.linalg.eig(A + K @ C))
    # Modes of the model, and the scaling of their eigenvectors with which c is that of the model.
    at = [int(np.argmin(np.abs(values - pole))) for pole in model.poles]
    size = np.where(model.is_pair, 2.0, 1.0)
    seen = C @ V[:, at]
    largest = np.argmax(np.abs(seen), axis=0), np.arange(len(at))
    V[:, at] = V[:, at] * (model.C / size)[largest] / seen[largest]
    W = np.linalg.inv(V)
    gaps = values[None, :] - values[:, None]
    np.fill_diagonal(gaps, np.inf)
    fixed = np.argmax(np.abs(model.B), axis=1), np.arange(len(at))
    columns = []
    for unit in np.eye(len(theta)):
        moved = matrices(theta + unit)  # affine in the parameters: differences of one are derivatives
        dA, d_both, dC, dD = (after - before for after, before in zip(moved, (A, both, C, D), strict=True))
        dK = d_both[:, m:]
        dA, dB = dA + dK @ C + K @ dC, d_both[:, :m] + dK @ D + K @ dD
        M = W @ dA @ V
        G = M / gaps
        d_poles, d_b = M.diagonal()[at], (W @ dB)[at] - (G @ (W @ (both[:, :m] + K @ D)))[at]
        d_c = size * (dC @ V + C @ V @ G)[:, at]
        ratio = d_b[fixed[1], fixed[0]] / model.B[fixed[1], fixed[0]]
        d_b, d_c = d_b - model.B * ratio[:, None], d_c + model.C * ratio
        step = replace(model, poles=d_poles, B=d_b, C=d_c, D=dD)
        columns.append(parameters.packed(step, ()))
    return np.stack(columns, axis=1)
