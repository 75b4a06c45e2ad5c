"""Outputs of x' = Ax + Bu, y = Cx + Du for sampled inputs, to more digits than a double holds.

Between samples (x, u, the step of u) obeys a linear equation, whose exponential gives the next sample: exp of
[[Ah, Bh, 0], [0, 0, I], [0, 0, 0]] has e^{Ah} and what u and its increase add in its first block row (Van Loan 1978).
"""

from dataclasses import dataclass
from functools import lru_cache

import mpmath
import numpy as np
from scipy import linalg

from extended_precision import exponential
from network_examples import exact

mpmath.mp.dps = 50


def outputs_in_50_digits(system, t, u, *, x0, hold):
    """Outputs `(len(t), p)`, rounded at the very end; one exponential per distinct step, for a dozen states."""
    A, B, C, D = (exact(M) for M in system)
    n, m = A.rows, B.cols
    x, y = exact(x0[:, None]), []
    samples = [exact(row[:, None]) for row in u]
    times = [mpmath.mpf(float(time)) for time in t]
    for k, value in enumerate(samples):
        y.append([float(entry) for entry in (C * x + D * value if m else C * x)])
        if k + 1 == len(samples):
            break
        h = times[k + 1] - times[k]
        E = _step(*(np.asarray(M, dtype=float).tobytes() for M in system[:2]), n, h)
        x = E[:n, :n] * x
        if m:
            x += E[:n, n : n + m] * value
        if m and hold == "linear":
            x += E[:n, n + m :] * (samples[k + 1] - value)
    return np.array(y)


@lru_cache(maxsize=32)
def _step(A, B, n, h):
    """The exponential of one step, kept for the next call: other inputs and holds have the same."""
    A, B = np.frombuffer(A).reshape(n, n), np.frombuffer(B).reshape(n, -1)
    m = B.shape[1]
    augmented = mpmath.zeros(n + 2 * m)
    augmented[:n, :n] = exact(A) * h
    if m:
        augmented[:n, n : n + m], augmented[n : n + m, n + m :] = exact(B) * h, mpmath.eye(m)
    return mpmath.expm(augmented, method="taylor")


@dataclass(frozen=True)
class ExtendedStep:
    """One step of length h in long double, for hundreds of states; balanced by powers of two, which rounds nothing."""

    P: np.ndarray
    begin: np.ndarray
    rise: np.ndarray
    C: np.ndarray
    D: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, system, h):
        """The step from one exponential of the augmented matrix."""
        A, (scale, _) = linalg.matrix_balance(system.A, permute=False, separate=True)
        n, m = system.B.shape
        augmented = np.zeros((n + 2 * m, n + 2 * m), dtype=np.longdouble)
        augmented[:n, :n], augmented[:n, n : n + m] = A, system.B / scale[:, None]
        augmented[:n] *= h
        augmented[n : n + m, n + m :] = np.eye(m)
        rows = exponential(augmented)[:n]
        C, D = (system.C * scale).astype(np.longdouble), system.D.astype(np.longdouble)
        return cls(np.ascontiguousarray(rows[:, :n]), rows[:, n : n + m], rows[:, n + m :], C, D, scale)

    def outputs(self, u, *, x0, hold):
        """Outputs `(len(u), p)`."""
        inputs = np.asarray(u, dtype=np.longdouble)
        added = inputs[:-1] @ self.begin.T
        if hold == "linear":
            added = added + np.diff(inputs, axis=0) @ self.rise.T
        x = np.empty((len(u), len(self.P)), dtype=np.longdouble)
        x[0] = x0 / self.scale
        for k in range(len(u) - 1):
            x[k + 1] = self.P @ x[k] + added[k]
        return x @ self.C.T + inputs @ self.D.T
