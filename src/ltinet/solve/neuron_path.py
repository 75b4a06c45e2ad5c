"""One neuron's differential equation, integrated by a SciPy solver from knot to knot."""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.errors import SimulationError
from ltinet.network.neuron import Neuron
from ltinet.solve.options import NeuronOptions
from ltinet.solve.polynomials import PiecewisePolynomial, from_node_values, node_times

Array = NDArray[np.float64]
Forcing = Callable[[float], float]


@dataclass(frozen=True)
class NeuronRun:
    """Where a neuron ended, its dense output, and what that took."""

    path: PiecewisePolynomial
    final: Array
    evaluations: int
    steps: int
    seconds: float


def integrate_neuron(
    neuron: Neuron, forcing: Forcing, *, breaks: Array, start: Array, jumps: Array, options: NeuronOptions
) -> NeuronRun:
    """Solve m ξ̈ + c ξ̇ + k ξ = forcing(t) over all intervals between breaks, restarting at each of them.

    `start` is (ξ, ξ̇) just after the first break (ξ alone for first order), `jumps[k]` what is added at break k + 1.
    """
    begin = perf_counter()
    edges, values = [float(breaks[0])], []
    state, evaluations = start, 0
    for index in range(len(breaks) - 1):
        left, right = float(breaks[index]), float(breaks[index + 1])
        right_hand_side, jacobian = _equation(neuron, forcing, math.nextafter(right, left))
        extra: dict[str, Any] = {"jac": jacobian} if options.takes_jacobian else {}
        # Intervals between samples are short: trying one step over all of it is cheaper than estimating a first step.
        first_step = min(options.first_step or right - left, options.max_step, right - left)
        solver: Any = options.solver_class(
            right_hand_side, left, state, right, rtol=options.rtol, atol=options.atol, max_step=options.max_step,
            first_step=first_step if len(breaks) > 2 else options.first_step, **extra,
        )  # fmt: skip
        while solver.status == "running":
            message = solver.step()
            if solver.status == "failed":
                raise SimulationError(
                    f"{options.method} failed for neuron {neuron.index} at t = {solver.t:g} ({message}); choose an "
                    'implicit method such as "Radau", or larger tolerances'
                )
            times = node_times(np.array([solver.t_old]), np.array([solver.t]), options.degree)[0]
            values.append(solver.dense_output()(times).T)
            edges.append(float(solver.t))
        evaluations += solver.nfev
        state = solver.y + jumps[index]
    path = from_node_values(np.array(edges), np.array(values))
    return NeuronRun(path, state, evaluations, len(values), perf_counter() - begin)


def polynomial_forcing(path: PiecewisePolynomial) -> Forcing:
    """A piecewise polynomial of one component as a fast function of one time."""
    breaks = path.breaks.tolist()
    pieces = [series[::-1].tolist() for series in path.coefficients[:, :, 0]]
    last = len(pieces) - 1

    def forcing(t: float) -> float:
        piece = min(max(bisect_right(breaks, t) - 1, 0), last)
        left, right = breaks[piece], breaks[piece + 1]
        x = 2.0 * (t - left) / (right - left) - 1.0
        series = pieces[piece]
        later = latest = 0.0
        for coefficient in series[:-1]:
            later, latest = coefficient + 2.0 * x * later - latest, later
        return float(series[-1] + x * later - latest)

    return forcing


def _equation(neuron: Neuron, forcing: Forcing, last: float) -> tuple[Callable[[float, Array], list[float]], Array]:
    """The first-order system of a neuron, and its constant Jacobian.

    The forcing is asked up to just before the end of the interval: at the end it is that of the next one already.
    """
    if neuron.order == 1:
        rate, gain = -neuron.k / neuron.c, 1.0 / neuron.c
        return lambda t, y: [rate * y[0] + gain * forcing(min(t, last))], np.array([[rate]])
    stiffness, damping, gain = -neuron.k / neuron.m, -neuron.c / neuron.m, 1.0 / neuron.m
    return (
        lambda t, y: [y[1], stiffness * y[0] + damping * y[1] + gain * forcing(min(t, last))],
        np.array([[0.0, 1.0], [stiffness, damping]]),
    )
