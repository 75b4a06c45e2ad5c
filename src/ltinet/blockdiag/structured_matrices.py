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


@final
@dataclass(frozen=True, eq=False)
class DiagonalBlocks:
    """Block-diagonal matrix stored as its three diagonals, which hold all single neurons, and a few dense blocks."""

    diagonal: Array
    upper: Array
    """Entry (i, i + 1) at index i; n numbers, the last one zero."""
    lower: Array
    """Entry (i + 1, i) at index i."""
    wide: tuple[tuple[int, Matrix], ...] = ()
    """Dense blocks of several neurons, with their first states."""

    def __len__(self) -> int:
        return len(self.diagonal)

    def __getitem__(self, indices: tuple[Any, Any]) -> Array:
        """Return entries at broadcast arrays of rows and columns, or the submatrix of two slices."""
        if isinstance(indices[0], slice):
            rows, columns = (np.arange(*axis.indices(len(self))) for axis in indices)
            return self[rows[:, None], columns]
        rows, columns = np.broadcast_arrays(*indices)
        entries = np.where(rows == columns, self.diagonal[rows], 0.0)
        entries = np.where(columns == rows + 1, self.upper[rows], entries)
        entries = np.where(rows == columns + 1, self.lower[columns], entries)
        for start, block in self.wide:
            inside = (rows >= start) & (rows < start + len(block)) & (columns >= start) & (columns < start + len(block))
            entries[inside] = block[rows[inside] - start, columns[inside] - start]
        return entries

    def times(self, z: Array) -> Array:
        """Return the product with columns, n×k."""
        product = self.diagonal[:, None] * z
        product[:-1] += self.upper[:-1, None] * z[1:]
        product[1:] += self.lower[:-1, None] * z[:-1]
        for start, block in self.wide:
            states = slice(start, start + len(block))
            product[states] = block @ z[states]
        return product

    def reordered(self, states: NDArray[np.intp]) -> "DiagonalBlocks":
        """Return the matrix with whole blocks in another order: the new state i is the old states[i]."""
        new_index = np.empty_like(states)
        new_index[states] = np.arange(len(states))
        wide = tuple((int(new_index[start]), block) for start, block in self.wide)
        return DiagonalBlocks(self.diagonal[states], self.upper[states], self.lower[states], wide)

    def with_pairs(self, at: NDArray[np.intp], planes: Array) -> "DiagonalBlocks":
        """Return the matrix with other 2×2 blocks `(k, 2, 2)` at the states `(k, 2)`."""
        diagonal, upper, lower = self.diagonal.copy(), self.upper.copy(), self.lower.copy()
        diagonal[at[:, 0]], diagonal[at[:, 1]] = planes[:, 0, 0], planes[:, 1, 1]
        upper[at[:, 0]], lower[at[:, 0]] = planes[:, 0, 1], planes[:, 1, 0]
        return DiagonalBlocks(diagonal, upper, lower, self.wide)


def blocks_from_rates(rates: NDArray[np.complex128]) -> DiagonalBlocks:
    """Return blocks a for real rates, and [[a, ω], [−ω, a]] for consecutive rates a + iω, a − iω."""
    first = rates.imag > 0.0
    upper = np.where(first, rates.imag, 0.0)
    return DiagonalBlocks(rates.real.copy(), upper, -upper)


@final
@dataclass(frozen=True, eq=False)
class Structure:
    """Decomposition A T = T A_bd of a structured matrix, with blocks in any order."""

    description: str
    """Kind of the matrix and method, for notes."""
    A: DiagonalBlocks
    rates: NDArray[np.complex128]
    """Eigenvalue of every state; of a pair a + iω, then a − iω."""
    block_sizes: NDArray[np.intp]
    basis: Basis
    singular_values: tuple[float, float] = (1.0, 1.0)
    """Lower bound on the smallest and upper bound on the largest singular value of T."""

    @classmethod
    def of_neurons(
        cls,
        description: str,
        rates: NDArray[np.complex128],
        basis: Basis,
        singular_values: tuple[float, float] = (1.0, 1.0),
    ) -> "Structure":
        """Return a structure in which every neuron is a block."""
        sizes = np.where(rates.imag > 0.0, 2, 1)[rates.imag >= 0.0].astype(np.intp)
        return cls(description, blocks_from_rates(rates), rates, sizes, basis, singular_values)

    @property
    def condition(self) -> float:
        """Upper bound on cond₂(T)."""
        return self.singular_values[1] / self.singular_values[0]

    @property
    def has_pairs(self) -> bool:
        """True if some eigenvalues are complex."""
        return bool(np.any(self.rates.imag != 0.0))


# Diagonal matrices


def diagonal_structure(A: SparseMatrix) -> Structure | None:
    """Return the structure of a diagonal matrix, T = I; None for any other."""
    entries = A.diagonal()
    if int(np.count_nonzero(entries)) != A.nnz:
        return None
    return Structure.of_neurons(
        "diagonal matrix", entries.astype(np.complex128), ScaledOrthogonalBasis(IdentityTransform())
    )


# Tridiagonal matrices

_SVD_LIMIT = 1000  # number of states up to which singular values of T are computed; they take less than a second
LARGEST_TRIDIAGONAL = 5000
"""Number of states up to which eigenvectors are computed: 200 MB, some seconds."""
_ENTRY_TOLERANCE = 4.0 * EPS  # relative: rounding of entries of a Toeplitz matrix that were computed one by one


class _Bands(NamedTuple):
    """Symmetric tridiagonal matrix diag(scaling)⁻¹ A diag(scaling), with scaling None for ones."""

    diagonal: Array
    off_diagonal: Array
    """Off-diagonal entries ±√(bc)."""
    scaling: Array | None
    condition: float


@final
class SineTransform:
    """Orthonormal sine transform √(2/(n + 1)) sin(jkπ/(n + 1)), its own inverse."""

    def forward(self, x: Array) -> Array:
        """Return Qᵀ x."""
        return np.asarray(scipy.fft.dst(x, type=1, norm="ortho", axis=0))

    def backward(self, z: Array) -> Array:
        """Return Q z."""
        return self.forward(z)


def tridiagonal_structure(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """Return the structure of a tridiagonal matrix with bc > 0, or b = c = 0, in all places; None for any other."""
    bands = _symmetrized_bands(A)
    if bands is None or not bands.condition <= max_condition:
        return None
    n = len(bands.diagonal)
    if n > 1 and _is_constant(bands.diagonal, bands) and _is_constant(bands.off_diagonal, bands):
        values = _toeplitz_eigenvalues(float(bands.diagonal[0]), float(bands.off_diagonal[0]), n)
        return _scaled_structure("tridiagonal Toeplitz matrix, by sine transforms", bands, values, SineTransform())
    if n > LARGEST_TRIDIAGONAL:
        return None
    eigenvalues, vectors = eigh_tridiagonal(bands.diagonal, bands.off_diagonal)
    structure = _scaled_structure(
        "tridiagonal matrix, by its own eigenvectors",
        bands,
        np.asarray(eigenvalues, dtype=np.float64),
        DenseOrthogonalTransform(np.asarray(vectors, dtype=np.float64)),
    )
    return structure if bands.scaling is None or n > _SVD_LIMIT else _normalize_columns(structure, bands.scaling)


def _toeplitz_eigenvalues(a: float, b: float, n: int) -> Array:
    """Return the eigenvalues a + 2b cos(kπ/(n + 1)).

    They are evaluated as (a ± 2b) ∓ 4b sin² or cos² of half the angle, so that slow modes beside fast ones do not
    suffer from cancellation.
    """
    half = np.arange(1, n + 1) * (0.5 * np.pi / (n + 1))
    if abs(a + 2.0 * b) <= abs(a - 2.0 * b):
        return np.asarray((a + 2.0 * b) - 4.0 * b * np.sin(half) ** 2)
    return np.asarray((a - 2.0 * b) + 4.0 * b * np.cos(half) ** 2)


def _scaled_structure(description: str, bands: _Bands, values: Array, rotation: OrthogonalTransform) -> Structure:
    """Return the structure with the given eigenvalues and T = diag(scaling) Q."""
    rates = np.asarray(values, dtype=np.complex128)
    symmetric = "symmetric " if bands.scaling is None else ""
    basis = ScaledOrthogonalBasis(rotation, bands.scaling)
    root = math.sqrt(bands.condition)  # the scaling is centered: its extremes are 1/root and root
    return Structure.of_neurons(symmetric + description, rates, basis, (1.0 / root, root))


def _normalize_columns(structure: Structure, scaling: Array) -> Structure:
    """Return the structure with columns of T of length one, where that is better conditioned."""
    T = structure.basis.states_of(np.eye(len(scaling)))
    lengths = np.linalg.norm(T, axis=0)
    singular_values = np.linalg.svd(T / lengths, compute_uv=False)
    if not singular_values[0] / singular_values[-1] < structure.condition:
        return structure
    basis = (
        replace(structure.basis, lengths=lengths)
        if isinstance(structure.basis, ScaledOrthogonalBasis)
        else structure.basis
    )
    return replace(structure, basis=basis, singular_values=(float(singular_values[-1]), float(singular_values[0])))


def _symmetrized_bands(A: SparseMatrix) -> _Bands | None:
    """Return the symmetrized bands of a tridiagonal matrix; None for any other, or where no scaling exists."""
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
    if condition <= 1.0 + A.shape[0] * EPS:  # symmetric up to rounding
        return _Bands(diagonal, 0.5 * (above + below), None, 1.0)
    scaling = np.exp(logs - 0.5 * (logs.max() + logs.min()))
    return _Bands(diagonal, np.sign(above) * np.sqrt(above * below), scaling, condition)


def _is_constant(values: Array, bands: _Bands) -> bool:
    """Return whether the entries of a diagonal are equal up to rounding of the largest entry."""
    size = max(float(np.abs(bands.diagonal).max()), float(np.abs(bands.off_diagonal).max(initial=0.0)))
    return bool(np.ptp(values) <= _ENTRY_TOLERANCE * size) if len(values) else True


# Circulant matrices

_DIRECT_SUM_LIMIT = 64  # nonzero entries of a column up to which they are summed one by one
_SQRT_2 = float(np.sqrt(2.0))


@final
class RealFourierTransform:
    """Orthonormal real Fourier transform.

    Its columns are 1/√n, √(2/n) cos(2πjk/n) and ±√(2/n) sin(2πjk/n) for k = 1, 2, …, and (−1)^j/√n for even n; `signs`
    are those of the sines.
    """

    def __init__(self, n: int, signs: Array) -> None:
        self.n, self.signs = n, signs

    def forward(self, x: Array) -> Array:
        """Return Qᵀ x."""
        waves = scipy.fft.rfft(x, norm="ortho", axis=0)
        z = np.empty(x.shape)
        z[0], k = waves[0].real, len(self.signs)
        z[1 : 2 * k : 2] = _SQRT_2 * waves[1 : k + 1].real
        z[2 : 2 * k + 1 : 2] = -_SQRT_2 * self.signs[:, None] * waves[1 : k + 1].imag
        if self.n % 2 == 0:
            z[-1] = waves[-1].real
        return z

    def backward(self, z: Array) -> Array:
        """Return Q z."""
        k = len(self.signs)
        waves = np.zeros((self.n // 2 + 1, *z.shape[1:]), dtype=np.complex128)
        waves[0] = z[0]
        waves[1 : k + 1] = (z[1 : 2 * k : 2] - 1j * self.signs[:, None] * z[2 : 2 * k + 1 : 2]) / _SQRT_2
        if self.n % 2 == 0:
            waves[-1] = z[-1]
        return np.asarray(scipy.fft.irfft(waves, n=self.n, norm="ortho", axis=0))


def circulant_structure(A: SparseMatrix) -> Structure | None:
    """Return the structure of a circulant matrix; None for any other."""
    n = int(A.shape[0])
    column = A[:, [0]].toarray().ravel()
    if n < 3 or A.nnz != n * np.count_nonzero(column):
        return None
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    if not np.all(np.abs(A.data - column[(rows - A.indices) % n]) <= _ENTRY_TOLERANCE * np.abs(column).max()):
        return None
    values = _circulant_eigenvalues(column)
    # A column that is symmetric up to rounding has real eigenvalues up to rounding.
    noise = _ENTRY_TOLERANCE * np.log2(n) * np.abs(column).sum()
    omega = np.where(np.abs(values.imag) <= noise, 0.0, values.imag)
    k = (n - 1) // 2
    rates = np.zeros(n, dtype=np.complex128)
    rates[0] = values[0].real
    rates[1 : 2 * k : 2] = values[1 : k + 1].real + 1j * np.abs(omega[1 : k + 1])
    rates[2 : 2 * k + 1 : 2] = rates[1 : 2 * k : 2].conj()
    if n % 2 == 0:
        rates[-1] = values[-1].real
    signs = np.where(omega[1 : k + 1] < 0.0, -1.0, 1.0)
    basis = ScaledOrthogonalBasis(RealFourierTransform(n, signs))
    return Structure.of_neurons("circulant matrix, by Fourier transforms", rates, basis)


def _circulant_eigenvalues(column: Array) -> NDArray[np.complex128]:
    """Return the first half of the discrete Fourier transform of the column.

    For few entries Σ c_j e^{−2πijk/n} = Σ c_j − 2 Σ c_j sin²(πjk/n) − i Σ c_j sin(2πjk/n) is used, in which slow modes
    beside fast ones do not suffer from cancellation.
    """
    n, offsets = len(column), np.flatnonzero(column)
    if len(offsets) > _DIRECT_SUM_LIMIT:
        return np.asarray(scipy.fft.fft(column)[: n // 2 + 1], dtype=np.complex128)
    k = np.arange(n // 2 + 1)
    real, imaginary = np.full(len(k), math.fsum(column[offsets].tolist())), np.zeros(len(k))
    for offset in offsets.tolist():
        turns = (offset * k) % n / n
        real -= 2.0 * column[offset] * np.sin(np.pi * turns) ** 2
        imaginary -= column[offset] * np.sin(2.0 * np.pi * turns)
    return np.asarray(real + 1j * imaginary)


# Kronecker sums

_MAX_ROW_LENGTHS = 32  # number of candidate row lengths of the grid that are tried


@final
class KroneckerTransform:
    """Orthogonal transform Q = Q₂ ⊗ Q₁; with `swapped`, modes of Q₂ are adjacent, otherwise those of Q₁."""

    def __init__(
        self, first: OrthogonalTransform, second: OrthogonalTransform, shape: tuple[int, int], *, swapped: bool
    ) -> None:
        self.first, self.second, self.shape, self.swapped = first, second, shape, swapped

    def forward(self, x: Array) -> Array:
        """Return Qᵀ x, computed along one direction after the other."""
        n1, n2 = self.shape
        k = x.shape[1]
        along = self.second.forward(np.ascontiguousarray(x).reshape(n2, n1 * k)).reshape(n2, n1, k)
        turned = np.ascontiguousarray(along.transpose(1, 0, 2)).reshape(n1, n2 * k)
        z = self.first.forward(turned).reshape(n1, n2, k)
        return np.ascontiguousarray(z if self.swapped else z.transpose(1, 0, 2)).reshape(n1 * n2, k)

    def backward(self, z: Array) -> Array:
        """Return Q z."""
        n1, n2 = self.shape
        k = z.shape[1]
        modes = z.reshape(n1, n2, k) if self.swapped else z.reshape(n2, n1, k).transpose(1, 0, 2)
        turned = self.first.backward(np.ascontiguousarray(modes).reshape(n1, n2 * k)).reshape(n1, n2, k)
        along = np.ascontiguousarray(turned.transpose(1, 0, 2)).reshape(n2, n1 * k)
        return self.second.backward(along).reshape(n1 * n2, k)


def kronecker_structure(
    A: SparseMatrix, decompose: Callable[[SparseMatrix], Structure | None], *, max_condition: float
) -> Structure | None:
    """Return the structure of a Kronecker sum whose factors have structures, at most one of them with pairs; else None."""
    for n1 in _row_lengths(A):
        factors = _factors(A, n1)
        if factors is None:
            continue
        first, second = (decompose(factor) for factor in factors)
        if first is None or second is None or (first.has_pairs and second.has_pairs):
            return None
        if first.condition * second.condition > max_condition:
            return None
        return _combine_factors(first, second)
    return None


def _combine_factors(first: Structure, second: Structure) -> Structure | None:
    """Return the structure of a Kronecker sum; modes of a pair stay adjacent."""
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
    kinds = dict.fromkeys((first.description, second.description))
    description = f"Kronecker sum {n1} × {n2} ({'; '.join(kinds)})"
    singular_values = (
        first.singular_values[0] * second.singular_values[0],
        first.singular_values[1] * second.singular_values[1],
    )
    return Structure.of_neurons(description, rates, basis, singular_values)


def _scaling_product(slow: Array | None, n_slow: int, fast: Array | None, n_fast: int) -> Array | None:
    """Return all products of two lists of factors, the last index varying fastest; None stands for ones."""
    if slow is None and fast is None:
        return None
    one, two = np.ones(n_slow) if slow is None else slow, np.ones(n_fast) if fast is None else fast
    return np.asarray(np.outer(one, two).ravel(), dtype=np.float64)


def _row_lengths(A: SparseMatrix) -> Iterator[int]:
    """Yield candidates for the row length of the grid: distances between coupled states that divide n."""
    n = int(A.shape[0])
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    distances = np.unique(np.abs(rows - A.indices))
    fitting = [int(distance) for distance in distances if 1 < distance < n and n % distance == 0]
    yield from fitting[:_MAX_ROW_LENGTHS]


def _factors(A: SparseMatrix, n1: int) -> tuple[SparseMatrix, SparseMatrix] | None:
    """Return L₁ and L₂ if A is their Kronecker sum up to rounding; half of the first diagonal entry belongs to each."""
    n2 = int(A.shape[0]) // n1
    half = 0.5 * float(A[0, 0])  # of the diagonal entry, so that eigenvalues add without cancellation
    first = sparse.csr_array(A[:n1, :n1] - half * sparse.eye_array(n1))
    second = sparse.csr_array(A[::n1, ::n1] - half * sparse.eye_array(n2))
    for factor in (first, second):
        factor.eliminate_zeros()
    n_off = [int(factor.nnz - np.count_nonzero(factor.diagonal())) for factor in (first, second)]
    if n2 * n_off[0] + n1 * n_off[1] != A.nnz - np.count_nonzero(A.diagonal()):
        return None
    joined = sparse.kron(sparse.eye_array(n2), first) + sparse.kron(second, sparse.eye_array(n1))
    difference = abs(sparse.csr_array(A - joined))
    largest = difference.max() if difference.nnz else 0.0
    return (first, second) if largest <= _ENTRY_TOLERANCE * abs(A).max() else None
