"""Estimation of B, D, initial states and trends by linear least squares, for given poles and C.

For given modes λ_i the outputs are linear in these parameters. The regressors of a record are the decays λ_iᵏ, the
responses of the modes to every input (v[k+1] = λ v[k] + u[k]), the responses to those (the derivative by λ), the
inputs, a constant and a ramp. All outputs share them, so that one QR decomposition of the regressors beside the
measured outputs replaces the record in every least-squares problem. This is better conditioned than computing B and D
from the compressed Hankel matrix, and the resulting simulation errors are those by which models are compared.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.blas_threads import single_blas_thread
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.identification.modal_model import ModalModel, component_mask
from ltinet.identification.records import Record
from ltinet.simulation.recurrence import StepDecay, scan_states
from ltinet.systems.matrices import Matrix

_CHUNK_SIZE = 2**21  # numbers of the regressors in memory at a time
Trend = Literal["none", "constant", "linear"]
N_TRENDS = {"none": 0, "constant": 1, "linear": 2}
"""Number of trend parameters of each output."""


@dataclass(frozen=True, eq=False)
class InitialCondition:
    """States of the modes at the first sample of a record `(k,)` and trends of its outputs `(p, 0 to 2)`."""

    states: Complex
    trends: Array


@dataclass(frozen=True, eq=False)
class DrivenModel:
    """Model with B and D, the initial condition of every record, and the squared errors of the outputs `(p,)`."""

    model: ModalModel
    starts: tuple[InitialCondition, ...]
    errors: Array


# Least squares.


def fit_inputs(
    model: ModalModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> DrivenModel:
    """Fit B, D, starts and trends for given poles and C; outputs are compared in units of `scale` `(p,)`.

    A QR decomposition of each record eliminates its start and trends, so that the shared problem has B and D only.
    """
    regressors = [compress_regressors(model, record) for record in records]
    shared_rows, shared_sides, local_rows, squares = [], [], [], []
    for part in regressors:
        local = _local_columns(part, model, trend, scale)
        shared = _shared_columns(part, model, scale, feedthrough=feedthrough)
        n_local = local.shape[1]
        R = linalg.qr(np.hstack([local, shared, _side(part, scale)[:, None]]), mode="r", check_finite=False)[0]
        local_rows.append(np.asarray(R[:n_local], dtype=np.float64))
        squares.append((shared**2).sum(axis=0))
        shared_rows.append(R[n_local:, n_local:-1])
        shared_sides.append(R[n_local:, -1])
    # Starts and trends may explain a column, as an offset does with an input that never moves: only rounding, N eps of
    # the column for N samples, is left of it then, and its parameter is not determined.
    norms = np.sqrt(np.sum(squares, axis=0))
    norms = np.where(norms > 0.0, norms, 1.0)
    U, values, V = linalg.svd(np.vstack(shared_rows) / norms, full_matrices=False, check_finite=False)
    determined = values > sum(map(len, records)) * EPS
    projected = U[:, determined].T @ np.concatenate(shared_sides) / values[determined]
    theta = np.asarray(projected @ V[determined] / norms)
    p, m, n = model.n_outputs, model.n_inputs, model.order
    B = unpack_complex(theta[: n * m].reshape(m, n), model.is_pair).T
    D = theta[n * m :].reshape(p, m) if feedthrough else np.zeros((p, m))
    model = replace(model, B=B, D=D)
    starts = []
    for rows in local_rows:
        k = rows.shape[1] - len(theta) - 1  # a record of fewer samples has fewer rows, and says nothing about B and D
        starts.append(_start(scaled_least_squares(rows[:, :k], rows[:, -1] - rows[:, k:-1] @ theta), model, trend))
    return with_errors(model, tuple(starts), regressors)


def fit_initial_condition(
    model: ModalModel, record: Record, *, trend: Trend, scale: Array
) -> tuple[InitialCondition, Array]:
    """Fit start and trend of a model to one record, and return them with the squared errors of the outputs."""
    part = _unforced_regressors(model, record)
    start = _start(scaled_least_squares(_local_columns(part, model, trend, scale), _side(part, scale)), model, trend)
    return start, np.asarray(((part.outputs - _free_outputs(part, model, start)) ** 2).sum(axis=0))


def scaled_least_squares(columns: Matrix, rhs: Array) -> Array:
    """Solve a least-squares problem with columns scaled to norm 1; the minimum-norm solution where rank is lost."""
    norms = np.linalg.norm(columns, axis=0)
    norms = np.where(norms > 0.0, norms, 1.0)
    if not columns.shape[1]:
        return np.zeros(0)
    cutoff = max(columns.shape) * EPS
    return np.asarray(linalg.lstsq(columns / norms, rhs, cond=cutoff, check_finite=False)[0] / norms)


def _side(part: "ModalRegressors", scale: Array) -> Array:
    return np.asarray((part.outputs / scale).T.ravel())


def _local_columns(part: "ModalRegressors", model: ModalModel, trend: Trend, scale: Array) -> Array:
    """Return the columns of the start, and of the trends of every output: `(p q, states + p trends)`."""
    p, q, n_trends = model.n_outputs, len(part.outputs), N_TRENDS[trend]
    free = pack_columns(model.C[:, None, :] * part.decays, model.is_pair) / scale[:, None, None]
    drift = np.zeros((p, q, p, n_trends))
    drift[np.arange(p), :, np.arange(p)] = part.trends[:, :n_trends] / scale[:, None, None]
    return np.concatenate([free, drift.reshape(p, q, -1)], axis=2).reshape(p * q, -1)


def _shared_columns(part: "ModalRegressors", model: ModalModel, scale: Array, *, feedthrough: bool) -> Array:
    """Return the columns of B, input by input, and of D: `(p q, states m + p m)`."""
    p, m, q = model.n_outputs, model.n_inputs, len(part.outputs)
    states = part.responses + model.direct_shares[:, None] * part.inputs[:, None, :]  # (q, k, m)
    by_B = pack_columns(model.C[:, None, None, :] * states.transpose(0, 2, 1), model.is_pair)  # (p, q, m, states)
    columns = by_B.reshape(p, q, -1)
    if feedthrough:
        direct = np.zeros((p, q, p, m))
        direct[np.arange(p), :, np.arange(p)] = part.inputs
        columns = np.concatenate([columns, direct.reshape(p, q, -1)], axis=2)
    return (columns / scale[:, None, None]).reshape(p * q, -1)


def _start(parts: Array, model: ModalModel, trend: Trend) -> InitialCondition:
    states = unpack_complex(parts[: model.order], model.is_pair)
    return InitialCondition(states, parts[model.order :].reshape(model.n_outputs, N_TRENDS[trend]))


def pack_columns(values: Complex, is_pair: NDArray[np.bool_]) -> Array:
    """Return the columns of Re(Σ values_i b_i) by Re b_i and, for pairs, Im b_i, along the last axis."""
    columns = np.empty((*values.shape[:-1], 2 * values.shape[-1]))
    columns[..., ::2], columns[..., 1::2] = values.real, -values.imag
    return columns[..., component_mask(is_pair)]


def unpack_complex(parts: Array, is_pair: NDArray[np.bool_]) -> Complex:
    """Return complex numbers from real and, for pairs, imaginary parts along the last axis."""
    both = np.zeros((*parts.shape[:-1], 2 * len(is_pair)))
    both[..., component_mask(is_pair)] = parts
    return np.asarray(both[..., ::2] + 1j * both[..., 1::2])


# Outputs of a model from the regressors.


def forced_outputs(part: "ModalRegressors", model: ModalModel) -> Array:
    """Return the outputs of the model from rest, `(q, p)`."""
    states = np.einsum("qkm,km->qk", part.responses, model.B)
    direct = model.D + (model.C @ (model.direct_shares[:, None] * model.B)).real
    return np.asarray((states @ model.C.T).real + part.inputs @ direct.T)


def simulated_outputs(part: "ModalRegressors", model: ModalModel, start: InitialCondition) -> Array:
    """Return the outputs of the model with start and trends, `(q, p)`."""
    return forced_outputs(part, model) + _free_outputs(part, model, start)


def simulate_record(model: ModalModel, record: Record, start: InitialCondition) -> Array:
    """Return the outputs of the model at all samples of a record, `(T, p)`."""
    return simulated_outputs(compute_regressors(model, record), model, start)


def _free_outputs(part: "ModalRegressors", model: ModalModel, start: InitialCondition) -> Array:
    """Return the outputs of start and trends alone."""
    free = ((part.decays * start.states) @ model.C.T).real
    return np.asarray(free + part.trends[:, : start.trends.shape[1]] @ start.trends.T)


def with_errors(model: ModalModel, starts: tuple[InitialCondition, ...], parts: "list[ModalRegressors]") -> DrivenModel:
    """Return the model with the sums of its squared errors over all records."""
    pairs = zip(parts, starts, strict=True)
    errors = [((part.outputs - simulated_outputs(part, model, start)) ** 2).sum(axis=0) for part, start in pairs]
    return DrivenModel(model, starts, np.sum(errors, axis=0))


# Regressors.


@dataclass(frozen=True, eq=False)
class ModalRegressors:
    """Regressors of a record, as q rows: its samples, or their products with one orthogonal matrix."""

    decays: Complex
    """λ_iᵏ, `(q, k)`."""
    responses: Complex
    """Responses of the modes to every input, `(q, k, m)`."""
    pole_derivatives: Complex
    """Derivative by λ_i of Σ_j b_ij response_ij + x0_i λ_iᵏ, `(q, k)`; `(q, 0)` where b is not known."""
    inputs: Array
    """`(q, m)`."""
    trends: Array
    """A constant, and a ramp that is 1 at the end of the record: `(q, 2)`."""
    outputs: Array
    """Measured outputs, `(q, p)`."""


@dataclass(frozen=True, eq=False)
class ModalDrive:
    """Excitation of the modes, for derivatives by their poles: b `(k, m)` and states at the first sample `(k,)`."""

    B: Complex
    start: Complex


def compress_regressors(model: ModalModel, record: Record, drive: ModalDrive | None = None) -> ModalRegressors:
    """Return the regressors of a record compressed by QR decompositions of its chunks."""
    with single_blas_thread():
        R = functools.reduce(update_qr, _regressor_chunks(model, record, drive))
    return _unpack_regressors(update_qr(R[:0], R), model, record, with_derivatives=drive is not None)


def update_qr(above: Array, columns: Array) -> Array:
    """Compress two sets of rows to at most as many rows as columns; return fewer rows unchanged."""
    stacked = np.vstack([above, columns])
    if len(stacked) <= stacked.shape[1]:
        return stacked
    return np.asarray(linalg.qr(stacked, mode="r", check_finite=False)[0][: stacked.shape[1]], dtype=np.float64)


def compute_regressors(model: ModalModel, record: Record, drive: ModalDrive | None = None) -> ModalRegressors:
    """Return the regressors of a record, a row for every sample."""
    columns = np.concatenate(list(_regressor_chunks(model, record, drive)))
    return _unpack_regressors(columns, model, record, with_derivatives=drive is not None)


def _unforced_regressors(model: ModalModel, record: Record) -> ModalRegressors:
    """Return decays, trends and outputs less the forced ones, compressed; inputs and responses are empty."""
    k, p = len(model.poles), model.n_outputs
    R = np.zeros((0, 2 * k + 2 + p))
    with single_blas_thread():
        for columns in _regressor_chunks(model, record, None):
            part = _unpack_regressors(columns, model, record, with_derivatives=False)
            free = part.outputs - forced_outputs(part, model)
            R = update_qr(R, np.hstack([part.decays.real, part.decays.imag, part.trends, free]))
        R = update_qr(R[:0], R)
    empty = np.zeros((len(R), 0), dtype=np.complex128)
    return ModalRegressors(
        decays=R[:, :k] + 1j * R[:, k : 2 * k],
        responses=empty[..., None],
        pole_derivatives=empty,
        inputs=np.zeros((len(R), 0)),
        trends=R[:, 2 * k : 2 * k + 2],
        outputs=R[:, 2 * k + 2 :],
    )


def _regressor_chunks(model: ModalModel, record: Record, drive: ModalDrive | None) -> Iterator[Array]:
    """Yield all regressors as real columns, some samples at a time: (Re, Im) of pairs, real parts of others."""
    n_samples, m = record.u.shape
    poles, pairs = model.poles, model.is_pair
    decay = StepDecay(poles[pairs], poles[~pairs].real, ())
    n_pairs = int(pairs.sum())
    width = n_pairs + len(pairs)
    n_kinds = m + 1 + (drive is not None)  # decays, responses to each input, derivatives
    chunk = max(256, _CHUNK_SIZE // max(1, n_kinds * width))
    states = np.zeros((n_kinds, width))
    states[0, : 2 * n_pairs : 2] = 1.0  # λ⁰: 1 + 0j for pairs, 1 for real poles
    states[0, 2 * n_pairs :] = 1.0
    for begin in range(0, n_samples, chunk):
        rows = slice(begin, min(begin + chunk, n_samples))
        sequences, states = _advance_states(record.u[rows], states, decay, drive, pairs)
        ramp = np.arange(rows.start, rows.stop) / max(n_samples - 1, 1)
        flat = sequences.transpose(1, 0, 2).reshape(rows.stop - rows.start, -1)
        columns = np.hstack([flat, record.u[rows], np.ones((len(ramp), 1)), ramp[:, None], record.y[rows]])
        held_out = np.isnan(record.y[rows, 0])
        yield columns[~held_out] if held_out.any() else columns


def _advance_states(
    u: Array, states: Array, decay: StepDecay, drive: ModalDrive | None, pairs: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return the states `(kinds, T, width)` at the samples, and those one sample after the last."""
    n_samples, m = u.shape
    n_packed = 2 * len(decay.pairs)
    added = np.zeros((m + 1, n_samples, states.shape[1]))
    for j in range(m):
        added[1 + j, :, 0:n_packed:2] = u[:, j, None]
        added[1 + j, :, n_packed:] = u[:, j, None]
    scan_states(added, states[: m + 1], decay)
    here = np.concatenate([states[: m + 1, None], added[:, :-1]], axis=1)
    after = added[:, -1]
    if drive is None:
        return here, after
    # The states v = x0 λᵏ + Σ_j b_j response_j of the modes drive their own derivatives: w[k+1] = λ w[k] + v[k].
    weights = np.concatenate([drive.start[:, None], drive.B], axis=1).T  # (m + 1, k)
    v = np.empty(here.shape[1:])
    as_complex = np.ascontiguousarray(here[..., :n_packed]).view(np.complex128)
    v[:, :n_packed] = np.ascontiguousarray(np.einsum("ktp,kp->tp", as_complex, weights[:, pairs])).view(np.float64)
    v[:, n_packed:] = np.einsum("ktp,kp->tp", here[..., n_packed:], weights[:, ~pairs].real)
    w = np.ascontiguousarray(v[None])
    scan_states(w, states[m + 1 :], decay)
    derivatives = np.concatenate([states[m + 1 :, None], w[:, :-1]], axis=1)
    return np.concatenate([here, derivatives]), np.concatenate([after, w[:, -1]])


def _unpack_regressors(columns: Array, model: ModalModel, record: Record, *, with_derivatives: bool) -> ModalRegressors:
    pairs, m = model.is_pair, record.u.shape[1]
    n_pairs = int(pairs.sum())
    width = n_pairs + len(pairs)
    n_kinds = m + 1 + with_derivatives
    packed = columns[:, : n_kinds * width].reshape(len(columns), n_kinds, width)
    modes = np.zeros((len(columns), n_kinds, len(pairs)), dtype=np.complex128)
    modes[..., pairs] = packed[..., 0 : 2 * n_pairs : 2] + 1j * packed[..., 1 : 2 * n_pairs : 2]
    modes[..., ~pairs] = packed[..., 2 * n_pairs :]
    rest = columns[:, n_kinds * width :]
    return ModalRegressors(
        decays=modes[:, 0],
        responses=modes[:, 1 : m + 1].transpose(0, 2, 1),
        pole_derivatives=modes[:, m + 1] if with_derivatives else np.zeros((len(columns), 0), dtype=np.complex128),
        inputs=rest[:, :m],
        trends=rest[:, m : m + 2],
        outputs=rest[:, m + 2 :],
    )
