"""Solutions at shifts: what rational Krylov spaces are made of, in batches over joblib."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.model.sparse_factors import superlu
from ltinet.reduction.pencil import Pencil

_KEPT = 1e-10  # of the length of a direction: what is left of a shorter one is noise of the subtraction


def solutions(system: Pencil, shifts: Sequence[complex], *, n_jobs: int) -> Array:
    """(sE − A)⁻¹B and (sE − A)⁻ᵀCᵀ side by side for all shifts; of complex ones the real and imaginary parts.

    Every shift is a job of its own, whoever computes it, so that the result does not depend on the number of workers.
    """
    matrices, symmetric = (system.A, system.E, system.B, system.C), system.is_symmetric
    if n_jobs == 1:
        return np.hstack([_solutions(matrices, shift, is_symmetric=symmetric) for shift in shifts])
    from joblib import Parallel, delayed  # here, because few reductions share their work

    jobs = (delayed(_solutions)(matrices, shift, is_symmetric=symmetric) for shift in shifts)
    return np.hstack(Parallel(n_jobs=n_jobs)(jobs))


def _solutions(matrices: tuple[Any, Any, Array, Array], shift: complex, *, is_symmetric: bool) -> Array:
    A, E, B, C = matrices
    is_real = complex(shift).imag == 0.0
    M = (shift.real if is_real else shift) * E - A
    factors = superlu(M.tocsc(), pivoting=0.0 if is_real else 0.01)
    kind = np.float64 if is_real else np.complex128
    if is_symmetric:
        return _real_columns(factors.solve(np.hstack([B, C.T]).astype(kind)))
    columns = [factors.solve(B.astype(kind)), factors.solve(C.T.astype(kind), trans="T")]
    return np.hstack([_real_columns(own) for own in columns])


def _real_columns(columns: NDArray[Any]) -> Array:
    return np.hstack([columns.real, columns.imag]) if columns.dtype.kind == "c" else np.asarray(columns)


def new_directions(system: Pencil, basis: Array, columns: Array) -> Array:
    """An E-orthonormal basis of what columns have beyond the span of an E-orthonormal basis."""
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, system.E @ columns))
    used = lengths > 0.0  # an input that moves nothing, or an output that sees nothing, has no direction
    columns = columns[:, used] / lengths[used]
    for _ in range(2):  # twice is enough (Kahan, Parlett)
        columns = columns - basis @ (basis.T @ (system.E @ columns))
        columns = _orthonormal(system, columns)
    return columns


def _orthonormal(system: Pencil, columns: Array) -> Array:
    """An E-orthonormal basis of the span, without directions that are noise; by two rounds of the small Gram matrix."""
    for smallest in (_KEPT**2, 0.0):
        gram = columns.T @ (system.E @ columns)
        values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
        kept = values > max(smallest, 0.0)
        columns = columns @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(columns)
