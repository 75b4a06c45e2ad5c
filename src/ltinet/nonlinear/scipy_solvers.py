"""Solution by the solvers of SciPy, restarted at every knot of the signals, for one member of a batch after the other.

A solver that crosses a jump or a kink returns success and may err by per cents. Between knots inputs are smooth.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from ltinet._util.floating_point import EPS, Array
from ltinet.errors import SimulationError
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.signal_values import RunSignals, Values

METHODS = ("LSODA", "Radau", "BDF", "DOP853", "RK45", "RK23")
_WITH_JACOBIAN = {"LSODA", "Radau", "BDF"}
_SAFETY = 0.03  # tolerance of a step over that of the run: errors of many steps add up (empirical, test_references.py)
_MIN_RTOL = 100.0 * EPS  # SciPy's limit
_MAX_EVALUATIONS = 2_000_000  # between two knots; solvers crawl toward a pole of the solution without an end
_MAX_DENSE = 200  # states up to which products with dense matrices are faster than with sparse ones (speed only)
_MAX_DENSE_PRODUCTS = 4  # per state, up to which dense S, J and K are faster (speed only)
_BANDED_BELOW = 0.25  # bandwidth over n, below which LSODA is faster with a banded Jacobian (speed only)


def bandwidths(model: NonlinearModel) -> tuple[int, int] | None:
    """Return the numbers of diagonals below and above the main one in the Jacobian, None if they are not few."""
    terms = model.terms
    parts = [abs(sparse.csr_array(model.state_matrix)), *map(abs, (*terms.N, *terms.A_p))]
    if terms.H is not None:
        S, J, K = map(abs, terms.H)
        parts.append(S @ (J + K))
    offsets = np.concatenate([(part.col - part.row)[part.data != 0.0] for part in (M.tocoo() for M in parts)])
    lower, upper = int(-offsets.min(initial=0)), int(offsets.max(initial=0))
    return (lower, upper) if lower + upper + 1 < _BANDED_BELOW * model.n_states else None


@dataclass(frozen=True, eq=False)
class SolverPiece:
    """Solutions of all members from one knot to the next, by their dense output."""

    knots: Array
    curves: list[list[Any]]
    """For each member one function of time for each distance of knots."""

    @classmethod
    def solve(
        cls,
        model: NonlinearModel,
        signals: RunSignals,
        x0: Array,
        knots: Array,
        *,
        units: Array,
        method: str,
        tolerance: float,
    ) -> "SolverPiece":
        """Integrate from x0 `(M, n)` over all knots; states in `units` are of similar size."""
        rtol = max(_SAFETY * tolerance, _MIN_RTOL)
        equations = _Equations(model)
        curves = [
            _integrate_member(equations, signals, member, x0[member], knots, units=units, method=method, rtol=rtol)
            for member in range(len(x0))
        ]
        return cls(knots, curves)

    def states_at(self, t: Array) -> Array:
        """Return states `(M, T, n)`."""
        interval = np.clip(np.searchsorted(self.knots, t, side="right") - 1, 0, len(self.knots) - 2)
        members = []
        for curves in self.curves:
            x = np.empty((len(t), len(curves[0](float(self.knots[0])))))
            for index in np.unique(interval).tolist():
                x[interval == index] = curves[index](t[interval == index]).T
            members.append(x)
        return np.stack(members)


def _integrate_member(
    equations: "_Equations",
    signals: RunSignals,
    member: int,
    x: Array,
    knots: Array,
    *,
    units: Array,
    method: str,
    rtol: float,
) -> list[Any]:
    from scipy.integrate import solve_ivp  # imported late: it takes a third of the time of importing ltinet

    curves = []
    size = _expected_size(equations, signals, member, x, knots, units)
    for start, stop in pairwise(knots.tolist()):
        values, count = signals.values_between(member, start, stop), itertools.count()

        def derivative(t: float, x: Array, values: Values = values, count: Iterator[int] = count) -> Array:
            if next(count) > _MAX_EVALUATIONS or not math.isfinite(float(x @ x)):
                raise _growth_error(t)
            return equations.derivative(x, values(t))

        with np.errstate(over="ignore", invalid="ignore"):
            result: Any = solve_ivp(  # type: ignore[call-overload]
                derivative, (start, stop), x, method=method, rtol=rtol, atol=rtol * size * units, dense_output=True,
                **equations.options(method, values),
            )  # fmt: skip
        if result.status != 0 or not np.isfinite(result.y[:, -1]).all():
            raise _growth_error(float(result.t[-1]), result.message)
        x = np.ascontiguousarray(result.y[:, -1])
        size = max(size, float(np.abs(result.y / units[:, None]).max()))
        curves.append(result.sol)
    return curves


def _expected_size(
    equations: "_Equations", signals: RunSignals, member: int, x: Array, knots: Array, units: Array
) -> float:
    """Return a lower estimate of the largest state in units: that at the start, or what inputs move in a time constant."""
    start = float(np.abs(x / units).max(initial=0.0))
    if start > 0.0:
        return start
    values = signals.after(np.linspace(knots[0], knots[-1], 33))
    rows = values[:, :, min(member, values.shape[2] - 1)].T
    speed = max(float(np.abs(equations.derivative(x, w) / units).max(initial=0.0)) for w in rows)
    norm = float(abs(equations.jacobian(x, rows[0])).sum(axis=0).max())
    return speed / max(norm, 1.0 / float(knots[-1] - knots[0])) or 1.0


class _Equations:
    """x' and its Jacobian as functions of x and w = (v, p), with dense matrices up to 200 states."""

    def __init__(self, model: NonlinearModel) -> None:
        self.is_dense = model.n_states <= _MAX_DENSE
        self.n_inputs, self.B, terms = model.n_inputs, model.B, model.terms
        matrices = (*(terms.N or (None,) * model.n_inputs), *terms.A_p)
        self.A = self._stored(sparse.csr_array(model.state_matrix))
        self.factors = [(k, self._stored(M)) for k, M in enumerate(matrices) if M is not None and M.nnz]
        self.B_p = [(model.n_inputs + k, B) for k, B in enumerate(terms.B_p) if np.any(B)]
        self.H = terms.H
        few = terms.H is not None and self.is_dense and terms.H.S.shape[1] <= _MAX_DENSE_PRODUCTS * model.n_states
        self.dense_H = [part.toarray() for part in terms.H] if terms.H is not None and few else None
        self.bands = bandwidths(model)

    def _stored(self, matrix: Any) -> Any:
        return matrix.toarray() if self.is_dense else matrix

    def derivative(self, x: Array, w: Array) -> Array:
        v = w[: self.n_inputs]
        result = self.A @ x + self.B @ v
        for k, matrix in self.factors:
            result += w[k] * (matrix @ x)
        for k, B in self.B_p:
            result += w[k] * (B @ v)
        if self.H is not None:
            S, J, K = self.dense_H or self.H
            result += S @ ((J @ x) * (K @ x))
        return np.asarray(result)

    def jacobian(self, x: Array, w: Array) -> Any:
        """Return A + Σ w_k N_k + S (diag(K x) J + diag(J x) K), dense or sparse."""
        linear: Any = sum((w[k] * matrix for k, matrix in self.factors), self.A)
        if self.dense_H is not None:
            S, J, K = self.dense_H
            return linear + S @ ((K @ x)[:, None] * J + (J @ x)[:, None] * K)
        if self.H is None:
            return linear if self.is_dense else linear.tocsc()
        factors, diagonal = self.H, sparse.diags_array
        quadratic: Any = factors.S @ (diagonal(factors.K @ x) @ factors.J + diagonal(factors.J @ x) @ factors.K)
        return linear + quadratic.toarray() if self.is_dense else (linear + quadratic).tocsc()

    def options(self, method: str, values: Values) -> dict[str, Any]:
        """Return the Jacobian or its bandwidths as options of `solve_ivp`."""
        if method not in _WITH_JACOBIAN:
            return {}
        if method == "LSODA" and self.bands is not None:
            return {"lband": self.bands[0], "uband": self.bands[1]}
        if method == "LSODA" and not self.is_dense:
            return {"jac": lambda t, x: self.jacobian(x, values(t)).toarray()}
        return {"jac": lambda t, x: self.jacobian(x, values(t))}


def _growth_error(t: float, message: str = "") -> SimulationError:
    reason = f" ({message.rstrip('.')})" if message else ""
    return SimulationError(
        f"the states grow without bound, or are too stiff for the solver, near t = {t:.6g}{reason}. End the run earlier, or "
        'choose method="Radau".'
    )
