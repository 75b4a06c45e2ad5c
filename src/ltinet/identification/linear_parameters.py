"""Estimation of B, D, initial states and trends by linear least squares, for given poles and C.

For given modes λ_i the outputs are linear in these parameters. The regressors of a record are the decays λ_iᵏ, the
responses of the modes to every input (v[k+1] = λ v[k] + u[k]), the responses to those (the derivative by λ), the
inputs, a constant and a ramp. All outputs share them, so that one QR decomposition of the regressors beside the
measured outputs replaces the record in every least-squares problem. This is better conditioned than computing B and D
from the compressed Hankel matrix, and the resulting simulation errors are those by which models are compared.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
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

# MERGED ltinet.identification.linear_parameters
# What modes do over a record, compressed: every output of a model, and every derivative of it, is a sum of these.
#
# For the modes λ_i they are their decays λ_iᵏ, what every input drives in them (v[k+1] = λ v[k] + u[k]), what that drives
# once more (the derivative by λ), the inputs themselves, a constant and a slope. All outputs share them, so that one QR
# decomposition of them, beside the measured outputs, takes the place of the record in every least-squares problem.

_CHUNK_SIZE = 2**21  # numbers that are worked on together


@dataclass(frozen=True, eq=False)
class ModalRegressors:
    """The sequences of a record, all turned by one orthogonal matrix into q numbers each (or as they are)."""

    decays: Complex
    """λ_iᵏ, `(q, k)`."""
    driven: Complex
    """`(q, k, m)`."""
    twice: Complex
    """The derivative by λ_i of Σ_j b_ij driven_ij + x0_i λ_iᵏ, `(q, k)`; nothing where b is not known."""
    inputs: Array
    """`(q, m)`."""
    trends: Array
    """A constant, and a slope that is 1 at the end of the record: `(q, 2)`."""
    outputs: Array
    """Those that were measured, `(q, p)`."""


@dataclass(frozen=True, eq=False)
class ModalDrive:
    """How modes are driven, for derivatives by their poles: b `(k, m)` and the states at the first sample `(k,)`."""

    B: Complex
    start: Complex


def compress_regressors(model: ModalModel, record: Record, drive: ModalDrive | None = None) -> ModalRegressors:
    """The sequences over a record after QR decompositions, some samples after the other."""
    with single_blas_thread():
        R = functools.reduce(update_qr, _columns(model, record, drive))
    return _unpacked(update_qr(R[:0], R), model, record, with_twice=drive is not None)


def update_qr(above: Array, columns: Array) -> Array:
    """Two sets of rows as one with no more rows than columns; as they are where these are few."""
    stacked = np.vstack([above, columns])
    if len(stacked) <= stacked.shape[1]:
        return stacked
    return np.asarray(linalg.qr(stacked, mode="r", check_finite=False)[0][: stacked.shape[1]], dtype=np.float64)


def iter_regressors(model: ModalModel, record: Record) -> Iterator[ModalRegressors]:
    """The sequences, a row for every sample, some samples after the other."""
    return (_unpacked(own, model, record, with_twice=False) for own in _columns(model, record, None))


def compute_regressors(model: ModalModel, record: Record, drive: ModalDrive | None = None) -> ModalRegressors:
    """The sequences over a record, a row for every sample."""
    columns = np.concatenate(list(_columns(model, record, drive)))
    return _unpacked(columns, model, record, with_twice=drive is not None)


def _columns(model: ModalModel, record: Record, drive: ModalDrive | None) -> Iterator[Array]:
    """All sequences as real columns, some samples after the other: (Re, Im) of pairs, real parts of others."""
    n_samples, m = record.u.shape
    poles, pairs = model.poles, model.is_pair
    decay = StepDecay(poles[pairs], poles[~pairs].real, ())
    width = 2 * int(pairs.sum()) + int((~pairs).sum())
    n_kinds = m + 1 + (drive is not None)
    at_once = max(256, _CHUNK_SIZE // max(1, n_kinds * width))
    states = np.zeros((n_kinds, width))
    begin_decay = np.concatenate(
        [np.stack([np.ones(pairs.sum()), np.zeros(pairs.sum())], 1).ravel(), np.ones(width - 2 * int(pairs.sum()))]
    )
    states[0] = begin_decay
    for begin in range(0, n_samples, at_once):
        own = slice(begin, min(begin + at_once, n_samples))
        found, states = _advanced(record.u[own], states, decay, drive, pairs)
        ramp = np.arange(own.start, own.stop) / max(n_samples - 1, 1)
        flat = found.transpose(1, 0, 2).reshape(own.stop - own.start, -1)
        yield np.hstack([flat, record.u[own], np.ones((len(ramp), 1)), ramp[:, None], record.y[own]])


def _advanced(
    u: Array, states: Array, decay: StepDecay, drive: ModalDrive | None, pairs: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """States `(kinds, T, width)` at samples, from those at the first, and those one sample after the last."""
    n_samples, m = u.shape
    n_pairs2 = 2 * len(decay.pairs)
    added = np.zeros((m + 1, n_samples, states.shape[1]))
    for j in range(m):
        added[1 + j, :, 0:n_pairs2:2] = u[:, j, None]
        added[1 + j, :, n_pairs2:] = u[:, j, None]
    scan_states(added, states[: m + 1], decay)
    here = np.concatenate([states[: m + 1, None], added[:, :-1]], axis=1)
    after = added[:, -1]
    if drive is None:
        return here, after
    v = _weighted(here, drive, pairs)
    w = np.ascontiguousarray(v[None])
    scan_states(w, states[m + 1 :], decay)
    twice = np.concatenate([states[m + 1 :, None], w[:, :-1]], axis=1)
    return np.concatenate([here, twice]), np.concatenate([after, w[:, -1]])


def _weighted(here: Array, drive: ModalDrive, pairs: NDArray[np.bool_]) -> Array:
    """The states v of the modes themselves, packed, `(T, width)`."""
    n_pairs2 = 2 * int(pairs.sum())
    weights = np.concatenate([drive.start[:, None], drive.B], axis=1).T  # (m + 1, k)
    total = np.empty(here.shape[1:])
    as_complex = np.ascontiguousarray(here[..., :n_pairs2]).view(np.complex128)
    total[:, :n_pairs2] = np.ascontiguousarray(np.einsum("ktp,kp->tp", as_complex, weights[:, pairs])).view(np.float64)
    total[:, n_pairs2:] = np.einsum("ktp,kp->tp", here[..., n_pairs2:], weights[:, ~pairs].real)
    return total


def _unpacked(columns: Array, model: ModalModel, record: Record, *, with_twice: bool) -> ModalRegressors:
    poles, pairs = model.poles, model.is_pair
    n_pairs, m = int(pairs.sum()), record.u.shape[1]
    width = 2 * n_pairs + len(poles) - n_pairs
    n_kinds = m + 1 + with_twice
    packed = columns[:, : n_kinds * width].reshape(len(columns), n_kinds, width)
    modes = np.zeros((len(columns), n_kinds, len(poles)), dtype=np.complex128)
    modes[..., pairs] = packed[..., 0 : 2 * n_pairs : 2] + 1j * packed[..., 1 : 2 * n_pairs : 2]
    modes[..., ~pairs] = packed[..., 2 * n_pairs :]
    rest = columns[:, n_kinds * width :]
    return ModalRegressors(
        decays=modes[:, 0],
        driven=modes[:, 1 : m + 1].transpose(0, 2, 1),
        twice=modes[:, m + 1] if with_twice else np.zeros((len(columns), 0), dtype=np.complex128),
        inputs=rest[:, :m],
        trends=rest[:, m : m + 2],
        outputs=rest[:, m + 2 :],
    )


# MERGED ltinet.identification.linear_parameters
# B, D, the states at the first samples and the trends: given modes, outputs are linear in them.
#
# That is better conditioned than to take B and D from the compressed Hankel matrix, and the model is judged by it.

Trend = Literal["none", "constant", "linear"]
N_TRENDS = {"none": 0, "constant": 1, "linear": 2}


@dataclass(frozen=True, eq=False)
class InitialCondition:
    """What belongs to one record: the states of the modes at its first sample `(k,)` and trends `(p, 0 to 2)`."""

    states: Complex
    trends: Array


@dataclass(frozen=True, eq=False)
class DrivenModel:
    """A driven model with what belongs to every record, and its squared errors by outputs, `(p,)`."""

    model: ModalModel
    starts: tuple[InitialCondition, ...]
    errors: Array


def fit_inputs(
    model: ModalModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> DrivenModel:
    """The best B, D, starts and trends for given poles and C; outputs are compared in units of `scale` `(p,)`."""
    found = [compress_regressors(model, own) for own in records]
    shared_rows, shared_sides, solvers = [], [], []
    for own in found:
        local, side = _local_columns(own, model, trend, scale), _side(own, scale)
        shared = _shared_columns(own, model, scale, feedthrough=feedthrough)
        n_local = local.shape[1]
        R = linalg.qr(np.hstack([local, shared, side[:, None]]), mode="r", check_finite=False)[0]
        solvers.append(np.asarray(R[:n_local], dtype=np.float64))
        shared_rows.append(R[n_local:, n_local:-1])
        shared_sides.append(R[n_local:, -1])
    theta = scaled_least_squares(np.vstack(shared_rows), np.concatenate(shared_sides))
    model = _with_parameters(model, theta, feedthrough=feedthrough)
    starts = []
    for rows in solvers:
        n_local = len(rows)
        starts.append(
            _start(scaled_least_squares(rows[:, :n_local], rows[:, -1] - rows[:, n_local:-1] @ theta), model, trend)
        )
    errors = np.sum([squared_errors(own, model, start) for own, start in zip(found, starts, strict=True)], axis=0)
    return DrivenModel(model, tuple(starts), errors)


def fit_initial_condition(
    model: ModalModel, record: Record, *, trend: Trend, scale: Array
) -> tuple[InitialCondition, Array]:
    """The best start and trend of a model for one record, and its squared errors by outputs."""
    own = _undriven(model, record)
    start = _start(scaled_least_squares(_local_columns(own, model, trend, scale), _side(own, scale)), model, trend)
    return start, np.asarray(((own.outputs - _free_outputs(own, model, start)) ** 2).sum(axis=0))


def _undriven(model: ModalModel, record: Record) -> ModalRegressors:
    """What outputs are beside those that inputs drive, with decays and trends, compressed; inputs are left out."""
    k, p = len(model.poles), model.n_outputs
    R = np.zeros((0, 2 * k + 2 + p))
    with single_blas_thread():
        for own in iter_regressors(model, record):
            left = own.outputs - forced_outputs(own, model)
            R = update_qr(R, np.hstack([own.decays.real, own.decays.imag, own.trends, left]))
        R = update_qr(R[:0], R)
    nothing = np.zeros((len(R), 0), dtype=np.complex128)
    return ModalRegressors(
        decays=R[:, :k] + 1j * R[:, k : 2 * k],
        driven=nothing[..., None],
        twice=nothing,
        inputs=np.zeros((len(R), 0)),
        trends=R[:, 2 * k : 2 * k + 2],
        outputs=R[:, 2 * k + 2 :],
    )


def forced_outputs(own: ModalRegressors, model: ModalModel) -> Array:
    """Outputs of the model from rest, `(q, p)`."""
    states = np.einsum("qkm,km->qk", own.driven, model.B)
    direct = model.D + (model.C @ (model.direct_shares[:, None] * model.B)).real
    return np.asarray((states @ model.C.T).real + own.inputs @ direct.T)


def simulated_outputs(own: ModalRegressors, model: ModalModel, start: InitialCondition) -> Array:
    """Outputs with those of the start and the trends."""
    return forced_outputs(own, model) + _free_outputs(own, model, start)


def _free_outputs(own: ModalRegressors, model: ModalModel, start: InitialCondition) -> Array:
    """Those of the start and the trends alone."""
    free = ((own.decays * start.states) @ model.C.T).real
    return np.asarray(free + own.trends[:, : start.trends.shape[1]] @ start.trends.T)


def squared_errors(own: ModalRegressors, model: ModalModel, start: InitialCondition) -> Array:
    """Sums over the record, `(p,)`."""
    return np.asarray(((own.outputs - simulated_outputs(own, model, start)) ** 2).sum(axis=0))


def pack_columns(values: Complex, is_pair: NDArray[np.bool_]) -> Array:
    """Of Re(Σ values_i b_i) the columns by Re b_i and, for pairs, Im b_i, along the last axis."""
    columns = np.empty((*values.shape[:-1], 2 * values.shape[-1]))
    columns[..., ::2], columns[..., 1::2] = values.real, -values.imag
    return columns[..., component_mask(is_pair)]


def unpack_complex(parts: Array, is_pair: NDArray[np.bool_]) -> Complex:
    """The inverse packing, along the last axis: complex numbers from real and, for pairs, imaginary parts."""
    both = np.zeros((*parts.shape[:-1], 2 * len(is_pair)))
    both[..., component_mask(is_pair)] = parts
    return np.asarray(both[..., ::2] + 1j * both[..., 1::2])


def _side(own: ModalRegressors, scale: Array) -> Array:
    return np.asarray((own.outputs / scale).T.ravel())


def _local_columns(own: ModalRegressors, model: ModalModel, trend: Trend, scale: Array) -> Array:
    """Of starts, and of trends of every output: `(p q, states + p trends)`."""
    p, n_trends = model.n_outputs, N_TRENDS[trend]
    free = pack_columns(model.C[:, None, :] * own.decays, model.is_pair) / scale[:, None, None]
    drifting = np.zeros((p, len(own.outputs), p, n_trends))
    for output in range(p):
        drifting[output, :, output] = own.trends[:, :n_trends] / scale[output]
    return np.concatenate([free, drifting.reshape(p, len(own.outputs), -1)], axis=2).reshape(p * len(own.outputs), -1)


def _shared_columns(own: ModalRegressors, model: ModalModel, scale: Array, *, feedthrough: bool) -> Array:
    """Of B input by input, and of D: `(p q, states m + p m)`."""
    p, m, q = model.n_outputs, model.n_inputs, len(own.outputs)
    seen = own.driven + model.direct_shares[:, None] * own.inputs[:, None, :]  # (q, k, m)
    by_B = pack_columns(model.C[:, None, None, :] * seen.transpose(0, 2, 1), model.is_pair)  # (p, q, m, states)
    columns = by_B.reshape(p, q, -1)
    if feedthrough:
        direct = np.zeros((p, q, p, m))
        for output in range(p):
            direct[output, :, output] = own.inputs
        columns = np.concatenate([columns, direct.reshape(p, q, -1)], axis=2)
    return (columns / scale[:, None, None]).reshape(p * q, -1)


def _with_parameters(model: ModalModel, theta: Array, *, feedthrough: bool) -> ModalModel:
    p, m, n = model.n_outputs, model.n_inputs, model.order
    B = unpack_complex(theta[: n * m].reshape(m, n), model.is_pair).T
    D = theta[n * m :].reshape(p, m) if feedthrough else np.zeros((p, m))
    return model.with_inputs(B, D)


def _start(parts: Array, model: ModalModel, trend: Trend) -> InitialCondition:
    states = unpack_complex(parts[: model.order], model.is_pair)
    return InitialCondition(states, parts[model.order :].reshape(model.n_outputs, N_TRENDS[trend]))


def scaled_least_squares(columns: Matrix, side: Array) -> Array:
    """Least squares in units of the columns; directions that are not seen get the shortest vector."""
    norms = np.linalg.norm(columns, axis=0)
    norms = np.where(norms > 0.0, norms, 1.0)
    if not columns.shape[1]:
        return np.zeros(0)
    cutoff = max(columns.shape) * EPS
    return np.asarray(linalg.lstsq(columns / norms, side, cond=cutoff, check_finite=False)[0] / norms)
