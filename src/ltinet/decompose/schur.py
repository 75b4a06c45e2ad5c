"""The real Schur form and its diagonal blocks: where the eigenvalues of A appear and neurons begin."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet.decompose.components import components
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property
from ltinet.tolerances import EPS, rounding

_WORKSPACE = 66  # doubles per state that LAPACK's blocked reduction to Hessenberg form asks for: block size 64 and two


@dataclass(frozen=True)
class SchurForm:
    """A = Z R Zᵀ with Z orthogonal and R quasi-triangular: 1×1 blocks (real eigenvalues), 2×2 blocks (pairs)."""

    R: Matrix
    Z: Matrix

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First state of every diagonal block, with n at the end."""
        is_start = np.ones(len(self.R) + 1, dtype=bool)
        is_start[1:-1] = self.R.diagonal(-1) == 0.0
        return is_start.nonzero()[0]

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Size of every diagonal block, 1 or 2."""
        return self.starts[1:] - self.starts[:-1]

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """First state of every 2×2 block."""
        pairs: NDArray[np.intp] = self.starts[:-1][self.sizes == 2]
        return pairs

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """One eigenvalue for each diagonal block, the one with positive imaginary part for a pair.

        LAPACK leaves pairs as [[a, b], [c, a]] with bc < 0: a ± iω with ω = √|b|·√|c|.
        """
        values = self.R.diagonal()[self.starts[:-1]].astype(np.complex128)
        b, c = self.R[self.pairs, self.pairs + 1], self.R[self.pairs + 1, self.pairs]
        values.imag[self.sizes == 2] = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
        return values

    def neurons_between(self, bounds: NDArray[np.intp]) -> NDArray[np.intp]:
        """How many diagonal blocks lie between consecutive bounds."""
        before = self.starts.searchsorted(bounds)
        return before[1:] - before[:-1]


def is_decoupled(schur: SchurForm, A: Matrix) -> bool:
    """Whether all couplings between diagonal blocks of the Schur form of A are rounding errors, as for every normal A.

    Small against ‖A‖ is not enough: beside a fast mode all couplings of slow ones are. What rounding can leave at an
    entry of R is of the size of eps · |Z|ᵀ|A||Z| there, which knows whether slow and fast states mix.
    """
    R, n = schur.R, len(schur.R)
    size = float(np.linalg.norm(R))
    if (np.abs(R[0:1, 2:]) > rounding(n, size)).any():  # the first row tells in most cases
        return False
    coupling = np.triu(np.abs(R), 1)
    coupling[schur.pairs, schur.pairs + 1] = 0.0
    total = float(np.linalg.norm(coupling))
    if total == 0.0 or total > n * EPS * size:
        return total == 0.0
    magnitude = np.abs(schur.Z)
    return bool(np.all(coupling <= 10.0 * EPS * (magnitude.T @ np.abs(A) @ magnitude)))


def real_schur(A: Matrix) -> SchurForm:
    """LAPACK's real Schur form (`gees`), ~25 n³ flops: the floor of everything that follows."""
    return _lapack_schur(A) if len(A) else SchurForm(A, A)


def schur_by_parts(A: Matrix) -> SchurForm:
    """The same for each part of A that no chain of entries connects with the rest, if there are several.

    It is cheaper, and what is not connected stays exactly so.
    """
    parts = components(A != 0.0)
    if len(parts) < 2:
        return real_schur(A)
    R, Z = np.zeros(A.shape, order="F"), np.zeros(A.shape, order="F")
    start = 0
    for states in parts:
        own = slice(start, start + len(states))
        part = _lapack_schur(A[states[:, None], states])
        R[own, own], Z[states, own] = part.R, part.Z
        start = own.stop
    return SchurForm(R, Z)


def _lapack_schur(A: Matrix) -> SchurForm:
    R, _, _, _, Z, _, info = lapack.dgees(_no_order, A, lwork=_WORKSPACE * len(A))
    if info != 0:
        raise np.linalg.LinAlgError(f"the QR algorithm did not converge (LAPACK gees, info = {info})")
    return SchurForm(R, Z)


def _no_order(*_: float) -> bool:
    """LAPACK asks which eigenvalues come first; here none is preferred."""
    return False


def is_symmetric(A: Matrix) -> bool:
    """Whether A = Aᵀ; the first row and column tell in most cases."""
    return np.array_equal(A[:1], A[:, :1].T) and np.array_equal(A, A.T)


def symmetric_schur(A: Matrix) -> SchurForm:
    """The Schur form of a symmetric matrix is diagonal: `eigh`, at a fraction of the general cost."""
    eigenvalues, Z = np.linalg.eigh(A)
    return SchurForm(np.diag(eigenvalues), Z)
