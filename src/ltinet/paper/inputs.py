"""The times and inputs that the paper's examples share."""

import numpy as np

from ltinet.arrays import Array

TIMES: Array = np.linspace(0.0, 10.0, 101)
"""0…10 in steps of 0.1; inputs are straight lines between them."""
TIMES.setflags(write=False)


def heat_pulse(*, points: int = 20, length: float = 10.0) -> Array:
    """100 exp(−0.8 ((x − l/2)² + (y − l/2)²)) at t = 0.2 and nothing at the other times, `(101, points²)`.

    With straight lines between the times this is a hat from t = 0.1 to 0.3. Point (i, j) is input j·points + i.
    """
    along = (np.arange(points) * length / points - length / 2.0) ** 2
    u = np.zeros((len(TIMES), points**2))
    u[2] = 100.0 * np.exp(-0.8 * np.add.outer(along, along)).ravel()
    return u


def sines(n_inputs: int = 10) -> Array:
    """sin(i t / 2) for i = 1…n_inputs, `(101, n_inputs)`."""
    return np.asarray(np.sin(np.outer(TIMES, np.arange(1, n_inputs + 1)) / 2.0))
