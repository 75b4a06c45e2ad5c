"""Stability of systems and of feedback loops: poles by region, the Nyquist criterion, sensitivity functions.

A loop L is closed by negative feedback, u = r − y: its closed loop has the poles of (I + L)⁻¹. Without delays these are
the eigenvalues of A − B (I + D)⁻¹ C. With delays they are counted by the argument principle,

    Z = P + N,    N = −(1/2π) Δ arg det(I + L(s))

along the imaginary axis, upwards, and closed in the right half plane. P counts the open-loop poles to the right. Poles on
the axis are passed on their right, on half circles so small that |det(I + L)| is large there. Beyond the last frequency
with σ_max(L) = 1 all eigenvalues of I + L lie in the right half plane, and the rest of the curve adds no encirclement.
In discrete time z = e^{s dt}, and the contour ends at π/dt.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, final

import numpy as np
from scipy import linalg

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.floating_point import EPS, Array, Complex, balancing_units, rounding_tolerance
from ltinet._util.text import format_rows
from ltinet.analysis.dc_gain import count_integrators
from ltinet.analysis.frequency_response import frequencies_for, refined_evaluator
from ltinet.analysis.poles import compute_poles
from ltinet.analysis.zeros import invariant_zeros
from ltinet.errors import InvalidSystemError
from ltinet.plotting.figures import figure_of
from ltinet.plotting.frequency_response import draw_nyquist
from ltinet.systems.matrices import Matrix
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Poles by region.


class PoleRegions(NamedTuple):
    """Poles on the stability boundary (imaginary axis or unit circle), and beyond it."""

    on_boundary: Complex
    unstable: Complex


def pole_regions(system: SystemMatrices) -> PoleRegions:
    """Return the poles that are not asymptotically stable.

    A pole counts as on the boundary if its distance is a rounding error, 10·n·eps·|λ|; so do all integrators, which
    `count_integrators` finds by ranks because rounding moves eigenvalues of a double integrator by √eps.
    """
    poles = compute_poles(system)
    center = 0.0 if system.dt is None else 1.0
    n_integrators = count_integrators(system)
    order = np.argsort(np.abs(poles - center), kind="stable")
    integrators = np.full(n_integrators, center, dtype=np.complex128)
    poles = poles[order[n_integrators:]]
    tolerance = rounding_tolerance(system.n_states)
    excess = poles.real if system.dt is None else np.abs(poles) - 1.0
    scale = np.abs(poles) if system.dt is None else np.ones(len(poles))
    on_boundary = np.abs(excess) <= tolerance * scale
    return PoleRegions(np.concatenate([integrators, poles[on_boundary]]), poles[(excess > 0.0) & ~on_boundary])


def is_stable(system: SystemMatrices) -> bool:
    """Return True if all poles are inside the stability region; poles on its boundary are not.

    Raises
    ------
    InvalidSystemError
        The system is too large for all of its poles.
    """
    pencil = system.sparse
    if pencil is not None and pencil.is_large:
        raise InvalidSystemError(
            f"isstable() needs all poles, and the sparse model has {pencil.n_states} states; "
            "ltinet.reduce(system, tolerance=1e-6).is_certified is True only if all modes are proven to decay"
        )
    regions = pole_regions(system)
    return not len(regions.on_boundary) and not len(regions.unstable)


# Loops.

_MAX_CONDITION = 1e13  # of I + D, as a share of 1/eps: beyond, three digits or fewer are left


def validate_loop(system: SystemMatrices, call: str) -> None:
    """Refuse a system that is not a loop: as many outputs as inputs, at least one."""
    if system.n_inputs != system.n_outputs or not system.n_inputs:
        raise InvalidSystemError(
            f"{call} needs an open loop with as many outputs as inputs, got {system.n_outputs} outputs and "
            f"{system.n_inputs} inputs; connect plant and controller in series first"
        )


def closed_loop(system: SystemMatrices) -> SystemMatrices:
    """Return the sensitivity (I + L)⁻¹ of a loop without delays: A − B (I + D)⁻¹ C, B (I + D)⁻¹, −(I + D)⁻¹ C, (I + D)⁻¹.

    Raises:
        InvalidSystemError: I + D is singular.
    """
    identity = np.eye(system.n_inputs)
    F = _well_posed_inverse(identity + system.D, "I + D")
    FC = F @ system.C
    return SystemMatrices(system.A - system.B @ FC, system.B @ F, -FC, F, dt=system.dt)


def _well_posed_inverse(matrix: Matrix, name: str) -> Matrix:
    if not matrix.size:
        return matrix
    if not np.linalg.cond(matrix) < _MAX_CONDITION:
        raise InvalidSystemError(
            f"the loop is not well-posed: {name} is singular, so that the algebraic loop through the feedthroughs has no "
            "unique solution; remove a feedthrough, for example with a fast low-pass filter in the loop"
        )
    return np.asarray(np.linalg.inv(matrix))


def loop_evaluator(system: SystemMatrices, delays: Array) -> Callable[[Complex], Complex]:
    """Return a function from complex s to L, (len(s), p, m): at z = e^{s dt} in discrete time, delays `(p, m)` included."""
    evaluate = refined_evaluator(system)

    def loop(s: Complex) -> Complex:
        L = evaluate(s if system.dt is None else np.exp(s * system.dt))
        with np.errstate(invalid="ignore"):
            delayed = L * np.exp(-s[:, None, None] * delays)
        return np.where(np.isfinite(L), delayed, L)

    return loop


class AxisPencils(NamedTuple):
    """Frequencies near which |L(jω)| may be 1 (some singular value), and near which L(jω) may be Hermitian."""

    unit_gain: Array
    real_gain: Array


_NEAR_AXIS = 0.1  # share of |s|: candidates off the axis are only further samples, and cost nothing else


def axis_candidates(system: SystemMatrices) -> AxisPencils:
    """Return candidates for crossings, from the generalised eigenvalues of two pencils without rank decisions.

    With L~(s) = L(−s)ᵀ, in discrete time L(1/z)ᵀ, the zeros of I − L~L on the axis are the frequencies with a singular
    value 1, and those of L − L~ the frequencies with a Hermitian L: a real one for a single loop. States of L~ are
    ξ' = −Aᵀξ + Cᵀy with output −Bᵀξ + Dᵀy, in discrete time ξ = z (Aᵀξ + Cᵀy) with output Bᵀξ + Dᵀy.
    """
    units = balancing_units(system.A)
    A, B, C, D = system.A / units[:, None] * units, system.B / units[:, None], system.C * units, system.D
    n, m = len(A), system.n_inputs
    size = float(np.linalg.norm(A)) or 1.0
    gain = math.sqrt(float(np.linalg.norm(B)) / (float(np.linalg.norm(C)) or 1.0)) or 1.0
    B, C = B / gain, C * gain
    zeros, identity = np.zeros, np.eye(n)
    candidates = []
    for is_gain in (True, False):
        # Rows: states x of L, states ξ of L~, and the equation at the input.
        Y = C if is_gain else zeros((m, n))  # input of L~: y = C x + D u, or u
        Du = D if is_gain else np.eye(m)
        sign = -1.0 if system.dt is None else 1.0  # of the output ±Bᵀξ of L~
        blocks = [D.T @ C, sign * B.T, D.T @ D - np.eye(m)] if is_gain else [C, -sign * B.T, D - D.T]
        last = np.hstack(blocks)
        N = zeros((2 * n + m, 2 * n + m))
        N[:n, :n] = identity
        if system.dt is None:
            M = np.vstack([np.hstack([A, zeros((n, n)), B]), np.hstack([C.T @ Y, -A.T, C.T @ Du]), last])
            N[n : 2 * n, n : 2 * n] = identity
        else:
            M = np.vstack([np.hstack([A, zeros((n, n)), B]), np.hstack([zeros((n, n)), identity, zeros((n, m))]), last])
            N[n : 2 * n] = np.hstack([C.T @ Y, A.T, C.T @ Du])
        scale = size if system.dt is None else 1.0
        M[: 2 * n] /= scale
        with limit_blas_threads(len(M)), np.errstate(all="ignore"):
            alpha, beta = linalg.eig(M, N, right=False, homogeneous_eigvals=True)
            s = scale * alpha / beta
            s = s if system.dt is None else np.log(s) / system.dt
        s = s[np.isfinite(s)]
        near = np.abs(s.real) <= _NEAR_AXIS * np.abs(s)
        candidates.append(np.unique(np.abs(s.imag[near])))
    return AxisPencils(*candidates)


_EXTENSION = 4.0  # factor between frequencies beyond the fastest pole
_MAX_EXTENSIONS = 300  # 4³⁰⁰ = 10¹⁸⁰ times the fastest pole


def last_unit_gain(
    system: SystemMatrices, evaluate: Callable[[Complex], Complex], candidates: Array, start: float
) -> float:
    """Return a frequency ≥ start beyond which σ_max(L) < 1; infinite if ‖D‖ ≥ 1."""
    if system.dt is not None:
        return math.pi / system.dt
    if np.linalg.norm(system.D, 2) >= 1.0:
        return math.inf
    end = 2.0 * max(start, float(np.max(candidates, initial=0.0)))
    for _ in range(_MAX_EXTENSIONS):
        if np.linalg.norm(evaluate(np.array([1j * end]))[0], 2) < 1.0:
            return end
        end *= _EXTENSION
    return math.inf


# The Nyquist criterion.

_PHASE_STEP = 0.2  # rad of e^{−jωτ} between neighbouring samples
_RELATIVE_STEP = 0.5  # of |det(I + L)|: largest distance between neighbouring values, 30° of phase
_MAX_ROUNDS, _MAX_SAMPLES = (
    60,
    2_000_000,
)  # 60 halvings reach neighbouring doubles; beyond the limits no verdict is given
_ARC_GAIN = 10.0  # least |det(I + L)| on a half circle around a pole on the axis
_ARC_SAMPLES = 33  # at first, 6° apart; more are added where |det(I + L)| changes by half


@final
@dataclass(frozen=True, eq=False, repr=False)
class NyquistResult:
    """Nyquist curve of a loop and its verdict on the closed loop; prints as a summary.

    Parameters
    ----------
    omega : ndarray
        Angular frequencies ≥ 0, ascending.
    response : ndarray
        L(jω), in discrete time L(e^{jω dt}), `(len(omega), p, p)`.
    encirclements : int
        Clockwise encirclements N of −1 by L (of 0 by det(I + L)) over all frequencies; poles on the axis are passed on
        their right.
    open_loop_unstable_poles : int
        Number P of poles of L outside the stability region; poles on its boundary do not count.
    closed_loop_unstable_poles : int
        Number Z = N + P of closed-loop poles outside the stability region.
    is_stable : bool
        True if the closed loop is stable: no poles outside the stability region or on its boundary.
    """

    omega: Array
    response: Complex
    encirclements: int
    open_loop_unstable_poles: int
    closed_loop_unstable_poles: int
    is_stable: bool

    def plot(self, *, ax: "Axes | None" = None) -> "Figure":
        """Draw the curve with the point −1: L(jω), of several inputs and outputs det(I + L(jω)) − 1.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        n_loops = self.response.shape[-1]
        if n_loops == 1:
            return figure_of(draw_nyquist(self.response, ax=ax))
        with np.errstate(invalid="ignore"):  # infinite at a pole
            determinant = np.linalg.det(np.eye(n_loops) + self.response) - 1.0
        axes = draw_nyquist(determinant[:, None, None], ax=ax)
        remark = axes.get_title()
        axes.set_title("det(I + L) − 1" + (f", {remark}" if remark else ""), fontsize="medium", color="0.25")
        return figure_of(axes)

    def __repr__(self) -> str:
        verdict = "stable" if self.is_stable else "not stable"
        return f"NyquistResult(closed loop {verdict}, N = {self.encirclements}, P = {self.open_loop_unstable_poles})"

    def __str__(self) -> str:
        rows = [
            ("clockwise encirclements of −1, N", str(self.encirclements)),
            ("unstable poles of the open loop, P", str(self.open_loop_unstable_poles)),
            ("unstable poles of the closed loop, Z = N + P", str(self.closed_loop_unstable_poles)),
        ]
        return format_rows(f"closed loop {'stable' if self.is_stable else 'not stable'}", rows)


def nyquist(system: SystemMatrices, settings: SignalSettings) -> NyquistResult:
    """Count encirclements and closed-loop poles of a loop, delays included.

    Raises:
        InvalidSystemError: the loop is not square, not well-posed, or has delays and ‖D‖ ≥ 1, for which infinitely many
            closed-loop poles may be unstable.
    """
    validate_loop(system, "nyquist")
    delays = settings.total_delay(system.n_outputs, system.n_inputs)
    poles = compute_poles(system)
    omega = frequencies_for(poles, invariant_zeros(system), dt=system.dt)
    response = loop_evaluator(system, delays)(np.asarray(1j * omega, dtype=np.complex128))
    regions = pole_regions(system)
    n_open = len(regions.unstable)
    if settings.has_delays:
        count = count_with_delays(system, delays)
        n_closed, stable = (n_open, False) if count is None else (count, count == 0 and _is_detectable(system, regions))
    else:
        closed = pole_regions(closed_loop(system))
        n_closed = len(closed.unstable)
        stable = n_closed == 0 and not len(closed.on_boundary)
    return NyquistResult(omega, response, n_closed - n_open, n_open, n_closed, stable)


def closed_loop_is_stable(system: SystemMatrices, settings: SignalSettings) -> bool:
    """Return True if the loop, closed by negative feedback, is stable."""
    if not settings.has_delays:
        return is_stable(closed_loop(system))
    if system.dt is None and system.D.shape == (1, 1) and abs(system.D[0, 0]) >= 1.0:
        return False  # a chain of infinitely many poles tends to Re s = log|D|/τ ≥ 0
    count = count_with_delays(system, settings.total_delay(system.n_outputs, system.n_inputs))
    return count == 0 and _is_detectable(system, pole_regions(system))


def _is_detectable(system: SystemMatrices, regions: PoleRegions) -> bool:
    """Return True if feedback moves every pole on the boundary: [λI − A, B] and [λI − A; C] have full rank."""
    n = system.n_states
    for pole in np.unique(regions.on_boundary):
        P = pole * np.eye(n) - system.A
        for matrix in (np.hstack([P, system.B]), np.vstack([P, system.C])):
            values = np.linalg.svd(matrix, compute_uv=False)
            if values[n - 1] <= rounding_tolerance(n, float(values[0])):
                return False
    return True


def count_with_delays(system: SystemMatrices, delays: Array) -> int | None:
    """Return the number of unstable closed-loop poles by the argument principle; None if one lies on the boundary.

    Raises:
        InvalidSystemError: ‖D‖ ≥ 1 in continuous time.
    """
    evaluate = loop_evaluator(system, delays)
    regions, identity = pole_regions(system), np.eye(system.n_inputs)
    poles = compute_poles(system)
    omega = frequencies_for(poles, invariant_zeros(system), dt=system.dt)
    candidates = axis_candidates(system).unit_gain
    end = last_unit_gain(system, loop_evaluator(system, np.zeros_like(delays)), candidates, float(omega[-1]))
    if math.isinf(end):
        raise InvalidSystemError(
            "the loop has delays and a gain of at least 1 at all high frequencies (‖D‖ ≥ 1): its closed loop may have "
            "infinitely many unstable poles; add the low-pass filter that the real loop has"
        )

    def determinant(s: Complex) -> Complex:
        return np.asarray(np.linalg.det(identity + evaluate(s)), dtype=np.complex128)

    exponents = regions.on_boundary
    if system.dt is not None:
        exponents = np.asarray(np.log(exponents) / system.dt, dtype=np.complex128)
    change = _contour_change(determinant, np.concatenate([omega, candidates]), exponents, delays, end)
    if change is None:
        return None
    if system.dt is None:  # back to the real axis through the right half plane, where σ_max(L) < 1
        values = np.linalg.eigvals(identity + evaluate(np.array([1j * end]))[0])
        change -= float(np.angle(values).sum())
    return len(regions.unstable) - round(change / math.pi)


def _contour_change(
    determinant: Callable[[Complex], Complex], samples: Array, boundary_poles: Complex, delays: Array, end: float
) -> float | None:
    """Return the change of arg det(I + L) from ω = 0 to `end`, around poles on the axis; None if it passes zero."""
    total, start = 0.0, 0.0
    longest = float(np.max(delays, initial=0.0))
    frequencies = np.abs(boundary_poles.imag)
    for center in _distinct(frequencies):
        others = frequencies[np.abs(frequencies - center) > 1e-6 * max(center, end * EPS)]
        distances = [end - center] if end > center else []
        distances += [center] if center > 0.0 else []
        distances += [*np.abs(others - center), *([1.0 / longest] if longest > 0.0 else [])]
        radius = 0.1 * min(distances, default=1.0)
        low = -0.5 * math.pi if center > 0.0 else 0.0
        high = 0.5 * math.pi if center < end * (1.0 - 1e-12) else 0.0
        angles = np.linspace(low, high, _ARC_SAMPLES)
        for _ in range(12):
            if np.abs(determinant(1j * center + radius * np.exp(1j * angles))).min() >= _ARC_GAIN:
                break
            radius *= 0.1
        pieces = [] if low == 0.0 else [_axis_change(determinant, samples, start, center - radius, longest)]
        pieces.append(_tracked_change(partial(_on_arc, determinant, center, radius), angles))
        if None in pieces:
            return None
        total += sum(piece for piece in pieces if piece is not None)
        start = center + radius
        if high == 0.0:
            return total
    last = _axis_change(determinant, samples, start, end, longest)
    return None if last is None else total + last


def _on_arc(function: Callable[[Complex], Complex], center: float, radius: float, angles: Array) -> Complex:
    return function(np.asarray(1j * center + radius * np.exp(1j * angles), dtype=np.complex128))


def _distinct(frequencies: Array) -> list[float]:
    """Return ascending frequencies without repetitions; equal ones differ by rounding."""
    distinct: list[float] = []
    for value in np.sort(frequencies).tolist():
        if not distinct or value > distinct[-1] * (1.0 + 1e-6):
            distinct.append(value)
    return distinct


def _axis_change(
    determinant: Callable[[Complex], Complex], samples: Array, start: float, stop: float, delay: float
) -> float | None:
    """Return the change of the argument along the axis, from samples that resolve dynamics and delay."""
    inside = samples[(samples > start) & (samples < stop)]
    distances = (stop - start) * np.geomspace(1e-12, 0.5, 200)
    n_delay = min(math.ceil((stop - start) * delay / _PHASE_STEP) + 1, _MAX_SAMPLES // 2)
    omega = np.unique(
        np.concatenate(
            [[start, stop], inside, start + distances, stop - distances, np.linspace(start, stop, n_delay + 1)]
        )
    )
    return _tracked_change(lambda t: determinant(1j * t), omega)


def _tracked_change(function: Callable[[Any], Complex], t: Array) -> float | None:
    """Return the change of arg f from t[0] to t[-1], with samples added until neighbouring values are close."""
    values = function(t)
    for _ in range(_MAX_ROUNDS):
        size = np.abs(values)
        far = np.abs(np.diff(values)) > _RELATIVE_STEP * np.minimum(size[1:], size[:-1])
        middle = 0.5 * (t[1:] + t[:-1])
        far &= (middle > t[:-1]) & (middle < t[1:])
        if not far.any():
            break
        if len(t) + np.count_nonzero(far) > _MAX_SAMPLES:
            return None
        added = function(middle[far])
        at = np.flatnonzero(far) + 1
        t, values = np.insert(t, at, middle[far]), np.insert(values, at, added)
    size = np.abs(values)
    if not (np.abs(np.diff(values)) <= _RELATIVE_STEP * np.minimum(size[1:], size[:-1])).all():
        return None
    return float(np.angle(values[1:] / values[:-1]).sum())


# Sensitivity functions.

System = TypeVar("System")


class Sensitivities(NamedTuple, Generic[System]):
    """Closed-loop functions of a plant P with a controller C in negative feedback, e = r − y, u = C e + d, y = P u.

    Parameters
    ----------
    S : StateSpace
        Sensitivity (I + PC)⁻¹, from reference r to error e.
    T : StateSpace
        Complementary sensitivity PC (I + PC)⁻¹, from r to output y.
    CS : StateSpace
        Control sensitivity C (I + PC)⁻¹, from r to u.
    PS : StateSpace
        Disturbance sensitivity (I + PC)⁻¹ P, from a disturbance d at the input of the plant to y.
    """

    S: System
    T: System
    CS: System
    PS: System


def sensitivity_matrices(plant: SystemMatrices, controller: SystemMatrices) -> Sensitivities[SystemMatrices]:
    """Return S = (I + P C)⁻¹, T = P C S, C S and P (I + C P)⁻¹ on the states of plant and controller.

    With e = r − y, u = C e + d and y = P u the input of the plant is, F = (I + D_c D_p)⁻¹,

        u = F (C_c x_c − D_c C_p x_p + D_c r + d),

    and y = C_p x_p + D_p u follows. One set of states serves all four functions.

    Raises:
        InvalidSystemError: sizes or time steps differ, or I + D_c D_p is singular.
    """
    if (controller.n_inputs, controller.n_outputs) != (plant.n_outputs, plant.n_inputs) or controller.dt != plant.dt:
        raise InvalidSystemError(
            f"the controller has {controller.n_inputs} inputs, {controller.n_outputs} outputs and dt = {controller.dt}, but "
            f"the plant has {plant.n_inputs} inputs, {plant.n_outputs} outputs and dt = {plant.dt}; a controller takes the "
            "plant's outputs and gives its inputs, in the same time"
        )
    Ap, Bp, Cp, Dp = plant.A, plant.B, plant.C, plant.D
    Ac, Bc, Cc, Dc = controller.A, controller.B, controller.C, controller.D
    p, m = Dp.shape
    F = _well_posed_inverse(np.eye(m) + Dc @ Dp, "I + D_c D_p")
    # Columns: x_p, x_c, r, d.
    U = F @ np.hstack([-Dc @ Cp, Cc, Dc, np.eye(m)])
    Y = np.hstack([Cp, np.zeros((p, len(Ac) + p + m))]) + Dp @ U
    E = np.hstack([np.zeros((p, len(Ap) + len(Ac))), np.eye(p), np.zeros((p, m))]) - Y
    rates = np.vstack([np.hstack([Ap, np.zeros((len(Ap), len(Ac) + p + m))]) + Bp @ U,
                       np.hstack([np.zeros((len(Ac), len(Ap))), Ac, np.zeros((len(Ac), p + m))]) + Bc @ E])  # fmt: skip
    n = len(Ap) + len(Ac)
    A, states = rates[:, :n], slice(0, n)
    r, d = slice(n, n + p), slice(n + p, n + p + m)

    def system(output: Matrix, columns: slice) -> SystemMatrices:
        return SystemMatrices(A, rates[:, columns], output[:, states], output[:, columns], dt=plant.dt)

    return Sensitivities(system(E, r), system(Y, r), system(U, r), system(Y, d))
