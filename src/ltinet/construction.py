"""Construction of networks from systems: `construct`.

A `tolerance` reduces the system first, and the error of the reduction is included in all bounds of the network.
"""

from dataclasses import replace
from typing import Any

from ltinet._util.blas_threads import limit_blas_threads
from ltinet.blockdiag.partition import BlockChoice, ClusteringAlgorithm
from ltinet.conversion import as_state_space, eliminate_algebraic
from ltinet.dynamic_network import DynamicNetwork
from ltinet.network_builder import construct_network, require_single_system
from ltinet.second_order import SecondOrder

# MERGED ltinet.construction
# The door through which networks come: `construct`.


def construct(
    system: Any,
    *matrices: Any,
    max_condition: float = 1e4,
    n_layers: int | None = None,
    clustering: ClusteringAlgorithm | None = None,
    balance: bool | None = None,
    tolerance: float | None = None,
) -> DynamicNetwork:
    """Construct the network of a system (Algorithms 1 and 2), without training: the input–output maps are the same.

    `system` is anything that `as_state_space` takes. The layers are chosen as in `block_diagonalize`: the sparsest form
    found with cond(T) ≤ `max_condition`, or `n_layers` layers, or the clusters of `clustering`.

    With `balance` the states are brought to units of one size first, without it they stay as given. None takes the
    sparser of the two networks, unless its cond(T) in the given units exceeds 4.5e6 (1e-9 over the rounding unit) and
    that of the other does not; `print(net.form)` says which it was and why.

    With a `tolerance` the system is reduced first, to as few states as have ‖G − G_r‖∞ ≤ tolerance·‖G_r‖∞; large
    sparse systems are never filled in. What that leaves out is counted in every bound of the network, pointwise in
    time: `net.reduction_error` times ‖u‖ in L2. Of a `SecondOrder` model each mode that is kept is one
    second-order neuron. `ltinet.reduce` tells more of it.

    Raises:
        InvalidSystemError: `system` cannot be read as a real continuous-time system, or not be reduced.
        PartitionError: the layers asked for do not exist.
    """
    given = require_single_system(system, matrices)
    if tolerance is not None:
        from ltinet.reduction.dispatch import (
            dispatch_reduction,  # here, because few networks are of reductions, and it takes its time
        )

        small = dispatch_reduction(
            given if isinstance(given, SecondOrder) else eliminate_algebraic(given), tolerance=tolerance
        )
        if small.network is not None:
            settings = small.system.signal_settings
            return DynamicNetwork(small.network, reduction_error=small.pointwise, signal_settings=settings)
        net = construct(
            small.system, max_condition=max_condition, n_layers=n_layers, clustering=clustering, balance=balance
        )
        return replace(net, reduction_error=small.pointwise)
    state_space = as_state_space(given)
    wanted = BlockChoice(max_condition, n_layers, clustering, called="n_layers")
    with limit_blas_threads(state_space.n_states):
        found = construct_network(state_space.matrices, wanted, balance=balance)
    return DynamicNetwork(found.network, found.form, state_space, found.blocks)
