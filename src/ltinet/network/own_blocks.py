"""The way back from neurons to blocks: the block coordinates that the parameters of a network give.

A second-order neuron m ξ̈ + c ξ̇ + k ξ has the poles a ± √(a² − k/m), a = −c/2m. With ζ = ξ̇ − J u and η = (ζ − a ξ)/s,
s = √|k/m − a²|, its states (ξ, η) stand as [[a, s], [∓s, a]]: a normal matrix whatever the units of time.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.matrices import Matrix, read_only
from ltinet.network.block_system import BlockSystem
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import m_eta, solve_upper
from ltinet.network.network import Network
from ltinet.network.state_equations import realise_layer

# s relative to √(k/m) and |a|, below which η would be a ratio of rounding errors: nearly critical damping.
_SMALLEST = 1e-3


class OwnBlocks(NamedTuple):
    """A network as a system in block coordinates, and its neurons there: (ξ, ξ̇ − J u) = to_neurons · z."""

    system: BlockSystem
    to_neurons: sparse.csr_array
    to_blocks: sparse.csr_array
    """The inverse."""
    J: Matrix


def own_blocks(network: Network) -> OwnBlocks:
    """The blocks of a network that has no block-diagonal form behind it."""
    parts = [realise_layer(layer) for layer in network.layers]
    maps = [_to_neurons(layer, part.F) for layer, part in zip(network.layers, parts, strict=True)]
    inverses: list[Matrix] = [np.asarray(np.linalg.inv(own), dtype=np.float64) for own in maps]
    to_neurons, to_blocks = (block_diagonal(own) for own in (maps, inverses))
    A = [inverse @ part.F @ own for inverse, part, own in zip(inverses, parts, maps, strict=True)]
    B = [inverse @ part.G for inverse, part in zip(inverses, parts, strict=True)]
    J = np.vstack([np.zeros((0, network.n_inputs)), *(part.J for part in parts)])
    system = BlockSystem(
        A=read_only(linalg.block_diag(*A) if A else np.zeros((0, 0))),
        B=read_only(np.vstack([np.zeros((0, network.n_inputs)), *B])),
        C=read_only(network.output_weights @ to_neurons),
        D=read_only(network.Psi + network.output_weights @ J),
        block_sizes=tuple(layer.n_states for layer in network.layers),
        reals_per_block=tuple(layer.n_first_order for layer in network.layers),
    )
    return OwnBlocks(system, to_neurons, to_blocks, J)


def block_diagonal(blocks: list[Matrix]) -> sparse.csr_array:
    """A sparse matrix of blocks, 0×0 for none."""
    if not blocks:
        return sparse.csr_array((0, 0))
    # The first says what kind the result is of; to convert all takes longer than to put them together.
    mixed: list[Any] = [sparse.coo_array(blocks[0]), *blocks[1:]]
    return sparse.csr_array(sparse.block_diag(mixed))


def _to_neurons(layer: HorizontalLayer, F: Matrix) -> Matrix:
    """From (ξ of first-order neurons, then ξ and η of each pair) to (all ξ, all ζ) of a layer."""
    n = layer.n_neurons
    first, second = np.flatnonzero(~layer.is_second_order), np.flatnonzero(layer.is_second_order)
    zeta = n + np.arange(len(second))
    a, k = 0.5 * F[zeta, zeta], -F[zeta, second]
    largest = np.maximum(np.sqrt(np.abs(k)), np.abs(a))
    s = np.maximum(np.sqrt(np.abs(k - a * a)), _SMALLEST * largest)
    s[s == 0.0] = 1.0  # ξ̈ = 0: any unit of time will do
    column = len(first) + 2 * np.arange(len(second))
    to_neurons = np.zeros((layer.n_states, layer.n_states))
    to_neurons[first, np.arange(len(first))] = to_neurons[second, column] = 1.0
    to_neurons[zeta, column], to_neurons[zeta, column + 1] = a, s
    return to_neurons


def recovered_blocks(network: Network, form: BlockDiagonalForm) -> BlockSystem:
    """The system in the coordinates of a form from which a network was made, where only the network is known.

    The maps m_lti and m_o read backwards: B₂ = V, B₃ = A₂₃⁻¹E_c − A₃₃ Z, B₁ = E_r − A₁₃ Z with Z = −A₂₃⁻¹B₂;
    C_η = φ̇ A₂₃, C_c = φ_c − C_η W.
    """
    B, C = np.zeros((network.n_states, network.n_inputs)), np.zeros((network.n_outputs, network.n_states))
    D, start = network.Psi.copy(), 0
    for index, (layer, phi, n_real) in enumerate(zip(network.layers, network.Phi, form.reals_per_block, strict=True)):
        A, n = form.block(index), layer.n_states
        r, c, e = slice(0, n_real), slice(n_real, n, 2), slice(n_real + 1, n, 2)
        own_B, own_C = B[start : start + n], C[:, start : start + n]
        own_B[c] = layer.V[n_real:]
        W, _, Z = m_eta(A, own_B, n_real=n_real)
        own_B[e] = solve_upper(A[c, e], layer.E[n_real:]) - A[e, e] @ Z
        own_B[r] = layer.E[:n_real] - A[r, e] @ Z
        own_C[:, e] = phi[:, layer.n_neurons :] @ A[c, e]
        own_C[:, r], own_C[:, c] = phi[:, :n_real], phi[:, n_real : layer.n_neurons] - own_C[:, e] @ W
        D -= own_C[:, e] @ Z
        start += n
    return BlockSystem(form.A, read_only(B), read_only(C), read_only(D), form.block_sizes, form.reals_per_block)
