"""B, D, the states at the first samples and the trends: given modes, outputs are linear in them.

That is better conditioned than to take B and D from the compressed Hankel matrix, and the model is judged by it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.identification.modal_model import ModalModel, kept_parts
from ltinet.identification.record import Record
from ltinet.identification.sequences import Sequences, compressed_sequences, portions, rotated_away
from ltinet.model.matrices import Matrix
from ltinet.threads import one_blas_thread
from ltinet.tolerances import EPS

Trend = Literal["none", "constant", "linear"]
N_TRENDS = {"none": 0, "constant": 1, "linear": 2}


@dataclass(frozen=True, eq=False)
class Start:
    """What belongs to one record: the states of the modes at its first sample `(k,)` and trends `(p, 0 to 2)`."""

    states: Complex
    trends: Array


@dataclass(frozen=True, eq=False)
class Linear:
    """A driven model with what belongs to every record, and its squared errors by outputs, `(p,)`."""

    model: ModalModel
    starts: tuple[Start, ...]
    errors: Array


def fitted_inputs(
    model: ModalModel, records: tuple[Record, ...], *, feedthrough: bool, trend: Trend, scale: Array
) -> Linear:
    """The best B, D, starts and trends for given poles and C; outputs are compared in units of `scale` `(p,)`."""
    found = [compressed_sequences(model, own) for own in records]
    shared_rows, shared_sides, solvers = [], [], []
    for own in found:
        local, side = _local_columns(own, model, trend, scale), _side(own, scale)
        shared = _shared_columns(own, model, scale, feedthrough=feedthrough)
        n_local = local.shape[1]
        R = linalg.qr(np.hstack([local, shared, side[:, None]]), mode="r", check_finite=False)[0]
        solvers.append(np.asarray(R[:n_local], dtype=np.float64))
        shared_rows.append(R[n_local:, n_local:-1])
        shared_sides.append(R[n_local:, -1])
    theta = least_squares(np.vstack(shared_rows), np.concatenate(shared_sides))
    model = _with_parameters(model, theta, feedthrough=feedthrough)
    starts = []
    for rows in solvers:
        n_local = len(rows)
        starts.append(_start(least_squares(rows[:, :n_local], rows[:, -1] - rows[:, n_local:-1] @ theta), model, trend))
    errors = np.sum([squared_errors(own, model, start) for own, start in zip(found, starts, strict=True)], axis=0)
    return Linear(model, tuple(starts), errors)


def fitted_start(model: ModalModel, record: Record, *, trend: Trend, scale: Array) -> tuple[Start, Array]:
    """The best start and trend of a model for one record, and its squared errors by outputs."""
    own = _undriven(model, record)
    start = _start(least_squares(_local_columns(own, model, trend, scale), _side(own, scale)), model, trend)
    return start, np.asarray(((own.outputs - _free_outputs(own, model, start)) ** 2).sum(axis=0))


def _undriven(model: ModalModel, record: Record) -> Sequences:
    """What outputs are beside those that inputs drive, with decays and trends, compressed; inputs are left out."""
    k, p = len(model.poles), model.n_outputs
    R = np.zeros((0, 2 * k + 2 + p))
    with one_blas_thread():
        for own in portions(model, record):
            left = own.outputs - driven_outputs(own, model)
            R = rotated_away(R, np.hstack([own.decays.real, own.decays.imag, own.trends, left]))
        R = rotated_away(R[:0], R)
    nothing = np.zeros((len(R), 0), dtype=np.complex128)
    return Sequences(
        decays=R[:, :k] + 1j * R[:, k : 2 * k],
        driven=nothing[..., None],
        twice=nothing,
        inputs=np.zeros((len(R), 0)),
        trends=R[:, 2 * k : 2 * k + 2],
        outputs=R[:, 2 * k + 2 :],
    )


def driven_outputs(own: Sequences, model: ModalModel) -> Array:
    """Outputs of the model from rest, `(q, p)`."""
    states = np.einsum("qkm,km->qk", own.driven, model.B)
    direct = model.D + (model.C @ (model.direct_shares[:, None] * model.B)).real
    return np.asarray((states @ model.C.T).real + own.inputs @ direct.T)


def all_outputs(own: Sequences, model: ModalModel, start: Start) -> Array:
    """Outputs with those of the start and the trends."""
    return driven_outputs(own, model) + _free_outputs(own, model, start)


def _free_outputs(own: Sequences, model: ModalModel, start: Start) -> Array:
    """Those of the start and the trends alone."""
    free = ((own.decays * start.states) @ model.C.T).real
    return np.asarray(free + own.trends[:, : start.trends.shape[1]] @ start.trends.T)


def squared_errors(own: Sequences, model: ModalModel, start: Start) -> Array:
    """Sums over the record, `(p,)`."""
    return np.asarray(((own.outputs - all_outputs(own, model, start)) ** 2).sum(axis=0))


def real_columns(values: Complex, is_pair: NDArray[np.bool_]) -> Array:
    """Of Re(Σ values_i b_i) the columns by Re b_i and, for pairs, Im b_i, along the last axis."""
    columns = np.empty((*values.shape[:-1], 2 * values.shape[-1]))
    columns[..., ::2], columns[..., 1::2] = values.real, -values.imag
    return columns[..., kept_parts(is_pair)]


def complex_values(parts: Array, is_pair: NDArray[np.bool_]) -> Complex:
    """The inverse packing, along the last axis: complex numbers from real and, for pairs, imaginary parts."""
    both = np.zeros((*parts.shape[:-1], 2 * len(is_pair)))
    both[..., kept_parts(is_pair)] = parts
    return np.asarray(both[..., ::2] + 1j * both[..., 1::2])


def _side(own: Sequences, scale: Array) -> Array:
    return np.asarray((own.outputs / scale).T.ravel())


def _local_columns(own: Sequences, model: ModalModel, trend: Trend, scale: Array) -> Array:
    """Of starts, and of trends of every output: `(p q, states + p trends)`."""
    p, n_trends = model.n_outputs, N_TRENDS[trend]
    free = real_columns(model.C[:, None, :] * own.decays, model.is_pair) / scale[:, None, None]
    drifting = np.zeros((p, len(own.outputs), p, n_trends))
    for output in range(p):
        drifting[output, :, output] = own.trends[:, :n_trends] / scale[output]
    return np.concatenate([free, drifting.reshape(p, len(own.outputs), -1)], axis=2).reshape(p * len(own.outputs), -1)


def _shared_columns(own: Sequences, model: ModalModel, scale: Array, *, feedthrough: bool) -> Array:
    """Of B input by input, and of D: `(p q, states m + p m)`."""
    p, m, q = model.n_outputs, model.n_inputs, len(own.outputs)
    seen = own.driven + model.direct_shares[:, None] * own.inputs[:, None, :]  # (q, k, m)
    by_B = real_columns(model.C[:, None, None, :] * seen.transpose(0, 2, 1), model.is_pair)  # (p, q, m, states)
    columns = by_B.reshape(p, q, -1)
    if feedthrough:
        direct = np.zeros((p, q, p, m))
        for output in range(p):
            direct[output, :, output] = own.inputs
        columns = np.concatenate([columns, direct.reshape(p, q, -1)], axis=2)
    return (columns / scale[:, None, None]).reshape(p * q, -1)


def _with_parameters(model: ModalModel, theta: Array, *, feedthrough: bool) -> ModalModel:
    p, m, n = model.n_outputs, model.n_inputs, model.order
    B = complex_values(theta[: n * m].reshape(m, n), model.is_pair).T
    D = theta[n * m :].reshape(p, m) if feedthrough else np.zeros((p, m))
    return model.with_inputs(B, D)


def _start(parts: Array, model: ModalModel, trend: Trend) -> Start:
    states = complex_values(parts[: model.order], model.is_pair)
    return Start(states, parts[model.order :].reshape(model.n_outputs, N_TRENDS[trend]))


def least_squares(columns: Matrix, side: Array) -> Array:
    """Least squares in units of the columns; directions that are not seen get the shortest vector."""
    norms = np.linalg.norm(columns, axis=0)
    norms = np.where(norms > 0.0, norms, 1.0)
    if not columns.shape[1]:
        return np.zeros(0)
    cutoff = max(columns.shape) * EPS
    return np.asarray(linalg.lstsq(columns / norms, side, cond=cutoff, check_finite=False)[0] / norms)
