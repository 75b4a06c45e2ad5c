"""What falls apart into pieces without connections is several small problems, not one large one."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components


def components(connected: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
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
