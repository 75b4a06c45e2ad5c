"""Solution by the solvers of SciPy, restarted at every knot of the signals, for one member of a batch after the other.

A solver that crosses a jump or a kink returns success and may err by per cents. Between knots inputs are smooth.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ltinet._util.floating_point import EPS, Array
from ltinet.errors import SimulationError
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.signal_values import RunSignals

METHODS = ("LSODA", "Radau", "BDF", "DOP853", "RK45", "RK23")
_WITH_JACOBIAN = {"LSODA", "Radau", "BDF"}
_SAFETY = 0.03  # tolerance of a step over that of the run: errors of many steps add up (empirical, test_references.py)
_MIN_RTOL = 100.0 * EPS  # SciPy's limit
_MAX_EVALUATIONS = 2_000_000  # between two knots; solvers crawl toward a pole of the solution without an end


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
        curves = [
            _integrate_member(model, signals, member, x0[member], knots, units=units, method=method, rtol=rtol)
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
    model: NonlinearModel,
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
    size = _expected_size(model, signals, member, x, knots, units)
    for start, stop in pairwise(knots.tolist()):
        equations = _Equations(model, signals, member, start, stop)
        options: dict[str, Any] = {}
        if method in _WITH_JACOBIAN:
            is_sparse = model.linear.sparse is not None and method != "LSODA"
            options["jac"] = equations.sparse_jacobian if is_sparse else equations.jacobian
        with np.errstate(over="ignore", invalid="ignore"):
            result: Any = solve_ivp(  # type: ignore[call-overload]
                equations.derivative, (start, stop), x, method=method, rtol=rtol, atol=rtol * size * units,
                dense_output=True, **options,
            )  # fmt: skip
        if result.status != 0 or not np.isfinite(result.y[:, -1]).all():
            raise _growth_error(float(result.t[-1]), result.message)
        x = np.ascontiguousarray(result.y[:, -1])
        size = max(size, float(np.abs(result.y / units[:, None]).max()))
        curves.append(result.sol)
    return curves


def _expected_size(
    model: NonlinearModel, signals: RunSignals, member: int, x: Array, knots: Array, units: Array
) -> float:
    """Return a lower estimate of the largest state in units: that at the start, or what inputs move in a time constant."""
    start = float(np.abs(x / units).max(initial=0.0))
    if start > 0.0:
        return start
    span = float(knots[-1] - knots[0])
    equations = _Equations(model, signals, member, float(knots[0]), float(knots[-1]))
    times = np.linspace(knots[0], knots[-1], 33).tolist()
    speed = max(float(np.abs(equations.derivative(t, x) / units).max(initial=0.0)) for t in times)
    norm = float(abs(model.evaluate_jacobian(x, *equations.values(times[0]))).sum(axis=0).max())
    return speed / max(norm, 1.0 / span) or 1.0


@dataclass
class _Equations:
    """x' and its Jacobian for one member between two knots."""

    model: NonlinearModel
    signals: RunSignals
    member: int
    start: float
    stop: float
    n_evaluations: int = 0

    def values(self, t: float) -> tuple[Array, Array]:
        """Return v and p at a time; those before a jump at the end."""
        at = np.array([min(max(t, self.start), self.stop)])
        value = self.signals.before(at) if t >= self.stop else self.signals.after(at)
        level = value[:, 0, min(self.member, value.shape[2] - 1)]
        return level[: self.model.n_inputs], level[self.model.n_inputs :]

    def derivative(self, t: float, x: Array) -> Array:
        self.n_evaluations += 1
        if self.n_evaluations > _MAX_EVALUATIONS or not np.isfinite(x).all():
            raise _growth_error(t)
        return self.model.evaluate(x, *self.values(t))

    def sparse_jacobian(self, t: float, x: Array) -> Any:
        return self.model.evaluate_jacobian(x, *self.values(t))

    def jacobian(self, t: float, x: Array) -> Array:
        return np.asarray(self.sparse_jacobian(t, x).toarray())


def _growth_error(t: float, message: str = "") -> SimulationError:
    reason = f" ({message.rstrip('.')})" if message else ""
    return SimulationError(
        f"the states grow without bound, or are too stiff for the solver, near t = {t:.6g}{reason}. End the run earlier, or "
        'choose method="Radau".'
    )
