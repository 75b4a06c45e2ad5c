"""Blocks of one neuron, all at once: most layers are such, and one by one they would cost more than the Schur form.

The formulas are those of `maps` for a block of one neuron, where every matrix is a number.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import InvalidNetworkError
from ltinet.model.matrices import Matrix, read_only
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerMatrices
from ltinet.network.rounding import Magnitudes, without_rounding


class Layers(NamedTuple):
    """Some layers, their output weights, what they add to Ψ, and the sizes of the terms of that."""

    layers: list[HorizontalLayer]
    Phi: list[Matrix]
    Psi: Matrix
    Psi_terms: Matrix


def first_order_layers(a: Array, *, B: Matrix, C: Matrix) -> Layers:
    """ξ̇ − a ξ = b u, y = c ξ for each eigenvalue a with its row of B and column of C."""
    zero, one = np.zeros_like(a), np.ones_like(a)
    layers, Phi = _assemble(zero, one, -a, E=B, V=np.zeros_like(B), Phi=C.T[:, :, None])
    nothing = np.zeros((len(C), B.shape[1]))
    return Layers(layers, Phi, nothing, nothing)


def second_order_layers(
    blocks: Array, *, B: Array, C: Array, terms: Magnitudes | None = None, noise: float = 0.0
) -> Layers:
    """The neuron of each 2×2 block `(k, 2, 2)`, with its rows of B `(k, 2, m)` and columns of C `(k, p, 2)`.

    [[a, b], [c, d]] gives ξ̈ − (a + d) ξ̇ + (a d − b c) ξ = (b b₂ − d b₁) u + b₁ u̇ and η = (ξ̇ − a ξ − b₁ u)/b. Sums below
    `noise` times the sizes of their terms, to which those of B and C count with `terms`, are zero.
    """
    a, b, c, d = blocks[:, 0, 0], blocks[:, 0, 1], blocks[:, 1, 0], blocks[:, 1, 1]
    B_terms, C_terms = terms or Magnitudes(np.abs(B), np.abs(C))
    with np.errstate(over="ignore", invalid="ignore"):  # looked at when all is assembled
        per_eta, eta_terms = C[:, :, 1] / b[:, None], C_terms[:, :, 1] / np.abs(b)[:, None]
        Phi = np.stack([C[:, :, 0] - per_eta * a[:, None], per_eta], axis=2)
        Phi_terms = np.stack([C_terms[:, :, 0] + eta_terms * np.abs(a)[:, None], eta_terms], axis=2)
        E = b[:, None] * B[:, 1] - d[:, None] * B[:, 0]
        E_terms = np.abs(b)[:, None] * B_terms[:, 1] + np.abs(d)[:, None] * B_terms[:, 0]
        Psi, Psi_terms = -per_eta.T @ B[:, 0], eta_terms.T @ B_terms[:, 0]
        damping = without_rounding(-(a + d), noise * (np.abs(a) + np.abs(d)))
        E, Phi = without_rounding(E, noise * E_terms), without_rounding(Phi, noise * Phi_terms)
        stiffness = a * d - b * c
    layers, outputs = _assemble(np.ones_like(a), damping, stiffness, E=E, V=B[:, 0], Phi=Phi)
    return Layers(layers, outputs, Psi, Psi_terms)


def _assemble(
    m: Array, c: Array, k: Array, *, E: Matrix, V: Matrix, Phi: Array
) -> tuple[list[HorizontalLayer], list[Matrix]]:
    # −0.0 + 0.0 is +0.0: equal parameters are equal bit for bit. Views of read-only arrays are read-only.
    stacks = [read_only(np.ascontiguousarray(stack) + 0.0) for stack in (m, c, k, E, V, Phi)]
    if not all(np.isfinite(stack).all() for stack in stacks):
        raise InvalidNetworkError(
            "weights of the network overflow double precision; scale the inputs, the outputs or the unit of time"
        )
    M, damping, K = (stack[:, None, None] for stack in stacks[:3])
    E, V, Phi = stacks[3][:, None], stacks[4][:, None], stacks[5]
    layers = [HorizontalLayer.trusted(LayerMatrices(*matrices)) for matrices in zip(M, damping, K, E, V, strict=True)]
    return layers, list(Phi)
