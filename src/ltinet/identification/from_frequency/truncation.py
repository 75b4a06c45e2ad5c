"""Fewer states for nearly the same response: balanced truncation with Gramians of the measured frequencies.

P = ∫ (jω − A)⁻¹ B Bᵀ (jω − A)⁻* dω/2π over the range of the data exists for unstable systems too, and asks what the
data ask: how much a state is moved and seen there. Residues of rank r keep r states, those of rounding or noise none.
"""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.identification.from_frequency.partial_fractions import stacked
from ltinet.identification.from_frequency.realisation import Realisation, in_blocks
from ltinet.tolerances import EPS


@dataclass(frozen=True)
class Truncation:
    """All truncations of one model, from one decomposition."""

    model: Realisation
    singular_values: Array
    """How much each state of the balanced model matters, descending, without those that are rounding."""
    left: Array
    right: Array

    def of_order(self, order: int) -> Realisation:
        """The model with its `order` most important states."""
        left, right, model = self.left[:order], self.right[:, :order], self.model
        return in_blocks(left @ model.A @ right, left @ model.B, model.C @ right, model.D)


def truncations(model: Realisation, s: Complex) -> Truncation:
    """Balance a model over the places s; square roots of the Gramians by QR, so that no digit is squared away."""
    spread = np.sqrt(np.gradient(s.imag) / np.pi) if len(s) > 1 else np.ones(1)
    X = spread[:, None, None] * model.state_responses(s)
    Y = spread[:, None, None] * model.output_responses(s)
    reached = _root(X.transpose(0, 2, 1).reshape(-1, model.n_states))
    seen = _root(Y.reshape(-1, model.n_states))
    U, values, Vt = np.linalg.svd(seen @ reached.T)
    kept = int(np.count_nonzero(values > len(values) * EPS * np.max(values, initial=0.0)))
    root = np.sqrt(values[:kept])
    left = (U[:, :kept] / root).T @ seen
    right = reached.T @ (Vt[:kept].T / root)
    return Truncation(model, values[:kept], left, right)


def _root(rows: Complex) -> Array:
    """R with RᵀR = Re(rowsᴴ rows)."""
    return np.asarray(np.linalg.qr(stacked(rows), mode="r"))
