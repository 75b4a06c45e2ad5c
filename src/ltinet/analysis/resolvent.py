"""Resolvents (s I − A)⁻¹ of dense and (s E − A)⁻¹ of sparse models for many s.

A dense A is decomposed once, A = V Λ V⁻¹. If cond(V) in balanced coordinates costs few digits, which one step of
refinement restores (`frequency_response`), Λ is diagonal and a solve is a division. Otherwise Λ = R is the real
quasi-triangular Schur form and V is orthogonal in the units that balance A: no digits are lost and each s costs n²/2
products. R stays real, since multiplying complex columns by it takes half of the products of a complex triangle;
diagonal blocks are solved for all s together, from the last, and tiles of rows are updated by one matrix product.
Nothing between diagonal and quasi-triangular is searched for, which would take longer than it saves.

A large sparse model gets one sparse LU factorisation of s E − A for each s.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.blockdiag.decoupling import decouple_neurons
from ltinet.blockdiag.schur import SchurForm, balance_matrix, is_symmetric, real_schur, schur_by_parts, symmetric_schur
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU, explain_memory_error, has_symmetric_pattern
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.analysis.resolvent
# (s I − R)⁻¹ for many s and a real quasi-triangular R: by blocks from the last, all s together, in real products.
#
# R stays real: to multiply complex columns by it takes half of what a complex triangle would, and no unitary form of R
# has to be made first.

Places = NDArray[np.intp] | slice
_MIN_TILE_ROWS = 16  # rows at least that are brought up to date by one product of matrices, before they are solved
_SPARSE_COLUMNS = 0.5  # share of entries that are not zero, below which columns that are zero are left out of products


class _Product(NamedTuple):
    """Rows to which a part of R times other rows is added."""

    rows: slice
    part: Matrix
    others: Places


class _Group(NamedTuple):
    """Diagonal blocks none of which needs another one's result: places among those alone and among the pairs."""

    product: _Product | None
    alone: slice
    pairs: range


@dataclass(frozen=True, eq=False)
class QuasiTriangularMatrix:
    """A real quasi-triangular matrix of at least one row, as LAPACK leaves the Schur form.

    Pairs are [[a, b], [c, a]] with bc < 0: eigenvalues a ± iω with ω = √|b|·√|c|.
    """

    R: Matrix

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """First row of every 2×2 block."""
        return np.flatnonzero(self.R.diagonal(-1))

    @cached_property
    def alone(self) -> NDArray[np.intp]:
        """Rows of real eigenvalues."""
        return np.setdiff1d(np.arange(len(self.R)), np.concatenate([self.pairs, self.pairs + 1]))

    @cached_property
    def turned(self) -> "QuasiTriangularMatrix":
        """The transposed matrix upside down, which is an upper one again."""
        return QuasiTriangularMatrix(np.ascontiguousarray(self.R.T[::-1, ::-1]))

    def solve(self, s: Complex, right: Matrix | Complex) -> Complex:
        """(s I − R)⁻¹ times right-hand sides `(n, m, len(s))`, one for each s, or `(n, m, 1)`, the same for all."""
        n, m = len(self.R), right.shape[1]
        X = np.empty((n, m, len(s)), dtype=np.complex128)
        X[:] = right
        flat: Array = X.reshape(n, m * len(s)).view(np.float64)
        inverses = _Inverses(self, s)
        for first, groups in self._steps:
            _add_product(first, flat)
            for group in groups:
                _add_product(group.product, flat)
                inverses.apply(group, X)
        return X

    @cached_property
    def _steps(self) -> list[tuple[_Product | None, list[_Group]]]:
        """Tiles from the last on: what all rows behind add to its rows, and its groups."""
        stop, found = len(self.R), []
        for tile in _tiles(_groups(self.R, self.pairs), len(self.R)):
            start = tile[-1].start
            groups = [
                _Group(
                    self._product(rows, stop),
                    slice(*np.searchsorted(self.alone, (rows.start, rows.stop)).tolist()),
                    range(*np.searchsorted(self.pairs, (rows.start, rows.stop)).tolist()),
                )
                for rows in tile
            ]
            found.append((self._product(slice(start, stop), len(self.R)), groups))
            stop = start
        return found

    def _product(self, rows: slice, stop: int) -> _Product | None:
        """What the columns behind some rows, up to `stop`, add to these rows."""
        part = self.R[rows, rows.stop : stop]
        used = np.flatnonzero(part.any(axis=0))
        if not used.size:
            return None
        if used.size < _SPARSE_COLUMNS * part.shape[1]:
            return _Product(rows, np.ascontiguousarray(part[:, used]), rows.stop + used)
        return _Product(rows, part, slice(rows.stop, stop))


def _add_product(product: _Product | None, flat: Array) -> None:
    if product is not None:
        flat[product.rows] += product.part @ flat[product.others]


def _groups(R: Matrix, pairs: NDArray[np.intp]) -> list[slice]:
    """Rows of blocks that can be solved together, since none needs another one's result; from the last on."""
    n = len(R)
    ends = np.arange(n) + 1
    ends[pairs] += 1
    beyond = (R != 0.0) & (np.arange(n) >= ends[:, None])
    needs = np.where(beyond.any(axis=1), beyond.argmax(axis=1), n)  # by row: the first result that it needs
    needs[pairs] = needs[pairs + 1] = np.minimum(needs[pairs], needs[pairs + 1])
    is_start = np.ones(n, dtype=np.bool_)
    is_start[pairs + 1] = False
    groups, stop, row = [], n, n
    for start in np.flatnonzero(is_start)[::-1].tolist():
        if needs[start] < stop and row < stop:
            groups.append(slice(row, stop))
            stop = row
        row = start
    return [*groups, slice(0, stop)]


def _tiles(groups: list[slice], n: int) -> Iterator[list[slice]]:
    """Groups that follow each other, so many that they have some rows."""
    tile: list[slice] = []
    for group in groups:
        tile.append(group)
        if tile[0].stop - group.start >= min(_MIN_TILE_ROWS, n) or group.start == 0:
            yield tile
            tile = []


class _Inverses:
    """(s I − block)⁻¹ for all diagonal blocks.

    That of a pair is [[s − a, b], [c, s − a]] by (s − a − iω)(s − a + iω), which keeps the digits of s near an
    eigenvalue; one factor after the other, whose product would overflow for rates of 1e200.
    """

    def __init__(self, triangle: QuasiTriangularMatrix, s: Complex) -> None:
        R, pairs = triangle.R, triangle.pairs
        b, c = R[pairs, pairs + 1][:, None], R[pairs + 1, pairs][:, None]
        omega = 1j * (np.sqrt(np.abs(b)) * np.sqrt(np.abs(c)))
        distance = s - R.diagonal()[pairs][:, None]
        one, other = 1.0 / (distance - omega), 1.0 / (distance + omega)
        self.diagonal, self.above, self.below = distance * one * other, b * one * other, c * one * other
        self.scalars = (1.0 / (s - R.diagonal()[triangle.alone][:, None]))[:, None]
        self.alone, self.pairs = triangle.alone, pairs.tolist()

    def apply(self, group: _Group, X: Complex) -> None:
        """Multiply the blocks of a group in place."""
        if group.alone.start < group.alone.stop:
            X[self.alone[group.alone]] *= self.scalars[group.alone]
        for place in group.pairs:
            at, diagonal = self.pairs[place], self.diagonal[place]
            upper = diagonal * X[at] + self.above[place] * X[at + 1]
            X[at + 1] = self.below[place] * X[at] + diagonal * X[at + 1]
            X[at] = upper


# MERGED ltinet.analysis.resolvent
# (s I − A)⁻¹ for many s, from one decomposition A = V Λ V⁻¹: scalars where neurons stand apart, else a quasi-triangle.
#
# Every neuron stands apart where the condition number of V costs few digits; a step of refinement brings those back
# (`frequency_response`). Elsewhere Λ is quasi-triangular and V orthogonal in the units that balance A: no digits are
# lost, each s costs n²/2 products, and nobody searches for something between, which would take longer than it saves.

# cond(V) in balanced coordinates: what one step of refinement brings back with room to spare, eps·1e4 being 2e-12.
_MAX_EIGENVECTOR_CONDITION = 1e4
_SMALL, _SPARSE_ENTRIES = (
    64,
    0.1,
)  # states and share of entries: beyond and below these it is worth to look for separate parts


@dataclass(frozen=True, eq=False)
class Diagonalisation:
    """A = diag(scaling) Z X Λ X⁻¹ Zᵀ diag(scaling)⁻¹, with Z orthogonal and V = diag(scaling) Z X.

    Of a pair two real columns of X stand for the complex ones, Re w and Im w for w and its conjugate.
    """

    rates: Complex
    triangle: QuasiTriangularMatrix | None
    """Λ where it is not diagonal: real, with 2×2 blocks for pairs; X is the identity then, and None."""
    scaling: NDArray[np.float64]
    Z: Matrix
    X: Matrix | None
    X_inv: Matrix | None
    pairs: NDArray[np.intp]

    def to_modes(self, B: Matrix | Complex) -> Complex:
        """V⁻¹ B."""
        rows = real_matrix_product(self.Z.T, B / self.scaling[:, None])
        rows = rows if self.X_inv is None else real_matrix_product(self.X_inv, rows)
        result = rows.astype(np.complex128)
        real, imaginary = 0.5 * rows[self.pairs], 0.5 * rows[self.pairs + 1]
        result[self.pairs], result[self.pairs + 1] = real - 1j * imaginary, real + 1j * imaginary
        return result

    def from_modes(self, C: Matrix) -> Complex:
        """C V."""
        columns = (C * self.scaling) @ self.Z
        columns = columns if self.X is None else columns @ self.X
        result = columns.astype(np.complex128)
        real, imaginary = columns[:, self.pairs], columns[:, self.pairs + 1]
        result[:, self.pairs], result[:, self.pairs + 1] = real + 1j * imaginary, real - 1j * imaginary
        return result

    def states_of(self, modes: Complex) -> Complex:
        """V times columns: w y + w̄ y′ is Re w (y + y′) + Im w i (y − y′)."""
        columns = np.array(modes)
        first, second = modes[self.pairs], modes[self.pairs + 1]
        columns[self.pairs], columns[self.pairs + 1] = first + second, 1j * (first - second)
        return np.asarray(
            real_matrix_product(self.Z, columns if self.X is None else real_matrix_product(self.X, columns))
            * self.scaling[:, None]
        )


def real_matrix_product(matrix: Matrix, columns: Matrix | Complex) -> Matrix | Complex:
    """A product, by half as many multiplications where the columns are complex."""
    if columns.dtype.kind != "c":
        return matrix @ columns
    return (matrix @ np.ascontiguousarray(columns).view(np.float64)).view(np.complex128)


@dataclass(frozen=True, eq=False)
class Resolvent:
    """A system in the coordinates of Λ."""

    system: SystemMatrices
    form: Diagonalisation

    @property
    def rates(self) -> Complex:
        """The diagonal of Λ: all eigenvalues of A."""
        return self.form.rates

    @cached_property
    def B(self) -> Complex:
        """V⁻¹B."""
        return self.form.to_modes(self.system.B)

    @cached_property
    def C(self) -> Complex:
        """C V."""
        return self.form.from_modes(self.system.C)

    def solve(self, s: Complex, right: Complex) -> Complex:
        """(s I − Λ)⁻¹ times right-hand sides `(n, m, len(s))`, one for each s, or `(n, m, 1)` for all."""
        if self.form.triangle is not None:
            return self.form.triangle.solve(s, right)
        return np.asarray(right * (1.0 / (s - self.rates[:, None]))[:, None, :], dtype=np.complex128)


def compute_resolvent(system: SystemMatrices) -> Resolvent:
    """Decompose A once; ~30 n³ flops."""
    A = system.A
    with limit_blas_threads(len(A)):
        symmetric = is_symmetric(A)
        units = balance_matrix(A, rescale_states=not symmetric)
        schur = symmetric_schur(units.matrix) if symmetric else _compute_schur(units.matrix)
        form = _diagonal_form(schur, units.scaling, units.factor)
        return Resolvent(system, form or _quasi_triangular_form(schur, units.scaling, units.factor))


def _compute_schur(A: Matrix) -> SchurForm:
    """The Schur form, part by part where A has so few entries that it may well fall apart."""
    is_sparse = len(A) > _SMALL and np.count_nonzero(A) <= _SPARSE_ENTRIES * A.size
    return schur_by_parts(A) if is_sparse else real_schur(A)


def _diagonal_form(schur: SchurForm, scaling: NDArray[np.float64], factor: float) -> Diagonalisation | None:
    """Every neuron alone, if its V is well conditioned and no pair is nearly real."""
    decoupled = decouple_neurons(schur, schur.starts)
    X, Lambda, pairs = decoupled.X, decoupled.diagonal, schur.pairs
    omega = Lambda[pairs, pairs + 1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        X = X / np.sqrt(np.einsum("ij,ij->j", X, X))
        is_turn = (omega > 0.0) & (Lambda[pairs + 1, pairs] == -omega)
        size = np.maximum(
            np.linalg.norm(decoupled.X[:, pairs], axis=0), np.linalg.norm(decoupled.X[:, pairs + 1], axis=0)
        )
        X[:, pairs], X[:, pairs + 1] = decoupled.X[:, pairs] / size, decoupled.X[:, pairs + 1] / size
    if not is_turn.all() or not np.isfinite(X).all():
        return None
    if not _smallest_diagonal(X, pairs) * _MAX_EIGENVECTOR_CONDITION >= 1.0:
        return None
    try:
        X_inv = _inverse(X, pairs)
    except np.linalg.LinAlgError:  # parallel vectors
        return None
    if not _condition_bound(X, X_inv) <= _MAX_EIGENVECTOR_CONDITION:
        return None
    rates = Lambda.diagonal().astype(np.complex128)
    rates.imag[pairs], rates.imag[pairs + 1] = omega, -omega
    return Diagonalisation(rates * factor, None, scaling, schur.Z, X, X_inv, pairs)


def _inverse(X: Matrix, pairs: NDArray[np.intp]) -> Matrix:
    """The inverse, of which little is to be computed where nothing couples neurons.

    Raises:
        LinAlgError: X is singular.
    """
    if np.count_nonzero(X) > len(X) + 2 * len(pairs):
        return np.asarray(np.linalg.inv(X), dtype=np.float64)
    inverse = np.diag(1.0 / X.diagonal())
    at = pairs[:, None] + np.arange(2)
    inverse[at[:, :, None], at[:, None, :]] = np.linalg.inv(X[at[:, :, None], at[:, None, :]])
    return inverse


def _smallest_diagonal(X: Matrix, pairs: NDArray[np.intp]) -> float:
    """The least size of a diagonal block of a block triangular X, whose inverse is as large as its reciprocal."""
    sizes = np.abs(X.diagonal())
    blocks = np.hypot(np.hypot(sizes[pairs], sizes[pairs + 1]), np.hypot(X[pairs, pairs + 1], X[pairs + 1, pairs]))
    sizes[pairs] = sizes[pairs + 1] = blocks
    return float(sizes.min(initial=1.0))


def _condition_bound(X: Matrix, X_inv: Matrix) -> float:
    """cond₂(X) or more, by ‖·‖₂² ≤ ‖·‖₁‖·‖∞ for X and its inverse."""
    bound = 1.0
    with np.errstate(over="ignore"):
        for factor in (X, X_inv):
            magnitude = np.abs(factor)
            bound *= float(
                np.sqrt(magnitude.sum(axis=0).max(initial=0.0)) * np.sqrt(magnitude.sum(axis=1).max(initial=0.0))
            )
    return bound


def _quasi_triangular_form(schur: SchurForm, scaling: NDArray[np.float64], factor: float) -> Diagonalisation:
    """All neurons in one quasi-triangle, the real Schur form."""
    rates = np.repeat(schur.eigenvalues, schur.sizes)
    rates[schur.pairs + 1] = rates[schur.pairs].conj()
    triangle = QuasiTriangularMatrix(schur.R * factor)
    return Diagonalisation(rates * factor, triangle, scaling, schur.Z, None, None, np.empty(0, dtype=np.intp))


# MERGED ltinet.analysis.resolvent
# H(s) of a sparse model: one sparse factorisation of s E − A for each s, nothing filled in.


class SparseResolvent:
    """C (s E − A)⁻¹ B + D of a sparse model."""

    def __init__(self, system: SystemMatrices, pencil: SparseDescriptor) -> None:
        self.system, self.pencil = system, pencil

    @cached_property
    def _E(self) -> Any:
        return sparse.eye_array(self.pencil.n_states, format="csr") if self.pencil.mass is None else self.pencil.mass

    @cached_property
    def _is_symmetric(self) -> bool:
        return has_symmetric_pattern(self.pencil.state, self.pencil.mass)

    def at(self, s: Complex) -> Complex:
        """H(s), (len(s), p, m); complex(inf, nan) in every entry where s is a pole."""
        H = np.empty((len(s), *self.system.D.shape), dtype=np.complex128)
        with explain_memory_error(self.pencil.n_states, self.pencil.n_nonzeros):
            for index, place in enumerate(s.tolist()):
                try:
                    H[index] = self._gain(self._factors(place))
                except SingularMatrixError:
                    H[index] = complex(np.inf, np.nan)
        return H

    def at_rest(self) -> Array:
        """H(0), in discrete time H(1): real numbers.

        Raises:
            InvalidSystemError: there is an integrator, which only a filled-in matrix tells more about.
        """
        try:
            factors = self._factors(0.0 if self.system.dt is None else 1.0)
            if factors.condition() * EPS * self.system.n_states >= 1.0:
                raise SingularMatrixError
            return np.asarray(self._gain(factors), dtype=np.float64)
        except SingularMatrixError:
            raise InvalidSystemError(
                "A is singular to working precision, so that the gain at rest is infinite or not known: the model has "
                "integrators; system.frequency_response(omega) tells the gain at any frequency but zero"
            ) from None

    def _factors(self, s: complex | float) -> SparseLU:
        return SparseLU(s * self._E - self.pencil.state, has_symmetric_pattern=self._is_symmetric)

    def _gain(self, factors: SparseLU) -> Any:
        """D + C M⁻¹ B, solved for the inputs or for the outputs, whichever are fewer."""
        system, B = self.system, self.pencil.B
        if system.n_inputs <= system.n_outputs:
            return system.D + system.C @ factors.solve(B)
        return system.D + factors.solve(system.C.T, transposed=True).T @ B
