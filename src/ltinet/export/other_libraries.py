"""Systems for other libraries: the way out that mirrors `as_state_space`."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ltinet.errors import MissingDependencyError
from ltinet.model.system_matrices import SystemMatrices

if TYPE_CHECKING:
    import scipy.signal


def to_scipy(system: SystemMatrices) -> "scipy.signal.StateSpace":
    """The system as a `scipy.signal.StateSpace`, with writeable copies of the matrices."""
    import scipy.signal  # here, because it would be half of the time that importing ltinet takes

    return scipy.signal.StateSpace(*(np.array(matrix) for matrix in (system.A, system.B, system.C, system.D)))


def to_control(system: SystemMatrices) -> Any:
    """The system as a `control.StateSpace` of python-control, no state removed.

    Raises:
        MissingDependencyError: python-control is not installed.
    """
    try:
        import control
    except ImportError as error:
        raise MissingDependencyError(
            'python-control is not installed; install it with pip install "ltinet[control]"'
        ) from error
    matrices = (system.A, system.B, system.C, system.D)
    return control.StateSpace(*matrices, remove_useless_states=False, **system.names.given)
