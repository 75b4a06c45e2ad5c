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
from ltinet.blockdiag.schur import SchurForm, balanced_schur
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU, explain_memory_error, has_symmetric_pattern
from ltinet.systems.system_matrices import SystemMatrices

# Resolvents of quasi-triangular matrices: block back substitution for all s together.

Indices = NDArray[np.intp] | slice
_MIN_TILE_ROWS = 16  # least number of rows that one product of matrices updates before they are solved
_SPARSE_COLUMNS = 0.5  # share of nonzero columns below which products skip the zero ones


class _Product(NamedTuple):
    """Update of rows by a part of R times other rows."""

    rows: slice
    part: Matrix
    others: Indices


class _Group(NamedTuple):
    """Diagonal blocks that are independent of each other: ranges of real eigenvalues and of pairs."""

    product: _Product | None
    real: slice
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
    def real_rows(self) -> NDArray[np.intp]:
        """Rows of real eigenvalues."""
        return np.setdiff1d(np.arange(len(self.R)), np.concatenate([self.pairs, self.pairs + 1]))

    @cached_property
    def reversed_transpose(self) -> "QuasiTriangularMatrix":
        """Transposed matrix in reverse order, which is upper quasi-triangular again."""
        return QuasiTriangularMatrix(np.ascontiguousarray(self.R.T[::-1, ::-1]))

    def solve(self, s: Complex, right: Matrix | Complex) -> Complex:
        """Return (s I − R)⁻¹ times right-hand sides, `(n, m, len(s))` or `(n, m, 1)` for all s."""
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
        """Tiles from the last on: the update by all rows below, and the groups of the tile."""
        stop, steps = len(self.R), []
        for tile in _tiles(_groups(self.R, self.pairs), len(self.R)):
            start = tile[-1].start
            groups = [
                _Group(
                    self._product(rows, stop),
                    slice(*np.searchsorted(self.real_rows, (rows.start, rows.stop)).tolist()),
                    range(*np.searchsorted(self.pairs, (rows.start, rows.stop)).tolist()),
                )
                for rows in tile
            ]
            steps.append((self._product(slice(start, stop), len(self.R)), groups))
            stop = start
        return steps

    def _product(self, rows: slice, stop: int) -> _Product | None:
        """Return the update of rows by the rows below them, up to `stop`; None if it is zero."""
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
    """Return ranges of rows whose blocks are independent of each other, from the last on."""
    n = len(R)
    ends = np.arange(n) + 1
    ends[pairs] += 1
    beyond = (R != 0.0) & (np.arange(n) >= ends[:, None])
    first = np.where(beyond.any(axis=1), beyond.argmax(axis=1), n)  # by row: the first result that it depends on
    first[pairs] = first[pairs + 1] = np.minimum(first[pairs], first[pairs + 1])
    is_start = np.ones(n, dtype=np.bool_)
    is_start[pairs + 1] = False
    groups, stop, row = [], n, n
    for start in np.flatnonzero(is_start)[::-1].tolist():
        if first[start] < stop and row < stop:
            groups.append(slice(row, stop))
            stop = row
        row = start
    return [*groups, slice(0, stop)]


def _tiles(groups: list[slice], n: int) -> Iterator[list[slice]]:
    """Yield consecutive groups with at least `_MIN_TILE_ROWS` rows together."""
    tile: list[slice] = []
    for group in groups:
        tile.append(group)
        if tile[0].stop - group.start >= min(_MIN_TILE_ROWS, n) or group.start == 0:
            yield tile
            tile = []


class _Inverses:
    """Inverses (s I − block)⁻¹ of all diagonal blocks.

    That of a pair is [[s − a, b], [c, s − a]] over (s − a − iω)(s − a + iω), a product that is accurate near an
    eigenvalue. The factors are applied one by one, because their product overflows for rates of 1e200.
    """

    def __init__(self, triangle: QuasiTriangularMatrix, s: Complex) -> None:
        R, pairs = triangle.R, triangle.pairs
        b, c = R[pairs, pairs + 1][:, None], R[pairs + 1, pairs][:, None]
        omega = 1j * (np.sqrt(np.abs(b)) * np.sqrt(np.abs(c)))
        distance = s - R.diagonal()[pairs][:, None]
        first, second = 1.0 / (distance - omega), 1.0 / (distance + omega)
        self.diagonal, self.above, self.below = distance * first * second, b * first * second, c * first * second
        self.scalars = (1.0 / (s - R.diagonal()[triangle.real_rows][:, None]))[:, None]
        self.real_rows, self.pairs = triangle.real_rows, pairs.tolist()

    def apply(self, group: _Group, X: Complex) -> None:
        """Multiply the blocks of a group in place."""
        if group.real.start < group.real.stop:
            X[self.real_rows[group.real]] *= self.scalars[group.real]
        for pair in group.pairs:
            row, diagonal = self.pairs[pair], self.diagonal[pair]
            upper = diagonal * X[row] + self.above[pair] * X[row + 1]
            X[row + 1] = self.below[pair] * X[row] + diagonal * X[row + 1]
            X[row] = upper


# Decomposition of dense systems.

# Limit on cond(V) in balanced coordinates: errors of eps·1e4 = 2e-12, which one step of refinement removes.
_MAX_EIGENVECTOR_CONDITION = 1e4


@dataclass(frozen=True, eq=False)
class Diagonalization:
    """Decomposition A = diag(scaling) Z X Λ X⁻¹ Zᵀ diag(scaling)⁻¹, with Z orthogonal and V = diag(scaling) Z X.

    For a pair X has the real columns Re w and Im w instead of w and its conjugate.
    """

    rates: Complex
    triangle: QuasiTriangularMatrix | None
    """Λ if it is not diagonal: real, with 2×2 blocks for pairs. X is the identity then, and None."""
    scaling: NDArray[np.float64]
    Z: Matrix
    X: Matrix | None
    X_inv: Matrix | None
    pairs: NDArray[np.intp]

    def to_modes(self, B: Matrix | Complex) -> Complex:
        """Return V⁻¹ B."""
        rows = real_matrix_product(self.Z.T, B / self.scaling[:, None])
        rows = rows if self.X_inv is None else real_matrix_product(self.X_inv, rows)
        result = rows.astype(np.complex128)
        real, imaginary = 0.5 * rows[self.pairs], 0.5 * rows[self.pairs + 1]
        result[self.pairs], result[self.pairs + 1] = real - 1j * imaginary, real + 1j * imaginary
        return result

    def from_modes(self, C: Matrix) -> Complex:
        """Return C V."""
        columns = (C * self.scaling) @ self.Z
        columns = columns if self.X is None else columns @ self.X
        result = columns.astype(np.complex128)
        real, imaginary = columns[:, self.pairs], columns[:, self.pairs + 1]
        result[:, self.pairs], result[:, self.pairs + 1] = real + 1j * imaginary, real - 1j * imaginary
        return result

    def states_of(self, modes: Complex) -> Complex:
        """Return V times columns: w y + w̄ y′ = Re w (y + y′) + Im w i (y − y′)."""
        columns = np.array(modes)
        first, second = modes[self.pairs], modes[self.pairs + 1]
        columns[self.pairs], columns[self.pairs + 1] = first + second, 1j * (first - second)
        rows = columns if self.X is None else real_matrix_product(self.X, columns)
        return np.asarray(real_matrix_product(self.Z, rows) * self.scaling[:, None])


def real_matrix_product(matrix: Matrix, columns: Matrix | Complex) -> Matrix | Complex:
    """Return a real matrix times columns, with half the multiplications of a complex product."""
    if columns.dtype.kind != "c":
        return matrix @ columns
    return (matrix @ np.ascontiguousarray(columns).view(np.float64)).view(np.complex128)


@dataclass(frozen=True, eq=False)
class Resolvent:
    """System in the coordinates of Λ."""

    system: SystemMatrices
    form: Diagonalization

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
        """Return (s I − Λ)⁻¹ times right-hand sides, `(n, m, len(s))` or `(n, m, 1)` for all s."""
        if self.form.triangle is not None:
            return self.form.triangle.solve(s, right)
        return np.asarray(right * (1.0 / (s - self.rates[:, None]))[:, None, :], dtype=np.complex128)


def compute_resolvent(system: SystemMatrices) -> Resolvent:
    """Decompose A once; ~30 n³ flops."""
    with limit_blas_threads(system.n_states):
        units, schur = balanced_schur(system.A)
        form = _diagonal_form(schur, units.scaling, units.factor)
        return Resolvent(system, form or _quasi_triangular_form(schur, units.scaling, units.factor))


def _diagonal_form(schur: SchurForm, scaling: NDArray[np.float64], factor: float) -> Diagonalization | None:
    """Return a diagonal form; None if V is ill conditioned or a pair is nearly real."""
    decoupled = decouple_neurons(schur, schur.starts)
    X, Lambda, pairs = decoupled.X, decoupled.diagonal, schur.pairs
    omega = Lambda[pairs, pairs + 1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        X = X / np.sqrt(np.einsum("ij,ij->j", X, X))
        is_rotation = (omega > 0.0) & (Lambda[pairs + 1, pairs] == -omega)
        size = np.maximum(
            np.linalg.norm(decoupled.X[:, pairs], axis=0), np.linalg.norm(decoupled.X[:, pairs + 1], axis=0)
        )
        X[:, pairs], X[:, pairs + 1] = decoupled.X[:, pairs] / size, decoupled.X[:, pairs + 1] / size
    if not is_rotation.all() or not np.isfinite(X).all():
        return None
    # X is block triangular: its inverse is at least as large as the reciprocal of the smallest diagonal block.
    sizes = np.abs(X.diagonal())
    blocks = np.hypot(np.hypot(sizes[pairs], sizes[pairs + 1]), np.hypot(X[pairs, pairs + 1], X[pairs + 1, pairs]))
    sizes[pairs] = sizes[pairs + 1] = blocks
    if not float(sizes.min(initial=1.0)) * _MAX_EIGENVECTOR_CONDITION >= 1.0:
        return None
    try:
        X_inv = _inverse(X, pairs)
    except np.linalg.LinAlgError:  # parallel vectors
        return None
    if not _condition_bound(X, X_inv) <= _MAX_EIGENVECTOR_CONDITION:
        return None
    rates = Lambda.diagonal().astype(np.complex128)
    rates.imag[pairs], rates.imag[pairs + 1] = omega, -omega
    return Diagonalization(rates * factor, None, scaling, schur.Z, X, X_inv, pairs)


def _inverse(X: Matrix, pairs: NDArray[np.intp]) -> Matrix:
    """Return the inverse, block by block if X is block diagonal.

    Raises:
        LinAlgError: X is singular.
    """
    if np.count_nonzero(X) > len(X) + 2 * len(pairs):
        return np.asarray(np.linalg.inv(X), dtype=np.float64)
    inverse = np.diag(1.0 / X.diagonal())
    rows = pairs[:, None] + np.arange(2)
    inverse[rows[:, :, None], rows[:, None, :]] = np.linalg.inv(X[rows[:, :, None], rows[:, None, :]])
    return inverse


def _condition_bound(X: Matrix, X_inv: Matrix) -> float:
    """Return a bound on cond₂(X), by ‖·‖₂² ≤ ‖·‖₁‖·‖∞ for X and its inverse."""
    bound = 1.0
    with np.errstate(over="ignore"):
        for factor in (X, X_inv):
            magnitude = np.abs(factor)
            bound *= float(
                np.sqrt(magnitude.sum(axis=0).max(initial=0.0)) * np.sqrt(magnitude.sum(axis=1).max(initial=0.0))
            )
    return bound


def _quasi_triangular_form(schur: SchurForm, scaling: NDArray[np.float64], factor: float) -> Diagonalization:
    """Return the real Schur form."""
    rates = np.repeat(schur.eigenvalues, schur.sizes)
    rates[schur.pairs + 1] = rates[schur.pairs].conj()
    triangle = QuasiTriangularMatrix(schur.R * factor)
    return Diagonalization(rates * factor, triangle, scaling, schur.Z, None, None, np.empty(0, dtype=np.intp))


# Sparse systems.


class SparseResolvent:
    """Transfer function C (s E − A)⁻¹ B + D of a sparse model."""

    def __init__(self, system: SystemMatrices, pencil: SparseDescriptor) -> None:
        self.system, self.pencil = system, pencil
        self._E: Any = sparse.eye_array(pencil.n_states, format="csr") if pencil.mass is None else pencil.mass
        self._is_symmetric = has_symmetric_pattern(pencil.state, pencil.mass)

    def at(self, s: Complex) -> Complex:
        """Return H(s), (len(s), p, m); complex(inf, nan) in every entry where s is a pole."""
        H = np.empty((len(s), *self.system.D.shape), dtype=np.complex128)
        with explain_memory_error(self.pencil.n_states, self.pencil.n_nonzeros):
            for index, point in enumerate(s.tolist()):
                try:
                    H[index] = self._gain(self._factors(point))
                except SingularMatrixError:
                    H[index] = complex(np.inf, np.nan)
        return H

    def dc_gain(self) -> Array:
        """Return the real matrix H(0), in discrete time H(1).

        Raises:
            InvalidSystemError: there is an integrator.
        """
        try:
            factors = self._factors(0.0 if self.system.dt is None else 1.0)
            if factors.condition() * EPS * self.system.n_states >= 1.0:
                raise SingularMatrixError
            return np.asarray(self._gain(factors), dtype=np.float64)
        except SingularMatrixError:
            raise InvalidSystemError(
                "A is singular to working precision: the model has integrators, and its DC gain is infinite or unknown; "
                "use system.frequency_response(omega) at frequencies other than zero"
            ) from None

    def _factors(self, s: complex | float) -> SparseLU:
        return SparseLU(s * self._E - self.pencil.state, has_symmetric_pattern=self._is_symmetric)

    def _gain(self, factors: SparseLU) -> Any:
        """Return D + C M⁻¹ B, solved for the inputs or for the outputs, whichever are fewer."""
        system, B = self.system, self.pencil.B
        if system.n_inputs <= system.n_outputs:
            return system.D + system.C @ factors.solve(B)
        return system.D + factors.solve(system.C.T, transposed=True).T @ B
