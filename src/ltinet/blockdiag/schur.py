"""Balancing, the real Schur form and reordering of its diagonal blocks.

A = Z R Zᵀ with Z orthogonal and R quasi-triangular: 1×1 blocks for real eigenvalues, 2×2 blocks for complex pairs. Each
diagonal block becomes one neuron. States are first scaled by powers of two (LAPACK `gebal`), which is exact and makes
the structure of A visible whatever the units of the states. Parts of A without connections are decomposed one by one
(`gees`), symmetric matrices by `eigh`. Blocks are brought together by orthogonal swaps of neighbours (`trexc`).

Cost: about 25 n³ flops for the Schur form, O(n) for each swap.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import connected_components

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, rounding_tolerance
from ltinet.systems.matrices import Matrix


def graph_components(connected: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Return the connected components of an undirected graph, as arrays of nodes; `connected` is its n×n edge matrix."""
    touches = connected | connected.T
    np.fill_diagonal(touches, True)
    # A node with edges to all others proves that there is one component, as in a matrix without structure.
    if len(touches) == 0 or touches.all(axis=1).any():
        return [np.arange(len(touches))]
    _, labels = connected_components(sparse.csr_matrix(touches.astype(np.float64)), directed=False)
    return groups_of_equal(labels)


def groups_of_equal(labels: NDArray[np.signedinteger[Any]]) -> list[NDArray[np.intp]]:
    """Return the indices of equal labels, by ascending label."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)


@dataclass(frozen=True)
class BalancedMatrix:
    """Balanced matrix: A = factor · diag(scaling) · matrix · diag(scaling)⁻¹ exactly, with powers of two."""

    matrix: Matrix
    scaling: NDArray[np.float64]
    factor: float


def balance_matrix(A: Matrix, *, rescale_states: bool = True) -> BalancedMatrix:
    """Scale A to entries of order one and, with `rescale_states`, rows and columns to norms of equal size.

    The factor keeps norms and their products in range for entries like 1e±150; the state scaling is LAPACK's `gebal`
    without permutations. Both are powers of two, so that nothing is rounded. Cost O(n²) per sweep.
    """
    balanced, scaling = A, np.ones(len(A))
    if rescale_states and len(A):
        balanced, _, _, scaling, _ = lapack.dgebal(A, scale=1, permute=0)
    factor, largest = 1.0, float(np.abs(balanced).max(initial=0.0))
    if largest > 0.0:  # the power of two at or just below it, within the range of normal numbers
        factor = math.ldexp(1.0, min(max(math.frexp(largest)[1] - 1, -1021), 1022))
    return BalancedMatrix(balanced / factor if factor != 1.0 else balanced, scaling, factor)


# Workspace of LAPACK's blocked reduction to Hessenberg form, in doubles per state: block size 64, and two.
_WORKSPACE_PER_STATE = 66
# A matrix of more states than _MIN_STATES and a smaller share of nonzero entries than _SPARSE_SHARE may consist of
# independent parts, which are then searched for.
_MIN_STATES, _SPARSE_SHARE = 64, 0.1


@dataclass(frozen=True)
class SchurForm:
    """Real Schur form A = Z R Zᵀ with orthogonal Z and quasi-triangular R.

    Diagonal blocks of R are 1×1 for real eigenvalues and 2×2 for complex pairs.
    """

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
        return np.asarray(self.starts[:-1][self.sizes == 2])

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalue of each diagonal block; of a pair, the one with positive imaginary part.

        LAPACK leaves pairs as [[a, b], [c, a]] with bc < 0: a ± iω with ω = √|b|·√|c|.
        """
        values = self.R.diagonal()[self.starts[:-1]].astype(np.complex128)
        b, c = self.R[self.pairs, self.pairs + 1], self.R[self.pairs + 1, self.pairs]
        values.imag[self.sizes == 2] = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
        return values

    @cached_property
    def all_eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues of all states, conjugate pairs adjacent with the positive imaginary part first, `(n,)`."""
        values = np.repeat(self.eigenvalues, self.sizes)
        values[self.pairs + 1] = values[self.pairs].conj()
        return values

    def neurons_between(self, bounds: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the number of diagonal blocks between consecutive bounds."""
        before = self.starts.searchsorted(bounds)
        return before[1:] - before[:-1]


def is_decoupled(schur: SchurForm, A: Matrix) -> bool:
    """Return whether all couplings between diagonal blocks of the Schur form of A are rounding errors, as for normal A.

    Couplings must be small against eps · |Z|ᵀ|A||Z| at their entry, the level of rounding in R, not against ‖A‖: beside
    a fast mode all couplings of slow modes are small against ‖A‖.
    """
    R, n = schur.R, len(schur.R)
    size = float(np.linalg.norm(R))
    if (np.abs(R[0:1, 2:]) > rounding_tolerance(n, size)).any():  # decides most cases at a cost of O(n)
        return False
    coupling = np.triu(np.abs(R), 1)
    coupling[schur.pairs, schur.pairs + 1] = 0.0
    total = float(np.linalg.norm(coupling))
    if total == 0.0 or total > n * EPS * size:
        return total == 0.0
    magnitude = np.abs(schur.Z)
    return bool(np.all(coupling <= 10.0 * EPS * (magnitude.T @ np.abs(A) @ magnitude)))


def real_schur(A: Matrix) -> SchurForm:
    """Return the real Schur form by LAPACK's `gees`, ~25 n³ flops."""
    if len(A) == 0:
        return SchurForm(A, A)
    R, _, _, _, Z, _, info = lapack.dgees(lambda *_: False, A, lwork=_WORKSPACE_PER_STATE * len(A))
    if info != 0:
        raise np.linalg.LinAlgError(f"the QR algorithm did not converge (LAPACK gees, info = {info})")
    return SchurForm(R, Z)


def schur_by_parts(A: Matrix) -> SchurForm:
    """Return the real Schur form of A, computed separately for each connected component of its graph.

    This is cheaper than one large problem, and states without a connection stay exactly so.
    """
    parts = graph_components(A != 0.0)
    if len(parts) < 2:
        return real_schur(A)
    R, Z = np.zeros(A.shape, order="F"), np.zeros(A.shape, order="F")
    start = 0
    for states in parts:
        block = slice(start, start + len(states))
        part = real_schur(A[states[:, None], states])
        R[block, block], Z[states, block] = part.R, part.Z
        start = block.stop
    return SchurForm(R, Z)


def is_symmetric(A: Matrix) -> bool:
    """Return whether A = Aᵀ; the first row and column decide most cases."""
    return np.array_equal(A[:1], A[:, :1].T) and np.array_equal(A, A.T)


def symmetric_schur(A: Matrix) -> SchurForm:
    """Return the Schur form of a symmetric matrix, which is diagonal, by `eigh` at a fraction of the general cost."""
    eigenvalues, Z = np.linalg.eigh(A)
    return SchurForm(np.diag(eigenvalues), Z)


def balanced_schur(A: Matrix) -> tuple[BalancedMatrix, SchurForm]:
    """Return A in balanced units, and its Schur form there by the method that suits its symmetry and sparsity."""
    symmetric = is_symmetric(A)
    balanced = balance_matrix(A, rescale_states=not symmetric)
    if symmetric:
        return balanced, symmetric_schur(balanced.matrix)
    is_sparse = len(A) > _MIN_STATES and np.count_nonzero(balanced.matrix) <= _SPARSE_SHARE * A.size
    return balanced, schur_by_parts(balanced.matrix) if is_sparse else real_schur(balanced.matrix)


@dataclass(frozen=True)
class OrderedSchur:
    """Schur form whose groups are contiguous, with the first state of every group and n at the end."""

    schur: SchurForm
    bounds: NDArray[np.intp]


class _Neuron(NamedTuple):
    """Diagonal block during reordering: its size, the group it belongs to, and its sort key inside the group."""

    size: int
    group: int
    sort_key: tuple[bool, float]


def reorder(schur: SchurForm, groups: NDArray[np.intp]) -> OrderedSchur:
    """Sort the diagonal blocks by `groups` (one number per diagonal block), real eigenvalues first, then by |Re λ|.

    Decoupling requires contiguous groups only, so groups stand in the order in which they first appear and blocks of
    one neuron hardly move. Where LAPACK refuses a swap because two eigenvalues are too close, blocks of one group keep
    their order, and two groups are merged. Cost O(n) per swap.
    """
    _, appearance, index = np.unique(groups, return_index=True, return_inverse=True)
    return _sort_blocks(schur, np.argsort(np.argsort(appearance))[index])


def _sort_blocks(schur: SchurForm, groups: NDArray[np.intp]) -> OrderedSchur:
    """Sort the diagonal blocks by the numbers of their groups; see `reorder`."""
    R, Z = np.array(schur.R, order="F"), np.array(schur.Z, order="F")
    neurons = _neurons(schur, groups)
    noise = EPS * float(np.linalg.norm(R))
    stop = 0
    for last in range(len(neurons)):
        at, start, stop = last, stop, stop + neurons[last].size
        while at > 0 and (neurons[at].group, neurons[at].sort_key) < (neurons[at - 1].group, neurons[at - 1].sort_key):
            above, below = neurons[at - 1], neurons[at]
            start -= above.size
            if not _swap(R, Z, start, sizes=(above.size, below.size), noise=noise):
                if above.group == below.group:
                    break
                merged = [above.group if neuron.group == below.group else neuron.group for neuron in neurons]
                return _sort_blocks(SchurForm(R, Z), np.array(merged))
            neurons[at - 1], neurons[at] = below, above
            at -= 1
            if _has_split(R, start, sizes=(below.size, above.size)):
                # A pair became two real eigenvalues, which are two neurons of the same group from now on.
                group_of_state = np.repeat([neuron.group for neuron in neurons], [neuron.size for neuron in neurons])
                return _sort_blocks(SchurForm(R, Z), group_of_state[SchurForm(R, Z).starts[:-1]])
    ends = np.cumsum([neuron.size for neuron in neurons])
    changes = np.flatnonzero(np.diff([neuron.group for neuron in neurons]))
    return OrderedSchur(SchurForm(R, Z), np.concatenate([[0], ends[changes], ends[-1:]]).astype(np.intp))


def leading_subspace(R: Matrix, start: int) -> tuple[Matrix, Matrix] | None:
    """Return the invariant subspace of the diagonal blocks of R from state `start` on, by moving them to the front.

    The result is an orthonormal basis Q and the quasi-triangular block B with R Q = Q B, accurate to rounding however
    close the other eigenvalues are; None where LAPACK refuses a swap. Cost O(n) per swap.
    """
    schur, width = SchurForm(R, np.eye(len(R))), len(R) - start
    ordered = _sort_blocks(schur, (schur.starts[:-1] < start).astype(np.intp))
    if ordered.bounds.tolist() != [0, width, len(R)] or len(ordered.schur.sizes) != len(schur.sizes):
        return None  # a swap was refused, or a pair with a tiny imaginary part became two real eigenvalues
    return ordered.schur.Z[:, :width], ordered.schur.R[:width, :width]


def _neurons(schur: SchurForm, groups: NDArray[np.intp]) -> list[_Neuron]:
    """Return the diagonal blocks in their order."""
    values = schur.eigenvalues
    if len(values) != len(groups):  # NaN after an overflow
        raise np.linalg.LinAlgError(f"the Schur form has {len(values)} diagonal blocks, expected {len(groups)}")
    places = zip((values.imag != 0.0).tolist(), np.abs(values.real).tolist(), strict=True)
    return [_Neuron(*fields) for fields in zip(schur.sizes.tolist(), groups.tolist(), places, strict=True)]


def _swap(R: Matrix, Z: Matrix, start: int, *, sizes: tuple[int, int], noise: float) -> bool:
    """Exchange two neighboring diagonal blocks in place; return False, and change nothing, where LAPACK refuses."""
    middle, stop = start + sizes[0], start + sum(sizes)
    if sizes == (1, 1) and R[start, start] == R[middle, middle] and abs(R[start, middle]) <= noise:
        # LAPACK considers equal eigenvalues as exchanged already, but their vectors must be exchanged as well.
        R[start, middle] = 0.0
    if not R[start:middle, middle:stop].any():  # uncoupled: exchanged without rounding
        swapped = [*range(middle, stop), *range(start, middle)]
        for matrix in (R, Z):
            matrix[:, start:stop] = matrix[:, swapped]
        R[start:stop, :] = R[swapped, :]
        return True
    _, _, info = lapack.dtrexc(R, Z, start + sizes[0] + 1, start + 1, overwrite_a=1, overwrite_q=1)
    return bool(info == 0)


def _has_split(R: Matrix, start: int, *, sizes: tuple[int, int]) -> bool:
    """Return whether rounding turned a pair with a tiny imaginary part into two real eigenvalues during a swap."""
    first, second = sizes
    return (first == 2 and R[start + 1, start] == 0.0) or (second == 2 and R[start + first + 1, start + first] == 0.0)
