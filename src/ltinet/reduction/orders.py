"""The smallest order whose bound is small enough."""

from collections.abc import Callable

import numpy as np

from ltinet.reduction.balancing import DenseMethod
from ltinet.reduction.dense import DenseReducer, DenseReduction


def smallest_order(
    reducer: DenseReducer, is_enough: Callable[[DenseReduction], bool], *, allowed: float, method: DenseMethod
) -> DenseReduction:
    """Bisect between the order that Hankel values forbid to go below and the one that they promise to suffice.

    No model of order r is nearer than σ_{r+1}, and balanced ones are not farther than 2Σσ. If none is enough, because
    rounding is more than was allowed, the one of the numerical rank comes back.
    """
    values = reducer.balanced.hankel_values[: reducer.balanced.rank]
    low = int(np.count_nonzero(values > allowed))
    tails = 2.0 * (np.sum(values) - np.cumsum(values))
    high = min(int(np.count_nonzero(tails > allowed)) + 1, reducer.balanced.rank)
    best = reducer.reduced(high + reducer.n_aside, method=method)
    if not is_enough(best):
        low, high = high, reducer.balanced.rank
        best = reducer.reduced(high + reducer.n_aside, method=method)
    while low < high:
        middle = (low + high) // 2
        found = reducer.reduced(middle + reducer.n_aside, method=method)
        if is_enough(found):
            best, high = found, middle
        else:
            low = middle + 1
    return best
