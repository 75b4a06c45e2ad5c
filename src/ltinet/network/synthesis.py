"""Algorithm 2: from a block-diagonal form to a network."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.model.matrices import Matrix, as_real_matrix
from ltinet.network.block_system import BlockSystem
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerMatrices, m_lti, m_o
from ltinet.network.network import Network
from ltinet.network.rounding import Magnitudes, lti_magnitudes, output_magnitudes, without_rounding
from ltinet.network.single_neurons import Layers, first_order_layers, second_order_layers
from ltinet.tolerances import sum_rounding


def synthesise(system: BlockSystem) -> Network:
    """The network with the input–output map of the system (Theorem 1), one horizontal layer per block.

    Weights that are small against the terms that they are sums of are rounding errors, and zero.
    """
    system, terms = _without_weights_of_rounding(system)
    A, B, C = system.A, system.B, system.C
    sizes, n_reals = np.array(system.block_sizes, dtype=np.intp), np.array(system.reals_per_block, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    reals, pairs = np.flatnonzero(sizes == 1), np.flatnonzero((sizes == 2) & (n_reals == 0))
    first, second = starts[reals], starts[pairs, None] + np.arange(2)
    made = [
        (reals, first_order_layers(A[first, first], B=B[first], C=C[:, first])),
        (
            pairs,
            second_order_layers(
                A[second[:, :, None], second[:, None, :]],
                B=B[second],
                C=_columns(C, second),
                terms=Magnitudes(terms.B[second], _columns(terms.C, second)),
                noise=sum_rounding(len(A)),
            ),
        ),
    ]
    coupled = np.setdiff1d(np.arange(len(sizes)), np.concatenate([reals, pairs]))
    made += [(np.array([place]), _coupled_layer(system, terms, int(place))) for place in coupled]
    layers: dict[int, HorizontalLayer] = {}
    Phi: dict[int, Matrix] = {}
    for places, own in made:
        layers.update(zip(places.tolist(), own.layers, strict=True))
        Phi.update(zip(places.tolist(), own.Phi, strict=True))
    order = range(len(sizes))
    Psi = _feedthrough(system, [own for _, own in made])
    return Network.trusted([layers[i] for i in order], [Phi[i] for i in order], Psi)


def _feedthrough(system: BlockSystem, made: list[Layers]) -> Matrix:
    """Ψ = D plus what layers with pairs add to it."""
    if sum(system.reals_per_block) == len(system.A):
        return system.D
    Psi = sum((own.Psi for own in made), start=system.D)
    terms = sum((own.Psi_terms for own in made), start=np.abs(system.D))
    return as_real_matrix(without_rounding(Psi, sum_rounding(len(system.A)) * terms), "Psi")


def _without_weights_of_rounding(system: BlockSystem) -> tuple[BlockSystem, Magnitudes]:
    """The system with zeros in B and C where they are known to be no more, and the sizes that others are known to."""
    if system.magnitudes is None:
        if sum(system.reals_per_block) == len(system.A):
            return system, Magnitudes(system.B, system.C)  # nothing is summed
        return system, Magnitudes(np.abs(system.B), np.abs(system.C))
    noise = sum_rounding(len(system.A))
    B, C = (
        without_rounding(matrix, noise * terms)
        for matrix, terms in zip((system.B, system.C), system.magnitudes, strict=True)
    )
    terms = Magnitudes(np.where(B != 0.0, system.magnitudes.B, 0.0), np.where(C != 0.0, system.magnitudes.C, 0.0))
    return replace(system, B=B, C=C), terms


def _coupled_layer(system: BlockSystem, terms: Magnitudes, place: int) -> Layers:
    """The layer of one block of several neurons."""
    own, n_real, noise = system.slices[place], system.reals_per_block[place], sum_rounding(len(system.A))
    A, B, C = system.A[own, own], system.B[own], system.C[:, own]
    summed = zip(m_lti(A, B, n_real=n_real), lti_magnitudes(A, terms.B[own], n_real=n_real), strict=True)
    matrices = [without_rounding(matrix, noise * size) for matrix, size in summed]
    named = zip(LayerMatrices._fields, matrices, strict=True)
    values, rates, Psi = m_o(A, B, C, n_real=n_real)
    Phi_terms, Psi_terms = output_magnitudes(A, terms.B[own], terms.C[:, own], n_real=n_real)
    Phi = as_real_matrix(without_rounding(np.hstack([values, rates]), noise * Phi_terms), f"Phi[{place}]")
    layer = HorizontalLayer.trusted(LayerMatrices(*(as_real_matrix(matrix, name) for name, matrix in named)))
    return Layers([layer], [Phi], Psi, Psi_terms)


def _columns(C: Matrix, states: NDArray[np.intp]) -> Array:
    """The columns of C at the given states, `(k, size)` → `(k, p, size)`."""
    return np.asarray(C.T[states].swapaxes(1, 2))
