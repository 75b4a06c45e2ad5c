"""A network in the coordinates in which steps are cheapest: scalars for single neurons, dense blocks for the rest.

A first-order neuron alone in its layer is a real scalar, an underdamped second-order one a complex scalar v = z₁ − i z₂
with v' = λ v + g u and y = Re(c v). Coupled layers, and second-order neurons near or beyond critical damping,
stay matrices.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.model.matrices import Matrix
from ltinet.network.network import Network
from ltinet.network.realisation import realise_layer

# Splitting a pair into its two eigenvectors costs a factor √k/ω in accuracy; below this ratio it stays a 2×2 block.
_UNDERDAMPED = 1e-3


class DenseBlock(NamedTuple):
    """z' = F z + G u, y = C z, and where its states stand among those of the network."""

    F: Matrix
    G: Matrix
    C: Matrix
    states: NDArray[np.intp]


@dataclass(frozen=True)
class ModalSystem:
    """All single neurons as scalars, pairs first, and the dense blocks; y = Re(C v) + Σ blocks + D u."""

    rates: NDArray[np.complex128]
    B: NDArray[np.complex128]
    C: NDArray[np.complex128]
    n_pairs: int
    blocks: tuple[DenseBlock, ...]
    D: Matrix
    J: Matrix
    """(ξ, ξ̇) = z + J u."""
    states: NDArray[np.intp]
    """Where ξ of each scalar stands among the states of the network; ζ of a pair follows it."""

    @property
    def n_states(self) -> int:
        """Dimension of the network."""
        return len(self.J)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self.D.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.D)

    def scalars_from_network(self, z: NDArray[np.float64]) -> NDArray[np.complex128]:
        """The v of every scalar from network states, last axis: ξ for reals, ξ − i (ζ − aξ)/ω for pairs."""
        v = z[..., self.states].astype(np.complex128)
        pairs, own = self.states[: self.n_pairs], self.rates[: self.n_pairs]
        v.imag[..., : self.n_pairs] = (own.real * z[..., pairs] - z[..., pairs + 1]) / own.imag
        return v

    def network_from_parts(self, v: NDArray[np.complex128], parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Network states z from the scalars and the states of the dense blocks, last axis."""
        z = np.zeros((*v.shape[:-1], self.n_states))
        pairs, own = self.states[: self.n_pairs], self.rates[: self.n_pairs]
        z[..., self.states] = v.real
        z[..., pairs + 1] = own.real * v.real[..., : self.n_pairs] - own.imag * v.imag[..., : self.n_pairs]
        for block, part in zip(self.blocks, parts, strict=True):
            z[..., block.states] = part
        return z


def modal_system(network: Network) -> ModalSystem:
    """Sort the layers of a network into scalars and dense blocks; cost linear in layers, cubic in coupled ones."""
    reals: list[tuple[complex, Matrix, Matrix, int]] = []
    pairs: list[tuple[complex, Matrix, Matrix, int]] = []
    blocks, jumps, offset = [], [np.zeros((0, network.n_inputs))], 0
    for layer, phi in zip(network.layers, network.Phi, strict=True):
        F, G, J = realise_layer(layer)
        if len(F) == 1:
            reals.append((complex(F[0, 0]), G, phi, offset))
        elif layer.n_neurons == 1 and (pole := _underdamped(F)) is not None:
            a, omega = pole.real, pole.imag
            # z = S (z₁, z₂) with S = [[1, 0], [a, ω]]; then v = z₁ − i z₂ and y = Re((c₁ + i c₂) v).
            g = G[0] - 1j * (G[1] - a * G[0]) / omega
            c = phi[:, 0] + a * phi[:, 1] + 1j * omega * phi[:, 1]
            pairs.append((pole, g[None, :], c[:, None], offset))
        else:
            blocks.append(DenseBlock(F, G, phi, np.arange(offset, offset + len(F))))
        jumps.append(J)
        offset += len(F)
    scalars = pairs + reals
    J = np.vstack(jumps)
    C = np.hstack([np.zeros((network.n_outputs, 0)), *network.Phi])
    return ModalSystem(
        rates=np.array([rate for rate, _, _, _ in scalars], dtype=np.complex128),
        B=np.vstack([np.zeros((0, network.n_inputs), dtype=np.complex128), *(g for _, g, _, _ in scalars)]),
        C=np.hstack([np.zeros((network.n_outputs, 0), dtype=np.complex128), *(c for _, _, c, _ in scalars)]),
        n_pairs=len(pairs),
        blocks=tuple(blocks),
        D=network.Psi + C @ J,
        J=J,
        states=np.array([place for _, _, _, place in scalars], dtype=np.intp),
    )


def _underdamped(F: Matrix) -> complex | None:
    """The pole a + iω of [[0, 1], [−k, −c]] if it is well away from critical damping."""
    k, a = -float(F[1, 0]), 0.5 * float(F[1, 1])
    if k <= 0.0 or k - a * a < _UNDERDAMPED**2 * k:
        return None
    return complex(a, np.sqrt(k - a * a))
