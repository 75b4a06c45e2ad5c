"""Balancing, the real Schur form and reordering of its diagonal blocks.

A = Z R Zᵀ with Z orthogonal and R quasi-triangular: 1×1 blocks for real eigenvalues, 2×2 blocks for complex pairs. Each
diagonal block becomes one neuron. States are first scaled by powers of two (LAPACK `gebal`), which is exact and makes
the structure of A visible whatever the units of the states. Parts of A without connections are decomposed one by one
(`gees`), symmetric matrices by `eigh`. Blocks are brought together by orthogonal swaps of neighbours (`trexc`).

Cost: about 25 n³ flops for the Schur form, O(n) for each swap.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import connected_components

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, rounding_tolerance
from ltinet.systems.matrices import Matrix

# MERGED ltinet.blockdiag.schur
# What falls apart into pieces without connections is several small problems, not one large one.


def graph_components(connected: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The nodes of each piece of a graph, given by its n×n matrix of edges; their direction does not matter.

    A node that touches all others shows at once that there is one piece, as in a matrix without structure.
    """
    touches = connected | connected.T
    np.fill_diagonal(touches, True)
    if len(touches) == 0 or touches.all(axis=1).any():
        return [np.arange(len(touches))]
    _, labels = connected_components(sparse.csr_matrix(touches.astype(np.float64)), directed=False)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


# MERGED ltinet.blockdiag.schur
# Units that differ by orders of magnitude hide the structure of A; a diagonal of powers of two undoes that exactly.


@dataclass(frozen=True)
class BalancedMatrix:
    """A matrix in units of its own choosing: A = factor · diag(scaling) · matrix · diag(scaling)⁻¹, exactly."""

    matrix: Matrix
    scaling: NDArray[np.float64]
    factor: float


def balance_matrix(A: Matrix, *, rescale_states: bool = True) -> BalancedMatrix:
    """Bring A to entries of order one and, with `rescale_states`, rows and columns to norms of one size.

    The factor keeps norms and their products in range for entries like 1e±150; the state scaling is LAPACK's
    `gebal` without permutations. Both are powers of two, so that nothing is rounded. Cost O(n²) per sweep.
    """
    balanced, scaling = A, np.ones(len(A))
    if rescale_states and len(A):
        balanced, _, _, scaling, _ = lapack.dgebal(A, scale=1, permute=0)
    factor = _power_of_two_near(float(np.abs(balanced).max()) if len(A) else 0.0)
    return BalancedMatrix(balanced / factor if factor != 1.0 else balanced, scaling, factor)


def _power_of_two_near(magnitude: float) -> float:
    """The power of two at or just below a positive magnitude; 1 for zero."""
    if magnitude == 0.0:
        return 1.0
    _, exponent = math.frexp(magnitude)
    return math.ldexp(1.0, min(max(exponent - 1, -1021), 1022))


# MERGED ltinet.blockdiag.schur
# The real Schur form and its diagonal blocks: where the eigenvalues of A appear and neurons begin.

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
    if (np.abs(R[0:1, 2:]) > rounding_tolerance(n, size)).any():  # the first row tells in most cases
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
    parts = graph_components(A != 0.0)
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


# MERGED ltinet.blockdiag.schur
# Bring the eigenvalues of one block together along the diagonal of a Schur form, by orthogonal swaps of neighbours.


@dataclass(frozen=True)
class OrderedSchur:
    """A Schur form whose blocks are contiguous, with the first state of every block and n at the end."""

    schur: SchurForm
    bounds: NDArray[np.intp]


class _Neuron(NamedTuple):
    """A diagonal block on its way: its size, the group it belongs to, and its place inside the group."""

    size: int
    group: int
    place: tuple[bool, float]


def reorder(schur: SchurForm, groups: NDArray[np.intp]) -> OrderedSchur:
    """Sort the diagonal blocks by `groups` (one number per diagonal block), real eigenvalues first, then by |Re λ|.

    Contiguity is all that decoupling needs, so groups stand in the order in which they first appear and blocks of one
    neuron hardly move. Where LAPACK refuses a swap (two eigenvalues too close to be told apart), blocks of one group
    stay as they are and two groups become one. Cost O(n) per swap.
    """
    R, Z = np.array(schur.R, order="F"), np.array(schur.Z, order="F")
    row = _neurons(schur, groups)
    noise = EPS * float(np.linalg.norm(R))
    stop = 0
    for last in range(len(row)):
        at, start, stop = last, stop, stop + row[last].size
        while at > 0 and (row[at].group, row[at].place) < (row[at - 1].group, row[at - 1].place):
            above, below = row[at - 1], row[at]
            start -= above.size
            if not _swap(R, Z, start, sizes=(above.size, below.size), noise=noise):
                if above.group == below.group:
                    break
                united = [above.group if neuron.group == below.group else neuron.group for neuron in row]
                return reorder(SchurForm(R, Z), np.array(united))
            row[at - 1], row[at] = below, above
            at -= 1
            if _has_split(R, start, sizes=(below.size, above.size)):
                return reorder(SchurForm(R, Z), np.repeat(*_states(row))[SchurForm(R, Z).starts[:-1]])
    ends = np.cumsum([neuron.size for neuron in row])
    changes = np.flatnonzero(np.diff([neuron.group for neuron in row]))
    return OrderedSchur(SchurForm(R, Z), np.concatenate([[0], ends[changes], ends[-1:]]).astype(np.intp))


def leading_subspace(R: Matrix, start: int) -> tuple[Matrix, Matrix] | None:
    """The invariant subspace of the diagonal blocks of R from state `start` on, by moving them to the front.

    Returns an orthonormal basis Q and the quasi-triangular block B with R Q = Q B, to rounding however close the
    eigenvalues of the others are; None where LAPACK refuses a swap. Cost O(n) per swap.
    """
    schur = SchurForm(np.array(R, order="F"), np.eye(len(R), order="F"))
    sizes = schur.sizes.tolist()
    n_before = int(schur.starts.searchsorted(start))
    noise = EPS * float(np.linalg.norm(R))
    for last in range(n_before, len(sizes)):
        if not _move_up(schur, last, sizes=sizes, by=n_before, noise=noise):
            return None
        sizes.insert(last - n_before, sizes.pop(last))
    moved = SchurForm(schur.R, schur.Z)
    if moved.sizes.tolist() != sizes:  # a pair with a tiny imaginary part became two real eigenvalues
        return None
    width = len(R) - start
    return moved.Z[:, :width], moved.R[:width, :width]


def _move_up(schur: SchurForm, index: int, *, sizes: list[int], by: int, noise: float) -> bool:
    """Exchange a diagonal block with each of those before it, in place; False where LAPACK refuses."""
    place = sum(sizes[:index])
    if sizes[index] == 2:  # a pair needs none of the care for equal real eigenvalues: all swaps in one call
        goal = place - sum(sizes[index - by : index])
        _, _, info = lapack.dtrexc(schur.R, schur.Z, place + 1, goal + 1, overwrite_a=1, overwrite_q=1)
        return bool(info == 0)
    for above in reversed(sizes[index - by : index]):
        place -= above
        if not _swap(schur.R, schur.Z, place, sizes=(above, sizes[index]), noise=noise):
            return False
    return True


def _neurons(schur: SchurForm, groups: NDArray[np.intp]) -> list[_Neuron]:
    """The diagonal blocks as they stand, their groups numbered by first appearance."""
    _, appearance, index = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(appearance))[index]
    values = schur.eigenvalues
    if len(values) != len(rank):  # it changed on the way here, by numbers that are none
        raise np.linalg.LinAlgError(f"a Schur form of {len(values)} diagonal blocks where {len(rank)} were")
    places = zip((values.imag != 0.0).tolist(), np.abs(values.real).tolist(), strict=True)
    return [_Neuron(*own) for own in zip(schur.sizes.tolist(), rank.tolist(), places, strict=True)]


def _states(row: list[_Neuron]) -> tuple[list[int], list[int]]:
    """Groups and sizes of a row of neurons, to be repeated over states."""
    return [neuron.group for neuron in row], [neuron.size for neuron in row]


def _swap(R: Matrix, Z: Matrix, start: int, *, sizes: tuple[int, int], noise: float) -> bool:
    """Exchange two neighbouring diagonal blocks in place; False, and nothing done, where LAPACK refuses."""
    middle, stop = start + sizes[0], start + sum(sizes)
    if sizes == (1, 1) and R[start, start] == R[middle, middle] and abs(R[start, middle]) <= noise:
        # LAPACK takes equal eigenvalues for exchanged and leaves their vectors in place; here the vectors count.
        R[start, middle] = 0.0
    if not R[start:middle, middle:stop].any():  # nothing between them: exchanged without rounding
        swapped = [*range(middle, stop), *range(start, middle)]
        for matrix in (R, Z):
            matrix[:, start:stop] = matrix[:, swapped]
        R[start:stop, :] = R[swapped, :]
        return True
    _, _, info = lapack.dtrexc(R, Z, start + sizes[0] + 1, start + 1, overwrite_a=1, overwrite_q=1)
    return bool(info == 0)


def _has_split(R: Matrix, start: int, *, sizes: tuple[int, int]) -> bool:
    """Whether rounding turned a pair with a tiny imaginary part into two real eigenvalues during a swap."""
    first, second = sizes
    return (first == 2 and R[start + 1, start] == 0.0) or (second == 2 and R[start + first + 1, start + first] == 0.0)
