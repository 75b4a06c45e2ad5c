"""Conversion between continuous and discrete time: zero-order and first-order hold, Tustin and Euler, matched poles.

Inputs that are held: A_d = e^{A dt}, B_d = ∫₀^dt e^{Aτ} dτ B. Inputs along straight lines: with x[k+1] = P x[k] + Q₀
u[k] + Q₁ u[k+1] the state x̃[k] = x[k] − Q₁ u[k] needs no u[k+1]. Difference rules substitute

    s = (z − 1) / (h (α z + 1 − α)),

with α = 1/2 for Tustin, 0 for forward and 1 for backward differences, and h = dt. Prewarping makes Tustin exact at a
frequency ω, by h = 2 tan(ω dt/2)/ω. Conversion to continuous time by the other methods uses the real matrix logarithm, whose
eigenvalues have imaginary parts between −π and π. A negative real eigenvalue has a real logarithm only together with a
second one that is equal to it, with an eigenvector of its own: both become a pair at half the sampling frequency.
Systems without a real logarithm are refused.

For one input and one output "matched" maps poles and zeros by z = e^{s dt}. Of the zeros at infinity all but one become
z = −1, and the gain is that at rest, with factors (z − 1)/dt for integrators. A and C follow from the states, B and D from
values of the transfer function, to which they are linear.
"""

import math
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, Complex, rounding_tolerance
from ltinet._util.text import sanitize
from ltinet.analysis.frequency_response import transfer_evaluator
from ltinet.analysis.poles import compute_poles
from ltinet.analysis.zeros import invariant_zeros
from ltinet.blockdiag.schur import balance_matrix
from ltinet.errors import InvalidSystemError
from ltinet.signals.arrays import as_real_array
from ltinet.simulation.propagators import StepMatrices, matrix_steps
from ltinet.systems.descriptor import eliminate_descriptor
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices, require_continuous_time, validate_time_step

SamplingMethod: TypeAlias = Literal["zoh", "foh", "tustin", "euler", "backward", "matched"]
"""Holds of order zero and one, trapezoidal rule, forward and backward differences, matched poles and zeros."""

_SYNONYMS: Mapping[str, SamplingMethod] = {
    "zero": "zoh", "zeroorder": "zoh", "zeroorderhold": "zoh",
    "linear": "foh", "firstorder": "foh", "firstorderhold": "foh",
    "bilinear": "tustin", "trapezoidal": "tustin",
    "forward": "euler", "forwarddiff": "euler", "forwardeuler": "euler",
    "backwarddiff": "backward", "backwardeuler": "backward",
    "zeropolematching": "matched",
}  # fmt: skip
_ALPHA: Mapping[SamplingMethod, float] = {"euler": 0.0, "tustin": 0.5, "backward": 1.0}


def validate_method(method: Any) -> SamplingMethod:
    """Return the method of a name of its own, of MATLAB, SciPy or python-control; case and separators are ignored.

    Raises:
        InvalidSystemError: the method is unknown.
    """
    known = get_args(SamplingMethod)
    plain = re.sub(r"[\s_-]", "", method).lower() if isinstance(method, str) else ""
    chosen = _SYNONYMS.get(plain, plain)
    if chosen not in known:
        raise InvalidSystemError(f"method is {sanitize(repr(method))}; known are {', '.join(map(repr, known))}")
    return cast(SamplingMethod, chosen)


def effective_step(dt: float, method: SamplingMethod, prewarp_frequency: float | None) -> float:
    """Return h of a difference rule, with which Tustin is exact at the prewarping frequency.

    Raises:
        InvalidSystemError: the frequency is not between 0 and π/dt, or the method is not Tustin.
    """
    if prewarp_frequency is None:
        return dt
    if method != "tustin":
        raise InvalidSystemError(f'prewarp_frequency is for method="tustin", got method={method!r}; omit it')
    frequency = float(as_real_array(prewarp_frequency, "prewarp_frequency"))
    if not 0.0 < frequency < math.pi / dt:
        raise InvalidSystemError(
            f"prewarp_frequency must be between 0 and π/dt = {math.pi / dt:g} rad per unit of time, got {frequency:g}"
        )
    return 2.0 * math.tan(0.5 * frequency * dt) / frequency


def solve_or_raise(matrix: Matrix, right_hand_side: Matrix, message: str) -> Matrix:
    """Return matrix⁻¹ times a right-hand side, with rows and columns scaled first.

    Raises:
        InvalidSystemError: the matrix is singular to working precision; the message is `message`.
    """
    try:
        return eliminate_descriptor(np.ascontiguousarray(matrix), right_hand_side)
    except InvalidSystemError:
        raise InvalidSystemError(message) from None


def to_discrete(
    system: SystemMatrices, dt: float, *, method: SamplingMethod, prewarp_frequency: float | None = None
) -> SystemMatrices:
    """Sample a system with time step dt (see `ltinet.StateSpace.to_discrete`).

    Raises:
        InvalidSystemError: the system is discrete already, dt is not positive, a difference rule maps a pole to infinity,
            or the result overflows.
    """
    require_continuous_time(system, "system.to_discrete(dt)")
    step = validate_time_step(dt)
    if step is None:
        raise InvalidSystemError(f"dt must be positive, the time between samples, got {dt}")
    h = effective_step(step, method, prewarp_frequency)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is an error below
        if method in _ALPHA:
            parts = by_differences(system, h, _ALPHA[method])
        else:
            parts = _matched(system, step) if method == "matched" else _by_exponentials(system, step, method)
    if not all(np.isfinite(part).all() for part in parts):
        raise InvalidSystemError(f"states of this system overflow after dt = {step:g}; pass a shorter dt")
    # Names of states hold for zoh and matched; other methods mix states with inputs.
    return SystemMatrices(
        *parts, dt=step, names=system.names if method in ("zoh", "matched") else system.names.without_states
    )


def compute_step_matrices(A: Matrix, B: Matrix, dt: float) -> StepMatrices:
    """Return P = e^{A dt} and the matrices Q₀, Q₁ of both ends of a linear input, computed in units that balance A."""
    units = balance_matrix(A)
    F, G = units.matrix * units.factor, B / units.scaling[:, None]
    P, begin, end = (matrices[0] for matrices in matrix_steps(F, G, np.array([dt]), linear=True))
    rows = units.scaling[:, None]
    return StepMatrices(P * rows / units.scaling, begin * rows, end * rows)


def _by_exponentials(system: SystemMatrices, dt: float, method: SamplingMethod) -> tuple[Matrix, ...]:
    """Sample exactly for held (zoh) or linearly interpolated (foh) inputs.

    For foh x[k+1] = P x[k] + Q₀ u[k] + Q₁ u[k+1]. The state x̃[k] = x[k] − Q₁ u[k] needs no u[k+1]:
    x̃[k+1] = P x̃[k] + (Q₀ + P Q₁) u[k], y[k] = C x̃[k] + (D + C Q₁) u[k].
    """
    P, begin, end = compute_step_matrices(system.A, system.B, dt)
    if method == "zoh":
        return P, begin + end, system.C, system.D
    return P, begin + P @ end, system.C, system.D + system.C @ end


def by_differences(system: SystemMatrices, h: float, alpha: float) -> tuple[Matrix, ...]:
    """Substitute s = (z − 1)/(h (α z + 1 − α)).

    With K = (I − α h A)⁻¹: A_d = K (I + (1 − α) h A), B_d = K B h, C_d = C K and D_d = D + α h C K B.
    """
    n = system.n_states
    step = h * system.A
    shifted = np.eye(n) - alpha * step
    pole = 1.0 / (alpha * h) if alpha else math.inf
    rule = "1/dt" if alpha == 1.0 else "2/dt"
    message = f"the system has a pole at {rule} = {pole:g}, which the method maps to infinity; pass another dt"
    columns = solve_or_raise(shifted, np.hstack([np.eye(n) + (1.0 - alpha) * step, h * system.B]), message)
    C = solve_or_raise(shifted.T, system.C.T, message).T
    return columns[:, :n], columns[:, n:], C, system.D + alpha * C @ (h * system.B)


# Matched poles and zeros

_MATCHING_RADIUS = 1.5  # of the circle on which values of the transfer function are taken, over the largest pole
_MATCHING_TOLERANCE = 1e-8  # relative error of these values, with which B and D count as found


class _Factors(NamedTuple):
    """Zeros, poles and gain of a transfer function."""

    zeros: Complex
    poles: Complex
    gain: float


def _factors(system: SystemMatrices) -> _Factors:
    """Return zeros, poles and gain of a system with one input and one output."""
    if (system.n_inputs, system.n_outputs) != (1, 1):
        raise InvalidSystemError(
            f'method="matched" requires one input and one output, got {system.n_inputs} and {system.n_outputs}; use another '
            "method, or convert single channels"
        )
    zeros, poles = invariant_zeros(system), compute_poles(system)
    # The gain from the value on a circle that encloses all of them.
    point = complex(2.0 * max(1.0, float(np.abs(np.concatenate([zeros, poles])).max(initial=0.0))))
    value = transfer_evaluator(system)(np.array([point]))[0, 0, 0]
    gain = value * np.prod(point - poles) / np.prod(point - zeros)
    return _Factors(zeros, poles, float(gain.real))


def _matched(system: SystemMatrices, dt: float) -> tuple[Matrix, ...]:
    """Map poles and zeros by z = e^{s dt}."""
    factors = _factors(system)
    n_infinite = max(len(factors.poles) - len(factors.zeros) - 1, 0)
    zeros = np.concatenate([np.exp(factors.zeros * dt), np.full(n_infinite, -1.0)])
    poles = np.exp(factors.poles * dt)
    gain = factors.gain * _gain_ratio(factors.zeros, factors.poles, zeros, poles, dt)
    A = compute_step_matrices(system.A, system.B, dt).P
    B, D = _inputs_of(A, system.C, _Factors(zeros, poles, gain))
    return A, B, system.C, D


def _gain_ratio(zeros_s: Complex, poles_s: Complex, zeros_z: Complex, poles_z: Complex, dt: float) -> float:
    """Return the gain in discrete time over that in continuous time, equal at rest; s and (z − 1)/dt count as equal."""

    def at_rest(s: Complex, z: Complex) -> complex:
        moves = s != 0.0
        product = np.prod((1.0 - z[: len(s)][moves]) / -s[moves]) * dt ** (len(s) - int(moves.sum()))
        return complex(product * np.prod(1.0 - z[len(s) :]))

    return float((at_rest(poles_s, poles_z) / at_rest(zeros_s, zeros_z)).real)


def _inputs_of(A: Matrix, C: Matrix, factors: _Factors) -> tuple[Matrix, Matrix]:
    """Return B and D with which (A, B, C, D) has a transfer function: C (z I − A)⁻¹ B + D is linear in them."""
    n = len(A)
    radius = _MATCHING_RADIUS * max(1.0, float(np.abs(factors.poles).max(initial=0.0)))
    points = radius * np.exp(1j * np.pi * (np.arange(n + 1) + 0.5) / (n + 1))
    values = factors.gain * np.array(
        [np.prod(point - factors.zeros) / np.prod(point - factors.poles) for point in points], dtype=np.complex128
    )
    rows = np.array([np.linalg.solve((point * np.eye(n) - A).T, C[0]) for point in points]).reshape(n + 1, n)
    rows = np.hstack([rows, np.ones((n + 1, 1))])
    equations, right = np.vstack([rows.real, rows.imag]), np.concatenate([values.real, values.imag])
    scale = np.linalg.norm(equations, axis=0)
    scale[scale == 0.0] = 1.0
    found = np.linalg.lstsq(equations / scale, right, rcond=None)[0] / scale
    if not np.linalg.norm(equations @ found - right) <= _MATCHING_TOLERANCE * np.linalg.norm(right):
        raise InvalidSystemError(
            'method="matched" finds no B and D for these states, which the output does not observe, or are too many; use '
            "another method"
        )
    direct = found[n:] if len(factors.zeros) == len(factors.poles) else np.zeros(1)
    return found[:n, None], direct[:, None]


# Conversion to continuous time.

# Relative to A_d: largest error of exp(log(A_d)) that is accepted. Defective eigenvalues cost half of all digits.
_MAX_LOGARITHM_ERROR = 1e-8
_TUSTIN_ADVICE = 'use method="tustin", which has another meaning, or identify the system from its data'
_EQUAL_POLES = 1e-7  # relative distance of two negative eigenvalues that count as equal: rounding of a repeated one
_INFINITE_ZERO = 1e-6  # distance from −1 of a zero that stands for one at infinity


def to_continuous(
    system: SystemMatrices, *, method: SamplingMethod, prewarp_frequency: float | None = None
) -> SystemMatrices:
    """Return the continuous-time system of a sampled model (see `ltinet.StateSpace.to_continuous`).

    Raises:
        InvalidSystemError: the system does not exist for this method, or the model is in continuous time already.
    """
    if system.dt is None:
        raise InvalidSystemError(
            "the system is in continuous time already; to_continuous requires a system with a time step, such as "
            "StateSpace(A, B, C, D, dt=0.1)"
        )
    h = effective_step(system.dt, method, prewarp_frequency)
    if method in _ALPHA:
        return from_differences(system, h, _ALPHA[method]).with_names(system.names.without_states)
    A = _logarithm(system.A, system.dt) / system.dt
    if method == "matched":
        _require_accurate_logarithm(compute_step_matrices(A, system.B, system.dt).P, system.A)
        return SystemMatrices(A, *_unmatched(system, A, system.dt), names=system.names)
    # For zoh B_d = H B with H = dt φ₁(A dt); for foh B_d = H² B/dt and D_d = D + C Q₁.
    P, begin, end = compute_step_matrices(A, np.eye(system.n_states), system.dt)
    _require_accurate_logarithm(P, system.A)
    message = f"no input matrix gives this B: the system aliases at dt = {system.dt:g}; {_TUSTIN_ADVICE}"
    B = solve_or_raise(begin + end, system.B, message)
    if method == "zoh":
        return SystemMatrices(A, B, system.C, system.D, names=system.names)
    B = system.dt * solve_or_raise(begin + end, B, message)
    return SystemMatrices(A, B, system.C, system.D - system.C @ (end @ B), names=system.names.without_states)


def _logarithm(A: Matrix, dt: float) -> Matrix:
    """Return the real logarithm with eigenvalues of imaginary parts between −π and π, in units that balance A."""
    units = balance_matrix(A)
    matrix = units.matrix * units.factor
    _require_logarithm(matrix, dt)
    if not len(A):
        return A
    n_rest, T, T_inv, split = split_eigenvalues(matrix, lambda re, im: not (im == 0.0 and re < 0.0))
    real = np.zeros_like(matrix)
    if n_rest:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inaccuracy is measured by the caller and raised as an error
            real[:n_rest, :n_rest] = linalg.logm(split[:n_rest, :n_rest]).real
    if n_rest < len(matrix):
        real[n_rest:, n_rest:] = _logarithm_of_pairs(split[n_rest:, n_rest:])
    real = T @ real @ T_inv
    return np.asarray(real * units.scaling[:, None] / units.scaling)


def _require_logarithm(A: Matrix, dt: float) -> None:
    """Refuse matrices without a real logarithm."""
    values = np.linalg.eigvals(A)
    size = float(np.linalg.norm(A, 1)) if len(A) else 0.0
    is_zero = np.abs(values) <= rounding_tolerance(len(A), size)
    if is_zero.any():
        raise InvalidSystemError(
            f"A has {int(is_zero.sum())} eigenvalues that are zero to working precision, from a delay or from modes that "
            f"decay completely within dt = {dt:g}, so that no continuous-time system exists for zoh or foh; {_TUSTIN_ADVICE}"
        )
    negative = np.sort(values[(values.imag == 0.0) & (values.real < 0.0)].real)
    single = _first_unpaired(negative)
    if single is not None:
        raise InvalidSystemError(
            f"A has the negative real eigenvalue {single:.6g}, but e^{{s dt}} of a real pole is positive. It stems from "
            "a pair at half the sampling frequency, whose other state is missing, so that no continuous-time system of "
            f"these states exists for zoh, foh or matched; {_TUSTIN_ADVICE}"
        )


def _first_unpaired(negative: Array) -> float | None:
    """Return the first of some ascending negative eigenvalues that has no equal partner; None if all come in pairs."""
    index = 0
    while index < len(negative):
        pair = negative[index : index + 2]
        if len(pair) < 2 or pair[1] - pair[0] > _EQUAL_POLES * abs(pair[0]):
            return float(pair[0])
        index += 2
    return None


def split_eigenvalues(A: Matrix, is_first: Callable[[float, float], bool]) -> tuple[int, Matrix, Matrix, Matrix]:
    """Return k, T, T⁻¹ and T⁻¹ A T = diag(A₁, A₂), where A₁ has the k eigenvalues with is_first(Re λ, Im λ), A₂ the others."""
    n = len(A)
    if all(is_first(value.real, value.imag) for value in np.linalg.eigvals(A).tolist()):
        return n, np.eye(n), np.eye(n), A
    R, Q, k = linalg.schur(A, output="real", sort=is_first)
    X: Matrix = np.zeros((k, n - k))
    if 0 < k < n:  # R₁₁ X − X R₂₂ = −R₁₂
        X = np.asarray(linalg.solve_sylvester(R[:k, :k], -R[k:, k:], -R[:k, k:]), dtype=np.float64)
    coupled, decoupled = np.eye(n), np.eye(n)
    coupled[:k, k:], decoupled[:k, k:] = X, -X
    R[:k, k:] = 0.0
    return int(k), Q @ coupled, decoupled @ Q.T, R


def _logarithm_of_pairs(A: Matrix) -> Matrix:
    """Return a real logarithm of a matrix whose eigenvalues are negative and come in pairs with two eigenvectors.

    In the basis of both eigenvectors a pair is −a I, the exponential of [[log a, −π], [π, log a]].
    """
    values, vectors = np.linalg.eig(A)
    order = np.argsort(values.real)
    values, vectors = values.real[order], vectors.real[:, order]
    if np.linalg.cond(vectors) > _MAX_LOGARITHM_ERROR / EPS:
        raise InvalidSystemError(
            f"A has the negative real eigenvalue {values[0]:.6g} twice with a single eigenvector, which has no real "
            f"logarithm, so that no continuous-time system exists for zoh, foh or matched; {_TUSTIN_ADVICE}"
        )
    size = np.log(0.5 * np.abs(values[::2] + values[1::2]))
    blocks = [np.array([[entry, -np.pi], [np.pi, entry]]) for entry in size]
    return np.asarray(vectors @ linalg.block_diag(*blocks) @ np.linalg.inv(vectors))


def _unmatched(system: SystemMatrices, A: Matrix, dt: float) -> tuple[Matrix, Matrix, Matrix]:
    """Return B, C and D in continuous time, with poles of A and the logarithms of the zeros; −1 stands for infinity."""
    factors = _factors(system)
    is_infinite = np.abs(factors.zeros + 1.0) <= _INFINITE_ZERO
    zeros_z = np.concatenate([factors.zeros[~is_infinite], factors.zeros[is_infinite]])
    finite = factors.zeros[~is_infinite]
    is_lost = (np.abs(finite) < _INFINITE_ZERO) | ((finite.imag == 0.0) & (finite.real < 0.0))
    if is_lost.any():
        raise InvalidSystemError(
            f"the zero {finite[is_lost][0].real:.6g} has no real counterpart in continuous time for matched; {_TUSTIN_ADVICE}"
        )
    zeros = np.asarray(np.log(finite.astype(np.complex128)) / dt, dtype=np.complex128)
    poles: Complex = np.linalg.eigvals(A).astype(np.complex128)
    gain = factors.gain / _gain_ratio(zeros, poles, zeros_z, np.exp(poles * dt), dt)
    B, D = _inputs_of(A, system.C, _Factors(zeros, poles, gain))
    return B, system.C, D


def _require_accurate_logarithm(P: Matrix, A: Matrix) -> None:
    size = float(np.linalg.norm(A, 1)) if len(A) else 0.0
    distance = float(np.linalg.norm(P - A, 1)) if len(A) else 0.0
    if not distance <= _MAX_LOGARITHM_ERROR * size:
        raise InvalidSystemError(
            f"the logarithm of A is inaccurate: its exponential differs by {distance / size:.1e} of A, "
            f"which is nearly singular or has nearly equal eigenvalues; {_TUSTIN_ADVICE}"
        )


def from_differences(system: SystemMatrices, h: float, alpha: float) -> SystemMatrices:
    """Substitute z = (1 + (1 − α) s h)/(1 − α s h): with L = (α A_d + (1 − α) I)⁻¹, A = (A_d − I)L/h, C = C_d L."""
    n = system.n_states
    shifted = alpha * system.A + (1.0 - alpha) * np.eye(n)
    pole = "−1" if alpha == 0.5 else "0"
    message = (
        f"A has the eigenvalue {pole}, which the method maps to infinity; no continuous-time system has such a pole"
    )
    columns = solve_or_raise(shifted, np.hstack([system.A - np.eye(n), system.B]), message)
    C = solve_or_raise(shifted.T, system.C.T, message).T
    D = system.D - alpha * C @ system.B
    return SystemMatrices(columns[:, :n] / h, columns[:, n:] / h, C, D)
