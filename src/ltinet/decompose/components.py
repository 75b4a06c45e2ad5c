"""What falls apart into pieces without connections is several small problems, not one large one."""

import numpy as np
from numpy.typing import NDArray


def components(connected: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """The nodes of each piece of a graph, given by its n×n matrix of edges; their direction does not matter.

    A node that touches all others shows at once that there is one piece. Else each node takes the smallest label among
    itself and its neighbours, then the label of the node of that number, until nothing changes: O(n²) for each of a few
    rounds.
    """
    connected = connected | connected.T
    np.fill_diagonal(connected, True)
    n = len(connected)
    labels, former = np.arange(n), np.empty(0, dtype=np.intp)
    if n == 0 or connected.all(axis=1).any():
        return [labels]
    while not np.array_equal(labels, former):
        former = labels
        labels = np.where(connected, labels, n).min(axis=1)
        labels = labels[labels]
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
