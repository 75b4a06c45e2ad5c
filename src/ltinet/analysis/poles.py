"""The poles of a system."""

import numpy as np
from numpy.typing import NDArray

from ltinet.model.system_matrices import SystemMatrices
from ltinet.threads import threads_for


def poles_of(system: SystemMatrices) -> NDArray[np.complex128]:
    """The eigenvalues of A by falling real part, of a pair that with positive imaginary part first."""
    with threads_for(system.n_states):
        values = np.linalg.eigvals(system.A).astype(np.complex128)
    return values[np.lexsort((-values.imag, -values.real))]
