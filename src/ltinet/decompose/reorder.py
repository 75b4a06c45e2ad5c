"""Bring the eigenvalues of one block together along the diagonal of a Schur form, by orthogonal swaps of neighbours."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet.decompose.schur import SchurForm
from ltinet.model.matrices import Matrix
from ltinet.tolerances import EPS


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
