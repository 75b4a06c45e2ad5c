"""Systems for other libraries: the way out that mirrors `as_state_space`."""

from typing import Any

import numpy as np
import scipy.signal

from ltinet.errors import MissingDependencyError
from ltinet.model.state_space import StateSpace


def to_scipy(system: StateSpace) -> scipy.signal.StateSpace:
    """The system as a `scipy.signal.StateSpace`, with writeable copies of the matrices."""
    return scipy.signal.StateSpace(*(np.array(matrix) for matrix in (system.A, system.B, system.C, system.D)))


def to_control(system: StateSpace) -> Any:
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
    return control.StateSpace(system.A, system.B, system.C, system.D, remove_useless_states=False)
