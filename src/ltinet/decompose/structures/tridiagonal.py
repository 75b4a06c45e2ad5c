"""Tridiagonal matrices that a diagonal scaling makes symmetric: sine transforms, or LAPACK's own eigenvectors.

With b above and c below the diagonal, bc > 0, diag(d)⁻¹ A diag(d) has ±√(bc) beside its diagonal for
d_{i+1}/d_i = √(c_i/b_i). Equal entries along all diagonals (Toeplitz) have the eigenvalues a ± 2√(bc) cos(kπ/(n + 1))
and sines for eigenvectors.
"""

import math
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np
import scipy  # which loads scipy.fft when it is first used
from scipy.linalg import eigh_tridiagonal

from ltinet.arrays import Array
from ltinet.decompose.structures.basis import Rotated, Rotation, Vectors
from ltinet.decompose.structures.diagonal_blocks import of_rates
from ltinet.decompose.structures.structure import Structure, sizes_of
from ltinet.model.sparse_matrices import SparseMatrix
from ltinet.tolerances import EPS

_FEW = 1000  # states for which singular values of T cost next to nothing
LARGEST = 5000
"""States for which eigenvectors are computed: 200 MB, some seconds."""
_ROUNDED = 4.0 * EPS  # relative: equal entries of a Toeplitz matrix that somebody computed one by one


class _Bands(NamedTuple):
    diagonal: Array
    beside: Array
    """±√(bc)."""
    scaling: Array | None
    condition: float


@final
class Sines:
    """The orthonormal sine transform, its own inverse: √(2/(n + 1)) sin(jkπ/(n + 1))."""

    def forward(self, x: Array) -> Array:
        """Qᵀ x."""
        return np.asarray(scipy.fft.dst(x, type=1, norm="ortho", axis=0))

    def backward(self, z: Array) -> Array:
        """Q z."""
        return self.forward(z)


def tridiagonal(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """The structure of a tridiagonal matrix with bc > 0, or b = c = 0, in all places; None for any other."""
    bands = _bands(A)
    if bands is None or not bands.condition <= max_condition:
        return None
    n = len(bands.diagonal)
    if n > 1 and _is_constant(bands.diagonal, bands) and _is_constant(bands.beside, bands):
        values = _sums_with_cosines(float(bands.diagonal[0]), float(bands.beside[0]), n)
        return _structure("tridiagonal Toeplitz matrix, by sine transforms", bands, values, Sines())
    if n > LARGEST:
        return None
    own, vectors = eigh_tridiagonal(bands.diagonal, bands.beside)
    found = _structure(
        "tridiagonal matrix, by its own eigenvectors",
        bands,
        np.asarray(own, dtype=np.float64),
        Vectors(np.asarray(vectors, dtype=np.float64)),
    )
    return found if bands.scaling is None or n > _FEW else _of_one_length(found, bands.scaling)


def _sums_with_cosines(a: float, b: float, n: int) -> Array:
    """The numbers a + 2b cos(kπ/(n + 1)), without cancellation where they are small: slow modes beside fast ones."""
    half = np.arange(1, n + 1) * (0.5 * np.pi / (n + 1))
    if abs(a + 2.0 * b) <= abs(a - 2.0 * b):
        return np.asarray((a + 2.0 * b) - 4.0 * b * np.sin(half) ** 2)
    return np.asarray((a - 2.0 * b) + 4.0 * b * np.cos(half) ** 2)


def _structure(told: str, bands: _Bands, values: Array, rotation: Rotation) -> Structure:
    rates = np.asarray(values, dtype=np.complex128)
    symmetric = "symmetric " if bands.scaling is None else ""
    basis = Rotated(rotation, bands.scaling)
    root = math.sqrt(bands.condition)  # the scaling has as much above one as below
    return Structure(symmetric + told, of_rates(rates), rates, sizes_of(rates), basis, (1.0 / root, root))


def _of_one_length(found: Structure, scaling: Array) -> Structure:
    """The same with vectors of length one, where that is better conditioned."""
    T = found.basis.states_of(np.eye(len(scaling)))
    lengths = np.linalg.norm(T, axis=0)
    stretches = np.linalg.svd(T / lengths, compute_uv=False)
    if not stretches[0] / stretches[-1] < found.condition:
        return found
    basis = replace(found.basis, lengths=lengths) if isinstance(found.basis, Rotated) else found.basis
    return replace(found, basis=basis, stretch=(float(stretches[-1]), float(stretches[0])))


def _bands(A: SparseMatrix) -> _Bands | None:
    diagonal, above, below = A.diagonal(), A.diagonal(1), A.diagonal(-1)
    if sum(int(np.count_nonzero(band)) for band in (diagonal, above, below)) != A.nnz:
        return None
    if np.array_equal(above, below):
        return _Bands(diagonal, above, None, 1.0)
    if not np.all(np.sign(above) == np.sign(below)):
        return None
    ratio = np.where(above != 0.0, below / np.where(above != 0.0, above, 1.0), 1.0)
    logs = np.concatenate([[0.0], np.cumsum(0.5 * np.log(ratio))])
    condition = float(np.exp(min(logs.max() - logs.min(), 700.0)))
    if condition <= 1.0 + A.shape[0] * EPS:  # symmetric but for rounding
        return _Bands(diagonal, 0.5 * (above + below), None, 1.0)
    scaling = np.exp(logs - 0.5 * (logs.max() + logs.min()))
    return _Bands(diagonal, np.sign(above) * np.sqrt(above * below), scaling, condition)


def _is_constant(values: Array, bands: _Bands) -> bool:
    size = max(float(np.abs(bands.diagonal).max()), float(np.abs(bands.beside).max(initial=0.0)))
    return bool(np.ptp(values) <= _ROUNDED * size) if len(values) else True
