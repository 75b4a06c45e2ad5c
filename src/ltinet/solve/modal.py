"""A network in the coordinates in which steps are cheapest: scalars for single neurons, dense blocks for the rest.

A first-order neuron alone in its layer is a real scalar, an underdamped second-order one a complex scalar v = z₁ − i z₂
with v' = λ v + g u and y = Re(c v). Coupled layers, and second-order neurons near or beyond critical damping,
stay matrices.
"""

from dataclasses import dataclass
from functools import cached_property
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

    @cached_property
    def slowest_of_blocks(self) -> NDArray[np.float64]:
        """The largest real part of the eigenvalues of every dense block."""
        return np.array([np.max(np.linalg.eigvals(block.F).real) for block in self.blocks])

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


class _Scalars(NamedTuple):
    """Scalars of one kind, where they stand, and their share of J; `rest` are layers that must stay matrices."""

    rates: NDArray[np.complex128]
    B: NDArray[np.complex128]
    C: NDArray[np.complex128]
    states: NDArray[np.intp]
    J: NDArray[np.float64]
    rest: list[int]


def modal_system(network: Network) -> ModalSystem:
    """Sort the layers of a network into scalars and dense blocks; cost linear in layers, cubic in coupled ones."""
    sizes = [layer.n_states for layer in network.layers]
    alone = [place for place, layer in enumerate(network.layers) if layer.n_neurons == 1]
    offsets = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, dtype=np.intp)
    pairs = _pairs(network, [place for place in alone if sizes[place] == 2], offsets)
    reals = _reals(network, [place for place in alone if sizes[place] == 1], offsets)
    J = np.zeros((sum(sizes), network.n_inputs))
    J[pairs.states + 1], J[reals.states] = pairs.J, reals.J
    blocks = []
    for place in sorted({*range(len(sizes))}.difference(alone).union(pairs.rest)):
        F, G, own_J = realise_layer(network.layers[place])
        own = offsets[place] + np.arange(len(F))
        blocks.append(DenseBlock(F, G, network.Phi[place], own))
        J[own] = own_J
    return ModalSystem(
        rates=np.concatenate([pairs.rates, reals.rates]),
        B=np.vstack([pairs.B, reals.B]),
        C=np.vstack([pairs.C, reals.C]).T,
        n_pairs=len(pairs.rates),
        blocks=tuple(blocks),
        D=network.Psi + network.output_weights @ J,
        J=J,
        states=np.concatenate([pairs.states, reals.states]),
    )


def _reals(network: Network, places: list[int], offsets: NDArray[np.intp]) -> _Scalars:
    """First-order neurons alone in their layers: with ξ = z + (v/c) u, z' = −(k/c) z + (e − k v/c)/c u."""
    _, c, k, E, V, Phi = _stacks(network, places, n_states=1)
    J = V / c[:, None]
    B = (E - k[:, None] * J) / c[:, None]
    rates, drive, outputs = (array.astype(np.complex128) for array in (-k / c, B, Phi[:, :, 0]))
    return _Scalars(rates, drive, outputs, offsets[places], J, [])


def _pairs(network: Network, places: list[int], offsets: NDArray[np.intp]) -> _Scalars:
    """Underdamped second-order neurons alone in their layers.

    With (ξ, ξ̇) = z + (0, v/m) u: z₁' = z₂ + (v/m) u, z₂' = −(k/m) z₁ − (c/m) z₂ + (e − c v/m)/m u. The poles a ± iω
    turn z = [[1, 0], [a, ω]] (z₁, z₂) into v = z₁ − i z₂ with v' = (a + iω) v + g u and y = Re(c v).
    """
    m, c, k, *_ = _stacks(network, places, n_states=2)
    a, k = -0.5 * c / m, k / m
    underdamped = (k > 0.0) & (k - a * a >= _UNDERDAMPED**2 * k)
    kept = [place for place, apart in zip(places, underdamped, strict=True) if apart]
    rest = [place for place, apart in zip(places, underdamped, strict=True) if not apart]
    m, c, _, E, V, Phi = _stacks(network, kept, n_states=2)
    a, omega = a[underdamped], np.sqrt(k[underdamped] - a[underdamped] ** 2)
    J = V / m[:, None]
    second = (E - c[:, None] * J) / m[:, None]
    B = J - 1j * (second - a[:, None] * J) / omega[:, None]
    C = Phi[:, :, 0] + (a + 1j * omega)[:, None] * Phi[:, :, 1]
    return _Scalars(a + 1j * omega, B, C, offsets[kept], J, rest)


def _stacks(network: Network, places: list[int], *, n_states: int) -> tuple[NDArray[np.float64], ...]:
    """(m, c, k) `(k,)`, (E, V) `(k, n_inputs)` and Φ `(k, n_outputs, n_states)` of layers with one neuron each."""
    layers = [network.layers[place] for place in places]
    numbers = np.array([(layer.M[0, 0], layer.C[0, 0], layer.K[0, 0]) for layer in layers]).reshape(len(places), 3)
    E, V = (
        np.array([matrix[0] for matrix in matrices]).reshape(len(places), network.n_inputs)
        for matrices in ([layer.E for layer in layers], [layer.V for layer in layers])
    )
    Phi = np.array([network.Phi[place] for place in places]).reshape(len(places), network.n_outputs, n_states)
    return (*numbers.T, E, V, Phi)
