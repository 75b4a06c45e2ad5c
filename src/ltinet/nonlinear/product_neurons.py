"""Product neurons: the products of a model as activations of second degree in the coordinates of the layers.

With x = T z and T⁻¹ A T block diagonal, the layers of the linear part receive the products as further inputs:

    z' = F z + G v + W_out π + W_in ρ,    y = C T z + D v + V_out π + V_in ρ,
    π_j = (a_j · z) s_j,                  s_j = b_j · z, an input v_k, or a scheduling signal p_l,
    ρ   = the products p_l v_k of scheduling signals and inputs.

N_k and A_l are written as products of a thin matrix and their non-zero rows or columns, whichever are fewer, so that the
number of product neurons is the number of these rows or columns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.nonlinear.product_terms import ProductTerms
from ltinet.systems.matrices import SparseMatrix


@dataclass(frozen=True, eq=False)
class ProductNeurons:
    """Product neurons π and ρ; the quadratic ones, with two factors of states, come first."""

    left: Array
    """Rows a_j, `(q, n)`."""
    right: Array
    """Rows b_j of the quadratic neurons, `(q₂, n)`."""
    signal: NDArray[np.intp]
    """Index of s_j in (v, p) for the others, `(q − q₂,)`."""
    W_out: Array
    """Weights of π to block states, `(n, q)`."""
    V_out: Array
    """Weights of π to outputs."""
    pairs: NDArray[np.intp]
    """Indices (l, k) of the factors of ρ = p_l v_k, `(r, 2)`."""
    W_in: Array
    """Weights of ρ to block states, `(n, r)`."""
    V_in: Array
    """Weights of ρ to outputs."""
    n_inputs: int
    n_scheduling: int

    @property
    def n_quadratic(self) -> int:
        """Number of neurons with two factors of states."""
        return len(self.right)

    @property
    def n_neurons(self) -> int:
        """Number of all product neurons."""
        return len(self.left) + len(self.pairs)

    @property
    def sees_states(self) -> bool:
        """True if states are factors of products."""
        return len(self.left) > 0

    @property
    def input_factors(self) -> frozenset[int]:
        """Indices of the inputs that are factors of products."""
        return frozenset(self.signal[self.signal < self.n_inputs].tolist()) | frozenset(self.pairs[:, 1].tolist())

    @property
    def feeds_states(self) -> bool:
        """True if products feed the layers."""
        return bool(np.any(self.W_out) or np.any(self.W_in))

    @property
    def feeds_outputs(self) -> bool:
        """True if products feed outputs."""
        return bool(np.any(self.V_out) or np.any(self.V_in))

    def counts(self) -> dict[str, int]:
        """Return the number of neurons of each kind of factors."""
        n_input = int(np.count_nonzero(self.signal < self.n_inputs))
        return {
            "state × state": self.n_quadratic,
            "state × input": n_input,
            "state × scheduling": len(self.signal) - n_input,
            "input × scheduling": len(self.pairs),
        }

    def describe(self, index: int, input_names: tuple[str, ...], scheduling_names: tuple[str, ...]) -> str:
        """Return one neuron as text: its factors, with numbers of states, and what it feeds."""
        names = (*input_names, *scheduling_names)
        if index >= len(self.left):
            scheduling, channel = self.pairs[index - len(self.left)].tolist()
            W, V = self.W_in[:, index - len(self.left)], self.V_in[:, index - len(self.left)]
            factors = f"{scheduling_names[scheduling]} · {input_names[channel]}"
        else:
            W, V = self.W_out[:, index], self.V_out[:, index]
            first = f"({format_count(int(np.count_nonzero(self.left[index])), 'state')})"
            if index < self.n_quadratic:
                second = f"({format_count(int(np.count_nonzero(self.right[index])), 'state')})"
            else:
                second = names[int(self.signal[index - self.n_quadratic])]
            factors = f"{first} · {second}"
        targets = [(int(np.count_nonzero(W)), "state"), (int(np.count_nonzero(V)), "output")]
        return f"{factors} → {', '.join(format_count(count, noun) for count, noun in targets if count) or 'nothing'}"


def build_product_neurons(terms: ProductTerms, T: Array, T_inv: Array, n_inputs: int, n_outputs: int) -> ProductNeurons:
    """Return the product neurons of a model whose block coordinates are z = T⁻¹ x."""
    n, n_scheduling = len(T), len(terms.A_p)
    left, right, W_out, V_out, signal = [np.zeros((0, n))], np.zeros((0, n)), [], [], []
    if terms.H is not None and terms.H.S.nnz:
        S, J, K = terms.H
        left, right = [J @ T], K @ T
        W_out, V_out = [T_inv @ S.toarray()], [np.zeros((n_outputs, S.shape[1]))]
    matrices = [(index, N) for index, N in enumerate(terms.N)]
    matrices += [(n_inputs + index, A) for index, A in enumerate(terms.A_p)]
    for index, matrix in matrices:
        if matrix.nnz:
            weights, rows = _thin_factors(matrix)
            left.append(rows @ T)
            W_out.append(T_inv @ weights)
            V_out.append(np.zeros((n_outputs, len(rows))))
            signal += [index] * len(rows)
    for index, C in enumerate(terms.C_p):
        used = np.flatnonzero(np.any(C != 0.0, axis=1))
        left.append(C[used] @ T)
        W_out.append(np.zeros((n, len(used))))
        V_out.append(np.eye(n_outputs)[:, used])
        signal += [n_inputs + index] * len(used)
    pairs = [
        (index, k)
        for index, (B, D) in enumerate(zip(terms.B_p, terms.D_p, strict=True))
        for k in range(n_inputs)
        if np.any(B[:, k]) or np.any(D[:, k])
    ]
    columns = [(terms.B_p[index][:, k], terms.D_p[index][:, k]) for index, k in pairs]
    W_in = np.column_stack([np.zeros((n, 0)), *(B for B, _ in columns)])
    V_in = np.column_stack([np.zeros((n_outputs, 0)), *(D for _, D in columns)])
    return ProductNeurons(
        left=np.vstack(left),
        right=np.asarray(right),
        signal=np.array(signal, dtype=np.intp),
        W_out=np.hstack([np.zeros((n, 0)), *W_out]),
        V_out=np.hstack([np.zeros((n_outputs, 0)), *V_out]),
        pairs=np.array(pairs, dtype=np.intp).reshape(-1, 2),
        W_in=T_inv @ W_in,
        V_in=V_in,
        n_inputs=n_inputs,
        n_scheduling=n_scheduling,
    )


def _thin_factors(matrix: SparseMatrix) -> tuple[Array, Array]:
    """Return L and R with L R = matrix, where one of them has the non-zero rows or columns and the other selects them."""
    rows, columns = np.unique(matrix.tocoo().row), np.unique(matrix.indices)
    identity = np.eye(matrix.shape[0])
    if len(rows) <= len(columns):
        return identity[:, rows], matrix[rows].toarray()
    return matrix[:, columns].toarray(), identity[columns]
