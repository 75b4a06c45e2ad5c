"""Real coordinates in which every mode of a matrix stands alone: 1×1, or [[a, ω], [−ω, a]] for a pair."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.decompose.balance import balance
from ltinet.decompose.eigenvectors import decouple_neurons
from ltinet.decompose.schur import SchurForm, is_symmetric, real_schur, schur_by_parts, symmetric_schur

_SMALL, _SPARSE = 64, 0.1  # states and share of entries: beyond and below these it is worth to look for separate parts


@dataclass(frozen=True, eq=False)
class Eigenmodes:
    """A X = X F, F the real blocks of the rates; of a pair the rate with Im λ > 0 comes first."""

    X: Array
    X_inv: Array
    rates: Complex


def eigenmodes(A: Array, *, most: float) -> Eigenmodes | None:
    """The modes of a matrix; None where their vectors are nearly parallel, by a condition number over `most`. O(n³)."""
    symmetric = is_symmetric(A)
    units = balance(A, rescale_states=not symmetric)
    schur = symmetric_schur(units.matrix) if symmetric else _schur(units.matrix)
    found = decouple_neurons(schur, schur.starts)
    vectors, rates = _turning(found.X, found.diagonal, schur.pairs)
    if not np.isfinite(vectors).all():
        return None
    try:
        inverse = vectors.T if symmetric and _is_orthogonal(schur) else np.linalg.inv(vectors)
    except np.linalg.LinAlgError:
        return None
    if not float(np.linalg.norm(vectors) * np.linalg.norm(inverse)) <= most * max(len(A), 1):
        return None
    return Eigenmodes(
        units.scaling[:, None] * (schur.Z @ vectors), (inverse @ schur.Z.T) / units.scaling, rates * units.factor
    )


def _schur(A: Array) -> SchurForm:
    is_sparse = len(A) > _SMALL and np.count_nonzero(A) <= _SPARSE * A.size
    return schur_by_parts(A) if is_sparse else real_schur(A)


def _is_orthogonal(schur: SchurForm) -> bool:
    return bool(np.count_nonzero(schur.R - np.diag(schur.R.diagonal())) == 0)


def _turning(X: Array, diagonal: Array, pairs: NDArray[np.intp]) -> tuple[Array, Complex]:
    """Columns of one length, those of pairs in the ratio in which their block [[a, b], [c, a]] turns: b = −c > 0."""
    X = np.array(X)
    b, c = diagonal[pairs, pairs + 1], diagonal[pairs + 1, pairs]
    with np.errstate(divide="ignore", invalid="ignore"):
        X[:, pairs + 1] *= np.sign(b)
        X[:, pairs] *= np.sqrt(np.abs(b / c))
        lengths = np.sqrt(np.einsum("ij,ij->j", X, X))
        longer = np.maximum(lengths[pairs], lengths[pairs + 1])
        lengths[pairs] = lengths[pairs + 1] = longer
        X /= lengths
    rates = diagonal.diagonal().astype(np.complex128)
    omega = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
    rates.imag[pairs], rates.imag[pairs + 1] = omega, -omega
    return X, rates
