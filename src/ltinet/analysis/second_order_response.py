"""H(iω) = C (K − ω² M + iω D)⁻¹ B of a mechanical model, from its own matrices, of half the size."""

from typing import Any

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.model.memory import told_if_short
from ltinet.model.second_order_matrices import SecondOrderMatrices
from ltinet.model.sparse_factors import SingularError, SparseFactors, has_symmetric_pattern


def second_order_response(model: SecondOrderMatrices, omega: Array) -> Complex:
    """H at angular frequencies, (len(omega), p, m); complex(inf, nan) at a pole.

    Raises:
        InvalidSystemError: the factors do not fit into memory.
    """
    values = np.empty((len(omega), len(model.C), model.B.shape[1]), dtype=np.complex128)
    solve = _sparse_solver(model) if model.is_sparse else _array_solver(model)
    for place, own in enumerate(omega.tolist()):
        X = solve(own)
        values[place] = complex(np.inf, np.nan) if X is None else model.C @ X
    return values


def _array_solver(model: SecondOrderMatrices) -> Any:
    M, D, K = (np.asarray(own, dtype=np.complex128) for own in (model.M, model.D, model.K))
    B = model.B.astype(np.complex128)

    def solve(omega: float) -> Any:
        try:
            return np.linalg.solve(K - omega**2 * M + 1j * omega * D, B)
        except np.linalg.LinAlgError:
            return None

    return solve


def _sparse_solver(model: SecondOrderMatrices) -> Any:
    M, D, K = (own for own in (model.M, model.D, model.K) if not isinstance(own, np.ndarray))
    symmetric = has_symmetric_pattern(M, D, K)

    def solve(omega: float) -> Any:
        P = K - omega**2 * M + 1j * omega * D
        with told_if_short(model.n_positions, int(K.nnz)):
            try:
                return SparseFactors(P, has_symmetric_pattern=symmetric).solve(model.B.astype(np.complex128))
            except SingularError:
                return None

    return solve
