"""Outputs of a short run of few states to far more digits than any engine has: which of two ways is right.

Steps are exponentials of the user's matrix as it was given, in pairs of doubles, and so is every state.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.residual import product_terms, two_part_sum
from ltinet.solve.exact.infinite_sizes import QUIETLY
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.true_steps import true_steps
from ltinet.solve.modal import DenseBlock

_STEPS = 2_048  # which take about a tenth of a second
LIKE_A_BOUND = 32.0  # times an error that was seen: a run may see more of it, and bounds are beyond that


@QUIETLY
def true_outputs(path: ExactPath) -> Array | None:
    """Those of a run in the user's own states `(1, T, p)`; None for others than single short ones at even times."""
    samples, blocks = path.samples, path.prepared.blocks
    if samples.step is None or len(path.u) != 1 or not 1 < len(samples.t) <= _STEPS + 1:
        return None
    block = DenseBlock(blocks.A, blocks.B, blocks.C, np.arange(len(blocks.A)))
    steps = true_steps(block, np.array([[samples.step]]), linear=path.linear)
    high, low = (np.hstack([own[part][0] for own in steps]) for part in (0, 1))
    n, u = len(blocks.A), path.u[0]
    states = np.zeros((2, len(u), n))
    states[0, 0] = 0.0 if path.x0 is None else path.x0[0]
    for now in range(len(u) - 1):
        given = np.concatenate([states[0, now], u[now], u[now + 1]])[:, None]
        small = low @ given + high[:, :n] @ states[1, now][:, None]
        found = two_part_sum([*product_terms(high, given), small], (n, 1))
        states[:, now + 1] = found[0][:, 0], found[1][:, 0]
    fed_through = product_terms(blocks.D, u.T)
    terms = [*product_terms(blocks.C, states[0].T), *fed_through, blocks.C @ states[1].T]
    y = two_part_sum(terms, (len(blocks.C), len(u)))[0].T
    return y[None] if np.isfinite(y).all() else None
