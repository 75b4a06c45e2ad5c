"""Matrices of the exact engine and of a network as error bounds use them, with their distance from the system.

The exact engine has F, G, C in packed coordinates x = X z. A pair (Re v, Im v) turns in its plane and keeps its
modulus, so that errors are counted by modes: the modulus of a pair, a real scalar, a state of a coupled block. What
the decomposition left of the system (A, B, C, E) enters as the residuals

    X⁻¹ E⁻¹(A X − E X F),    X⁻¹ E⁻¹(B − E X G)    and    C_origin X − C,

per unit of |z| and |u|. A network of neurons is y = Phi z + D u, with the equations of its layers and its mismatch to
the system that it stands for.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ltinet._util.cache import cached_property
from ltinet._util.double_double import commutator, product_difference
from ltinet._util.floating_point import EPS, Array
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.error_bounds.gains import (
    DecompositionMismatch,
    LayerEquations,
    LayerGains,
    bound_decomposition,
    layer_gains,
    layer_state_indices,
    measure_mismatch,
)
from ltinet.network.block_system import decomposition_residual
from ltinet.network.network import Network
from ltinet.network.realization import realize_layer
from ltinet.simulation.coordinates import Coordinates
from ltinet.simulation.modal import ModalSystem, pack_states
from ltinet.systems.system_matrices import SystemMatrices

_PARAMETER_ROUNDINGS = 16.0  # eps: rounding of an entry of the blocks that are computed from neuron parameters


# Exact engine


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of the system in packed coordinates x = X z: bounds per unit of |z| and |u|."""

    per_state: Array
    """X⁻¹E⁻¹(A X − E X F), (n × n)."""
    per_input: Array
    """X⁻¹E⁻¹(B − E X G), (n × m)."""
    in_output: Array
    """C X − C_z, (p × n)."""
    part: str = "decomposition"
    """Part of the error bound to which they belong; "rounding" of the parameters where there is no system."""


class EngineArrays:
    """F, G, C of the engine in packed coordinates, with X and its inverse if the network was made from a system."""

    def __init__(
        self,
        system: ModalSystem,
        C: Array,
        form: BlockDiagonalForm | None,
        origin: SystemMatrices | None,
        units: Array | None = None,
    ) -> None:
        self.system, self.C, self._form, self._origin, self._units = system, C, form, origin, units
        self.n_pairs, self.n_scalars = self.system.n_pairs, len(self.system.rates)
        self.growth, self.rates = self.system.rates.real, np.abs(self.system.rates)

    @cached_property
    def G(self) -> Array:
        """(n × m)."""
        return pack_states(self.system, self.system.B.T, [block.G.T for block in self.system.blocks]).T

    @cached_property
    def F(self) -> Array:
        """(n × n), block diagonal: [[a, −ω], [ω, a]] for pairs."""
        pairs, reals = np.split(self.system.rates, [self.n_pairs])
        rotations = [np.array([[rate.real, -rate.imag], [rate.imag, rate.real]]) for rate in pairs]
        return np.asarray(linalg.block_diag(*rotations, *reals.real, *(block.F for block in self.system.blocks)))

    @cached_property
    def mode_slices(self) -> list[slice]:
        """Indices of the states of every coupled block among the modes."""
        return [slice(at.start - self.n_pairs, at.stop - self.n_pairs) for at in self.system.block_slices]

    def modes(self, packed: Array) -> Array:
        """Return moduli of modes from sizes of packed states, last axis."""
        pairs = packed[..., : 2 * self.n_pairs]
        return np.concatenate([np.hypot(pairs[..., ::2], pairs[..., 1::2]), packed[..., 2 * self.n_pairs :]], axis=-1)

    def packed(self, modes: Array) -> Array:
        """Return sizes of packed states from moduli of modes, last axis."""
        return np.concatenate([np.repeat(modes[..., : self.n_pairs], 2, axis=-1), modes[..., self.n_pairs :]], axis=-1)

    @cached_property
    def basis(self) -> tuple[Array, Array] | None:
        """X and X⁻¹ between the user's states and packed ones; None without a system."""
        form, n = self._form, self.system.n_states
        if self._units is not None:  # the engine steps the user's states in balanced units
            return np.diag(self._units), np.diag(1.0 / self._units)
        if n == 0 or form is None:
            return None
        to_blocks = self.system.blocks_from_packed(np.eye(n)).T
        return form.T @ to_blocks, self.system.packed_from_blocks(form.T_inv.T).T

    @cached_property
    def residuals(self) -> Residuals:
        """Distance of the engine from its system: measured where the system is known, else bounded by rounding."""
        F, G, C = self.F, self.G, self.C
        if self.basis is None:
            relative = _PARAMETER_ROUNDINGS * EPS
            # The rate of a pair is computed from all four entries of its block: its modulus counts in each of them.
            size = np.abs(F)
            at = 2 * np.arange(self.n_pairs)[:, None, None] + np.array([[0, 1], [0, 1]])
            size[at.swapaxes(-1, -2), at] = self.rates[: self.n_pairs, None, None]
            return Residuals(relative * size, relative * np.abs(G), relative * np.abs(C), part="rounding")
        X, X_inv = self.basis
        if self._origin is None and self._form is not None:  # read from a file that contains A only
            amplified = (len(F) + 4) * EPS * (np.abs(X_inv) @ np.abs(X))
            in_states = np.abs(X_inv @ commutator(self._form.original, X, F))
            return Residuals(in_states, amplified @ np.abs(G), np.abs(C) @ amplified)
        assert self._origin is not None  # noqa: S101 - there is a basis
        residual = decomposition_residual(self._origin, X, F=F, G=G, C=C)
        in_states, in_inputs = np.abs(X_inv @ residual.of_states), np.abs(X_inv @ residual.of_inputs)
        return Residuals(in_states, in_inputs, np.abs(residual.of_outputs))

    def start_errors(self, x0: Array | None, z0: Array) -> tuple[Array, Array]:
        """Return the initial errors of modes, X⁻¹(x₀ − X z₀), and of the user's states, `(batch, ·)` each."""
        if x0 is None:
            return self.modes(np.zeros_like(z0)), np.zeros_like(z0)
        if self.basis is None:
            return self.modes(_PARAMETER_ROUNDINGS * EPS * np.abs(z0)), np.zeros_like(z0)
        X, X_inv = self.basis
        errors = product_difference(x0.T, X, z0.T).T
        return self.modes(np.abs(errors @ X_inv.T)), np.abs(errors)


# Network of neurons


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """Matrices of a network y = Phi z + D u, of its layers, and of the system that it stands for."""

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
    def mismatch(self) -> DecompositionMismatch | None:
        """Measured distance of the network from its system."""
        if self.system is None:
            return None
        A, X, X_inv = self.system
        F, G = linalg.block_diag(*(layer.F for layer in self.layers)), np.vstack([layer.G for layer in self.layers])
        return measure_mismatch(A, X, X_inv, F=F, G=G, Phi=self.Phi, B=self.B, C=self.C)

    def gains(self, horizon: float) -> tuple[LayerGains, ...]:
        """Return the gains of all layers."""
        return tuple(layer_gains(layer, horizon=horizon) for layer in self.layers)

    def output_parts(
        self, gains: tuple[LayerGains, ...], errors: Array, *, size: Array, largest_input: Array, start: Array,
        cells: Array,
    ) -> dict[str, Array]:  # fmt: skip
        """Return the output errors `(cells, p)` from errors of the states `(cells, n)`, the last sum and the mismatch."""
        weights = np.abs(self.Phi)
        terms = size @ weights.T + (np.abs(self.Psi) + np.abs(self.D)) @ largest_input
        n_terms = weights.shape[1] + len(largest_input) + 8
        decomposition = np.zeros_like(terms)
        if self.mismatch is not None:
            state_errors = bound_decomposition(
                gains, self.mismatch, size=size, largest_input=largest_input, start=start, cells=cells
            )
            decomposition = state_errors @ weights.T + size @ self.mismatch.Phi.T
        return {"rounding": errors @ weights.T + n_terms * EPS * terms, "decomposition": decomposition}


def build_network_arrays(
    network: Network,
    form: BlockDiagonalForm | None,
    origin: SystemMatrices | None,
    coordinates: Coordinates,
    *,
    D: Array,
) -> NetworkArrays:
    """Return the arrays of a network with a feedthrough D."""
    layers = tuple(
        LayerEquations(*realize_layer(layer), state_indices=layer_state_indices(layer.is_second_order))
        for layer in network.layers
    )
    system = None
    if form is not None and len(form.A):
        system = form.original, coordinates.user_from_neurons, coordinates.neurons_from_user
    B, C = (None, None) if origin is None else (origin.B, origin.C)
    return NetworkArrays(system, B, C, layers, network.output_weights, D, coordinates.J, network.Psi)
