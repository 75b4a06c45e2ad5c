"""Eigenvectors of a real matrix, and solutions of (s I − R) X = B with its Schur form R for many s.

A X = X F, where the columns of X are Re w and Im w of an eigenvector w of a pair λ = a ± iω, whose block in F is
[[a, ω], [−ω, a]]. All matrices stay real; `to_modes` and `from_modes` convert rows and columns to those of w and w̄:

    x = Re(w) z₁ + Im(w) z₂ = w y + w̄ y′,   y = (z₁ − i z₂)/2,   y′ = (z₁ + i z₂)/2.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet.blockdiag.decoupling import decouple_neurons
from ltinet.blockdiag.schur import BalancedMatrix, SchurForm, is_symmetric

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Eigenmodes:
    """Matrices with A X = X F, where F has the real blocks of the rates; Im λ > 0 comes first in a pair."""

    X: Array
    X_inv: Array
    rates: Complex


def compute_eigenmodes(A: Array, units: BalancedMatrix, schur: SchurForm, *, max_condition: float) -> Eigenmodes | None:
    """Return the modes of a matrix from its Schur form in balanced units; None for nearly dependent eigenvectors.

    The limit is ‖V‖ ‖V⁻¹‖ ≤ n·max_condition for unit eigenvectors V in the Frobenius norm, where n is the product of
    orthogonal ones. O(n³).
    """
    decoupled = decouple_neurons(schur, schur.starts)
    vectors, rates = _normalize_columns(decoupled.X, decoupled.diagonal, schur.pairs)
    if not np.isfinite(vectors).all():
        return None
    try:
        inverse = vectors.T if is_symmetric(A) else np.linalg.inv(vectors)
    except np.linalg.LinAlgError:  # parallel vectors
        return None
    with np.errstate(over="ignore"):
        condition = float(np.linalg.norm(vectors) * np.linalg.norm(inverse))
    if not condition <= max_condition * max(len(A), 1):
        return None
    return Eigenmodes(
        units.scaling[:, None] * (schur.Z @ vectors), (inverse @ schur.Z.T) / units.scaling, rates * units.factor
    )


def _normalize_columns(X: Array, diagonal: Array, pairs: Indices) -> tuple[Array, Complex]:
    """Return columns of unit length, those of pairs scaled so that their block [[a, b], [c, a]] has b = −c > 0."""
    X = np.array(X)
    b, c = diagonal[pairs, pairs + 1], diagonal[pairs + 1, pairs]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        X[:, pairs + 1] *= np.sign(b)
        X[:, pairs] *= np.sqrt(np.abs(b / c))
        lengths = np.sqrt(np.einsum("ij,ij->j", X, X))
        lengths[pairs] = lengths[pairs + 1] = np.maximum(lengths[pairs], lengths[pairs + 1])
        X /= lengths
    rates = diagonal.diagonal().astype(np.complex128)
    omega = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
    rates.imag[pairs], rates.imag[pairs + 1] = omega, -omega
    return X, rates


def to_modes(rows: Array | Complex, pairs: Indices) -> Complex:
    """Return coefficients of w and w̄ from those of Re w and Im w; `pairs` are the first rows of pairs."""
    result = rows.astype(np.complex128)
    real, imaginary = 0.5 * rows[pairs], 0.5j * rows[pairs + 1]
    result[pairs], result[pairs + 1] = real - imaginary, real + imaginary
    return result


def from_modes(rows: Complex, pairs: Indices) -> Complex:
    """Return coefficients of Re w and Im w from those of w and w̄: y + y′ and i (y − y′)."""
    result = np.array(rows)
    result[pairs] = rows[pairs] + rows[pairs + 1]
    result[pairs + 1] = 1j * (rows[pairs] - rows[pairs + 1])
    return result


def columns_of_modes(columns: Array, pairs: Indices) -> Complex:
    """Return the columns C w and C w̄ from C Re w and C Im w."""
    result = columns.astype(np.complex128)
    real, imaginary = columns[:, pairs], 1j * columns[:, pairs + 1]
    result[:, pairs], result[:, pairs + 1] = real + imaginary, real - imaginary
    return result


# Block back substitution for all s together.

_TILE = 32  # blocks whose rows one product of matrices updates before they are solved; speed only, make bench-speed


@dataclass(frozen=True, eq=False)
class QuasiTriangularMatrix:
    """A real quasi-triangular matrix, as LAPACK leaves the Schur form: pairs are blocks [[a, b], [c, a]], bc < 0."""

    R: Array

    @cached_property
    def starts(self) -> list[int]:
        """First row of every diagonal block, with n at the end."""
        starts: list[int] = SchurForm(self.R, self.R).starts.tolist()
        return starts

    @cached_property
    def reversed_transpose(self) -> "QuasiTriangularMatrix":
        """Transposed matrix in reverse order, which is upper quasi-triangular again."""
        return QuasiTriangularMatrix(np.ascontiguousarray(self.R.T[::-1, ::-1]))

    def solve(self, s: Complex, right: Array | Complex) -> Complex:
        """Return (s I − R)⁻¹ times right-hand sides, `(n, m, len(s))` or `(n, m, 1)` for all s.

        R stays real: it multiplies real and imaginary parts as columns of their own, which takes half of the products
        of a complex triangle. n²/2 products for every column and s.
        """
        n, m = len(self.R), right.shape[1]
        X = np.empty((n, m, len(s)), dtype=np.complex128)
        X[:] = right
        flat: Array = X.reshape(n, m * len(s)).view(np.float64)
        for index in reversed(range(0, len(self.starts) - 1, _TILE)):
            tile = self.starts[index : index + _TILE + 1]
            top, bottom = tile[0], tile[-1]
            flat[top:bottom] += self.R[top:bottom, bottom:] @ flat[bottom:]
            for start, stop in reversed(list(pairwise(tile))):
                flat[start:stop] += self.R[start:stop, stop:bottom] @ flat[stop:bottom]
                _solve_block(self.R[start:stop, start:stop], s, X[start:stop])
        return X


def _solve_block(block: Array, s: Complex, X: Complex) -> None:
    """Replace X, `(1 or 2, m, len(s))`, by (s I − block)⁻¹ X."""
    distance = s - block[0, 0]
    if len(block) == 1:
        X /= distance
        return
    # The determinant by the eigenvalues a ± iω: (s − a)² + ω² would cancel beside them.
    b, c = block[0, 1], block[1, 0]
    omega = 1j * (np.sqrt(np.abs(b)) * np.sqrt(np.abs(c)))
    first, second = 1.0 / (distance - omega), 1.0 / (distance + omega)
    diagonal = distance * first * second
    upper = diagonal * X[0] + (b * first * second) * X[1]
    X[1] = (c * first * second) * X[0] + diagonal * X[1]
    X[0] = upper
