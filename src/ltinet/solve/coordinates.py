"""Between the user's states x and the states of the network: x = T · (states of the blocks), and those to (ξ, ζ)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet.decompose.form import BlockDiagonalForm
from ltinet.network.maps import m_eta

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coordinates:
    """Linear maps between x and z = (ξ, ξ̇ − J u) of all layers; identities for a network without a form."""

    T: Array | None
    T_inv: Array | None
    to_network: sparse.csr_array | None
    to_blocks: sparse.csr_array | None

    def network_from_user(self, x: Array) -> Array:
        """The states z from x, along the last axis."""
        if self.T_inv is None or self.to_network is None:
            return x
        return np.asarray(_apply(self.to_network, x @ self.T_inv.T))

    def user_from_network(self, z: Array) -> Array:
        """The states x from z, along the last axis."""
        if self.T is None or self.to_blocks is None:
            return z
        return np.asarray(_apply(self.to_blocks, z) @ self.T.T)


def coordinates(form: BlockDiagonalForm | None) -> Coordinates:
    """The maps of a network that was constructed from a form.

    A block has states (ξ_r, ξ_c and η in turn); the network has (ξ_r, ξ_c, ζ) with ζ = ξ̇_c − B2 u = A22 ξ_c + A23 η,
    and back η = W ξ_c + Q ζ.
    """
    if form is None:
        return Coordinates(None, None, None, None)
    forward, backward = [], []
    for index, n_real in enumerate(form.reals_per_block):
        A = form.block(index)
        n, n_pairs = len(A), (len(A) - n_real) // 2
        first, second = np.arange(n_real, n, 2), np.arange(n_real + 1, n, 2)
        xi, zeta = np.arange(n_real, n_real + n_pairs), np.arange(n_real + n_pairs, n)
        W, Q, _ = m_eta(A, np.zeros((n, 0)), n_real=n_real)
        ahead, back = np.zeros((n, n)), np.zeros((n, n))
        ahead[np.arange(n_real), np.arange(n_real)] = back[np.arange(n_real), np.arange(n_real)] = 1.0
        ahead[xi, first] = back[first, xi] = 1.0
        ahead[np.ix_(zeta, first)], ahead[np.ix_(zeta, second)] = A[np.ix_(first, first)], A[np.ix_(first, second)]
        back[np.ix_(second, xi)], back[np.ix_(second, zeta)] = W, Q
        forward.append(ahead)
        backward.append(back)
    if not forward:
        return Coordinates(None, None, None, None)
    return Coordinates(
        form.T, form.T_inv, sparse.csr_array(sparse.block_diag(forward)), sparse.csr_array(sparse.block_diag(backward))
    )


def _apply(matrix: sparse.csr_array, states: Array) -> Array:
    flat = states.reshape(math.prod(states.shape[:-1]), states.shape[-1])
    return np.asarray((matrix @ flat.T).T).reshape(states.shape)
