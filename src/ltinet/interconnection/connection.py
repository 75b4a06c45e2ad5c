"""Interconnections of systems by gains, the equations behind every operation of this package.

With x, u and y the states, inputs and outputs of all systems side by side, x′ = A x + B u and y = C x + D u, and

    u = K y + E r,    z = F y + H r,

elimination of y = M⁻¹(C x + D E r) with M = I − D K gives

    x′ = (A + B K M⁻¹ C) x + B (E + K M⁻¹ D E) r,    z = F M⁻¹ C x + (F M⁻¹ D E + H) r.

Algebraic loops are the strongly connected components of the graph of D K. Sorted by them M is block upper triangular,
so that entries of M⁻¹ that are zero by structure stay zero; a series connection is not rounded more than its products.
A loop is well-posed if its block of M is regular: its smallest singular value must exceed 10·k·eps (k signals) of the
largest, with rows and columns in units in which the entries of I + |D K| are about 1.

Operating points must agree: u0 of each input is what its sources deliver at their y0, plus what the external input
does. Static gains without operating point accept any.
"""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import block_diag, lapack, lstsq, lu_factor, lu_solve

from ltinet._util.floating_point import Array, rounding_tolerance
from ltinet._util.text import format_first_names
from ltinet.errors import InvalidSystemError
from ltinet.interconnection.delays import Channels, Wiring, resolve_delays
from ltinet.state_space import StateSpace
from ltinet.systems.matrices import Matrix
from ltinet.systems.signal_names import SignalNames
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

_STEP_TOLERANCE = 1e-12  # relative difference of time steps that count as equal: rounding of 1/rate and of unit changes


def common_time_step(systems: Sequence[StateSpace]) -> float | None:
    """Return the time step of an interconnection; static gains without time step fit any.

    Raises InvalidSystemError if steps differ.
    """
    dynamic = [system for system in systems if system.dt is not None or not _is_gain(system)]
    steps = [system.dt for system in dynamic]
    if not steps:
        return None
    first = steps[0]
    for step in steps[1:]:
        if (step is None) != (first is None) or (
            step is not None and first is not None and abs(step - first) > _STEP_TOLERANCE * first
        ):
            names = ["continuous time" if value is None else f"dt = {value:g}" for value in (first, step)]
            raise InvalidSystemError(
                f"systems of {names[0]} and {names[1]} cannot be connected; convert one of them with to_discrete(dt) or "
                "to_continuous()"
            )
    return first


def connect(
    systems: Sequence[StateSpace], wiring: Wiring, *, names: SignalNames, labels: Sequence[str] | None = None
) -> StateSpace:
    """Return the system from the external inputs r to the external outputs z of an interconnection.

    `names` are those of r, z and, if known, all states; `labels` are names of the systems for messages.
    Raises InvalidSystemError for time steps that differ, loops that are ill-posed, delays that stay inside in continuous
    time, operating points that disagree, and large sparse models.
    """
    for system in systems:
        if system.sparse is not None and system.sparse.is_large:
            raise system.sparse.size_error("a connection of systems")
    dt = common_time_step(systems)
    channels = _channels(systems, labels)
    outer = resolve_delays(systems, wiring, channels, dt)
    A, B, C, D = _close(outer.systems, wiring, channels)
    n_states = sum(system.n_states for system in outer.systems)
    if n_states != sum(system.n_states for system in systems):
        names = names.without_states
    u0, y0 = _operating_point(systems, wiring, channels)
    settings = SignalSettings(
        input_delay=tuple(outer.input_delay.tolist()), output_delay=tuple(outer.output_delay.tolist()),
        u0=tuple(u0.tolist()), y0=tuple(y0.tolist()), hold=_common(systems, "hold"),
        sample_time=_common(systems, "sample_time"),
        notes=tuple(dict.fromkeys(note for system in systems for note in system.signal_settings.notes)),
    )  # fmt: skip
    return StateSpace.of(SystemMatrices(A, B, C, D, dt=dt, names=names), settings=settings)


def _is_gain(system: StateSpace) -> bool:
    return system.n_states == 0 and not system.signal_settings.has_delays


def _channels(systems: Sequence[StateSpace], labels: Sequence[str] | None) -> Channels:
    labels = labels or [f"system {number}" for number in range(1, len(systems) + 1)]
    separator = "." if all(" " not in label for label in labels) else " "
    inputs, outputs = (
        tuple(
            f"{label}{separator}{name}"
            for label, system in zip(labels, systems, strict=True)
            for name in getattr(system, kind)
        )
        for kind in ("input_names", "output_names")
    )
    return Channels(inputs, outputs)


def _common(systems: Sequence[StateSpace], name: str) -> Any:
    """Return the value that all systems which have one agree on, else None."""
    values = {getattr(system, name) for system in systems} - {None}
    return values.pop() if len(values) == 1 else None


def _close(systems: Sequence[SystemMatrices], wiring: Wiring, channels: Channels) -> tuple[Matrix, ...]:
    """Return the matrices of the interconnection."""
    sizes = (sum(getattr(s, size) for s in systems) for size in ("n_states", "n_inputs", "n_outputs"))
    n, m, p = sizes
    A, B, C, D = (block_diag(*(getattr(system, name) for system in systems)) for name in "ABCD")
    A, B, C, D = A.reshape(n, n), B.reshape(n, m), C.reshape(p, n), D.reshape(p, m)
    K, E, F, H = wiring.K, wiring.E, wiring.F, wiring.H
    with np.errstate(over="ignore", invalid="ignore"):  # SystemMatrices refuses overflows
        outputs = _solve_loops(D @ K, np.hstack([C, D @ E]), channels.outputs) if K.any() else np.hstack([C, D @ E])
        y_x, y_r = outputs[:, :n], outputs[:, n:]
        inputs = K @ outputs
        return A + B @ inputs[:, :n], B @ (E + inputs[:, n:]), F @ y_x, F @ y_r + H


def _solve_loops(DK: Matrix, right_hand_side: Matrix, names: Sequence[str]) -> Matrix:
    """Return (I − D K)⁻¹ times a right-hand side; raise InvalidSystemError if an algebraic loop is ill-posed."""
    if not DK.any():
        return right_hand_side
    M = np.eye(len(DK)) - DK
    _, labels = sparse.csgraph.connected_components(sparse.csr_array(DK != 0.0), directed=True, connection="strong")
    for component in range(int(labels.max()) + 1):
        loop = np.flatnonzero(labels == component)
        _require_well_posed(DK[np.ix_(loop, loop)], [names[output] for output in loop.tolist()])
    order = np.concatenate([np.flatnonzero(labels == component) for component in _triangular_order(DK, labels)])
    factors = lu_factor(M[np.ix_(order, order)], check_finite=False)
    solution = np.empty_like(right_hand_side)
    solution[order] = lu_solve(factors, right_hand_side[order], check_finite=False)
    return solution


def _triangular_order(DK: Matrix, labels: NDArray[np.int32]) -> list[int]:
    """Return the components in an order in which each depends on later ones only."""
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(np.unique(labels).tolist(), ()))
    for i, j in np.argwhere(DK).tolist():
        if labels[i] != labels[j]:
            sorter.add(int(labels[j]), int(labels[i]))
    return list(sorter.static_order())


def _require_well_posed(DK: Matrix, names: Sequence[str]) -> None:
    """Refuse an algebraic loop whose block of I − D K is singular to working precision."""
    size = len(DK)
    terms = np.eye(size) + np.abs(DK)
    rows, columns, *_ = lapack.dgeequb(terms)
    values = np.linalg.svd((np.eye(size) - DK) * rows[:, None] * columns, compute_uv=False)
    largest = float(np.linalg.norm(terms * rows[:, None] * columns, 2))
    if not values[-1] > rounding_tolerance(size) * largest:
        raise InvalidSystemError(
            f"the algebraic loop through {format_first_names(names)} is ill-posed: its direct gains add up to 1, so that "
            "the outputs have no unique solution; remove a feedthrough, or add a delay or a fast pole in the loop"
        )


def _operating_point(systems: Sequence[StateSpace], wiring: Wiring, channels: Channels) -> tuple[Array, Array]:
    """Return u0 of the external inputs and y0 of the external outputs.

    Unknown are r0 and the inputs s of static gains without operating point, with y0 = D s. The least-squares solution of
    S s − K S_D s − E r0 = K y0 − u0 must satisfy it exactly up to rounding.
    """
    n_inputs, n_outputs = wiring.E.shape[1], len(wiring.F)
    if not any(system.signal_settings.has_operating_point for system in systems):
        return np.zeros(n_inputs), np.zeros(n_outputs)
    u0, y0 = (np.concatenate([getattr(system, name) for system in systems]) for name in ("u0", "y0"))
    is_free = [_is_gain(system) and not system.signal_settings.has_operating_point for system in systems]
    free = np.concatenate([np.full(s.n_inputs, flag) for s, flag in zip(systems, is_free, strict=True)])
    S = np.eye(len(u0))[:, free]
    gains = [s.D if flag else np.zeros_like(s.D) for s, flag in zip(systems, is_free, strict=True)]
    S_D = block_diag(*gains).reshape(len(y0), len(u0)) @ S
    matrix = np.hstack([S - wiring.K @ S_D, -wiring.E])
    target = wiring.K @ y0 - u0
    solution = np.zeros(matrix.shape[1])
    if matrix.size:  # by QR with pivoting, in which unit vectors are not rounded
        solution = lstsq(matrix, target, lapack_driver="gelsy", check_finite=False)[0]
    s, r0 = np.split(solution, [S.shape[1]])
    error = np.abs(matrix @ solution - target)
    scale = np.abs(wiring.K) @ np.abs(y0) + np.abs(u0) + np.abs(matrix) @ np.abs(solution)
    excess = error - rounding_tolerance(len(u0)) * scale
    if np.max(excess, initial=0.0) > 0.0:
        worst = int(np.argmax(excess))
        delivered = (wiring.K @ (y0 + S_D @ s) + wiring.E @ r0)[worst]
        raise InvalidSystemError(
            f"operating points disagree: {channels.inputs[worst]} has u0 = {u0[worst]:g} and its sources deliver "
            f"{delivered:g} at theirs; connect deviations: system.with_signal_settings(u0=0, y0=0), or set u0 and y0 of "
            "the other systems to match"
        )
    # Rounding of the least-squares solution is not an operating point.
    r0 = np.where(np.abs(r0) > rounding_tolerance(len(u0)) * float(np.max(scale, initial=0.0)), r0, 0.0)
    return r0, wiring.F @ (y0 + S_D @ s) + wiring.H @ r0
