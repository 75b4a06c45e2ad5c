"""`scipy.signal.lsim`, SciPy's function for exactly this work."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from benchmarks.peers.peer import Run
from benchmarks.support.cases import Case


def lsim(case: Case, _: float) -> Run:
    """The system as an object, made once, so that its checks are not timed."""
    system: Any = signal.StateSpace(*case.matrices)  # its stubs know systems of one input and one output

    def run() -> NDArray[np.float64]:
        return np.reshape(signal.lsim(system, case.u, case.t)[1], (case.n_steps, -1))

    return run
