"""Matrices of the exact engine and of a network as error bounds use them, with their distance from the system.

The exact engine has F, G, C in packed coordinates x = X z. A pair (Re v, Im v) turns in its plane and keeps its
modulus, so that errors are counted by modes: the modulus of a pair, a real scalar, a state of a coupled block. What
the decomposition left of the system (A, B, C, E) enters as the residuals

    X⁻¹ E⁻¹(A X − E X F),    X⁻¹ E⁻¹(B − E X G)    and    C_origin X − C,

per unit of |z| and |u|. A network of neurons is y = Phi z + D u, with the equations of its layers and its mismatch to
the system that it stands for.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.error_bounds.extended_precision import commutator, product_difference
from ltinet.error_bounds.gains import (
    DecompositionMismatch,
    LayerEquations,
    LayerGains,
    bound_decomposition,
    layer_gains,
    layer_state_indices,
    measure_mismatch,
)
from ltinet.errors import SimulationError
from ltinet.network.block_system import decomposition_residual
from ltinet.network.network import Network
from ltinet.network.network_file import has_implicit_transformation
from ltinet.network.realization import realize_layer
from ltinet.simulation.coordinates import Coordinates
from ltinet.simulation.modal import ModalSystem, pack_states
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.simulation.system_arrays
# The exact engine's numbers as bounds take them, and how far they are from the system that it stands for.
#
# Packed states hold Re v and Im v of every pair. What turns in such a plane keeps its modulus, so that errors are counted
# by modes: the modulus of a pair, a real scalar, a state of a coupled block.

_PARAMETER_ROUNDINGS = 16.0  # in an entry of the blocks that the parameters of a network give


class OriginalStateResiduals(NamedTuple):
    """The same before X⁻¹, in the user's own states: sizes of E⁻¹(A X − E X F) and E⁻¹(B − E X G)."""

    per_state: Array
    per_input: Array


@dataclass(frozen=True, eq=False)
class Residuals:
    """What is left of the system in packed coordinates x = X z: bounds per unit of |z|, |u| and |x₀ − X z₀|."""

    per_state: Array
    """X⁻¹E⁻¹(A X − E X F), (n × n)."""
    per_input: Array
    """X⁻¹E⁻¹(B − E X G), (n × m)."""
    in_output: Array
    """C X − C_z, (p × n)."""
    in_user_states: OriginalStateResiduals | None = None
    part: str = "decomposition"
    """What they are a part of: where there is no system, rounding in the blocks that stand for the parameters."""


class EngineArrays:
    """F, G, C of the engine in packed coordinates, with X and its inverse where there is a system behind it."""

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
        turning = [np.array([[rate.real, -rate.imag], [rate.imag, rate.real]]) for rate in pairs]
        return np.asarray(linalg.block_diag(*turning, *reals.real, *(block.F for block in self.system.blocks)))

    @cached_property
    def mode_slices(self) -> list[slice]:
        """Where the states of every coupled block stand among the modes."""
        stops = self.n_scalars + np.cumsum([len(block.F) for block in self.system.blocks], dtype=np.intp)
        return [
            slice(int(stop) - len(block.F), int(stop)) for block, stop in zip(self.system.blocks, stops, strict=True)
        ]

    def modes(self, packed: Array) -> Array:
        """Moduli of modes from sizes of packed states, last axis."""
        pairs = packed[..., : 2 * self.n_pairs]
        return np.concatenate([np.hypot(pairs[..., ::2], pairs[..., 1::2]), packed[..., 2 * self.n_pairs :]], axis=-1)

    def packed(self, modes: Array) -> Array:
        """Sizes of packed states from moduli of modes."""
        return np.concatenate([np.repeat(modes[..., : self.n_pairs], 2, axis=-1), modes[..., self.n_pairs :]], axis=-1)

    @cached_property
    def mode_inputs(self) -> Array:
        """|G| by modes, (modes × m)."""
        return self.modes(np.abs(self.G).T).T

    @cached_property
    def mode_outputs(self) -> Array:
        """|C| by modes, (p × modes)."""
        return self.modes(np.abs(self.C))

    @cached_property
    def speeds(self) -> Array:
        """How fast modes move, (modes,): |λ| of scalars, a norm of F for states of coupled blocks."""
        norms = [np.full(len(block.F), np.linalg.norm(block.F, 2)) for block in self.system.blocks]
        return np.concatenate([self.rates, *norms])

    @cached_property
    def basis(self) -> tuple[Array, Array] | None:
        """X and X⁻¹ between the user's states and packed ones; None without a form."""
        form, n = self._form, self.system.n_states
        if self._units is not None:  # the system as it was given
            return np.diag(self._units), np.diag(1.0 / self._units)
        if n == 0 or form is None:
            return None
        to_blocks = self.system.blocks_from_packed(np.eye(n)).T
        return form.T @ to_blocks, self.system.packed_from_blocks(form.T_inv.T).T

    @cached_property
    def residuals(self) -> Residuals:
        """How far the engine is from its system; exact where the system is known, else what rounding may leave."""
        F, G, C = self.F, self.G, self.C
        if self.basis is None:
            share = _PARAMETER_ROUNDINGS * EPS
            return Residuals(share * self._own_size(F), share * np.abs(G), share * np.abs(C), part="rounding")
        X, X_inv = self.basis
        origin = self._origin
        if origin is None and self._form is not None:  # read from a file that keeps A only
            amplified = (len(F) + 4) * EPS * (np.abs(X_inv) @ np.abs(X))
            in_states = np.abs(X_inv @ commutator(self._form.original, X, F))
            return Residuals(in_states, amplified @ np.abs(G), np.abs(C) @ amplified)
        assert origin is not None  # noqa: S101 - there is a basis
        left = decomposition_residual(origin, X, F=F, G=G, C=C)
        user = OriginalStateResiduals(np.abs(left.of_states), np.abs(left.of_inputs))
        in_states, in_inputs = np.abs(X_inv @ left.of_states), np.abs(X_inv @ left.of_inputs)
        return Residuals(in_states, in_inputs, np.abs(left.of_outputs), user)

    def _own_size(self, F: Array) -> Array:
        """|F| with the modulus of a pair in all four of its places: its rate is formed from all of them."""
        size = np.abs(F)
        at = 2 * np.arange(self.n_pairs)[:, None, None] + np.array([[0, 1], [0, 1]])
        size[at.swapaxes(-1, -2), at] = self.rates[: self.n_pairs, None, None]
        return size

    def start_errors(self, x0: Array | None, z0: Array) -> tuple[Array, Array]:
        """By how much each mode, X⁻¹(x₀ − X z₀), and each of the user's states is off at the start, `(batch, ·)`."""
        if x0 is None:
            return self.modes(np.zeros_like(z0)), np.zeros_like(z0)
        if self.basis is None:
            return self.modes(_PARAMETER_ROUNDINGS * EPS * np.abs(z0)), np.zeros_like(z0)
        X, X_inv = self.basis
        left = product_difference(x0.T, X, z0.T).T
        return self.modes(np.abs(left @ X_inv.T)), np.abs(left)


def build_engine_arrays(
    system: ModalSystem,
    C: Array,
    form: BlockDiagonalForm | None,
    origin: SystemMatrices | None,
) -> EngineArrays:
    """The arrays of an engine that steps a modal system with output weights C.

    Raises:
        SimulationError: T is an operator: there are too many states for arrays.
    """
    if has_implicit_transformation(form):
        raise SimulationError(
            f"bounds are not known for a network of {system.n_states} states whose T is an operator; "
            "ltinet.reduce(system, tolerance=1e-6) gives a small one with bounds"
        )
    return EngineArrays(system, C, form, origin)


# MERGED ltinet.simulation.system_arrays
# A network as bounds take it: equations of layers, output weights, and the system that it stands for.


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
    def mismatch(self) -> DecompositionMismatch | None:
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


def build_network_arrays(
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
        LayerEquations(*realize_layer(layer), places=layer_state_indices(layer.is_second_order))
        for layer in network.layers
    )
