"""Horizontal layer: neurons coupled in one direction, from the last to the first.

M ξ̈ + C ξ̇ + K ξ = E u + V u̇ with M diagonal and C, K upper triangular.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without
from ltinet._util.text import format_count
from ltinet.errors import InvalidNetworkError
from ltinet.network.maps import LayerMatrices, LayerParameters, n_dynn, n_dynn_inverse
from ltinet.network.neuron import Neuron
from ltinet.systems.matrices import Matrix, MatrixLike, as_real_matrix, as_square_matrix


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class HorizontalLayer:
    """Horizontal layer M ξ̈ + C ξ̇ + K ξ = E u + V u̇ with M diagonal and C, K upper triangular (Definition 7).

    Neuron i depends on the neurons after it only, so that they are solved from the last to the first. A zero row of M
    is a first-order neuron, and requires c ≠ 0.

    Parameters
    ----------
    M : array_like
        Masses, n_l×n_l, diagonal; zero for first-order neurons.
    C : array_like
        Dampings, n_l×n_l, upper triangular.
    K : array_like
        Stiffnesses, n_l×n_l, upper triangular.
    E : array_like
        Weights of the inputs, n_l×m.
    V : array_like
        Weights of the derivatives of the inputs, n_l×m.
    """

    M: Matrix
    C: Matrix
    K: Matrix
    E: Matrix
    V: Matrix

    def __init__(self, M: MatrixLike, C: MatrixLike, K: MatrixLike, E: MatrixLike, V: MatrixLike) -> None:
        M, C, K = as_square_matrix(M, "M"), as_square_matrix(C, "C"), as_square_matrix(K, "K")
        E, V = as_real_matrix(E, "E"), as_real_matrix(V, "V")
        _validate_layer_matrices(M, C, K, E, V)
        self._fill(LayerMatrices(M, C, K, E, V))

    @classmethod
    def trusted(cls, matrices: LayerMatrices) -> "HorizontalLayer":
        """Return a layer of validated, read-only matrices; nothing is checked or copied.

        Parameters
        ----------
        matrices : LayerMatrices
            The matrices (M, C, K, E, V).

        Returns
        -------
        HorizontalLayer
            The layer.
        """
        layer = cls.__new__(cls)
        layer._fill(matrices)
        return layer

    def _fill(self, matrices: LayerMatrices) -> None:
        self.__dict__.update(zip(LayerMatrices._fields, matrices, strict=True))

    @classmethod
    def from_parameters(cls, parameters: LayerParameters, *, n_inputs: int) -> "HorizontalLayer":
        """Return the layer of the paper's parameter sets (𝓜, 𝓒, 𝓚, 𝓦).

        Parameters
        ----------
        parameters : LayerParameters
            Masses, dampings, stiffnesses and weights of all neurons, as sequences of numbers.
        n_inputs : int
            Number of inputs of the network.

        Returns
        -------
        HorizontalLayer
            The layer.
        """
        return cls(*n_dynn(_validate_parameters(parameters, n_inputs), n_inputs=n_inputs))

    @property
    def matrices(self) -> LayerMatrices:
        """Matrices (M, C, K, E, V)."""
        return LayerMatrices(self.M, self.C, self.K, self.E, self.V)

    @property
    def parameters(self) -> LayerParameters:
        """The paper's parameter sets (𝓜, 𝓒, 𝓚, 𝓦)."""
        return n_dynn_inverse(self.matrices)

    @property
    def n_neurons(self) -> int:
        """Number of neurons."""
        return len(self.M)

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the network."""
        return int(self.E.shape[1])

    @cached_property
    def is_second_order(self) -> NDArray[np.bool_]:
        """Boolean array, true for second-order neurons."""
        return np.asarray(self.M.diagonal() != 0.0)

    @property
    def n_first_order(self) -> int:
        """Number of first-order neurons, the real eigenvalues of the block."""
        return self.n_neurons - self.n_second_order

    @property
    def n_second_order(self) -> int:
        """Number of second-order neurons, the complex pairs of the block."""
        return int(np.count_nonzero(self.M))  # diagonal

    @property
    def n_states(self) -> int:
        """Dimension of the block: one state for each first-order neuron, two for each second-order one."""
        return self.n_neurons + self.n_second_order

    @property
    def kind(self) -> str:
        """Type of the layer in Table 1: "first-order", "second-order" or "mixed"."""
        if self.n_second_order == 0:
            return "first-order"
        return "second-order" if self.n_first_order == 0 else "mixed"

    @property
    def solving_order(self) -> range:
        """Neurons in the order in which their equations are solved: from the last to the first."""
        return range(self.n_neurons - 1, -1, -1)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs (i, j), i < j, for which the output of neuron j enters neuron i with a nonzero weight."""
        if self.n_neurons == 1:
            return ()
        rows, columns = np.nonzero(np.triu((self.K != 0.0) | (self.C != 0.0), 1))
        return tuple(zip(rows.tolist(), columns.tolist(), strict=True))

    @property
    def n_connections(self) -> int:
        """Number of connections with nonzero weights between neurons, each pair of neurons once."""
        return len(self.edges)

    @cached_property
    def neurons(self) -> tuple[Neuron, ...]:
        """Neurons of the layer."""
        masses, dampings, stiffnesses = (matrix.diagonal().tolist() for matrix in (self.M, self.C, self.K))
        return tuple(
            Neuron(
                i, masses[i], dampings[i], stiffnesses[i], self.E[i], self.V[i], self.K[i, i + 1 :], self.C[i, i + 1 :]
            )
            for i in range(self.n_neurons)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HorizontalLayer):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self.matrices, other.matrices, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(matrix.tobytes() for matrix in self.matrices))

    def __dir__(self) -> list[str]:
        return dir_without(self, "matrices", "trusted")

    def __repr__(self) -> str:
        return (
            f"HorizontalLayer(n_first_order={self.n_first_order}, n_second_order={self.n_second_order}, "
            f"n_inputs={self.n_inputs})"
        )

    def __reduce__(self) -> tuple[Callable[..., "HorizontalLayer"], tuple[Any, ...]]:
        # Unpickle by the constructor: NumPy itself would make arrays writeable.
        return HorizontalLayer, tuple(self.matrices)


def _validate_layer_matrices(M: Matrix, C: Matrix, K: Matrix, E: Matrix, V: Matrix) -> None:
    """Raise InvalidNetworkError unless shapes fit, patterns hold and every neuron has m or c ≠ 0."""
    n_neurons = len(M)
    for name, matrix in (("C", C), ("K", K)):
        if len(matrix) != n_neurons:
            raise InvalidNetworkError(
                f"{name} is {len(matrix)}×{len(matrix)} but M is {n_neurons}×{n_neurons}; "
                "a layer has one row of each per neuron"
            )
        if np.any(np.tril(matrix, -1)):
            raise InvalidNetworkError(
                f"{name} has entries below its diagonal; neuron i may depend on neurons j > i only"
            )
    if np.any(M - np.diag(M.diagonal())):
        raise InvalidNetworkError(
            "M has entries off its diagonal; each neuron has its own m, so give a diagonal matrix"
        )
    if len(E) != n_neurons or E.shape != V.shape:
        raise InvalidNetworkError(
            f"E has shape {E.shape} and V {V.shape}; both need {n_neurons} rows, one per neuron, and a column per input"
        )
    degenerate = np.flatnonzero((M.diagonal() == 0.0) & (C.diagonal() == 0.0))
    if len(degenerate):
        raise InvalidNetworkError(
            f"neuron {degenerate[0]} has m = c = 0, no differential equation; give it c ≠ 0 or m ≠ 0"
        )


def _validate_parameters(parameters: LayerParameters, n_inputs: int) -> LayerParameters:
    """Return the parameter sets as real numbers and vectors of matching lengths."""
    diagonals = [
        as_real_matrix(values, name, vector="row")[0]
        for name, values in zip(("masses", "dampings", "stiffnesses"), parameters[:3], strict=True)
    ]
    weights = tuple(
        as_real_matrix(w, f"the weights of neuron {i}", vector="row") for i, w in enumerate(parameters.weights)
    )
    counts = dict(zip(LayerParameters._fields, [*map(len, diagonals), len(weights)], strict=True))
    n_neurons = counts["masses"]
    if len(set(counts.values())) != 1:
        raise InvalidNetworkError(f"a layer needs as many masses as dampings, stiffnesses and weights, got {counts}")
    for i, w in enumerate(weights):
        expected = 2 * n_inputs + 2 * (n_neurons - 1 - i)
        if w.shape != (1, expected):
            raise InvalidNetworkError(
                f"neuron {i} has weights of shape {np.shape(parameters.weights[i])}; with "
                f"{format_count(n_inputs, 'input')} and {n_neurons - 1 - i} neurons after it they "
                f"are {expected} numbers: [e | v | −k −c of each of those]"
            )
    masses, dampings, stiffnesses = (tuple(values.tolist()) for values in diagonals)
    return LayerParameters(masses, dampings, stiffnesses, tuple(w[0] for w in weights))
