"""Condition numbers of T = [Q_1 … Q_N] composed of bases of invariant subspaces, and lower bounds on them.

With an orthonormal basis Q_i of each subspace, the Gram matrix TᵀT holds the cosines between subspaces. Merging two of
them orthonormalizes their joint basis and removes their angles from T. The log-volume that a merge recovers,

    I(a; b) = −½ log det(I − M Mᵀ),    M = Q_aᵀ Q_b,

is additive over merges: it is the mutual information of Gaussian variables with that Gram matrix. Its total,
−log |det T|, is zero exactly when cond(T) = 1, and cond(T) < 2 exp(−log |det T|) (Guggenheimer, Edelman & Johnson
1995). For two subspaces whose largest cosine is c, cond([Q_a, Q_b]) = √((1 + c)/(1 − c)).
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS
from ltinet.systems.matrices import Matrix

Group = tuple[int, ...]
Partition = tuple[Group, ...]

# Condition number beyond which a Gram matrix is not used: it squares cond(T), so that its smallest eigenvalue, 1/cond²
# relative to the largest, is then known to 1e12 · eps ≈ 2e-4 only.
GRAM_LIMIT = 1e6

# Order of T up to which singular values cost no more than a Gram matrix and its eigenvalues; measured.
_SVD_ORDER = 64


def group_labels(partition: Partition) -> NDArray[np.intp]:
    """Return the number of its group for each atom of a partition."""
    labels = np.empty(sum(map(len, partition)), dtype=np.intp)
    for number, group in enumerate(partition):
        labels[list(group)] = number
    return labels


@dataclass(frozen=True)
class Atoms:
    """Invariant subspaces that a partition distributes over blocks: orthonormal bases, side by side.

    `starts` are the first columns of the atoms, n at the end; `neurons` is the number of neurons in each.
    """

    basis: Matrix
    starts: NDArray[np.intp]
    neurons: NDArray[np.intp]
    eigenvalues: NDArray[np.complex128]

    @cached_property
    def gram(self) -> Matrix:
        """Gram matrix TᵀT: identity blocks on the diagonal, cosines between subspaces elsewhere."""
        return self.basis.T @ self.basis

    @property
    def singletons(self) -> Partition:
        """Partition with every atom in a block of its own."""
        return tuple((atom,) for atom in range(len(self.neurons)))

    def columns(self, group: Group) -> NDArray[np.intp]:
        """Return the columns of the basis that belong to the atoms of a group."""
        return np.array([column for atom in group for column in self._columns_per_atom[atom]], dtype=np.intp)

    @cached_property
    def _columns_per_atom(self) -> list[range]:
        return [range(start, stop) for start, stop in itertools.pairwise(self.starts.tolist())]

    def connections(self, partition: Partition) -> int:
        """Return the number of neuron-to-neuron connections inside the blocks, each pair of neurons once."""
        neurons = self._neuron_counts  # a list: indexing an array one by one is slow
        counts = (sum([neurons[atom] for atom in group]) for group in partition)
        return sum(count * (count - 1) // 2 for count in counts)

    @cached_property
    def _neuron_counts(self) -> list[int]:
        return list(self.neurons.tolist())


def condition_number(T: Matrix) -> float:
    """Return cond₂(T), infinite where T is singular.

    For large T from the Gram matrix, at a third of the cost of singular values, where that is accurate to 1e-3.
    """
    if len(T) == 0:
        return 1.0
    T = T / (np.max(np.abs(T)) or 1.0)
    if len(T) > _SVD_ORDER:
        condition = gram_condition(T.T @ T)
        if condition <= GRAM_LIMIT:
            return condition
    singular_values = np.linalg.svd(T, compute_uv=False)
    return float(singular_values[0] / singular_values[-1]) if singular_values[-1] > 0 else float("inf")


def partition_condition(atoms: Atoms, partition: Partition, *, limit: float = 1.0, gram: Matrix | None = None) -> float:
    """Return cond₂ of the T whose blocks are orthonormal bases of the groups, accurate for values up to `limit`.

    `gram` is the Gram matrix of that T if it is known already.
    """
    if limit > GRAM_LIMIT:
        return condition_number(
            np.hstack([np.linalg.qr(atoms.basis[:, atoms.columns(group)])[0] for group in partition])
        )
    if gram is None:
        gram = atoms.gram.copy()
        for group in partition:
            if len(group) > 1 and not whiten(gram, atoms.columns(group)):
                return float("inf")
    return gram_condition(gram)


def whiten(gram: Matrix, columns: NDArray[np.intp]) -> bool:
    """Orthonormalize some columns of T in place, in its Gram matrix; return False where they are dependent.

    The diagonal is shifted by rounding size, so that nearly dependent columns pass: their span is uncertain, the rest
    of T is not.
    """
    block = gram[columns[:, None], columns]
    block.flat[:: len(block) + 1] += 4.0 * len(block) * EPS
    factor, info = linalg.lapack.dpotrf(block, lower=1)
    if info != 0:
        return False
    rows, _ = linalg.lapack.dtrtrs(factor, gram[columns], lower=1)
    rows[:, columns] = np.eye(len(columns))
    gram[columns], gram[:, columns] = rows, rows.T
    return True


def neg_log_det(gram: Matrix) -> float:
    """Return −log |det T| from the Gram matrix of T: zero for orthogonal T, and cond(T) < 2 exp(−log |det T|).

    The bound is that of Guggenheimer, Edelman and Johnson (1995) for ‖T‖_F = √n.
    """
    factor, info = linalg.lapack.dpotrf(gram, lower=1)
    return -float(np.log(factor.diagonal()).sum()) if info == 0 else float("inf")


def pairwise_condition_bounds(atoms: Atoms) -> Matrix:
    """Return for each two atoms a lower bound on cond(T) of every partition that puts them in different blocks."""
    cosines = np.abs(atoms.gram)
    first, sizes = atoms.starts[:-1], atoms.starts[1:] - atoms.starts[:-1]
    # The largest entry bounds the largest singular value of a block of cosines from below, tightly for single neurons.
    largest = np.maximum.reduceat(np.maximum.reduceat(cosines, first, axis=0), first, axis=1)
    for wide in np.flatnonzero(sizes > 2):
        rows = atoms.gram[first[wide] : first[wide] + sizes[wide]]
        norms = [np.linalg.norm(columns, 2) for columns in np.split(rows, first[1:], axis=1)]
        largest[wide, :] = largest[:, wide] = np.minimum(norms, 1.0)
    np.fill_diagonal(largest, 0.0)
    return np.sqrt((1.0 + largest) / np.maximum(1.0 - largest, EPS))


def separation_bounds(atoms: Atoms, group: Group) -> NDArray[np.float64]:
    """Return for each atom of a group a lower bound on cond(T) if that atom alone left the group.

    With c the largest cosine between the atom and the span of the others, cond([Q_atom, Q_others]) = √((1+c)/(1−c)).
    """
    columns = atoms.columns(group)
    values, vectors = np.linalg.eigh(atoms.gram[columns[:, None], columns])
    inverse = (vectors / np.maximum(values, len(columns) * EPS)) @ vectors.T  # parallel vectors: large, not singular
    # The inverse of a diagonal block of the inverse is the Schur complement of the others: its 1/λ_max is 1 − c².
    sizes = [int(atoms.starts[atom + 1] - atoms.starts[atom]) for atom in group]
    stops = itertools.accumulate(sizes)
    blocks = (inverse[stop - size : stop, stop - size : stop] for size, stop in zip(sizes, stops, strict=True))
    largest = [_largest_eigenvalue(block) for block in blocks]
    sine_squared = 1.0 / np.maximum(largest, 1.0)
    return (1.0 + np.sqrt(1.0 - sine_squared)) / np.sqrt(sine_squared)


def isolation_bounds(atoms: Atoms) -> NDArray[np.float64]:
    """Return for each atom a lower bound on cond(T) of every partition in which it has a block of its own.

    The span of the other atoms does not depend on their groups. The rows of T⁻¹ that belong to the atom have norm 1/s,
    with s the sine of its angle with that span, and two subspaces at that angle have cond = (1 + √(1 − s²))/s. Where T
    is singular to working precision, `separation_bounds` of all atoms is used instead.
    """
    try:
        inverse = np.linalg.inv(atoms.basis)
    except np.linalg.LinAlgError:
        inverse = np.full_like(atoms.basis, np.inf)
    if not np.abs(inverse).max(initial=0.0) < 0.01 / EPS:
        return separation_bounds(atoms, tuple(range(len(atoms.neurons))))
    rows = np.split(inverse, atoms.starts[1:-1])
    norms = np.array([math.sqrt(max(_largest_eigenvalue(block @ block.T), 1.0)) for block in rows])
    return np.asarray(norms + np.sqrt(norms * norms - 1.0))


def _largest_eigenvalue(block: Matrix) -> float:
    """Return the largest eigenvalue of a symmetric matrix, by formula for the sizes of single neurons."""
    if len(block) == 1:
        return float(block[0, 0])
    if len(block) == 2:
        (a, b), (_, d) = block.tolist()
        return float(0.5 * (a + d) + math.hypot(0.5 * (a - d), b))
    return float(np.linalg.eigvalsh(block)[-1])


def gram_condition(gram: Matrix) -> float:
    """Return cond₂(T) from TᵀT, infinite where that is singular to working precision."""
    eigenvalues = np.linalg.eigvalsh(gram)
    smallest = eigenvalues[0]
    return float(np.sqrt(eigenvalues[-1] / smallest)) if smallest > 0 else float("inf")
