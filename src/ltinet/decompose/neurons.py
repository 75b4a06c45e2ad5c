"""A basis for each block of a Schur form, and for each single neuron: where every partition starts."""

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.decouple import decouple
from ltinet.decompose.eigenvectors import decouple_neurons
from ltinet.decompose.orthonormal import BlockBases, orthonormalise
from ltinet.decompose.schur import SchurForm
from ltinet.model.matrices import Matrix
from ltinet.tolerances import EPS


def neuron_bases(schur: SchurForm) -> BlockBases:
    """Orthonormal bases of the invariant subspaces of all diagonal blocks, by eigenvectors where they are accurate."""
    return orthonormalise(decouple_neurons(schur, schur.starts), schur, schur.starts)


def block_bases(schur: SchurForm, bounds: NDArray[np.intp]) -> BlockBases:
    """The same for blocks of any number of neurons, which begin at `bounds`, n at the end.

    Where connected blocks share an eigenvalue, eigenvectors are divided by next to nothing and Sylvester equations by
    rounding: the latter keep apart what only rounding errors connect.
    """
    decoupled = decouple_neurons(schur, bounds)
    if _lean_on_equals(decoupled.X, schur, bounds):
        decoupled = decouple(schur.R, bounds)
    return orthonormalise(decoupled, schur, bounds)


def _lean_on_equals(X: Matrix, schur: SchurForm, bounds: NDArray[np.intp]) -> bool:
    """Whether columns of a neuron have entries at others of the same eigenvalue, by the measure of LAPACK's `trsyl`."""
    block = np.repeat(np.arange(len(bounds) - 1), schur.neurons_between(bounds))
    values = schur.eigenvalues
    is_equal = np.abs(values[:, None] - values) <= EPS * np.abs(schur.R).max(initial=0.0)
    others, neurons = (is_equal & (block[:, None] < block)).nonzero()
    first, last = schur.starts[:-1], schur.starts[1:] - 1
    entries = (X[rows[others], columns[neurons]] for rows in (first, last) for columns in (first, last))
    return any(own.any() for own in entries)
