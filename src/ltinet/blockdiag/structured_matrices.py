"""Sparse matrices with known eigenvectors: diagonal, tridiagonal, circulant and Kronecker sums.

Each detector returns a `Structure` with A T = T A_bd, or None if the matrix is of another kind.

- Tridiagonal with b above and c below the diagonal, bc > 0: diag(d)⁻¹ A diag(d) is symmetric with ±√(bc) beside its
  diagonal for d_{i+1}/d_i = √(c_i/b_i). Toeplitz matrices have the eigenvalues a ± 2√(bc) cos(kπ/(n + 1)) and sine
  vectors.
- Circulant, A_ij = c_{(i − j) mod n}: the discrete Fourier transform of c holds the eigenvalues; T holds cosines and
  sines.
- Kronecker sums A = L₂ ⊗ I + I ⊗ L₁, as on rectangular grids: T = T₂ ⊗ T₁ is never formed, eigenvalues are all sums of
  one of L₁ and one of L₂. State i + n₁ j stands at grid point (i, j).

A_bd is stored as `DiagonalBlocks`: its three diagonals and a few dense blocks.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import scipy  # which loads scipy.fft when it is first used
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from ltinet._util.floating_point import EPS, Array
from ltinet.blockdiag.transformation import (
    Basis,
    DenseOrthogonalTransform,
    IdentityTransform,
    OrthogonalTransform,
    ScaledOrthogonalBasis,
)
from ltinet.systems.matrices import Matrix, SparseMatrix

# MERGED ltinet.blockdiag.structured_matrices
# A block-diagonal matrix of single neurons without its zeros: entries are asked for as an array is.


@final
@dataclass(frozen=True, eq=False)
class DiagonalBlocks:
    """Numbers on the diagonal and beside it, where pairs stand, and some blocks of several neurons."""

    diagonal: Array
    upper: Array
    """Entry (i, i + 1) at i, n in all: the last is zero."""
    lower: Array
    """Entry (i + 1, i) at i."""
    wide: tuple[tuple[int, Matrix], ...] = ()
    """Blocks of several neurons, by where they begin."""

    def __len__(self) -> int:
        return len(self.diagonal)

    def __getitem__(self, places: tuple[Any, Any]) -> Array:
        """Entries at rows and columns, arrays that fit each other, or the part that two slices cut out."""
        if isinstance(places[0], slice):
            rows, columns = (np.arange(*place.indices(len(self))) for place in places)
            return self[rows[:, None], columns]
        rows, columns = np.broadcast_arrays(*places)
        entries = np.where(rows == columns, self.diagonal[rows], 0.0)
        entries = np.where(columns == rows + 1, self.upper[rows], entries)
        entries = np.where(rows == columns + 1, self.lower[columns], entries)
        for start, block in self.wide:
            inside = (rows >= start) & (rows < start + len(block)) & (columns >= start) & (columns < start + len(block))
            entries[inside] = block[rows[inside] - start, columns[inside] - start]
        return entries

    def times(self, z: Array) -> Array:
        """The product with columns, n×k."""
        product = self.diagonal[:, None] * z
        product[:-1] += self.upper[:-1, None] * z[1:]
        product[1:] += self.lower[:-1, None] * z[:-1]
        for start, block in self.wide:
            own = slice(start, start + len(block))
            product[own] = block @ z[own]
        return product

    def reordered(self, states: NDArray[np.intp]) -> "DiagonalBlocks":
        """The same with whole blocks in another order: state i becomes what states[i] was."""
        place = np.empty_like(states)
        place[states] = np.arange(len(states))
        wide = tuple((int(place[start]), block) for start, block in self.wide)
        return DiagonalBlocks(self.diagonal[states], self.upper[states], self.lower[states], wide)

    def with_pairs(self, at: NDArray[np.intp], planes: Array) -> "DiagonalBlocks":
        """The same with other 2×2 blocks `(k, 2, 2)` at the states `(k, 2)`."""
        diagonal, upper, lower = self.diagonal.copy(), self.upper.copy(), self.lower.copy()
        diagonal[at[:, 0]], diagonal[at[:, 1]] = planes[:, 0, 0], planes[:, 1, 1]
        upper[at[:, 0]], lower[at[:, 0]] = planes[:, 0, 1], planes[:, 1, 0]
        return DiagonalBlocks(diagonal, upper, lower, self.wide)


def blocks_from_rates(rates: NDArray[np.complex128]) -> DiagonalBlocks:
    """Numbers for real rates, [[a, ω], [−ω, a]] for a pair a + iω, a − iω in a row."""
    first = rates.imag > 0.0
    upper = np.where(first, rates.imag, 0.0)
    return DiagonalBlocks(rates.real.copy(), upper, -upper)


# MERGED ltinet.blockdiag.structured_matrices
# What a structured matrix is found to be: its blocks, its T, and how that is told.


@final
@dataclass(frozen=True, eq=False)
class Structure:
    """A T = T A_bd; blocks stand in any order."""

    told: str
    """What the matrix is, in words."""
    A: DiagonalBlocks
    rates: NDArray[np.complex128]
    """One eigenvalue for every state; of a pair a + iω, then a − iω."""
    block_sizes: NDArray[np.intp]
    basis: Basis
    stretch: tuple[float, float] = (1.0, 1.0)
    """The smallest and the largest singular value of T, or a little beyond them."""

    @property
    def condition(self) -> float:
        """cond₂(T), or a little more."""
        return self.stretch[1] / self.stretch[0]

    @property
    def has_pairs(self) -> bool:
        """Whether some eigenvalues are complex."""
        return bool(np.any(self.rates.imag != 0.0))


def block_sizes_of(rates: NDArray[np.complex128]) -> NDArray[np.intp]:
    """One for each real rate, two for each pair."""
    return np.where(rates.imag > 0.0, 2, 1)[rates.imag >= 0.0].astype(np.intp)


# MERGED ltinet.blockdiag.structured_matrices
# Diagonal matrices: T = 1.


def diagonal_structure(A: SparseMatrix) -> Structure | None:
    """The structure of a diagonal matrix; None for any other."""
    entries = A.diagonal()
    if int(np.count_nonzero(entries)) != A.nnz:
        return None
    rates = entries.astype(np.complex128)
    return Structure(
        "diagonal matrix",
        blocks_from_rates(rates),
        rates,
        block_sizes_of(rates),
        ScaledOrthogonalBasis(IdentityTransform()),
    )


# MERGED ltinet.blockdiag.structured_matrices
# Tridiagonal matrices that a diagonal scaling makes symmetric: sine transforms, or LAPACK's own eigenvectors.
#
# With b above and c below the diagonal, bc > 0, diag(d)⁻¹ A diag(d) has ±√(bc) beside its diagonal for
# d_{i+1}/d_i = √(c_i/b_i). Equal entries along all diagonals (Toeplitz) have the eigenvalues a ± 2√(bc) cos(kπ/(n + 1))
# and sines for eigenvectors.

_SVD_LIMIT = 1000  # states for which singular values of T cost next to nothing
LARGEST_TRIDIAGONAL = 5000
"""States for which eigenvectors are computed: 200 MB, some seconds."""
_ROUNDED = 4.0 * EPS  # relative: equal entries of a Toeplitz matrix that somebody computed one by one


class _Bands(NamedTuple):
    diagonal: Array
    beside: Array
    """±√(bc)."""
    scaling: Array | None
    condition: float


@final
class SineTransform:
    """The orthonormal sine transform, its own inverse: √(2/(n + 1)) sin(jkπ/(n + 1))."""

    def forward(self, x: Array) -> Array:
        """Qᵀ x."""
        return np.asarray(scipy.fft.dst(x, type=1, norm="ortho", axis=0))

    def backward(self, z: Array) -> Array:
        """Q z."""
        return self.forward(z)


def tridiagonal_structure(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """The structure of a tridiagonal matrix with bc > 0, or b = c = 0, in all places; None for any other."""
    bands = _symmetrised_bands(A)
    if bands is None or not bands.condition <= max_condition:
        return None
    n = len(bands.diagonal)
    if n > 1 and _is_constant(bands.diagonal, bands) and _is_constant(bands.beside, bands):
        values = _toeplitz_eigenvalues(float(bands.diagonal[0]), float(bands.beside[0]), n)
        return _scaled_structure("tridiagonal Toeplitz matrix, by sine transforms", bands, values, SineTransform())
    if n > LARGEST_TRIDIAGONAL:
        return None
    own, vectors = eigh_tridiagonal(bands.diagonal, bands.beside)
    found = _scaled_structure(
        "tridiagonal matrix, by its own eigenvectors",
        bands,
        np.asarray(own, dtype=np.float64),
        DenseOrthogonalTransform(np.asarray(vectors, dtype=np.float64)),
    )
    return found if bands.scaling is None or n > _SVD_LIMIT else _normalise_columns(found, bands.scaling)


def _toeplitz_eigenvalues(a: float, b: float, n: int) -> Array:
    """The numbers a + 2b cos(kπ/(n + 1)), without cancellation where they are small: slow modes beside fast ones."""
    half = np.arange(1, n + 1) * (0.5 * np.pi / (n + 1))
    if abs(a + 2.0 * b) <= abs(a - 2.0 * b):
        return np.asarray((a + 2.0 * b) - 4.0 * b * np.sin(half) ** 2)
    return np.asarray((a - 2.0 * b) + 4.0 * b * np.cos(half) ** 2)


def _scaled_structure(told: str, bands: _Bands, values: Array, rotation: OrthogonalTransform) -> Structure:
    rates = np.asarray(values, dtype=np.complex128)
    symmetric = "symmetric " if bands.scaling is None else ""
    basis = ScaledOrthogonalBasis(rotation, bands.scaling)
    root = math.sqrt(bands.condition)  # the scaling has as much above one as below
    return Structure(
        symmetric + told, blocks_from_rates(rates), rates, block_sizes_of(rates), basis, (1.0 / root, root)
    )


def _normalise_columns(found: Structure, scaling: Array) -> Structure:
    """The same with vectors of length one, where that is better conditioned."""
    T = found.basis.states_of(np.eye(len(scaling)))
    lengths = np.linalg.norm(T, axis=0)
    stretches = np.linalg.svd(T / lengths, compute_uv=False)
    if not stretches[0] / stretches[-1] < found.condition:
        return found
    basis = replace(found.basis, lengths=lengths) if isinstance(found.basis, ScaledOrthogonalBasis) else found.basis
    return replace(found, basis=basis, stretch=(float(stretches[-1]), float(stretches[0])))


def _symmetrised_bands(A: SparseMatrix) -> _Bands | None:
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


# MERGED ltinet.blockdiag.structured_matrices
# Circulant matrices, A_ij = c_{(i − j) mod n}: the Fourier transform of c has the eigenvalues, cosines and sines T.

_DIRECT_SUM_LIMIT = 64  # entries of a column that are summed one by one
_SQRT_2 = float(np.sqrt(2.0))


@final
class RealFourierTransform:
    """1/√n, then √(2/n) cos(2πjk/n) and ±√(2/n) sin(2πjk/n) for k = 1, 2, …, and (−1)^j/√n where n is even."""

    def __init__(self, n: int, signs: Array) -> None:
        self.n, self.signs = n, signs  # of the sines

    def forward(self, x: Array) -> Array:
        """Qᵀ x."""
        waves = scipy.fft.rfft(x, norm="ortho", axis=0)
        z = np.empty(x.shape)
        z[0], k = waves[0].real, len(self.signs)
        z[1 : 2 * k : 2] = _SQRT_2 * waves[1 : k + 1].real
        z[2 : 2 * k + 1 : 2] = -_SQRT_2 * self.signs[:, None] * waves[1 : k + 1].imag
        if self.n % 2 == 0:
            z[-1] = waves[-1].real
        return z

    def backward(self, z: Array) -> Array:
        """Q z."""
        k = len(self.signs)
        waves = np.zeros((self.n // 2 + 1, *z.shape[1:]), dtype=np.complex128)
        waves[0] = z[0]
        waves[1 : k + 1] = (z[1 : 2 * k : 2] - 1j * self.signs[:, None] * z[2 : 2 * k + 1 : 2]) / _SQRT_2
        if self.n % 2 == 0:
            waves[-1] = z[-1]
        return np.asarray(scipy.fft.irfft(waves, n=self.n, norm="ortho", axis=0))


def circulant_structure(A: SparseMatrix) -> Structure | None:
    """The structure of a circulant matrix; None for any other."""
    n = int(A.shape[0])
    column = A[:, [0]].toarray().ravel()
    if n < 3 or A.nnz != n * np.count_nonzero(column):
        return None
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    if not np.all(np.abs(A.data - column[(rows - A.indices) % n]) <= _ROUNDED * np.abs(column).max()):
        return None
    values = _circulant_eigenvalues(column)
    # A column and its mirror image that differ by rounding have real eigenvalues but for that.
    noise = _ROUNDED * np.log2(n) * np.abs(column).sum()
    omega = np.where(np.abs(values.imag) <= noise, 0.0, values.imag)
    k = (n - 1) // 2
    rates = np.zeros(n, dtype=np.complex128)
    rates[0] = values[0].real
    rates[1 : 2 * k : 2] = values[1 : k + 1].real + 1j * np.abs(omega[1 : k + 1])
    rates[2 : 2 * k + 1 : 2] = rates[1 : 2 * k : 2].conj()
    if n % 2 == 0:
        rates[-1] = values[-1].real
    signs = np.where(omega[1 : k + 1] < 0.0, -1.0, 1.0)
    told = "circulant matrix, by Fourier transforms"
    return Structure(
        told,
        blocks_from_rates(rates),
        rates,
        block_sizes_of(rates),
        ScaledOrthogonalBasis(RealFourierTransform(n, signs)),
    )


def _circulant_eigenvalues(column: Array) -> NDArray[np.complex128]:
    """The first half of the Fourier transform of the column, without cancellation where there are few entries.

    Σ c_j e^{−2πijk/n} = Σ c_j − 2 Σ c_j sin²(πjk/n) − i Σ c_j sin(2πjk/n): slow modes beside fast ones are small
    differences in any other way.
    """
    n, places = len(column), np.flatnonzero(column)
    if len(places) > _DIRECT_SUM_LIMIT:
        return np.asarray(scipy.fft.fft(column)[: n // 2 + 1], dtype=np.complex128)
    k = np.arange(n // 2 + 1)
    real, imaginary = np.full(len(k), math.fsum(column[places].tolist())), np.zeros(len(k))
    for place in places.tolist():
        turns = (place * k) % n / n
        real -= 2.0 * column[place] * np.sin(np.pi * turns) ** 2
        imaginary -= column[place] * np.sin(2.0 * np.pi * turns)
    return np.asarray(real + 1j * imaginary)


# MERGED ltinet.blockdiag.structured_matrices
# Kronecker sums A = L₂ ⊗ I + I ⊗ L₁, as fields on rectangular grids have: T = T₂ ⊗ T₁, which is never formed.
#
# State i + n₁ j stands at place (i, j). The eigenvalues are all sums of one of L₁ and one of L₂.

FactorDecomposer = Callable[[SparseMatrix], Structure | None]
"""How a factor is decomposed."""

_MAX_ROW_LENGTHS = 32  # numbers of rows in a grid


@final
class KroneckerTransform:
    """Q = Q₂ ⊗ Q₁; with `swapped` the modes of Q₂ follow each other, else those of Q₁."""

    def __init__(
        self, first: OrthogonalTransform, second: OrthogonalTransform, shape: tuple[int, int], *, swapped: bool
    ) -> None:
        self.first, self.second, self.shape, self.swapped = first, second, shape, swapped

    def forward(self, x: Array) -> Array:
        """Qᵀ x, along one direction after the other."""
        n1, n2 = self.shape
        k = x.shape[1]
        along = self.second.forward(np.ascontiguousarray(x).reshape(n2, n1 * k)).reshape(n2, n1, k)
        turned = np.ascontiguousarray(along.transpose(1, 0, 2)).reshape(n1, n2 * k)
        z = self.first.forward(turned).reshape(n1, n2, k)
        return np.ascontiguousarray(z if self.swapped else z.transpose(1, 0, 2)).reshape(n1 * n2, k)

    def backward(self, z: Array) -> Array:
        """Q z."""
        n1, n2 = self.shape
        k = z.shape[1]
        modes = z.reshape(n1, n2, k) if self.swapped else z.reshape(n2, n1, k).transpose(1, 0, 2)
        turned = self.first.backward(np.ascontiguousarray(modes).reshape(n1, n2 * k)).reshape(n1, n2, k)
        along = np.ascontiguousarray(turned.transpose(1, 0, 2)).reshape(n2, n1 * k)
        return self.second.backward(along).reshape(n1 * n2, k)


def kronecker_structure(A: SparseMatrix, decompose: FactorDecomposer, *, max_condition: float) -> Structure | None:
    """The structure of a Kronecker sum whose factors have structures, at most one of them with pairs; else None."""
    for n1 in _row_lengths(A):
        parts = _factors(A, n1)
        if parts is None:
            continue
        first, second = (decompose(part) for part in parts)
        if first is None or second is None or (first.has_pairs and second.has_pairs):
            return None
        if first.condition * second.condition > max_condition:
            return None
        return _combine_factors(first, second)
    return None


def _combine_factors(first: Structure, second: Structure) -> Structure | None:
    one, two = first.basis, second.basis
    if not isinstance(one, ScaledOrthogonalBasis) or not isinstance(two, ScaledOrthogonalBasis):
        return None
    n1, n2, swapped = len(first.rates), len(second.rates), second.has_pairs
    sums = np.add.outer(first.rates, second.rates) if swapped else np.add.outer(second.rates, first.rates)
    rates: NDArray[np.complex128] = sums.ravel()
    scaling = _scaling_product(two.scaling, n2, one.scaling, n1)
    lengths = (
        _scaling_product(one.lengths, n1, two.lengths, n2)
        if swapped
        else _scaling_product(two.lengths, n2, one.lengths, n1)
    )
    basis = ScaledOrthogonalBasis(
        KroneckerTransform(one.rotation, two.rotation, (n1, n2), swapped=swapped), scaling, lengths
    )
    kinds = dict.fromkeys((first.told, second.told))
    told = f"Kronecker sum {n1} × {n2} ({'; '.join(kinds)})"
    stretch = (first.stretch[0] * second.stretch[0], first.stretch[1] * second.stretch[1])
    return Structure(told, blocks_from_rates(rates), rates, block_sizes_of(rates), basis, stretch)


def _scaling_product(slow: Array | None, n_slow: int, fast: Array | None, n_fast: int) -> Array | None:
    """All products of two lists of factors, the last index the fast one; None stands for ones."""
    if slow is None and fast is None:
        return None
    one, two = np.ones(n_slow) if slow is None else slow, np.ones(n_fast) if fast is None else fast
    return np.asarray(np.outer(one, two).ravel(), dtype=np.float64)


def _row_lengths(A: SparseMatrix) -> Iterator[int]:
    """Distances between coupled states that divide n: one of them is the length of a row of the grid."""
    n = int(A.shape[0])
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    distances = np.unique(np.abs(rows - A.indices))
    fitting = [int(distance) for distance in distances if 1 < distance < n and n % distance == 0]
    yield from fitting[:_MAX_ROW_LENGTHS]


def _factors(A: SparseMatrix, n1: int) -> tuple[SparseMatrix, SparseMatrix] | None:
    """L₁ and L₂, if A is their Kronecker sum to rounding: what one diagonal has the other need not."""
    n2 = int(A.shape[0]) // n1
    half = 0.5 * float(A[0, 0])  # of the diagonal to each, so that eigenvalues add without cancellation
    first = sparse.csr_array(A[:n1, :n1] - half * sparse.eye_array(n1))
    second = sparse.csr_array(A[::n1, ::n1] - half * sparse.eye_array(n2))
    for factor in (first, second):
        factor.eliminate_zeros()
    off = [int(own.nnz - np.count_nonzero(own.diagonal())) for own in (first, second)]
    if n2 * off[0] + n1 * off[1] != A.nnz - np.count_nonzero(A.diagonal()):
        return None
    joined = sparse.kron(sparse.eye_array(n2), first) + sparse.kron(second, sparse.eye_array(n1))
    difference = abs(sparse.csr_array(A - joined))
    largest = difference.max() if difference.nnz else 0.0
    return (first, second) if largest <= _ROUNDED * abs(A).max() else None
