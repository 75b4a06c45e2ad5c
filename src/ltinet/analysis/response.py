"""H(s) of a system by the way that suits it: one decomposition for all s, or a sparse factorisation for each."""

from collections.abc import Callable
from functools import partial

from ltinet.analysis.frequency_response import transfer_function
from ltinet.analysis.resolvent import resolvent_of
from ltinet.analysis.sparse_response import SparseResolvent
from ltinet.arrays import Complex
from ltinet.model.system_matrices import SystemMatrices

_FEW = 500  # states: up to here one decomposition of the filled-in matrix is cheaper


def response_of(system: SystemMatrices) -> Callable[[Complex], Complex]:
    """The function from places s to H(s), (len(s), p, m); what all places share is prepared."""
    if system.sparse is not None and system.n_states > _FEW:
        return SparseResolvent(system, system.sparse).at
    return partial(transfer_function, resolvent_of(system))
