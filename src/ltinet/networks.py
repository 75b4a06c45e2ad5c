"""The door through which networks come: `construct`."""

from typing import Any

from ltinet.construction import construct_network, the_only_one
from ltinet.conversion import as_state_space
from ltinet.decompose.choose.choice import BlockChoice, ClusteringAlgorithm
from ltinet.dynamic_network import DynamicNetwork
from ltinet.threads import threads_for


def construct(
    system: Any,
    *matrices: Any,
    max_condition: float = 1e4,
    n_layers: int | None = None,
    clustering: ClusteringAlgorithm | None = None,
    balance: bool | None = None,
) -> DynamicNetwork:
    """Construct the network of a system (Algorithms 1 and 2), without training: the input–output maps are the same.

    `system` is anything that `as_state_space` takes. The layers are chosen as in `block_diagonalize`: the sparsest form
    found with cond(T) ≤ `max_condition`, or `n_layers` layers, or the clusters of `clustering`.

    With `balance` the states are brought to units of one size first, without it they stay as given. None takes the
    sparser of the two networks, unless its certified error (relative to the outputs, 1,000 steps of 0.3/|λ|max) is more
    than 1e-10 and more than ten times that of the other; `print(net.form)` tells which it was and why.

    Raises:
        InvalidSystemError: `system` cannot be read as a real continuous-time system.
        PartitionError: the layers asked for do not exist.
    """
    state_space = as_state_space(the_only_one(system, matrices))
    wanted = BlockChoice(max_condition, n_layers, clustering, called="n_layers")
    with threads_for(state_space.n_states):
        found = construct_network(state_space.matrices, wanted, balance=balance)
    net = DynamicNetwork(found.network, found.form, state_space, found.blocks)
    net.__dict__["_prepared"] = found.prepared  # it may be prepared already
    return net
