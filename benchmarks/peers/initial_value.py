"""`scipy.integrate.solve_ivp` on the dense system.

A solver that does not know the knots of the input steps over them, so no step is longer than the distance of samples;
outputs are asked for at the samples. LSODA and Radau are given the Jacobian, which is A.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from benchmarks.peers.peer import Run
from benchmarks.support.cases import Case

Method = Literal["DOP853", "LSODA", "Radau"]
Array = NDArray[np.float64]


def initial_value(method: Method) -> Callable[[Case, float], Run]:
    """A peer with one of SciPy's methods."""

    def prepare(case: Case, tolerance: float) -> Run:
        return dense_solver(case, case.t, method=method, tolerance=tolerance)

    return prepare


def dense_solver(case: Case, t: Array, *, method: Method, tolerance: float, max_step: float | None = None) -> Run:
    """Outputs at the times t of the samples, which may be uneven; x' = Ax + Bu with straight lines between samples."""
    A, B, C, D = case.matrices
    rises = np.diff(case.u, axis=0) / np.diff(t)[:, None]
    driven, driven_rises = case.u @ B.T, rises @ B.T
    jacobian: dict[str, Any] = {} if method == "DOP853" else {"jac": (lambda _t, _x: A) if method == "LSODA" else A}
    longest = float(np.max(np.diff(t))) if max_step is None else max_step

    def slope(time: float, x: Array) -> Array:
        before = min(max(int(np.searchsorted(t, time, side="right")) - 1, 0), len(rises) - 1)
        return np.asarray(A @ x + (driven[before] + (time - t[before]) * driven_rises[before]))

    def run() -> Array:
        solution = solve_ivp(
            slope,
            (t[0], t[-1]),
            np.zeros(len(A)),
            method=method,
            t_eval=t,
            rtol=max(tolerance, 3e-14),
            atol=tolerance,
            max_step=longest,
            **jacobian,
        )
        if not solution.success:
            raise RuntimeError(solution.message)
        return np.asarray(solution.y.T @ C.T + case.u @ D.T)

    return run
