"""Dynamic neural network: horizontal layers and the output layer y = Σ φ_i ξ_i + φ̇_i ξ̇_i + Ψ u.

The module includes the table of the parameters, one neuron per row, and the contribution of each neuron to the outputs.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from ltinet._util.cache import cached_property
from ltinet._util.display import displayed_rows, html_table, omission_row, text_table
from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.errors import InvalidNetworkError
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerParameters
from ltinet.systems.matrices import Matrix, MatrixLike, as_real_matrix

# Table of the parameters

_HEADINGS = ("layer", "neuron", "m", "c", "k", "w", "φ")
_MAX_WEIGHTS = 4  # shown per neuron; a neuron of a large layer has hundreds

Sets = Sequence[Sequence[float]]


def parameter_table(
    M: Sets, C: Sets, K: Sets, W: Sequence[Sequence[ArrayLike]], Phi: Sequence[Sequence[ArrayLike]]
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return headings and rows of the parameters, one neuron per row; long weights and long tables are shortened."""
    neurons = [(layer, number) for layer, masses in enumerate(M) for number in range(len(masses))]
    rows = []
    for row in displayed_rows(len(neurons)):
        if row is None:
            rows.append(omission_row(len(neurons), len(_HEADINGS)))
            continue
        layer, number = neurons[row]
        numbers = (f"{sets[layer][number]:.5g}" for sets in (M, C, K))
        rows.append(
            [str(layer), str(number), *numbers, _format_weights(W[layer][number]), _format_weights(Phi[layer][number])]
        )
    return _HEADINGS, rows


def _format_weights(values: ArrayLike) -> str:
    """Return the first entries of a matrix as text, row by row."""
    flat = np.ravel(values).tolist()
    first = [f"{value:.5g}" for value in flat[:_MAX_WEIGHTS]]
    more = [f"… ({len(flat)})"] if len(flat) > len(first) else []
    return f"[{', '.join([*first, *more])}]"


# Network


class NetworkParameters(NamedTuple):
    """Parameter sets of a network (Definition 2): (𝓜, 𝓒, 𝓚, 𝓦) of the hidden layers, (Φ, Ψ) of the output layer.

    Φ has for every layer and neuron the p×2 matrix φ_i of its output [ξ_i, ξ̇_i]; p×1 for first-order neurons, whose ξ̇
    is not stored. It prints as a table with one neuron per row.

    Parameters
    ----------
    M, C, K : tuple of tuple of float
        Masses, dampings and stiffnesses of the neurons of each layer.
    W : tuple of tuple of ndarray
        Weights w = [e | v | −k_ij −c_ij …] of the neurons of each layer.
    Phi : tuple of tuple of ndarray
        Output weights φ_i of the neurons of each layer.
    Psi : ndarray
        Feedthrough, p×m.
    """

    M: tuple[tuple[float, ...], ...]
    C: tuple[tuple[float, ...], ...]
    K: tuple[tuple[float, ...], ...]
    W: tuple[tuple[Matrix, ...], ...]
    Phi: tuple[tuple[Matrix, ...], ...]
    Psi: Matrix

    def __repr__(self) -> str:
        return text_table(*parameter_table(self.M, self.C, self.K, self.W, self.Phi))

    def _repr_html_(self) -> str:
        return html_table(*parameter_table(self.M, self.C, self.K, self.W, self.Phi))


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Network:
    """Horizontal layers in parallel, and a linear output layer.

    `Phi[l]` is p×(n_l + number of second-order neurons of layer l): the weights of all ξ, then of the ξ̇ of
    second-order neurons. `Psi` is p×m, the weights of the input.
    """

    layers: tuple[HorizontalLayer, ...]
    Phi: tuple[Matrix, ...]
    Psi: Matrix

    def __init__(self, layers: Sequence[HorizontalLayer], Phi: Sequence[MatrixLike], Psi: MatrixLike) -> None:
        Psi = as_real_matrix(Psi, "Psi")
        outputs = tuple(as_real_matrix(phi, f"Phi[{index}]") for index, phi in enumerate(Phi))
        if len(outputs) != len(layers):
            raise InvalidNetworkError(
                f"expected one output matrix for each of {len(layers)} layers, got {len(outputs)}"
            )
        for index, (layer, phi) in enumerate(zip(layers, outputs, strict=True)):
            expected = (len(Psi), layer.n_states)
            if phi.shape != expected or layer.n_inputs != Psi.shape[1]:
                raise InvalidNetworkError(
                    f"layer {index} has {format_count(layer.n_inputs, 'input')} and Phi[{index}] has shape {phi.shape}; "
                    f"with Psi of shape {Psi.shape} they must be {Psi.shape[1]} and {expected}"
                )
        self._fill(tuple(layers), outputs, Psi)

    @classmethod
    def trusted(cls, layers: Sequence[HorizontalLayer], Phi: Sequence[Matrix], Psi: Matrix) -> "Network":
        """Return a network of validated, read-only parts; nothing is checked or copied."""
        network = cls.__new__(cls)
        network._fill(tuple(layers), tuple(Phi), Psi)
        return network

    def _fill(self, layers: tuple[HorizontalLayer, ...], Phi: tuple[Matrix, ...], Psi: Matrix) -> None:
        object.__setattr__(self, "layers", layers)
        object.__setattr__(self, "Phi", Phi)
        object.__setattr__(self, "Psi", Psi)

    @classmethod
    def from_parameters(cls, parameters: NetworkParameters) -> "Network":
        """Return the network of the paper's parameter sets (𝓜, 𝓒, 𝓚, 𝓦, Φ, Ψ)."""
        if not isinstance(parameters, NetworkParameters):
            raise InvalidNetworkError(
                f"parameters is a {type(parameters).__name__}; give NetworkParameters(M, C, K, W, Phi, Psi), as "
                "net.parameters is"
            )
        Psi = as_real_matrix(parameters.Psi, "Psi")
        counts = {name: len(values) for name, values in parameters._asdict().items() if name != "Psi"}
        if len(set(counts.values())) != 1:
            raise InvalidNetworkError(f"the sets M, C, K, W and Phi must have one entry per layer, got {counts}")
        sets = zip(parameters.M, parameters.C, parameters.K, parameters.W, strict=True)
        layers = [HorizontalLayer.from_parameters(LayerParameters(*layer), n_inputs=Psi.shape[1]) for layer in sets]
        Phi = [_join(layer, phi, len(Psi)) for layer, phi in zip(layers, parameters.Phi, strict=True)]
        return cls(layers, Phi, Psi)

    @property
    def parameters(self) -> NetworkParameters:
        """The paper's parameter sets (𝓜, 𝓒, 𝓚, 𝓦, Φ, Ψ)."""
        sets = [layer.parameters for layer in self.layers]
        Phi = tuple(_split(layer, phi) for layer, phi in zip(self.layers, self.Phi, strict=True))
        return NetworkParameters(
            tuple(layer.masses for layer in sets),
            tuple(layer.dampings for layer in sets),
            tuple(layer.stiffnesses for layer in sets),
            tuple(layer.weights for layer in sets),
            Phi,
            self.Psi,
        )

    @cached_property
    def output_weights(self) -> Matrix:
        """All of Phi side by side, p×n: y = output_weights · (ξ, ξ̇ of layer after layer) + Ψ u."""
        return np.hstack([np.zeros((self.n_outputs, 0)), *self.Phi])

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self.Psi.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.Psi)

    @property
    def n_layers(self) -> int:
        """Number of horizontal layers."""
        return len(self.layers)

    @cached_property
    def n_neurons(self) -> int:
        """Number of neurons in all layers."""
        return sum(layer.n_neurons for layer in self.layers)

    @cached_property
    def n_second_order(self) -> int:
        """Number of second-order neurons in all layers."""
        return sum(layer.n_second_order for layer in self.layers)

    @property
    def n_first_order(self) -> int:
        """Number of first-order neurons in all layers."""
        return self.n_neurons - self.n_second_order

    @property
    def n_states(self) -> int:
        """Dimension of the system that the network represents."""
        return self.n_neurons + self.n_second_order

    @cached_property
    def n_connections(self) -> int:
        """Number of connections between neurons of one layer, each pair of neurons once."""
        return sum(layer.n_connections for layer in self.layers)

    @cached_property
    def n_weights(self) -> int:
        """Number of nonzero parameters.

        The coefficient of the highest derivative of each neuron, m or for first-order neurons c, is not counted: it is
        1 in a constructed network, and dividing the equation of the neuron by it makes it 1 in any other.
        """
        hidden = (matrix for layer in self.layers for matrix in layer.matrices[1:])
        counted = sum(int(np.count_nonzero(matrix)) for matrix in (*hidden, *self.Phi, self.Psi))
        return counted - self.n_first_order

    @property
    def n_weights_dense(self) -> int:
        """Number of weights of a dense network with the same states, inputs and outputs: n² + n m + p n + p m."""
        return (self.n_states + self.n_outputs) * (self.n_states + self.n_inputs)

    @property
    def sparsity(self) -> float:
        """Fraction of the weights of a dense network that are zero in this one."""
        return 1.0 - self.n_weights / self.n_weights_dense if self.n_weights_dense else 0.0

    @cached_property
    def weight_norm(self) -> float:
        """Euclidean norm of all weights, which is large for an ill-conditioned transformation (Ex 3.2)."""
        hidden = (matrix for layer in self.layers for matrix in layer.matrices[1:])
        return math.hypot(*(float(linalg.norm(matrix.ravel())) for matrix in (*hidden, *self.Phi, self.Psi)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return (
            self.layers == other.layers
            and len(self.Phi) == len(other.Phi)
            and all(np.array_equal(a, b) for a, b in zip((*self.Phi, self.Psi), (*other.Phi, other.Psi), strict=True))
        )

    def __hash__(self) -> int:
        return hash((self.layers, tuple(matrix.tobytes() for matrix in (*self.Phi, self.Psi))))

    def __repr__(self) -> str:
        return (
            f"Network(n_layers={self.n_layers}, n_first_order={self.n_first_order}, "
            f"n_second_order={self.n_second_order}, n_inputs={self.n_inputs}, n_outputs={self.n_outputs})"
        )

    def __reduce__(self) -> tuple[Callable[..., "Network"], tuple[Any, ...]]:
        return Network, (self.layers, self.Phi, self.Psi)


def _split(layer: HorizontalLayer, phi: Matrix) -> tuple[Matrix, ...]:
    """Return φ_i of each neuron, p×2 or p×1, from the weights of all ξ and all ξ̇ of a layer."""
    rate = layer.n_neurons + np.cumsum(layer.is_second_order) - 1
    second = layer.is_second_order.tolist()
    return tuple(phi[:, [i, rate[i]]] if second[i] else phi[:, [i]] for i in range(layer.n_neurons))


def _join(layer: HorizontalLayer, phi: Sequence[MatrixLike], n_outputs: int) -> Matrix:
    """Return the weights of all ξ, then of the ξ̇ of second-order neurons, from the φ_i of each neuron."""
    if len(phi) != layer.n_neurons:
        raise InvalidNetworkError(
            f"expected one matrix φ for each of {layer.n_neurons} neurons of a layer, got {len(phi)}"
        )
    values, rates = [], []
    for i, second in enumerate(layer.is_second_order.tolist()):
        weights = as_real_matrix(phi[i], f"φ of neuron {i}")
        if weights.shape[1] == 2 and not second and not np.any(weights[:, 1]):
            weights = weights[:, :1]  # the weight of the ξ̇ of a first-order neuron is zero and not stored
        if weights.shape != (n_outputs, 2 if second else 1):
            raise InvalidNetworkError(
                f"φ of neuron {i} has shape {weights.shape}; a {'second' if second else 'first'}-order neuron of a network "
                f"with {n_outputs} outputs has {(n_outputs, 2 if second else 1)}"
                + ("" if second else ", since its ξ̇ is not an output")
            )
        values.append(weights[:, :1])
        rates.extend([weights[:, 1:]] if second else [])
    return np.hstack([np.zeros((n_outputs, 0)), *values, *rates])


# Contributions of single neurons


def neuron_contribution(network: Network, neuron_states: Array, *, layer: int, neuron: int) -> Array:
    """Return the contribution of one neuron to every output, `(..., T, p)`, from `sol.neuron_states`, `(..., T, n)`.

    The contributions of all neurons and Ψ u add up to y. Raises InvalidNetworkError if there is no such neuron.
    """
    if layer >= network.n_layers or neuron >= network.layers[layer].n_neurons:
        raise InvalidNetworkError(
            f"there is no neuron {layer}.{neuron}; the network has {network.n_layers} layers, and neurons of a layer "
            "count from 0"
        )
    block, start = network.layers[layer], sum(other.n_states for other in network.layers[:layer])
    weights, indices = network.Phi[layer], [neuron]
    if block.is_second_order[neuron]:
        indices.append(block.n_neurons + int(np.count_nonzero(block.is_second_order[:neuron])))
    columns = np.array(indices)
    return np.asarray(neuron_states[..., start + columns] @ weights[:, columns].T)
