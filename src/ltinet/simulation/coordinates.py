"""Linear maps between the three coordinate systems of a state: user, block and neuron coordinates.

x are the states of the user, z those of the blocks with x = T z, and (ξ, ζ) those of the neurons:

    x ──T⁻¹──▶ z ──N──▶ (ξ, ζ) ──+ J u──▶ (ξ, ξ̇)

The exact engine runs in z. Second-order neurons have ξ̇ = ζ + J u; ζ is continuous where the input jumps. Within a
block ζ is a row of A z, so that neuron states follow from block states without a division. The inverse map divides by
the couplings of complex pairs; only the engines that solve one ODE per neuron need it.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ltinet._util.floating_point import Array
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.transformation import ImplicitTransformation, Transformation
from ltinet.network.block_system import BlockSystem
from ltinet.network.maps import m_eta
from ltinet.network.network import Network
from ltinet.network.realization import modal_blocks, recover_block_system, sparse_block_diagonal
from ltinet.systems.matrices import Matrix


@dataclass(frozen=True)
class Coordinates:
    """Linear maps between x, z and (ξ, ζ), each along the last axis."""

    transformation: Transformation | None
    """T in x = T z; None for a network without a form, whose user states are its neuron states."""
    to_neurons: sparse.csr_array
    """N."""
    to_blocks: sparse.csr_array
    """N⁻¹."""
    J: Matrix
    """(ξ, ξ̇) = (ξ, ζ) + J u."""

    @classmethod
    def in_units(cls, units: Array, n_inputs: int) -> "Coordinates":
        """Return the coordinates of a system whose block states are the user's in other units, x = units · z."""
        to_neurons, to_blocks = (sparse.csr_array(sparse.diags_array(scale)) for scale in (units, 1.0 / units))
        return cls(None, to_neurons, to_blocks, np.zeros((len(units), n_inputs)))

    def blocks_from_user(self, x: Array) -> Array:
        """Return z = T⁻¹ x, by T⁻¹ itself and not by its factors: a network from a file has no factors."""
        if self.transformation is None:
            return self.blocks_from_neurons(x)
        if isinstance(self.transformation, ImplicitTransformation):
            return np.asarray(self.transformation.to_blocks(_as_columns(x)).T).reshape(x.shape)
        return np.asarray(x @ self.transformation.T_inv.T)

    def user_from_blocks(self, z: Array) -> Array:
        """Return x = T z."""
        if self.transformation is None:
            return self.neurons_from_blocks(z)
        if isinstance(self.transformation, ImplicitTransformation):
            return np.asarray(self.transformation.states_of(_as_columns(z)).T).reshape(z.shape)
        return np.asarray(z @ self.transformation.T.T)

    def neurons_from_blocks(self, z: Array) -> Array:
        """Return (ξ, ζ) = N z."""
        return _apply(self.to_neurons, z)

    def blocks_from_neurons(self, states: Array) -> Array:
        """Return z = N⁻¹ (ξ, ζ)."""
        return _apply(self.to_blocks, states)

    @property
    def user_from_neurons(self) -> Array:
        """Matrix from (ξ, ζ) to x."""
        if self.transformation is None:
            return np.eye(len(self.J))
        return np.asarray((self.to_blocks.T @ self.transformation.T.T).T)

    @property
    def neurons_from_user(self) -> Array:
        """Matrix from x to (ξ, ζ)."""
        return np.eye(len(self.J)) if self.transformation is None else self.to_neurons @ self.transformation.T_inv


def network_coordinates(
    network: Network, form: BlockDiagonalForm | None, blocks: BlockSystem | None
) -> tuple[BlockSystem, Coordinates]:
    """Return a network as a system in block coordinates, and the maps to the other two.

    Without a form the blocks follow from the neurons alone; with a form, `blocks` are computed unless they are known.
    A block has states (ξ_r, then ξ_c and η in turn), its neurons have (ξ_r, ξ_c, ζ) with ζ = A22 ξ_c + A23 η, and the
    inverse is η = W ξ_c + Q ζ.
    """
    if form is None:
        system, to_neurons, to_blocks, J = modal_blocks(network)
        return system, Coordinates(None, to_neurons, to_blocks, J)
    blocks = recover_block_system(network, form) if blocks is None else blocks
    forward, backward, J = [], [], np.zeros_like(blocks.B)
    for states, n_real in zip(blocks.slices, blocks.reals_per_block, strict=True):
        A, n = blocks.A[states, states], states.stop - states.start
        n_pairs = (n - n_real) // 2
        first, second = np.arange(n_real, n, 2), np.arange(n_real + 1, n, 2)
        xi, zeta = np.arange(n_real, n_real + n_pairs), np.arange(n_real + n_pairs, n)
        W, Q, _ = m_eta(A, np.zeros((n, 0)), n_real=n_real)
        neuron_rows, block_rows = np.zeros((n, n)), np.zeros((n, n))
        neuron_rows[:n_real, :n_real] = block_rows[:n_real, :n_real] = np.eye(n_real)
        neuron_rows[xi, first] = block_rows[first, xi] = 1.0
        neuron_rows[zeta] = A[first]
        block_rows[np.ix_(second, xi)], block_rows[np.ix_(second, zeta)] = W, Q
        J[states.start + zeta] = blocks.B[states.start + first]
        forward.append(neuron_rows)
        backward.append(block_rows)
    N, N_inv = sparse_block_diagonal(forward), sparse_block_diagonal(backward)
    return blocks, Coordinates(form.transformation, N, N_inv, J)


def _apply(matrix: sparse.csr_array, states: Array) -> Array:
    return np.asarray((matrix @ _as_columns(states)).T).reshape(states.shape)


def _as_columns(states: Array) -> Array:
    """Return states along the last axis as columns, (n × k)."""
    return states.reshape(math.prod(states.shape[:-1]), states.shape[-1]).T
