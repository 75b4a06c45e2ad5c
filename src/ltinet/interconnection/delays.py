"""Delays inside interconnections: moved to the ends where that is exact, shift registers in discrete time.

A linear system at rest that is delayed at its inputs is the same as one that is delayed at its outputs. Delays between
systems therefore vanish if every part v of the interconnection can be given a lag π_v such that each connection from v
to w with delay τ satisfies

    π_w − π_v = τ.

Parts are the connected components of each system, the external inputs and the external outputs. Lags are found along a
spanning tree; every other connection must agree with them. Input q then has the external delay c − π_q and output z the
delay π_z − c, with one c for each connected interconnection, chosen so that both are not negative. Loops agree only if
their delays are zero.

Where lags do not exist, discrete-time delays become shift registers: k states for a delay of k samples. In continuous
time the interconnection is refused; `pade` replaces delays by rational functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ltinet._util.floating_point import EPS, Array
from ltinet._util.text import sanitize
from ltinet.conversion import as_state_space
from ltinet.errors import InvalidSystemError
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix
from ltinet.systems.pade import approximate_delays, pade_phase_error
from ltinet.systems.shift_registers import add_shift_registers
from ltinet.systems.system_matrices import SystemMatrices

_LAG_TOLERANCE = (
    64.0 * EPS
)  # relative to the sum of all delays: rounding of sums of delays that the user gave in decimals


@dataclass(frozen=True, eq=False)
class Wiring:
    """Gains of an interconnection: u = K y + E r and z = F y + H r, with inputs u and outputs y of all systems."""

    K: Matrix
    E: Matrix
    F: Matrix
    H: Matrix


@dataclass(frozen=True)
class Channels:
    """Names of all inputs and outputs inside an interconnection, for messages: "plant.u1"."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class OuterDelays:
    """Systems without delays, and the delays that remain at the inputs and outputs of the interconnection."""

    systems: list[SystemMatrices]
    input_delay: Array
    output_delay: Array


def resolve_delays(systems: Sequence[StateSpace], wiring: Wiring, channels: Channels, dt: float | None) -> OuterDelays:
    """Move the delays of systems to the ends of their interconnection, or into states in discrete time.

    Raises InvalidSystemError in continuous time if delays stay inside.
    """
    matrices = [system.matrices for system in systems]
    n_inputs, n_outputs = wiring.E.shape[1], len(wiring.F)
    if not any(system.signal_settings.has_delays for system in systems):
        return OuterDelays(matrices, np.zeros(n_inputs), np.zeros(n_outputs))
    tau, sigma = (np.concatenate([getattr(s, name) for s in systems]) for name in ("input_delay", "output_delay"))
    if dt is not None:
        tau, sigma = np.round(tau / dt), np.round(sigma / dt)  # whole samples, in which sums are exact
    unit = 1.0 if dt is None else dt
    outer = _outer_delays(matrices, wiring, tau, sigma)
    if not isinstance(outer, str):
        return OuterDelays(matrices, unit * outer[0], unit * outer[1])
    if dt is None:
        where = outer.format(inputs=channels.inputs, outputs=channels.outputs)
        raise InvalidSystemError(
            f"{where} cannot be moved to the inputs and outputs of the interconnection: it is in a loop, or paths of "
            "different delay meet. In continuous time replace delays by rational functions first, "
            "ltinet.pade(system, order); in discrete time, system.to_discrete(dt), they are exact"
        )
    # Delays of channels inside become states; others may stay outside.
    inside_u, inside_y = wiring.K.any(axis=1), wiring.K.any(axis=0)
    steps = np.where(inside_u, tau, 0.0), np.where(inside_y, sigma, 0.0)
    outer = _outer_delays(matrices, wiring, tau - steps[0], sigma - steps[1])
    if isinstance(outer, str):
        steps, outer = (tau, sigma), (np.zeros(n_inputs), np.zeros(n_outputs))
    registers, u, y = [], 0, 0
    for system in matrices:
        ends = u + system.n_inputs, y + system.n_outputs
        registers.append(add_shift_registers(system, steps[0][u : ends[0]], steps[1][y : ends[1]]))
        u, y = ends
    return OuterDelays(registers, unit * outer[0], unit * outer[1])


def _outer_delays(
    systems: Sequence[SystemMatrices], wiring: Wiring, tau: Array, sigma: Array
) -> tuple[Array, Array] | str:
    """Return the delays of the external inputs and outputs; if there are none, a template that names the delay."""
    of_input, of_output, n_parts = _parts(systems)
    n_inputs, n_outputs = wiring.E.shape[1], len(wiring.F)
    first_r, first_z = n_parts, n_parts + n_inputs
    edges = [(first_r + q, of_input[i], tau[i], f"the delay at input {{inputs[{i}]}}")
             for i, q in np.argwhere(wiring.E)]  # fmt: skip
    edges += [
        (of_output[j], of_input[i], sigma[j] + tau[i], f"the delay from {{outputs[{j}]}} to {{inputs[{i}]}}")
        for i, j in np.argwhere(wiring.K)
    ]
    edges += [(of_output[j], first_z + z, sigma[j], f"the delay at output {{outputs[{j}]}}")
              for z, j in np.argwhere(wiring.F)]  # fmt: skip
    edges += [(first_r + q, first_z + z, 0.0, "a delay beside a direct path") for z, q in np.argwhere(wiring.H)]
    tolerance = _LAG_TOLERANCE * float(tau.sum() + sigma.sum())
    lags, component = _lags(edges, first_z + n_outputs)
    for tail, head, delay, _ in edges:
        if abs(lags[head] - lags[tail] - delay) > tolerance:  # the longest delay nearby tells most
            return max((edge for edge in edges if component[edge[0]] == component[tail]), key=lambda edge: edge[2])[3]
    d, e = np.zeros(n_inputs), np.zeros(n_outputs)
    for number in range(int(component.max(initial=-1)) + 1):
        r, z = (np.flatnonzero(component[start : start + count] == number)
                for start, count in ((first_r, n_inputs), (first_z, n_outputs)))  # fmt: skip
        at_inputs, at_outputs = lags[first_r + r], lags[first_z + z]
        low, high = at_inputs.max(initial=-np.inf), at_outputs.min(initial=np.inf)
        if low > high + tolerance:
            return "a delay"
        c = min(max(0.0, low), high)
        d[r], e[z] = np.maximum(c - at_inputs, 0.0), np.maximum(at_outputs - c, 0.0)
    return d, e


def _parts(systems: Sequence[SystemMatrices]) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """Return the connected part to which each input and each output belongs, and the number of parts."""
    inputs, outputs, count = [], [], 0
    for system in systems:
        n, m, p = system.n_states, system.n_inputs, system.n_outputs
        size = n + m + p
        pattern = np.zeros((size, size), dtype=bool)
        pattern[:n, :n], pattern[:n, n : n + m] = system.A != 0.0, system.B != 0.0
        pattern[n + m :, :n], pattern[n + m :, n : n + m] = system.C != 0.0, system.D != 0.0
        number, labels = sparse.csgraph.connected_components(sparse.csr_array(pattern), directed=False)
        inputs.append(count + labels[n : n + m])
        outputs.append(count + labels[n + m :])
        count += number
    return np.concatenate(inputs).astype(np.intp), np.concatenate(outputs).astype(np.intp), count


Edge = tuple[Any, Any, Any, str]


def _lags(edges: Sequence[Edge], count: int) -> tuple[Array, NDArray[np.intp]]:
    """Return a lag for each node that satisfies the edges of a spanning forest, and the tree of each node."""
    neighbors: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    for tail, head, delay, _ in edges:
        neighbors[tail].append((head, float(delay)))
        neighbors[head].append((tail, -float(delay)))
    lags, component, trees = np.zeros(count), np.full(count, -1, dtype=np.intp), 0
    for root in range(count):
        if component[root] >= 0:
            continue
        component[root], waiting = trees, [root]
        while waiting:
            node = waiting.pop()
            for other, delay in neighbors[node]:
                if component[other] < 0:
                    component[other], lags[other] = trees, lags[node] + delay
                    waiting.append(other)
        trees += 1
    return lags, component


# Padé approximants


def pade(system: Any, order: int) -> StateSpace:
    """Replace the delays of a continuous-time system by Padé approximants, rational functions of a given order.

    An approximant has gain 1 and follows the phase −ωτ up to about ωτ = `order`. `pade_error` computes the error up to a
    frequency; a note on the result, shown by `print`, says up to which frequency it stays below 1 %.

    Parameters
    ----------
    system : object
        System with input or output delays; any system that `as_state_space` accepts.
    order : int
        Order of the approximant of each delay, between 1 and 20.

    Returns
    -------
    StateSpace
        System without delays, with `order` more states for each delay.

    Raises
    ------
    InvalidSystemError
        If the order is not valid or the system is in discrete time, where delays are exact shift registers.

    Examples
    --------
    >>> import ltinet
    >>> plant = ltinet.tf([2], [10, 1], input_delay=3)
    >>> rational = ltinet.pade(plant, 4)
    >>> rational.n_states
    5
    >>> bool(ltinet.pade_error(plant, 4, omega=1.0).max() < 1e-3)
    True
    """
    if isinstance(system, int | float):
        raise InvalidSystemError(
            f"pade replaces the delays of a system and got the time {system:g}; pass a system, such as "
            f"pade(ltinet.tf(1, 1, input_delay={system:g}), {order})"
        )
    state_space = as_state_space(system)
    settings = state_space.signal_settings
    if state_space.dt is not None:
        raise InvalidSystemError(
            "pade requires continuous time; delays in discrete time are exact: feedback and interconnect turn them into "
            "shift registers"
        )
    matrices = approximate_delays(state_space.matrices, settings, order)
    total = settings.total_delay(state_space.n_outputs, state_space.n_inputs)
    longest = float(total.max(initial=0.0))
    notes = list(settings.notes)
    if longest > 0.0:
        omega = _largest_frequency(state_space, order, 0.01)
        notes.append(
            f"delays replaced by Padé approximants of order {order}: error at most 1 % up to {omega:.3g} rad per unit of time"
        )
    return StateSpace.of(matrices, settings=settings).with_signal_settings(
        input_delay=None, output_delay=None, notes=tuple(notes)
    )


def pade_error(system: Any, order: int, *, omega: ArrayLike) -> NDArray[np.float64]:
    """Compute the largest relative error of Padé approximants of delays up to a frequency.

    An approximant has gain 1 and the phase error δ(ω), which grows with ω; the relative error |e^{jδ} − 1| of a channel
    follows from the sum of the phase errors of its input and output delay.

    Parameters
    ----------
    system : object
        System with input or output delays in continuous time.
    order : int
        Order of the approximant of each delay, between 1 and 20.
    omega : array_like
        Angular frequency or frequencies up to which errors are computed.

    Returns
    -------
    ndarray, shape (p, m) or (len(omega), p, m)
        Largest relative error of each entry of the transfer matrix for all frequencies up to omega, 2 at most.

    Raises
    ------
    InvalidSystemError
        If the order or a frequency is not valid.
    """
    state_space = as_state_space(system)
    try:
        frequencies = np.asarray(omega, dtype=np.float64)
    except (TypeError, ValueError):
        frequencies = np.array(np.nan)
    if frequencies.ndim > 1 or not np.all(frequencies >= 0.0) or not np.isfinite(frequencies).all():
        raise InvalidSystemError(f"omega must be one or several finite frequencies ≥ 0, got {sanitize(repr(omega))}")
    at = frequencies.reshape(-1, 1)
    delays = state_space.output_delay, state_space.input_delay
    late, early = (pade_phase_error(at * delay, order) for delay in delays)
    phase = np.minimum(late[:, :, None] + early[:, None, :], np.pi)
    errors = 2.0 * np.sin(0.5 * phase)
    return np.asarray(errors[0] if frequencies.ndim == 0 else errors)


def _largest_frequency(system: StateSpace, order: int, error: float) -> float:
    """Return the frequency up to which the error of the approximants stays below a limit, by bisection."""
    longest = float(np.max(np.concatenate([system.input_delay, system.output_delay]), initial=0.0))
    low, high = 0.0, 4.0 * (order + 1) / longest
    for _ in range(60):
        middle = 0.5 * (low + high)
        is_accurate = float(pade_error(system, order, omega=middle).max(initial=0.0)) <= error
        low, high = (middle, high) if is_accurate else (low, middle)
    return low
