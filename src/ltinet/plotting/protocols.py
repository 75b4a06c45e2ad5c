"""Protocols of the objects that can be drawn: networks, layers, neurons, systems, responses and block-diagonal forms.

Each lists what a drawing reads, so that this package depends on none of the packages that implement them.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import Array

# MERGED ltinet.plotting.protocols
# What drawings ask of the things they show, so that nothing here knows the rooms that these come from.


class PlottableNeuron(Protocol):
    """A neuron, as far as it is drawn."""

    @property
    def poles(self) -> Sequence[complex]:
        """One pole, or two."""
        ...


class PlottableLayer(Protocol):
    """A horizontal layer M ξ̈ + C ξ̇ + K ξ = E u + V u̇, as far as it is drawn."""

    @property
    def M(self) -> Array:
        """Masses."""
        ...

    @property
    def C(self) -> Array:
        """Dampings and their couplings."""
        ...

    @property
    def K(self) -> Array:
        """Stiffnesses and their couplings."""
        ...

    @property
    def E(self) -> Array:
        """Weights of u."""
        ...

    @property
    def V(self) -> Array:
        """Weights of u̇."""
        ...

    @property
    def neurons(self) -> Sequence[PlottableNeuron]:
        """Its neurons in their order."""
        ...

    @property
    def n_neurons(self) -> int:
        """Number of neurons."""
        ...

    @property
    def is_second_order(self) -> NDArray[np.bool_]:
        """Which neurons are of second order."""
        ...

    @property
    def edges(self) -> Sequence[tuple[int, int]]:
        """Pairs (i, j) of neurons of which j feeds i."""
        ...


class PlottableNetwork(Protocol):
    """A network, as far as it is drawn."""

    @property
    def layers(self) -> Sequence[PlottableLayer]:
        """Horizontal layers."""
        ...

    @property
    def Phi(self) -> Sequence[Array]:
        """For each layer the output weights of all ξ, then of the ξ̇ of second-order neurons."""
        ...

    @property
    def Psi(self) -> Array:
        """Weights from input to output."""
        ...

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        ...

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        ...


class PlottableResponse(Protocol):
    """Outputs over time, as far as they are drawn."""

    @property
    def t(self) -> Array:
        """Times."""
        ...

    @property
    def y(self) -> Array:
        """Outputs, `(inputs, T, outputs)`, or `(T, outputs)` of a single input."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What one might not expect of it."""
        ...


class PlottableSystem(Protocol):
    """What answers to inputs, a system or a network, as far as its answers are drawn."""

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        ...

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        ...

    def poles(self) -> NDArray[np.complex128]:
        """Its poles."""
        ...

    def dcgain(self) -> Array:
        """The gain at rest, `(outputs, inputs)`."""
        ...

    def step_response(
        self, t: ArrayLike | None = None, *, input: int | None = None, output: int | None = None
    ) -> PlottableResponse:
        """Outputs after one input, or each in its turn, went from 0 to 1."""
        ...

    def impulse_response(
        self, t: ArrayLike | None = None, *, input: int | None = None, output: int | None = None
    ) -> PlottableResponse:
        """Outputs after a unit impulse of one input, or of each in its turn."""
        ...

    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """H(jω), `(frequencies, outputs, inputs)`."""
        ...


class PlottableNetworkSystem(PlottableNetwork, PlottableSystem, Protocol):
    """A network whose neurons and answers are drawn."""


class PlottableForm(Protocol):
    """A block-diagonal form, as far as it is drawn."""

    @property
    def block_sizes(self) -> Sequence[int]:
        """States of each block."""
        ...

    @property
    def eigenvalues(self) -> Sequence[NDArray[np.complex128]]:
        """Eigenvalues of each block."""
        ...

    @property
    def tradeoff(self) -> Sequence[tuple[int, float]]:
        """Numbers of blocks, and for each the smallest condition number met."""
        ...

    @property
    def budget(self) -> float | None:
        """The bound on the condition number that chose the blocks, if one did."""
        ...

    def block(self, index: int) -> Array:
        """One diagonal block."""
        ...
