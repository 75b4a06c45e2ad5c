"""Synthesis of a network from a block-diagonal form (Algorithm 2), one horizontal layer per block.

Blocks of one neuron, by far the most frequent, are converted all at once by the formulas of `maps`, in which every
matrix becomes a number. For a pair, [[a, b], [c, d]] gives ξ̈ − (a + d) ξ̇ + (a d − b c) ξ = (b b₂ − d b₁) u + b₁ u̇
and η = (ξ̇ − a ξ − b₁ u)/b. A weight that is small compared with the terms of its sum is a rounding error and becomes zero.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array, summation_tolerance
from ltinet.errors import InvalidNetworkError
from ltinet.network.block_system import BlockSystem
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import (
    LayerMatrices,
    TermMagnitudes,
    drop_rounding,
    lti_magnitudes,
    m_lti,
    m_o,
    output_magnitudes,
)
from ltinet.network.network import Network
from ltinet.systems.matrices import Matrix, as_real_matrix, make_read_only

# Blocks of one neuron


class LayerStack(NamedTuple):
    """Layers, their output weights, their contribution to Ψ, and the magnitudes of the terms of Ψ."""

    layers: list[HorizontalLayer]
    Phi: list[Matrix]
    Psi: Matrix
    Psi_terms: Matrix


def first_order_layers(a: Array, *, B: Matrix, C: Matrix) -> LayerStack:
    """Return the layers ξ̇ − a ξ = b u, y = c ξ of eigenvalues a with rows of B and columns of C."""
    zero, one = np.zeros_like(a), np.ones_like(a)
    layers, Phi = _assemble(zero, one, -a, E=B, V=np.zeros_like(B), Phi=C.T[:, :, None])
    zero_Psi = np.zeros((len(C), B.shape[1]))
    return LayerStack(layers, Phi, zero_Psi, zero_Psi)


def second_order_layers(
    blocks: Array, *, B: Array, C: Array, terms: TermMagnitudes | None = None, noise: float = 0.0
) -> LayerStack:
    """Return the layers of 2×2 blocks `(k, 2, 2)`, with their rows of B `(k, 2, m)` and columns of C `(k, p, 2)`.

    Sums below `noise` times the magnitudes of their terms become zero; `terms` are those of B and C.
    """
    a, b, c, d = blocks[:, 0, 0], blocks[:, 0, 1], blocks[:, 1, 0], blocks[:, 1, 1]
    B_terms, C_terms = terms or TermMagnitudes(np.abs(B), np.abs(C))
    with np.errstate(over="ignore", invalid="ignore"):  # checked when the layers are assembled
        rate_weights, rate_terms = C[:, :, 1] / b[:, None], C_terms[:, :, 1] / np.abs(b)[:, None]
        Phi = np.stack([C[:, :, 0] - rate_weights * a[:, None], rate_weights], axis=2)
        Phi_terms = np.stack([C_terms[:, :, 0] + rate_terms * np.abs(a)[:, None], rate_terms], axis=2)
        E = b[:, None] * B[:, 1] - d[:, None] * B[:, 0]
        E_terms = np.abs(b)[:, None] * B_terms[:, 1] + np.abs(d)[:, None] * B_terms[:, 0]
        Psi, Psi_terms = -rate_weights.T @ B[:, 0], rate_terms.T @ B_terms[:, 0]
        damping = drop_rounding(-(a + d), noise * (np.abs(a) + np.abs(d)))
        E, Phi = drop_rounding(E, noise * E_terms), drop_rounding(Phi, noise * Phi_terms)
        stiffness = a * d - b * c
    layers, outputs = _assemble(np.ones_like(a), damping, stiffness, E=E, V=B[:, 0], Phi=Phi)
    return LayerStack(layers, outputs, Psi, Psi_terms)


def _assemble(
    m: Array, c: Array, k: Array, *, E: Matrix, V: Matrix, Phi: Array
) -> tuple[list[HorizontalLayer], list[Matrix]]:
    """Return layers m ξ̈ + c ξ̇ + k ξ = e u + v u̇ of one neuron each, e and v the rows of E and V, and their Phi.

    All of them are views of read-only stacks.
    """
    # −0.0 + 0.0 is +0.0: equal parameters are equal bit for bit. Views of read-only arrays are read-only.
    stacks = [make_read_only(np.ascontiguousarray(stack) + 0.0) for stack in (m, c, k, E, V, Phi)]
    if not all(np.isfinite(stack).all() for stack in stacks):
        raise InvalidNetworkError(
            "weights of the network overflow double precision; scale the inputs, the outputs or the unit of time"
        )
    M, damping, K = (stack[:, None, None] for stack in stacks[:3])
    E, V, Phi = stacks[3][:, None], stacks[4][:, None], stacks[5]
    layers = [HorizontalLayer.trusted(LayerMatrices(*matrices)) for matrices in zip(M, damping, K, E, V, strict=True)]
    return layers, list(Phi)


# Algorithm 2


def synthesize(system: BlockSystem) -> Network:
    """Return the network with the input–output map of the system (Theorem 1), one horizontal layer per block.

    A weight that is small compared with the terms of its sum is a rounding error and becomes zero.
    """
    system, terms = _drop_rounding_weights(system)
    A, B, C = system.A, system.B, system.C
    sizes, n_reals = np.array(system.block_sizes, dtype=np.intp), np.array(system.reals_per_block, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    reals, pairs = np.flatnonzero(sizes == 1), np.flatnonzero((sizes == 2) & (n_reals == 0))
    first, second = starts[reals], starts[pairs, None] + np.arange(2)
    stacks = [
        (reals, first_order_layers(A[first, first], B=B[first], C=C[:, first])),
        (
            pairs,
            second_order_layers(
                A[second[:, :, None], second[:, None, :]],
                B=B[second],
                C=_columns(C, second),
                terms=TermMagnitudes(terms.B[second], _columns(terms.C, second)),
                noise=summation_tolerance(len(A)),
            ),
        ),
    ]
    coupled = np.setdiff1d(np.arange(len(sizes)), np.concatenate([reals, pairs]))
    stacks += [(np.array([block]), _coupled_layer(system, terms, int(block))) for block in coupled]
    layers: dict[int, HorizontalLayer] = {}
    Phi: dict[int, Matrix] = {}
    for block_indices, stack in stacks:
        layers.update(zip(block_indices.tolist(), stack.layers, strict=True))
        Phi.update(zip(block_indices.tolist(), stack.Phi, strict=True))
    order = range(len(sizes))
    Psi = _feedthrough(system, [stack for _, stack in stacks])
    return Network.trusted([layers[i] for i in order], [Phi[i] for i in order], Psi)


def _feedthrough(system: BlockSystem, stacks: list[LayerStack]) -> Matrix:
    """Return Ψ, D plus the contributions of layers with pairs."""
    if sum(system.reals_per_block) == len(system.A):
        return system.D
    Psi = sum((stack.Psi for stack in stacks), start=system.D)
    terms = sum((stack.Psi_terms for stack in stacks), start=np.abs(system.D))
    return as_real_matrix(drop_rounding(Psi, summation_tolerance(len(system.A)) * terms), "Psi")


def _drop_rounding_weights(system: BlockSystem) -> tuple[BlockSystem, TermMagnitudes]:
    """Return the system with rounding errors in B and C set to zero, and the magnitudes of the terms of the others."""
    if system.magnitudes is None:
        if sum(system.reals_per_block) == len(system.A):
            return system, TermMagnitudes(system.B, system.C)  # no entry is a sum
        return system, TermMagnitudes(np.abs(system.B), np.abs(system.C))
    noise = summation_tolerance(len(system.A))
    B, C = (
        drop_rounding(matrix, noise * terms)
        for matrix, terms in zip((system.B, system.C), system.magnitudes, strict=True)
    )
    terms = TermMagnitudes(np.where(B != 0.0, system.magnitudes.B, 0.0), np.where(C != 0.0, system.magnitudes.C, 0.0))
    return replace(system, B=B, C=C), terms


def _coupled_layer(system: BlockSystem, terms: TermMagnitudes, block: int) -> LayerStack:
    """Return the layer of one block of several neurons."""
    states, n_real, noise = system.slices[block], system.reals_per_block[block], summation_tolerance(len(system.A))
    A, B, C = system.A[states, states], system.B[states], system.C[:, states]
    summed = zip(m_lti(A, B, n_real=n_real), lti_magnitudes(A, terms.B[states], n_real=n_real), strict=True)
    matrices = [drop_rounding(matrix, noise * size) for matrix, size in summed]
    named = zip(LayerMatrices._fields, matrices, strict=True)
    values, rates, Psi = m_o(A, B, C, n_real=n_real)
    Phi_terms, Psi_terms = output_magnitudes(A, terms.B[states], terms.C[:, states], n_real=n_real)
    Phi = as_real_matrix(drop_rounding(np.hstack([values, rates]), noise * Phi_terms), f"Phi[{block}]")
    layer = HorizontalLayer.trusted(LayerMatrices(*(as_real_matrix(matrix, name) for name, matrix in named)))
    return LayerStack([layer], [Phi], Psi, Psi_terms)


def _columns(C: Matrix, states: NDArray[np.intp]) -> Array:
    """Return the columns of C at the given states, `(k, size)` → `(k, p, size)`."""
    return np.asarray(C.T[states].swapaxes(1, 2))
