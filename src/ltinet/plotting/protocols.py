"""Protocols of the objects that can be drawn: networks, layers, neurons, systems, responses and block-diagonal forms.

Each lists what a drawing reads, so that this package depends on none of the packages that implement them.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import Array


class PlottableNeuron(Protocol):
    """Neuron."""

    @property
    def poles(self) -> Sequence[complex]:
        """One or two poles."""


class PlottableLayer(Protocol):
    """Horizontal layer M ξ̈ + C ξ̇ + K ξ = E u + V u̇."""

    @property
    def M(self) -> Array:
        """Masses."""

    @property
    def C(self) -> Array:
        """Dampings and their couplings."""

    @property
    def K(self) -> Array:
        """Stiffnesses and their couplings."""

    @property
    def E(self) -> Array:
        """Weights of u."""

    @property
    def V(self) -> Array:
        """Weights of u̇."""

    @property
    def neurons(self) -> Sequence[PlottableNeuron]:
        """Neurons in the order of solution."""

    @property
    def n_neurons(self) -> int:
        """Number of neurons."""

    @property
    def is_second_order(self) -> NDArray[np.bool_]:
        """Mask of the second-order neurons."""

    @property
    def edges(self) -> Sequence[tuple[int, int]]:
        """Connections (i, j) from neuron j to neuron i."""


class PlottableNetwork(Protocol):
    """Network."""

    @property
    def layers(self) -> Sequence[PlottableLayer]:
        """Horizontal layers."""

    @property
    def Phi(self) -> Sequence[Array]:
        """Output weights of each layer, for all ξ and then the ξ̇ of second-order neurons."""

    @property
    def Psi(self) -> Array:
        """Weights from input to output."""

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""


class PlottableProducts(Protocol):
    """Product neurons of a network."""

    @property
    def n_scheduling(self) -> int:
        """Number of scheduling signals."""

    @property
    def sees_states(self) -> bool:
        """True if states are factors of products."""

    @property
    def input_factors(self) -> frozenset[int]:
        """Indices of the inputs that are factors of products."""

    @property
    def feeds_states(self) -> bool:
        """True if products feed the layers."""

    @property
    def feeds_outputs(self) -> bool:
        """True if products feed outputs."""

    def counts(self) -> dict[str, int]:
        """Return the number of product neurons of each kind of factors."""


class PlottableProductNetwork(Protocol):
    """Network with product neurons."""

    @property
    def linear(self) -> PlottableNetwork:
        """Network without its product neurons."""

    @property
    def products(self) -> PlottableProducts:
        """Product neurons."""


class PlottableResponse(Protocol):
    """Outputs over time."""

    @property
    def t(self) -> Array:
        """Times."""

    @property
    def y(self) -> Array:
        """Outputs, `(inputs, T, outputs)`, or `(T, outputs)` for a single input."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on unexpected properties."""


class PlottableSystem(Protocol):
    """System or network with time and frequency responses."""

    @property
    def dt(self) -> float | None:
        """Time step of a model in discrete time; None in continuous time."""

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""

    def poles(self) -> NDArray[np.complex128]:
        """Return the poles."""

    def zeros(self) -> NDArray[np.complex128]:
        """Return the finite zeros."""

    def dcgain(self) -> Array:
        """Return the DC gain, `(outputs, inputs)`."""

    def step_response(
        self, t: ArrayLike | None = None, *, input: int | None = None, output: int | None = None
    ) -> PlottableResponse:
        """Return the outputs after a step of one input, or of each in turn."""

    def impulse_response(
        self, t: ArrayLike | None = None, *, input: int | None = None, output: int | None = None
    ) -> PlottableResponse:
        """Return the outputs after a unit impulse of one input, or of each in turn."""

    def frequency_response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Return H(jω), `(frequencies, outputs, inputs)`."""


class PlottableNetworkSystem(PlottableNetwork, PlottableSystem, Protocol):
    """Network with responses."""


class PlottableForm(Protocol):
    """Block-diagonal form."""

    @property
    def block_sizes(self) -> Sequence[int]:
        """Number of states of each block."""

    @property
    def eigenvalues(self) -> Sequence[NDArray[np.complex128]]:
        """Eigenvalues of each block."""

    @property
    def tradeoff(self) -> Sequence[tuple[int, float]]:
        """Pairs (number of blocks, smallest condition number found)."""

    @property
    def budget(self) -> float | None:
        """Limit on the condition number that determined the blocks, if any."""

    def block(self, index: int) -> Array:
        """One diagonal block."""
