"""Derivatives of all outputs over all records by all parameters, some samples at a time.

Nothing is compressed before the derivatives are taken, so that residuals keep the digits that a rotation of the record
would mix with those of the outputs.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.identification.linear_part import Linear, Start, all_outputs
from ltinet.identification.parameters import Parameters
from ltinet.identification.record import Record
from ltinet.identification.sequences import Sequences, sequences
from ltinet.model.matrices import Matrix

LONGEST = 2**16  # samples of a record that are looked at; the others are taken to say as much each
_AT_ONCE = 2**22  # numbers of the derivatives that are held together


class Part(NamedTuple):
    """One record as far as it is looked at."""

    own: Sequences
    start: Start
    residuals: Array
    """`(q, p)`."""


def residual_parts(linear: Linear, records: tuple[Record, ...]) -> list[Part]:
    """Sequences and residuals of the records, of long ones at their beginnings."""
    found = []
    for record, start in zip(records, linear.starts, strict=True):
        part, here = beginning(record, start)
        own = sequences(linear.model, part, Parameters(linear.model, False, "none", 1).drive(linear.model, here))
        found.append(Part(own, here, own.outputs - all_outputs(own, linear.model, here)))
    return found


def beginning(record: Record, start: Start) -> tuple[Record, Start]:
    """The part of a record that is looked at, with the slope that its trend has over it."""
    part = record.part(slice(0, LONGEST))
    shortened = np.array([1.0, max(len(part) - 1, 1) / max(len(record) - 1, 1)])
    return part, Start(start.states, start.trends * shortened[: start.trends.shape[1]])


class Sensitivities:
    """Derivatives of all records, parameters of records before those of the model; the end of a record comes first."""

    def __init__(self, parameters: Parameters, parts: list[Part], scale: Array) -> None:
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
        at_once = max(1, _AT_ONCE // (residuals.shape[1] * len(self._parameters)))
        n_shared, model = self._parameters.n_shared, self._parameters.like
        for end in range(len(residuals), 0, -at_once):
            rows = slice(max(0, end - at_once), end)
            columns = self._parameters.derivatives(_rows(own, rows), model, start, record=number)
            yield np.roll(columns, -n_shared, axis=2) / self._scale[:, None, None]


def _rows(own: Sequences, rows: slice) -> Sequences:
    return Sequences(
        own.decays[rows], own.driven[rows], own.twice[rows], own.inputs[rows], own.trends[rows], own.outputs[rows]
    )
