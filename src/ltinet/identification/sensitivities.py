"""Parameter vector of a modal model with its records, and the derivatives of all outputs by it.

The parameters are, in this order, the poles, b, c and D of the model, then the initial state and trends of every
record. The outputs do not change when b_i is multiplied by a number and c_i divided by it, so that the largest entry
of b_i is held fixed. Derivatives are evaluated some samples at a time without compressing the record first, so that
residuals keep the digits that a rotation of the record would mix with those of the outputs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import Array, Complex
from ltinet.identification.linear_parameters import (
    N_TRENDS,
    DrivenModel,
    InitialCondition,
    ModalDrive,
    ModalRegressors,
    Trend,
    compute_regressors,
    pack_columns,
    simulated_outputs,
    unpack_complex,
)
from ltinet.identification.modal_model import ModalModel, component_mask, feedthrough_share
from ltinet.identification.records import Record
from ltinet.systems.matrices import Matrix

# MERGED ltinet.identification.sensitivities
# All parameters of a driven model and its records as one vector, and the derivatives of outputs by them.
#
# A mode keeps its outputs when b_i is multiplied by a number and c_i divided by it, so that the largest entry of b_i is
# no parameter: it stays as it is.

MAX_PARAMETERS = 400  # beyond, derivatives by all of them take seconds
_POLE_STEP = 1e-6  # of a pole: the distance for the derivative of ρ, whose own digits matter little


@dataclass(frozen=True, eq=False)
class ParameterLayout:
    """Which numbers of a model are parameters, and in which order: poles, b, c, D, then record by record."""

    like: ModalModel
    feedthrough: bool
    trend: Trend
    n_records: int

    @property
    def fixed_inputs(self) -> NDArray[np.intp]:
        """For each mode the input whose weight stays as it is."""
        return np.asarray(np.argmax(np.abs(self.like.B), axis=1))

    @property
    def is_free(self) -> NDArray[np.bool_]:
        """Which real and imaginary parts of b are parameters, input by input `(m, states)`."""
        m, pairs = self.like.n_inputs, self.like.is_pair
        free = np.ones((m, len(pairs)), dtype=bool)
        free[self.fixed_inputs, np.arange(len(pairs))] = False
        return np.repeat(free, 2, axis=1)[:, component_mask(pairs)]

    @property
    def n_local(self) -> int:
        """Parameters of one record."""
        return self.like.order + self.like.n_outputs * N_TRENDS[self.trend]

    @property
    def n_shared(self) -> int:
        """Parameters of the model."""
        n, m, p = self.like.order, self.like.n_inputs, self.like.n_outputs
        return n + int(self.is_free.sum()) + n * p + (p * m if self.feedthrough else 0)

    def __len__(self) -> int:
        return self.n_shared + self.n_records * self.n_local

    def packed(self, model: ModalModel, starts: tuple[InitialCondition, ...]) -> Array:
        """The parameters of a model with its starts."""
        pairs = model.is_pair
        parts = [_parts(model.poles, pairs), _parts(model.B.T, pairs)[self.is_free], _parts(model.C, pairs).ravel()]
        if self.feedthrough:
            parts.append(model.D.ravel())
        for own in starts:
            parts += [_parts(own.states, pairs), own.trends.ravel()]
        return np.concatenate(parts)

    def unpacked(self, theta: Array) -> tuple[ModalModel, tuple[InitialCondition, ...]]:
        """The model and the starts of some parameters."""
        like, pairs, n = self.like, self.like.is_pair, self.like.order
        m, p, free = like.n_inputs, like.n_outputs, self.is_free
        poles, rest = unpack_complex(theta[:n], pairs), theta[n:]
        weights = _parts(like.B.T, pairs)
        weights[free], rest = rest[: free.sum()], rest[free.sum() :]
        C, rest = unpack_complex(rest[: n * p].reshape(p, n), pairs), rest[n * p :]
        D = np.zeros((p, m))
        if self.feedthrough:
            D, rest = rest[: p * m].reshape(p, m), rest[p * m :]
        model = ModalModel(poles, pairs, C, unpack_complex(weights, pairs).T, D, linear=like.linear)
        starts = [
            InitialCondition(unpack_complex(own[:n], pairs), own[n:].reshape(p, N_TRENDS[self.trend]))
            for own in rest.reshape(self.n_records, self.n_local)
        ]
        return model, tuple(starts)

    def derivatives(self, own: ModalRegressors, model: ModalModel, start: InitialCondition, *, record: int) -> Array:
        """Of all outputs over one record by all parameters: `(p, q, parameters)`."""
        p, q, pairs, n = model.n_outputs, len(own.outputs), model.is_pair, model.order
        columns = np.zeros((p, q, len(self)))
        entering = own.inputs @ model.B.T  # b_i u, (q, k)
        moved = own.twice + _feedthrough_share_slope(model) * entering
        columns[:, :, :n] = pack_columns(model.C[:, None] * moved, pairs)
        free, at = self.is_free, n
        driven = own.driven + model.direct_shares[:, None] * own.inputs[:, None, :]
        by_B = pack_columns(model.C[:, None, None] * driven.transpose(0, 2, 1), pairs)  # (p, q, m, states)
        columns[:, :, at : at + free.sum()] = by_B[:, :, free]
        at += int(free.sum())
        states = np.einsum("qkm,km->qk", own.driven, model.B) + own.decays * start.states
        by_C = pack_columns(states + model.direct_shares * entering, pairs)
        for output in range(p):
            columns[output, :, at + output * n : at + (output + 1) * n] = by_C
        at += n * p
        if self.feedthrough:
            for output in range(p):
                columns[output, :, at + output * model.n_inputs : at + (output + 1) * model.n_inputs] = own.inputs
        at, n_trends = self.n_shared + record * self.n_local, N_TRENDS[self.trend]
        columns[:, :, at : at + n] = pack_columns(model.C[:, None] * own.decays, pairs)
        for output in range(p):
            first = at + n + output * n_trends
            columns[output, :, first : first + n_trends] = own.trends[:, :n_trends]
        return columns

    def residuals(self, own: ModalRegressors, model: ModalModel, start: InitialCondition) -> Array:
        """Outputs of the model less those that were measured, `(p, q)`."""
        return np.asarray((simulated_outputs(own, model, start) - own.outputs).T)

    def drive(self, model: ModalModel, start: InitialCondition) -> ModalDrive:
        """What derivatives by poles need."""
        return ModalDrive(model.B, start.states)


def _parts(values: Complex, is_pair: NDArray[np.bool_]) -> Array:
    """Real and, for pairs, imaginary parts along the last axis."""
    return pack_columns(values.conj(), is_pair)


def _feedthrough_share_slope(model: ModalModel) -> Complex:
    """dρ/dλ of every mode, by a central difference."""
    if not model.linear:
        return np.zeros_like(model.poles)
    step = _POLE_STEP * np.maximum(np.abs(model.poles), _POLE_STEP)
    return np.asarray((feedthrough_share(model.poles + step) - feedthrough_share(model.poles - step)) / (2.0 * step))


# MERGED ltinet.identification.sensitivities
# Derivatives of all outputs over all records by all parameters, some samples at a time.
#
# Nothing is compressed before the derivatives are taken, so that residuals keep the digits that a rotation of the record
# would mix with those of the outputs.

MAX_RECORD_SAMPLES = 2**16  # samples of a record that are looked at; the others are taken to say as much each
_CHUNK_SIZE = 2**22  # numbers of the derivatives that are held together


class RecordResiduals(NamedTuple):
    """One record as far as it is looked at."""

    own: ModalRegressors
    start: InitialCondition
    residuals: Array
    """`(q, p)`."""


def record_residuals(linear: DrivenModel, records: tuple[Record, ...]) -> list[RecordResiduals]:
    """Sequences and residuals of the records, of long ones at their beginnings."""
    found = []
    for record, start in zip(records, linear.starts, strict=True):
        part, here = leading_part(record, start)
        own = compute_regressors(
            linear.model, part, ParameterLayout(linear.model, False, "none", 1).drive(linear.model, here)
        )
        found.append(RecordResiduals(own, here, own.outputs - simulated_outputs(own, linear.model, here)))
    return found


def leading_part(record: Record, start: InitialCondition) -> tuple[Record, InitialCondition]:
    """The part of a record that is looked at, with the slope that its trend has over it."""
    part = record.part(slice(0, MAX_RECORD_SAMPLES))
    shortened = np.array([1.0, max(len(part) - 1, 1) / max(len(record) - 1, 1)])
    return part, InitialCondition(start.states, start.trends * shortened[: start.trends.shape[1]])


class Sensitivities:
    """Derivatives of all records, parameters of records before those of the model; the end of a record comes first."""

    def __init__(self, parameters: ParameterLayout, parts: list[RecordResiduals], scale: Array) -> None:
        self._parameters, self._parts, self._scale = parameters, parts, scale

    def triangle(self) -> tuple[Matrix, Array]:
        """R of J = QR, and Qᵀe."""
        n = len(self._parameters)
        R = np.zeros((0, n + 1))
        for number, part in enumerate(self._parts):
            end = len(part.residuals)
            for columns in self.backwards(number):
                rows = slice(end - columns.shape[1], end)
                side = (part.residuals[rows] / self._scale).T[..., None]
                stacked = np.vstack([R, np.concatenate([columns, side], axis=2).reshape(-1, n + 1)])
                R = np.asarray(linalg.qr(stacked, mode="r", check_finite=False)[0][: n + 1])
                end = rows.start
        return R[:n, :n], R[:n, n]

    def backwards(self, number: int) -> Iterator[Array]:
        """`(p, q, parameters)` of one record, its end first; rows within are in the order of time."""
        own, start, residuals = self._parts[number]
        at_once = max(1, _CHUNK_SIZE // (residuals.shape[1] * len(self._parameters)))
        n_shared, model = self._parameters.n_shared, self._parameters.like
        for end in range(len(residuals), 0, -at_once):
            rows = slice(max(0, end - at_once), end)
            columns = self._parameters.derivatives(_rows(own, rows), model, start, record=number)
            yield np.roll(columns, -n_shared, axis=2) / self._scale[:, None, None]


def _rows(own: ModalRegressors, rows: slice) -> ModalRegressors:
    return ModalRegressors(
        own.decays[rows], own.driven[rows], own.twice[rows], own.inputs[rows], own.trends[rows], own.outputs[rows]
    )
