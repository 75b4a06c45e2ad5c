"""`control.forced_response`, python-control's function for exactly this work."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.peer import Run
from benchmarks.support.cases import Case


def forced_response(case: Case, _: float) -> Run:
    """Time last, as that library has it; no axes squeezed away, states not kept."""
    import control

    system, u = control.ss(*case.matrices), np.ascontiguousarray(case.u.T)

    def run() -> NDArray[np.float64]:
        response = control.forced_response(system, case.t, u, squeeze=False, return_states=False)
        return np.asarray(response.outputs.T)

    return run
