"""All parameters of a driven model and its records as one vector, and the derivatives of outputs by them.

A mode keeps its outputs when b_i is multiplied by a number and c_i divided by it, so that the largest entry of b_i is
no parameter: it stays as it is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.identification.hold_factors import direct_share
from ltinet.identification.linear_part import (
    N_TRENDS,
    Start,
    Trend,
    all_outputs,
    complex_values,
    real_columns,
)
from ltinet.identification.modal_model import ModalModel, kept_parts
from ltinet.identification.sequences import Drive, Sequences

MOST_PARAMETERS = 400  # beyond, derivatives by all of them take seconds
_NEARBY = 1e-6  # of a pole: the distance for the derivative of ρ, whose own digits matter little


@dataclass(frozen=True, eq=False)
class Parameters:
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
        return np.repeat(free, 2, axis=1)[:, kept_parts(pairs)]

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

    def packed(self, model: ModalModel, starts: tuple[Start, ...]) -> Array:
        """The parameters of a model with its starts."""
        pairs = model.is_pair
        parts = [_parts(model.poles, pairs), _parts(model.B.T, pairs)[self.is_free], _parts(model.C, pairs).ravel()]
        if self.feedthrough:
            parts.append(model.D.ravel())
        for own in starts:
            parts += [_parts(own.states, pairs), own.trends.ravel()]
        return np.concatenate(parts)

    def unpacked(self, theta: Array) -> tuple[ModalModel, tuple[Start, ...]]:
        """The model and the starts of some parameters."""
        like, pairs, n = self.like, self.like.is_pair, self.like.order
        m, p, free = like.n_inputs, like.n_outputs, self.is_free
        poles, rest = complex_values(theta[:n], pairs), theta[n:]
        weights = _parts(like.B.T, pairs)
        weights[free], rest = rest[: free.sum()], rest[free.sum() :]
        C, rest = complex_values(rest[: n * p].reshape(p, n), pairs), rest[n * p :]
        D = np.zeros((p, m))
        if self.feedthrough:
            D, rest = rest[: p * m].reshape(p, m), rest[p * m :]
        model = ModalModel(poles, pairs, C, complex_values(weights, pairs).T, D, linear=like.linear)
        starts = [
            Start(complex_values(own[:n], pairs), own[n:].reshape(p, N_TRENDS[self.trend]))
            for own in rest.reshape(self.n_records, self.n_local)
        ]
        return model, tuple(starts)

    def derivatives(self, own: Sequences, model: ModalModel, start: Start, *, record: int) -> Array:
        """Of all outputs over one record by all parameters: `(p, q, parameters)`."""
        p, q, pairs, n = model.n_outputs, len(own.outputs), model.is_pair, model.order
        columns = np.zeros((p, q, len(self)))
        entering = own.inputs @ model.B.T  # b_i u, (q, k)
        moved = own.twice + _share_slope(model) * entering
        columns[:, :, :n] = real_columns(model.C[:, None] * moved, pairs)
        free, at = self.is_free, n
        driven = own.driven + model.direct_shares[:, None] * own.inputs[:, None, :]
        by_B = real_columns(model.C[:, None, None] * driven.transpose(0, 2, 1), pairs)  # (p, q, m, states)
        columns[:, :, at : at + free.sum()] = by_B[:, :, free]
        at += int(free.sum())
        states = np.einsum("qkm,km->qk", own.driven, model.B) + own.decays * start.states
        by_C = real_columns(states + model.direct_shares * entering, pairs)
        for output in range(p):
            columns[output, :, at + output * n : at + (output + 1) * n] = by_C
        at += n * p
        if self.feedthrough:
            for output in range(p):
                columns[output, :, at + output * model.n_inputs : at + (output + 1) * model.n_inputs] = own.inputs
        at, n_trends = self.n_shared + record * self.n_local, N_TRENDS[self.trend]
        columns[:, :, at : at + n] = real_columns(model.C[:, None] * own.decays, pairs)
        for output in range(p):
            first = at + n + output * n_trends
            columns[output, :, first : first + n_trends] = own.trends[:, :n_trends]
        return columns

    def residuals(self, own: Sequences, model: ModalModel, start: Start) -> Array:
        """Outputs of the model less those that were measured, `(p, q)`."""
        return np.asarray((all_outputs(own, model, start) - own.outputs).T)

    def drive(self, model: ModalModel, start: Start) -> Drive:
        """What derivatives by poles need."""
        return Drive(model.B, start.states)


def _parts(values: Complex, is_pair: NDArray[np.bool_]) -> Array:
    """Real and, for pairs, imaginary parts along the last axis."""
    return real_columns(values.conj(), is_pair)


def _share_slope(model: ModalModel) -> Complex:
    """dρ/dλ of every mode, by a central difference."""
    if not model.linear:
        return np.zeros_like(model.poles)
    step = _NEARBY * np.maximum(np.abs(model.poles), _NEARBY)
    return np.asarray((direct_share(model.poles + step) - direct_share(model.poles - step)) / (2.0 * step))
