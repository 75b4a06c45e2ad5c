"""Algorithm 2: from a block-diagonal form to a network."""

import numpy as np
from numpy.typing import NDArray

from ltinet.model.matrices import Matrix, as_real_matrix
from ltinet.network.block_system import BlockSystem
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerMatrices, m_lti, m_o
from ltinet.network.network import Network
from ltinet.network.single_neurons import first_order_layers, second_order_layers


def synthesise(system: BlockSystem) -> Network:
    """The network with the input–output map of the system (Theorem 1), one horizontal layer per block."""
    A, B, C = system.A, system.B, system.C
    Psi = system.D.copy()
    sizes, n_reals = np.array(system.block_sizes, dtype=np.intp), np.array(system.reals_per_block, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    layers: dict[int, HorizontalLayer] = {}
    Phi: dict[int, Matrix] = {}
    reals, pairs = np.flatnonzero(sizes == 1), np.flatnonzero((sizes == 2) & (n_reals == 0))
    first, second = starts[reals], starts[pairs, None] + np.arange(2)
    singles = (
        (reals, first_order_layers(A[first, first], B=B[first], C=C[:, first])),
        (pairs, second_order_layers(_diagonal_blocks(A, second), B=B[second], C=C.T[second].swapaxes(1, 2))),
    )
    for places, (own_layers, own_Phi, own_Psi) in singles:
        layers.update(zip(places.tolist(), own_layers, strict=True))
        Phi.update(zip(places.tolist(), own_Phi, strict=True))
        Psi += own_Psi
    for place in set(range(len(sizes))) - set(layers):
        own = slice(int(starts[place]), int(starts[place] + sizes[place]))
        n_real = int(n_reals[place])
        matrices = m_lti(A[own, own], B[own], n_real=n_real)._asdict()
        finished = LayerMatrices(*(as_real_matrix(matrix, name) for name, matrix in matrices.items()))
        layers[place] = HorizontalLayer.trusted(finished)
        values, rates, feedthrough = m_o(A[own, own], B[own], C[:, own], n_real=n_real)
        Phi[place] = as_real_matrix(np.hstack([values, rates]), f"Phi[{place}]")
        Psi += feedthrough
    order = range(len(sizes))
    return Network.trusted([layers[i] for i in order], [Phi[i] for i in order], as_real_matrix(Psi, "Psi"))


def _diagonal_blocks(A: Matrix, states: NDArray[np.intp]) -> NDArray[np.float64]:
    """The square blocks of A on the given states, `(k, size)` → `(k, size, size)`."""
    return np.asarray(A[states[:, :, None], states[:, None, :]])
