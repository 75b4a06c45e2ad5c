"""Outputs of a run in a hurry: SciPy's exponential of a step as it is, and blocks of time.

Nothing is done for entries that are small beside others, or for norms that rise before they fall. Who agrees with it
to many digits is right all the same: two computations that know nothing of each other do not err alike.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.solve.exact.infinite_sizes import QUIETLY
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.steps.fastest_way import uniform_grid
from ltinet.solve.steps.hump import is_moderate
from ltinet.solve.steps.one_step import one_step
from ltinet.solve.steps.propagators import plain_steps
from ltinet.solve.steps.single_steps import single_steps

_SEVERAL = 2**11  # samples from which on it pays to prepare blocks of time


@QUIETLY
def hasty_outputs(path: ExactPath) -> Array | None:
    """Outputs `(batch, T, p)` at even times; None at others, and where an exponential takes long."""
    system, length = path.prepared.system, path.samples.step
    if length is None or not all(is_moderate(block.F, length) for block in system.blocks):
        return None
    step, n_times = one_step(system, length, linear=path.linear, of_blocks=plain_steps), len(path.samples.t)
    grid = uniform_grid(step, n_times) if n_times > _SEVERAL else single_steps(step)
    return np.asarray(grid.outputs_from(path.z0, path.u, threads=1))
