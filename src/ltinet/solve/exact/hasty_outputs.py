"""Outputs of a run in a hurry: SciPy's exponential of a step as it is, and blocks of time.

Nothing is done for entries that are small beside others, or for norms that rise before they fall. Who agrees with it
to many digits is right all the same: two computations that know nothing of each other do not err alike.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.solve.exact.infinite_sizes import QUIETLY
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.grids import Grids
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.steps.hump import is_moderate
from ltinet.solve.steps.propagators import plain_steps

_SEVERAL = 2**11  # samples from which on it pays to prepare blocks of time


@QUIETLY
def hasty_outputs(path: ExactPath) -> Array | None:
    """Outputs `(batch, T, p)` at even times; None at others, and where an exponential takes long."""
    length, n_times = path.samples.step, len(path.samples.t)
    if length is None or not all(is_moderate(block.F, length) for block in path.prepared.system.blocks):
        return None
    grids = path.prepared.keep(_grids)
    if n_times > _SEVERAL:
        grid = grids.from_any_state(length, linear=path.linear, n_times=n_times)
    else:
        grid = grids.single(length, linear=path.linear)
    return np.asarray(grid.outputs_from(path.z0, path.u, threads=1))


def _grids(prepared: PreparedNetwork) -> Grids:
    return Grids(prepared.system, of_blocks=plain_steps)
