"""The Gramian of decoupled modes, P_ij = −b_i b_jᴴ/(λ_i + λ̄_j), as L Lᴴ: by elimination that keeps small pivots right.

Eliminating mode j from Λ P + P Λᴴ + B Bᴴ = 0 leaves an equation of the same kind, with b_i multiplied along
q = b_j/|b_j| by (λ_i − λ_j)/(λ_i + λ̄_j) (a Blaschke factor) and as it was across. Nothing cancels, so small pivots
are as right as large ones; O(n² m) in all, and the Gramian itself is never formed.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.tolerances import EPS

Number = TypeVar("Number", np.float64, np.complex128)

_FORGOTTEN = EPS**2  # of the largest pivot: eps of the values that are its root


def cauchy_factor(rates: NDArray[Number], B: NDArray[Number], *, weights: Array) -> NDArray[Number]:
    """L (n × k) with L Lᴴ = P, largest pivots first, until they are nothing beside the first; Re λ < 0.

    Pivots are compared as P_ii times squared weights, which the caller chooses so that units of modes do not matter.
    Both of a pair follow each other, so that the span of the columns is a real one.
    """
    rows, width = np.array(B), -2.0 * rates.real
    partner = _partners(rates)
    columns: list[NDArray[Number]] = []
    left = np.ones(len(rates), dtype=np.bool_)
    first = 0.0
    while left.any():
        pivots = np.where(left, (rows.real**2 + rows.imag**2).sum(axis=1) / width * weights**2, -1.0)
        j = int(np.argmax(pivots))
        first = max(first, float(pivots[j]))
        if not pivots[j] > _FORGOTTEN * first:
            break
        for own in (j,) if partner[j] == j else (j, int(partner[j])):
            column = _eliminated(rates, rows, own, float(width[own]))
            if column is not None:
                columns.append(column)
            left[own] = False
    return np.stack(columns, axis=1) if columns else np.zeros((len(rates), 0), dtype=rows.dtype)


def _eliminated(rates: NDArray[Number], rows: NDArray[Number], j: int, width: float) -> NDArray[Number] | None:
    """The column of L that belongs to pivot j; the rows become those of what is left."""
    size = float(np.linalg.norm(rows[j]))
    if size == 0.0:
        return None
    along = rows[j] / size
    sums = rates + rates[j].conjugate()
    parts = rows @ along.conj()
    column = -parts * np.sqrt(width) / sums  # −b_i b_jᴴ/(λ_i + λ̄_j) over the root of |b_j|²/width
    turned = np.outer(parts * ((rates - rates[j]) / sums), along)
    rows[:] = turned if rows.shape[1] == 1 else (rows - np.outer(parts, along)) + turned
    rows[j] = 0.0
    return np.asarray(column)


def _partners(rates: NDArray[Any]) -> NDArray[np.intp]:
    partner, places = np.arange(len(rates)), np.flatnonzero(rates.imag)
    partner[places[::2]], partner[places[1::2]] = places[1::2], places[::2]
    return partner
