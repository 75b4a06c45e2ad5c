"""Which entries are not zero, before and after: A as it was given, and the blocks that it became."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.subject import Subject
from ltinet.explorer.views.numbers import Plain
from ltinet.network.own_blocks import block_diagonal

_MOST_CELLS = 160  # on a side: beyond, a cell stands for several entries


def before_view(subject: Subject) -> Plain:
    """The pattern of the matrix that was given."""
    large = subject.given.sparse
    return _pattern(sparse.coo_array(subject.given.A if large is None else large.state))


def after_view(net: DynamicNetwork) -> Plain:
    """The pattern of the block-diagonal matrix, or of a network that has no form that of its own equations."""
    if net.form is None:
        return _pattern(sparse.coo_array(net.to_state_space().A))
    return _pattern(sparse.coo_array(block_diagonal([net.form.block(index) for index in range(net.form.n_blocks)])))


def _pattern(matrix: "sparse.coo_array") -> Plain:
    """Runs of cells that are not zero, row by row, with how many entries that are."""
    n = matrix.shape[0]
    is_set = matrix.data != 0
    rows, columns = matrix.row[is_set], matrix.col[is_set]
    side = min(n, _MOST_CELLS)
    cells = np.zeros((side, side), dtype=bool)
    cells[rows * side // max(n, 1), columns * side // max(n, 1)] = True
    return {"n": n, "side": side, "count": int(np.count_nonzero(is_set)), "runs": _runs(cells)}


def _runs(cells: NDArray[np.bool_]) -> list[list[int]]:
    edges = np.diff(np.pad(cells, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(edges == 1)
    _, stops = np.nonzero(edges == -1)
    found: list[list[int]] = np.column_stack([rows, starts, stops - starts]).tolist()
    return found
