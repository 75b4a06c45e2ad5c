"""One neuron's differential equation, integrated by a SciPy solver from knot to knot."""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import SimulationError
from ltinet.network.neuron import Neuron
from ltinet.solve.solvers.options import NeuronOptions
from ltinet.solve.solvers.polynomials import PiecewisePolynomial, from_node_values, node_times

Forcing = Callable[[float], float]
_LARGEST = 1e300
_TOO_LARGE = "too large"
_RESIDUE = 16  # units in the last place: what rounding leaves of an interval after many steps is none of its own


@dataclass(frozen=True)
class NeuronRun:
    """Where a neuron ended, its dense output, and what that took."""

    path: PiecewisePolynomial
    final: Array
    next_step: float | None
    """What to try first in the next interval."""
    evaluations: int
    steps: int
    seconds: float


def integrate_neuron(
    neuron: Neuron, forcing_of: Callable[[int], Forcing], *, breaks: Array, start: Array, jumps: Array,
    options: NeuronOptions, trial_step: float | None,
) -> NeuronRun:  # fmt: skip
    """Solve m ξ̈ + c ξ̇ + k ξ = forcing(t) over all intervals between breaks, restarting at each of them.

    `forcing_of(k)` is the right-hand side on interval k, `start` is (ξ, ξ̇) just after the first break (ξ alone for
    first order), `jumps[k]` what is added at break k + 1. The first step is the user's, or else `trial_step`, or else
    the solver's own guess; after a restart it is what the solver would have gone on with.
    """
    begin = perf_counter()
    edges, values = breaks[:1].tolist(), []
    state, evaluations = start, 0
    for index, span in enumerate(pairwise(breaks.tolist())):
        solver = _solver(neuron, forcing_of(index), span, state, options=options, trial_step=trial_step)
        longest, end = 0.0, span[1] - _RESIDUE * math.ulp(max(map(abs, span)))
        while solver.status == "running" and (solver.t < end or longest == 0.0):
            _advance(solver, neuron, options)
            times = node_times(np.array([solver.t_old]), np.array([solver.t]), options.degree)[0]
            values.append(solver.dense_output()(times).T)
            edges.append(float(solver.t))
            longest = max(longest, edges[-1] - edges[-2])
        edges[-1] = span[1]
        # What the solver would try next; LSODA keeps that to itself.
        trial_step = max(longest, float(getattr(solver, "h_abs", 0.0)))
        evaluations += solver.nfev
        state = solver.y + jumps[index]
    path = from_node_values(np.array(edges), np.array(values))
    return NeuronRun(path, state, trial_step, evaluations, len(values), perf_counter() - begin)


def _advance(solver: Any, neuron: Neuron, options: NeuronOptions) -> None:
    """Take a step, or tell why there is none."""
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # DOP853 divides zero by zero where its estimate underflows
            message = solver.step()
    except ValueError:  # what SciPy's linear algebra says of infinities
        message = _TOO_LARGE
    # An error estimate of such states overflows before they do, and no step is short enough then.
    if message == _TOO_LARGE or not np.all(np.abs(solver.y) < _LARGEST):
        raise SimulationError(
            f"neuron {neuron.index} exceeds the largest floating-point number at t = {solver.t:.6g}; simulate a "
            "shorter time, or choose other units for inputs and states"
        )
    if solver.status == "failed":
        raise SimulationError(
            f"{options.method} failed for neuron {neuron.index} at t = {solver.t:g} ({message}); choose an implicit "
            'method such as "Radau", or larger tolerances'
        )


def piece_forcing(left: float, right: float, series: Array) -> Forcing:
    """A Chebyshev series between two times as a fast function of one time; coefficients lost in rounding are left out.

    Up to the right end it is the limit from the left: what comes after a jump there belongs to the next interval.
    """
    kept = np.flatnonzero(np.abs(series) > np.finfo(np.float64).eps * np.abs(series).max(initial=0.0))
    constant, *others = series[: kept[-1] + 1].tolist() if len(kept) else [0.0]
    middle, scale = 0.5 * (left + right), 2.0 / (right - left)
    if len(others) <= 1:
        slope = others[0] * scale if others else 0.0
        return lambda t: constant + slope * (t - middle)
    others.reverse()

    def forcing(t: float) -> float:
        x = (t - middle) * scale
        twice = x + x
        later = latest = 0.0
        for coefficient in others:
            later, latest = coefficient + twice * later - latest, later
        return float(constant + x * later - latest)

    return forcing


def polynomial_forcing(path: PiecewisePolynomial) -> Forcing:
    """A piecewise polynomial of one component as a function of one time anywhere."""
    breaks = path.breaks.tolist()
    pieces = [piece_forcing(*ends, path.coefficients[k, :, 0]) for k, ends in enumerate(pairwise(breaks))]
    last = len(pieces) - 1
    return lambda t: pieces[min(max(bisect_right(breaks, t) - 1, 0), last)](t)


def _solver(
    neuron: Neuron, forcing: Forcing, span: tuple[float, float], state: Array, *, options: NeuronOptions,
    trial_step: float | None,
) -> Any:  # fmt: skip
    """SciPy's solver of a neuron, ready at the beginning of an interval."""
    width = span[1] - span[0]
    first_step = options.first_step or trial_step
    if first_step is not None:
        first_step = min(first_step, options.max_step, width)
        if options.first_step is None:  # equal steps: no short one is left over at the end
            first_step = width / math.ceil(width / first_step)
    right_hand_side, jacobian = _equation(neuron, forcing)
    extra: dict[str, Any] = {"jac": jacobian} if options.takes_jacobian else {}
    return options.solver_class(
        right_hand_side, span[0], state, span[1], rtol=options.rtol, atol=options.atol, max_step=options.max_step,
        first_step=first_step, **extra,
    )  # fmt: skip


def _equation(neuron: Neuron, forcing: Forcing) -> tuple[Callable[[float, Array], list[float]], Array]:
    """The first-order system of a neuron, and its constant Jacobian."""
    if neuron.order == 1:
        rate, gain = -neuron.k / neuron.c, 1.0 / neuron.c
        return lambda t, y: [rate * y[0] + gain * forcing(t)], np.array([[rate]])
    stiffness, damping, gain = -neuron.k / neuron.m, -neuron.c / neuron.m, 1.0 / neuron.m

    def right_hand_side(t: float, y: Array) -> list[float]:
        xi, rate = y.tolist()
        return [rate, stiffness * xi + damping * rate + gain * forcing(t)]

    return right_hand_side, np.array([[0.0, 1.0], [stiffness, damping]])
