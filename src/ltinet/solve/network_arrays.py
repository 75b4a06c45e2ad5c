"""A network as bounds take it: equations of layers, output weights, and the system that it stands for."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.bounds.decomposition import Mismatch, bound_decomposition, measure_mismatch
from ltinet.bounds.layer_errors import LayerEquations, LayerGains, layer_gains, layer_places
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.model.system_matrices import SystemMatrices
from ltinet.network.network import Network
from ltinet.network.state_equations import realise_layer
from ltinet.once import cached_property
from ltinet.solve.coordinates import Coordinates
from ltinet.tolerances import EPS


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """A network as bounds take it: y = Phi z + D u."""

    system: tuple[Array, Array, Array] | None
    """A, and the matrices between the states x of the system and z; None if there is no system."""
    B: Array | None
    C: Array | None
    layers: tuple[LayerEquations, ...]
    Phi: Array
    D: Array
    J: Array
    """(ξ, ξ̇) = z + J u."""
    Psi: Array

    @cached_property
    def mismatch(self) -> Mismatch | None:
        """How far the network is from its system; measured once."""
        if self.system is None:
            return None
        A, X, X_inv = self.system
        F, G = linalg.block_diag(*(own.F for own in self.layers)), np.vstack([own.G for own in self.layers])
        return measure_mismatch(A, X, X_inv, F=F, G=G, Phi=self.Phi, B=self.B, C=self.C)

    def gains(self, horizon: float) -> tuple[LayerGains, ...]:
        """The gains of all layers."""
        return tuple(layer_gains(own, horizon=horizon) for own in self.layers)

    def output_parts(
        self, gains: tuple[LayerGains, ...], errors: Array, *, size: Array, largest_input: Array, start: Array,
        cells: Array,
    ) -> dict[str, Array]:  # fmt: skip
        """What errors of the states `(cells, n)`, the last sum and the mismatch do to the outputs, `(cells, p)`."""
        weights = np.abs(self.Phi)
        terms = size @ weights.T + (np.abs(self.Psi) + np.abs(self.D)) @ largest_input
        n_terms = weights.shape[1] + len(largest_input) + 8
        decomposition = np.zeros_like(terms)
        if self.mismatch is not None:
            moved = bound_decomposition(
                gains, self.mismatch, size=size, largest_input=largest_input, start=start, cells=cells
            )
            decomposition = moved @ weights.T + size @ self.mismatch.Phi.T
        return {"rounding": errors @ weights.T + n_terms * EPS * terms, "decomposition": decomposition}

    def joined(self, values: list[Array], n_cells: int) -> Array:
        """Values of all layers side by side, `(cells, n)`."""
        return np.hstack([np.zeros((n_cells, 0)), *values])


def network_arrays(
    network: Network,
    form: BlockDiagonalForm | None,
    origin: SystemMatrices | None,
    coordinates: Coordinates,
    *,
    D: Array,
) -> NetworkArrays:
    """The arrays of a network with a feedthrough D."""
    layers = layer_equations(network)
    system = None
    if form is not None and len(form.A):
        system = form.original, coordinates.user_from_neurons, coordinates.neurons_from_user
    B, C = (None, None) if origin is None else (origin.B, origin.C)
    return NetworkArrays(system, B, C, layers, network.output_weights, D, coordinates.J, network.Psi)


def layer_equations(network: Network) -> tuple[LayerEquations, ...]:
    """The equations of all layers."""
    return tuple(
        LayerEquations(*realise_layer(layer), places=layer_places(layer.is_second_order)) for layer in network.layers
    )
