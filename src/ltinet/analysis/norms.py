"""H₂ and H∞ norms with intervals that contain them.

**Peak gain.** Let M be the supremum of f(ω) = σ_max(G(jω)), taken at ω*. In the phase Θ of the poles of G (module
`_util.frequency_supremum`) f(ω) ≥ M cos((Θ(ω) − Θ(ω*))/2). If ω* lies between two frequencies that are h apart in Θ, one of
them is within h/2 of it, so

    M ≤ max(f_i, f_{i+1}) / cos(h/4).

Gaps whose bound exceeds the largest value found so far are halved until none is left: a branch and bound over
frequencies without eigenvalues of Hamiltonian matrices. In discrete time ω = tan(θ/2), the bilinear map of the circle.

**Certificate by modes.** `refined_modes` gives a modal form whose poles are exact, and bounds on the norms of its
difference to the system: with these both norms are known up to rounding of sums over the modes. Systems with
ill-conditioned eigenvectors have no such form.

**Certificate by the Schur form**, which every system has. In coordinates that balance A, A Z = Z T with the computed
Schur form T, and Z⁻¹ A Z = T + ΔT with a measured ‖ΔT‖. Poles of T are exact up to rounding, and so is Θ. With V from
Tᵀ V + V T = −I (TᵀVT − V = −I), whose residual ρ is measured,

    sup_ω ‖(jω − T)⁻¹‖ ≤ 2‖V‖/(1 − ρ) = κ    (Re xᴴV(jω − T)x ≥ (1 − ρ)‖x‖²/2),

and κ‖ΔT‖ < 1 proves that T + ΔT has no more poles to the right than T. Then

    |‖G‖∞ − ‖G_T‖∞| ≤ ‖C R_T‖∞ (‖ΔT‖ ‖R B‖∞ + ‖ΔB‖) + ‖ΔC‖ ‖R B‖∞,    ‖R B‖∞ ≤ ‖R_T B‖∞/(1 − κ‖ΔT‖),

with norms of C R_T and R_T B bounded from the same frequencies. Rounding of each value is bounded by the residual of its
equation. ΔT includes the rounding of E⁻¹A.

The H₂ norm is ‖G‖₂² = tr C P Cᵀ for A P + P Aᵀ + B Bᵀ = 0. With the residual W of a computed P and the Gramian Q,
|tr C P Cᵀ − tr C P̂ Cᵀ| = |tr W Q| ≤ ‖W‖ tr Q, and tr Q ≤ tr Q̂ + n ‖V‖ ‖W_Q‖/(1 − ρ).

Above 200 states norms are estimates: the same numbers without the certificate.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy import linalg

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.floating_point import EPS, Array, Complex
from ltinet._util.frequency_supremum import frequency_grid, pole_phase, spectral_norm
from ltinet._util.text import format_rows, sanitize
from ltinet.analysis.refined_modes import ModalForm, refined_modes
from ltinet.blockdiag.eigenmodes import QuasiTriangularMatrix
from ltinet.blockdiag.schur import balanced_schur
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix
from ltinet.systems.system_matrices import SystemMatrices

MAX_CERTIFIED_STATES = 200
"""Number of states up to which norms are certified."""


@final
@dataclass(frozen=True, repr=False)
class SystemNorm:
    """Norm of a system with an interval that contains it; `float(norm)` is its value.

    Parameters
    ----------
    kind : {"hinf", "h2"}
        H∞ norm, the peak gain over all frequencies, or H₂ norm, the root mean square for white noise.
    value : float
        Best value within the interval.
    lower, upper : float
        Interval that contains the norm.
    frequency : float
        Angular frequency of the peak gain, infinite for that of D; NaN for an H₂ norm.
    is_certified : bool
        True if the interval is proven, rounding errors included; False for an estimate.
    notes : tuple of str
        Remarks, such as the reason why an interval is not certified.
    """

    kind: str
    value: float
    lower: float
    upper: float
    frequency: float
    is_certified: bool
    notes: tuple[str, ...] = ()

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"SystemNorm({self.kind} = {self.value:.6g}, in [{self.lower:.9g}, {self.upper:.9g}])"

    def __str__(self) -> str:
        certified = "certified" if self.is_certified else "estimate"
        rows = [("interval", f"[{self.lower:.16g}, {self.upper:.16g}], {certified}")]
        rows += [] if math.isnan(self.frequency) else [("frequency", f"{self.frequency:.6g}")]
        rows += [("note", note) for note in self.notes]
        return format_rows(f"{'H∞' if self.kind == 'hinf' else 'H₂'} norm {self.value:.6g}", rows)


def system_norm(system: SystemMatrices, kind: object) -> SystemNorm:
    """Return the norm of a kind: "hinf" (or inf) or "h2" (or 2). Delays at inputs and outputs change neither."""
    with limit_blas_threads(system.n_states):
        if kind == "hinf" or kind == "inf" or (isinstance(kind, float) and kind == math.inf):
            return hinf_norm(system)
        if kind == "h2" or (isinstance(kind, int | float) and not isinstance(kind, bool) and kind == 2):
            return h2_norm(system)
    raise InvalidSystemError(f'kind must be "hinf" (or inf) or "h2" (or 2), got {sanitize(repr(kind))}')


# Peak of a gain over frequencies.


class Peak(NamedTuple):
    """Bounds on a supremum over frequencies, and the frequency of the largest value."""

    lower: float
    upper: float
    omega: float


_RELATIVE_WIDTH = 2e-9  # of the interval at which the search for a peak ends
FLAT_PEAK = 1e-13  # of the largest value: the frequency of a flat peak is the lowest one within this share
_MAX_SAMPLES = 400_000  # some seconds; the interval that is left is returned
_MAX_ROUNDS = 120  # more than the halvings of the spacing of doubles from 2⁵³; the interval that is left is returned
_N_POLISHED = 5  # local maxima that are refined before the branch and bound


def find_peak(
    evaluate: Callable[[Array], tuple[Array, Array]],
    poles: Complex,
    at_infinity: float,
    *,
    width: float = _RELATIVE_WIDTH,
) -> Peak:
    """Bound the supremum of f(ω) = σ_max(G(jω)) for a G with these poles, none of them on the axis.

    `evaluate` returns f and bounds on its errors at frequencies; `at_infinity` is the limit of f.
    """
    omega = frequency_grid(poles).omega
    values, errors = evaluate(omega)
    omega, values, errors = _polish(evaluate, omega, values, errors)
    theta_end = math.pi * len(poles)
    theta = pole_phase(poles, omega)
    for _ in range(_MAX_ROUNDS):
        lower = max(float(np.max(values - errors, initial=0.0)), at_infinity)
        bounds = _gap_bounds(values + errors, np.diff(theta, append=theta_end), at_infinity)
        # A gap that rounding of its values already exceeds cannot be improved.
        noise = np.maximum(errors, np.append(errors[1:], 0.0))
        wide = np.flatnonzero(bounds > np.maximum(lower * (1.0 + width), lower + 4.0 * noise))
        above = np.append(omega[1:], 4.0 * omega[-1] + float(np.max(np.abs(poles), initial=1.0)))[wide]
        added = 0.5 * (omega[wide] + above)
        added = added[(added > omega[wide]) & (added < above)]
        if not len(added) or len(omega) + len(added) > _MAX_SAMPLES:
            break
        more, more_errors = evaluate(added)
        omega = np.concatenate([omega, added])
        order = np.argsort(omega, kind="stable")
        omega = omega[order]
        values, errors = np.concatenate([values, more])[order], np.concatenate([errors, more_errors])[order]
        theta = np.concatenate([theta, pole_phase(poles, added)])[order]
    bounds = _gap_bounds(values + errors, np.diff(theta, append=theta_end), at_infinity)
    upper = float(np.max(bounds, initial=at_infinity))
    best = int(np.argmax(values >= np.max(values) * (1.0 - FLAT_PEAK)))
    if at_infinity >= values[best] and len(poles):
        return Peak(at_infinity, upper, math.inf)
    return Peak(float(values[best] - errors[best]), upper, float(omega[best]))


def _gap_bounds(values: Array, gaps: Array, at_infinity: float) -> Array:
    """Return the bound on a peak in each gap; gaps are widened by the rounding of Θ."""
    ends = np.maximum(values, np.append(values[1:], at_infinity))
    gaps = gaps + 64.0 * EPS * (math.pi + float(gaps.sum()))
    with np.errstate(divide="ignore"):
        return np.where(gaps < 6.28, ends / np.cos(0.25 * np.minimum(gaps, 6.28)), np.inf)


def _polish(
    evaluate: Callable[[Array], tuple[Array, Array]], omega: Array, values: Array, errors: Array
) -> tuple[Array, Array, Array]:
    """Add samples at the largest local maxima, by sections of the interval between their neighbours."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    maxima = np.flatnonzero((padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]))
    maxima = maxima[np.argsort(-values[maxima])][:_N_POLISHED]
    low = omega[np.maximum(maxima - 1, 0)]
    high = omega[np.minimum(maxima + 1, len(omega) - 1)]
    for _ in range(8):
        points = low + (high - low) * np.linspace(0.0, 1.0, 17)[:, None]
        more, more_errors = evaluate(points.ravel())
        omega = np.concatenate([omega, points.ravel()])
        values, errors = np.concatenate([values, more]), np.concatenate([errors, more_errors])
        best = more.reshape(points.shape).argmax(axis=0)
        low, high = (np.take_along_axis(points, np.clip(best + side, 0, 16)[None], axis=0)[0] for side in (-1, 1))
    omega, first = np.unique(omega, return_index=True)
    return omega, values[first], errors[first]


# The H∞ norm.


def _rounding(n: int) -> float:
    """Return γ with |fl(xᵀy) − xᵀy| ≤ γ|x|ᵀ|y| for n products, one factor complex, and a few operations more.

    The bound n·eps/2 holds in any order of summation; eps·(n + 8) leaves room for complex arithmetic and norms.
    """
    return EPS * (n + 8)


class _SchurSystem(NamedTuple):
    """System in the coordinates of its computed Schur form, and bounds on what it lacks.

    Parameters
    ----------
    state_error, input_error, output_error : float
        Bounds on the spectral norms of Z⁻¹ A Z − T, Z⁻¹ B − B̂ and C Z − Ĉ.
    """

    T: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    poles: Complex
    dt: float | None
    state_error: float
    input_error: float
    output_error: float


def _schur_system(system: SystemMatrices) -> _SchurSystem:
    units, schur = balanced_schur(system.A)
    n, Z = system.n_states, schur.Z
    T = schur.R * units.factor
    A = units.matrix * units.factor
    B, C = system.B / units.scaling[:, None], system.C * units.scaling
    rounding = _rounding(n)
    orthogonality = _norm(Z.T @ Z - np.eye(n)) + rounding * n
    residual = _norm(A @ Z - Z @ T) + rounding * (_norm(np.abs(A) @ np.abs(Z)) + _norm(np.abs(Z) @ np.abs(T)))
    residual += _descriptor_residual(system, units.scaling)
    inverse = 1.0 / math.sqrt(1.0 - orthogonality) if orthogonality < 1.0 else math.inf
    upper = schur.eigenvalues
    poles = np.concatenate([upper, upper[schur.sizes == 2].conj()]) * units.factor
    B_given = _norm(B) + (0.0 if system.descriptor is None else _norm(system.B))
    return _SchurSystem(
        T, Z.T @ B, C @ Z, system.D, np.asarray(poles, dtype=np.complex128), system.dt,
        state_error=inverse * residual,
        input_error=inverse * (orthogonality + rounding) * B_given + _descriptor_residual(system, units.scaling, of_input=True),
        output_error=rounding * _norm(C),
    )  # fmt: skip


def _descriptor_residual(system: SystemMatrices, scaling: Array, *, of_input: bool = False) -> float:
    """Return a bound on ‖S⁻¹(E⁻¹A₀ − A)S‖ for A as rounded from a given E and A₀, or on ‖S⁻¹(E⁻¹B₀ − B)‖."""
    if system.descriptor is None:
        return 0.0
    E, A0, B0 = system.descriptor
    n = len(E)
    rounding = _rounding(n)
    right, given = (system.B, B0) if of_input else (system.A * scaling, A0 * scaling)
    residual = np.abs(given - E @ right) + rounding * (np.abs(E) @ np.abs(right) + np.abs(given))
    inverse = linalg.inv(E * scaling)  # of E S, so that the bound is that in scaled coordinates
    defect = _norm(np.eye(n) - inverse @ (E * scaling)) + rounding * _norm(np.abs(inverse) @ np.abs(E * scaling))
    if not defect < 0.5:
        return math.inf
    return _norm(np.abs(inverse) @ residual) / (1.0 - defect)


def _norm(matrix: Matrix | Complex) -> float:
    """Return the Frobenius norm, rounded up."""
    return float(np.linalg.norm(matrix)) * (1.0 + 1e-12)


def _solve_lyapunov(T: Matrix, W: Matrix, dt: float | None) -> Matrix:
    """Return a symmetric P with T P + P Tᵀ + W = 0, in discrete time T P Tᵀ − P + W = 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of an equation that is nearly singular: residuals are checked
        P = linalg.solve_continuous_lyapunov(T, -W) if dt is None else linalg.solve_discrete_lyapunov(T, W)
    return np.asarray(0.5 * (P + P.T), dtype=np.float64)


def _lyapunov_bound(T: Matrix, dt: float | None, perturbation: float) -> float:
    """Return κ with sup ‖(s − T − ΔT)⁻¹‖ ≤ κ on the stability boundary for ‖ΔT‖ ≤ perturbation, or infinity.

    A finite κ proves that T + ΔT has as many unstable eigenvalues as V has negative ones.
    """
    n = len(T)
    if not n:
        return 0.0
    try:
        V = _solve_lyapunov(T.T, np.eye(n), dt)
    except (np.linalg.LinAlgError, ValueError):
        return math.inf
    if not np.isfinite(V).all():
        return math.inf
    size, rounding = spectral_norm(V) * (1.0 + 1e-12), _rounding(n)
    magnitude, VT = np.abs(T), V @ T
    if dt is None:
        rho = _norm(VT + VT.T + np.eye(n)) + rounding * 2.0 * _norm(np.abs(V) @ magnitude)
        rho += 2.0 * size * perturbation
    else:
        rho = _norm(T.T @ VT - V + np.eye(n)) + rounding * _norm(magnitude.T @ np.abs(V) @ magnitude)
        rho += size * perturbation * (2.0 * spectral_norm(T) + perturbation)
    return 2.0 * size / (1.0 - rho) if rho < 1.0 else math.inf


def _not_stable(kind: str, schur: _SchurSystem) -> SystemNorm:
    """Return an infinite norm, certified if T + ΔT is proven to have as many unstable eigenvalues as T."""
    if math.isfinite(_lyapunov_bound(schur.T, schur.dt, schur.state_error)):
        note = "the system has poles outside the stability region"
        return SystemNorm(kind, math.inf, math.inf, math.inf, math.nan, True, (note,))
    return SystemNorm(kind, math.inf, 0.0, math.inf, math.nan, False, (_UNCERTAIN,))


_UNCERTAIN = "the distance of poles to the stability boundary is within rounding errors of A: the norm may be infinite"


_ACCEPTED_WIDTH = 4e-9  # relative width at which the second certificate is not tried


def _narrower(first: SystemNorm | None, second: SystemNorm) -> SystemNorm:
    """Return the certified norm with the narrower interval."""
    if first is None or (second.is_certified and second.upper - second.lower < first.upper - first.lower):
        return second
    return first


def _hinf_norm_by_modes(modes: ModalForm) -> SystemNorm:
    """Return the H∞ norm of a modal form, with the interval widened by its distance to the system."""
    poles, dt = modes.poles, modes.dt
    n, (p, m) = len(poles), modes.D.shape
    columns, rows = np.linalg.norm(modes.C, axis=0), np.linalg.norm(modes.B, axis=1)
    products = (modes.C[:, None, :] * modes.B.T).reshape(p * m, n) if p * m <= n else None
    rounding = EPS * (n + 8)

    def at_points(s: Complex) -> tuple[Array, Array]:
        gains = 1.0 / (s - poles[:, None])
        if products is not None:
            G = modes.D.ravel()[:, None] + products @ gains
        else:
            G = modes.D.ravel()[:, None] + np.einsum("pk,ks,km->pms", modes.C, gains, modes.B).reshape(p * m, len(s))
        values = np.linalg.svd(G.T.reshape(len(s), p, m), compute_uv=False)[:, 0]
        sizes = (columns * rows) @ np.abs(gains)
        errors = rounding * (2.0 * sizes + _norm(modes.D)) + 64.0 * EPS * values
        if dt is not None:  # s is rounded too, and so is its distance from a pole
            errors = errors + 8.0 * EPS * ((columns * rows) @ np.abs(gains) ** 2)
        return np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)

    def evaluate(omega: Array) -> tuple[Array, Array]:
        s = np.asarray(1j * omega if dt is None else (1.0 + 1j * omega) / (1.0 - 1j * omega), dtype=np.complex128)
        pieces = np.array_split(s, max(1, len(s) * (n + p * m) >> 22))
        values, errors = zip(*(at_points(piece) for piece in pieces), strict=True)
        return np.concatenate(values), np.concatenate(errors)

    plane = poles if dt is None else (poles - 1.0) / (poles + 1.0)
    if dt is None:
        limit, limit_error = spectral_norm(modes.D), 64.0 * EPS * _norm(modes.D)
    else:
        limit, limit_error = (float(part[0]) for part in at_points(-np.ones(1, dtype=np.complex128)))
    peak = find_peak(evaluate, plane, limit + limit_error)
    slack = modes.hinf_error + 2.0 * limit_error
    lower, upper = max(peak.lower - slack, 0.0) * (1.0 - 4.0 * EPS), (peak.upper + slack) * (1.0 + 4.0 * EPS)
    frequency = peak.omega if dt is None else 2.0 * math.atan(peak.omega) / dt
    return SystemNorm("hinf", min(max(peak.lower, lower), upper), lower, upper, frequency, True)


def hinf_norm(system: SystemMatrices) -> SystemNorm:
    """Return the H∞ norm (see the description of the module)."""
    if not system.D.size:
        return SystemNorm("hinf", 0.0, 0.0, 0.0, 0.0, True)
    modes = refined_modes(system) if system.n_states <= MAX_CERTIFIED_STATES else None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        by_modes = None if modes is None else _hinf_norm_by_modes(modes)
        if by_modes is not None and by_modes.upper - by_modes.lower <= _ACCEPTED_WIDTH * by_modes.upper:
            return by_modes
        schur = _schur_system(system)
        excess = schur.poles.real if system.dt is None else np.abs(schur.poles) - 1.0
        if by_modes is None and np.max(excess, initial=-1.0) >= 0.0:
            return _not_stable("hinf", schur)
        return _narrower(by_modes, _stable_hinf_norm(schur))


def _stable_hinf_norm(schur: _SchurSystem) -> SystemNorm:
    n, dt = len(schur.T), schur.dt
    certify = n <= MAX_CERTIFIED_STATES
    kappa = _lyapunov_bound(schur.T, dt, schur.state_error) if certify else 0.0
    gains = _Gains(schur, kappa if math.isfinite(kappa) else 0.0)
    poles = schur.poles if dt is None else (schur.poles - 1.0) / (schur.poles + 1.0)
    limit = spectral_norm(schur.D) if dt is None else float(gains.at_points(-np.ones(1, dtype=np.complex128))[0][0])
    peak = find_peak(gains, poles, limit)
    lower, upper = peak.lower, peak.upper
    notes: tuple[str, ...] = ()
    if not certify:
        notes = (f"an estimate: intervals are certified for at most {MAX_CERTIFIED_STATES} states",)
    elif not math.isfinite(kappa):
        # With a stable T the lower end is a value of the given system only up to ΔT, which is unknown here.
        notes, lower, upper = (_UNCERTAIN,), 0.0, math.inf
    else:
        distance = gains.distance(poles, kappa)
        lower, upper = max(lower - distance, 0.0), upper + distance
        if not math.isfinite(upper):
            notes = (_UNCERTAIN,)
    frequency = peak.omega if dt is None else 2.0 * math.atan(peak.omega) / dt
    value = min(max(peak.lower, lower), upper)
    return SystemNorm(
        "hinf", value, lower * (1.0 - 4.0 * EPS), upper * (1.0 + 4.0 * EPS), frequency,
        certify and math.isfinite(upper), notes,
    )  # fmt: skip


class _Gains:
    """σ_max of D + C (s − T)⁻¹ B with bounds on its rounding errors; largest norms of C R and R B are recorded."""

    def __init__(self, schur: _SchurSystem, kappa: float) -> None:
        self.schur, self.kappa = schur, kappa
        self.triangle = QuasiTriangularMatrix(schur.T) if len(schur.T) else None
        self.magnitude = _norm(schur.T)
        self.norm_B, self.norm_C = _norm(schur.B), _norm(schur.C)
        self.rounding = _rounding(len(schur.T))
        self.sizes: list[tuple[Array, Array, Array]] = []

    def __call__(self, omega: Array) -> tuple[Array, Array]:
        s = 1j * omega if self.schur.dt is None else (1.0 + 1j * omega) / (1.0 - 1j * omega)
        pieces = np.array_split(s, max(1, len(s) * (len(self.schur.T) + 1) * sum(self.schur.D.shape) >> 22))
        parts = [self.at_points(piece) for piece in pieces]
        values, errors, X, Y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        self.sizes.append((omega, X, Y))
        return values, errors

    def at_points(self, s: Complex) -> tuple[Array, Array, Array, Array]:
        """Return σ_max, bounds on its error, and bounds on ‖R B‖ and ‖C R‖ (Frobenius norms) at points s."""
        schur, n = self.schur, len(self.schur.T)
        if self.triangle is None:
            size = spectral_norm(schur.D)
            return np.full(len(s), size), np.full(len(s), 64.0 * EPS * size), np.zeros(len(s)), np.zeros(len(s))
        p, m = schur.D.shape
        X = self.triangle.solve(s, schur.B.astype(np.complex128)[:, :, None])
        Y = self.triangle.reversed_transpose.solve(s, schur.C.T[::-1].astype(np.complex128)[:, :, None])[::-1]
        # Residuals B − (s − T) X and Cᵀ − (s − T)ᵀ Y, roundings of their computation, and of s on the unit circle.
        norm_X, norm_Y = (np.sqrt((V.real**2 + V.imag**2).sum(axis=(0, 1))) for V in (X, Y))
        term = np.abs(s) + self.magnitude + (0.0 if schur.dt is None else 1.0)
        rest_X = self._residual(schur.T, s, X, schur.B) + self.rounding * (term * norm_X + self.norm_B)
        rest_Y = self._residual(schur.T.T, s, Y, schur.C.T) + self.rounding * (term * norm_Y + self.norm_C)
        G = schur.D[:, :, None] + (schur.C @ X.reshape(n, -1)).reshape(p, m, len(s))
        values: Array = np.asarray(np.linalg.svd(G.transpose(2, 0, 1), compute_uv=False)[:, 0], dtype=np.float64)
        left, right = norm_Y + self.kappa * rest_Y, norm_X + self.kappa * rest_X
        errors = left * rest_X + self.rounding * (self.norm_C * norm_X + _norm(schur.D)) + 64.0 * EPS * values
        is_bad = ~np.isfinite(values + errors)
        values[is_bad], errors[is_bad] = 0.0, np.inf
        return values, errors, right, left

    @staticmethod
    def _residual(T: Matrix, s: Complex, X: Complex, B: Matrix) -> Array:
        n = len(T)
        TX = (T @ np.ascontiguousarray(X).reshape(n, -1).view(np.float64)).view(np.complex128).reshape(X.shape)
        R = B[:, :, None] - s * X + TX
        return np.asarray(np.sqrt((R.real**2 + R.imag**2).sum(axis=(0, 1))))

    def distance(self, poles: Complex, kappa: float) -> float:
        """Return a bound on ‖G − G_T‖∞ for the system that T stands for."""
        if not len(poles):
            return 0.0
        omega, X, Y = (np.concatenate(arrays) for arrays in zip(*self.sizes, strict=True))
        omega, first = np.unique(omega, return_index=True)
        gaps = np.diff(pole_phase(poles, omega), append=math.pi * len(poles))
        s = -np.ones(1, dtype=np.complex128)
        ends = (0.0, 0.0) if self.schur.dt is None else tuple(float(a[0]) for a in self.at_points(s)[2:])
        sup_X, sup_Y = (
            float(np.max(_gap_bounds(sizes[first], gaps, end))) for sizes, end in zip((X, Y), ends, strict=True)
        )
        schur = self.schur
        # κ is that of all T + ΔT: R B = (I + R ΔT) R_T B, and C R likewise.
        factor = 1.0 + kappa * schur.state_error
        inner = schur.state_error * factor * sup_X + schur.input_error
        outer = factor * sup_X + kappa * schur.input_error
        return 1.01 * sup_Y * inner + schur.output_error * outer


# The H₂ norm.


def h2_norm(system: SystemMatrices) -> SystemNorm:
    """Return the H₂ norm (see the description of the module); infinite for a continuous system with D ≠ 0."""
    if not system.D.size:
        return SystemNorm("h2", 0.0, 0.0, 0.0, math.nan, True)
    modes = refined_modes(system) if system.n_states <= MAX_CERTIFIED_STATES else None
    schur = _schur_system(system)
    excess = schur.poles.real if system.dt is None else np.abs(schur.poles) - 1.0
    if modes is None and np.max(excess, initial=-1.0) >= 0.0:
        return _not_stable("h2", schur)
    if system.dt is None and np.any(system.D):
        note = "D is not zero: the response to white noise has infinite variance"
        return SystemNorm("h2", math.inf, math.inf, math.inf, math.nan, True, (note,))
    with np.errstate(over="ignore", invalid="ignore"):
        by_modes = None if modes is None else _h2_norm_by_modes(modes)
        if by_modes is not None and by_modes.upper - by_modes.lower <= _ACCEPTED_WIDTH * by_modes.upper:
            return by_modes
        return _narrower(by_modes, _stable_h2_norm(schur))


def _h2_norm_by_modes(modes: ModalForm) -> SystemNorm:
    """Return the H₂ norm of a modal form: Σ_kl (c_lᴴc_k)(b_k b_lᴴ)/(−λ_k − λ̄_l), in discrete time over 1 − λ_k λ̄_l."""
    poles, n = modes.poles, len(modes.poles)
    if modes.dt is None:
        denominators: Complex = -(poles[:, None] + poles.conj())
        relative = np.full((n, n), 2.0 * EPS)
    else:
        denominators = 1.0 - poles[:, None] * poles.conj()
        relative = 2.0 * EPS + 8.0 * EPS / np.abs(denominators)
    terms = (modes.C.conj().T @ modes.C).T * (modes.B @ modes.B.conj().T) / denominators
    # Inner products are rounded relative to the norms of their vectors.
    columns, rows = np.linalg.norm(modes.C, axis=0), np.linalg.norm(modes.B, axis=1)
    sizes = np.outer(columns * rows, columns * rows) / np.abs(denominators)
    square = float(terms.real.sum()) + float(np.sum(modes.D**2))
    error = float((sizes * (relative + EPS * (n * n + sum(modes.D.shape) + 20))).sum())
    error += EPS * modes.D.size * float(np.sum(modes.D**2))
    low, high = math.sqrt(max(square - error, 0.0)), math.sqrt(max(square + error, 0.0))
    lower = max(low - modes.h2_error, 0.0) * (1.0 - 4.0 * EPS)
    return SystemNorm(
        "h2", math.sqrt(max(square, 0.0)), lower, (high + modes.h2_error) * (1.0 + 4.0 * EPS), math.nan, True
    )


def _stable_h2_norm(schur: _SchurSystem) -> SystemNorm:
    T, B, C = schur.T, schur.B, schur.C
    n, dt, rounding = len(T), schur.dt, _rounding(len(T))
    direct = float(np.sum(schur.D**2))
    if not n:
        value = math.sqrt(direct)
        return SystemNorm("h2", value, value * (1.0 - rounding), value * (1.0 + rounding), math.nan, True)
    P, rest_P = _gramian(T, B @ B.T, dt, rounding)
    Q, rest_Q = _gramian(T.T, C.T @ C, dt, rounding)
    trace = float(np.einsum("ij,jk,ik->", C, P, C))
    square = trace + direct
    value = math.sqrt(max(square, 0.0))
    if n > MAX_CERTIFIED_STATES:
        note = f"an estimate: intervals are certified for at most {MAX_CERTIFIED_STATES} states"
        slack = rest_P * float(np.trace(Q))
        low, high = max(square - slack, 0.0), square + slack
        return SystemNorm("h2", value, math.sqrt(low), math.sqrt(high), math.nan, False, (note,))
    kappa = _lyapunov_bound(T, dt, schur.state_error)
    if not math.isfinite(kappa):
        return SystemNorm("h2", value, 0.0, math.inf, math.nan, False, (_UNCERTAIN,))
    # Residuals for the system that T stands for: those of T, and those of ΔT, ΔB and ΔC.
    norm_P, norm_Q = spectral_norm(P), spectral_norm(Q)
    factor = 2.0 if dt is None else 2.0 * spectral_norm(T) + schur.state_error
    rest_P += factor * schur.state_error * norm_P + rounding * _norm(B) ** 2
    rest_P += schur.input_error * (2.0 * spectral_norm(B) + schur.input_error)
    rest_Q += factor * schur.state_error * norm_Q + rounding * _norm(C) ** 2
    rest_Q += schur.output_error * (2.0 * spectral_norm(C) + schur.output_error)
    # ‖V‖/(1 − ρ) = κ/2 bounds the norm of the inverse Lyapunov operator.
    trace_Q = float(np.abs(np.diag(Q)).sum()) + 0.5 * n * kappa * rest_Q
    sizes = float(np.einsum("ij,jk,ik->", np.abs(C), np.abs(P), np.abs(C)))
    error = (
        rest_P * trace_Q
        + schur.output_error * (2.0 * _norm(C) + schur.output_error) * n * norm_P
        + rounding * (sizes + direct)
    )
    low, high = math.sqrt(max(square - error, 0.0)), math.sqrt(square + error) if square + error > 0.0 else 0.0
    return SystemNorm("h2", value, low * (1.0 - 4.0 * EPS), high * (1.0 + 4.0 * EPS), math.nan, math.isfinite(high))


def _gramian(T: Matrix, W: Matrix, dt: float | None, rounding: float) -> tuple[Matrix, float]:
    """Return P with T P + P Tᵀ + W = 0 (T P Tᵀ − P + W = 0) and a bound on the norm of its residual."""
    P = _solve_lyapunov(T, W, dt)
    TP, size = T @ P, np.abs(T) @ np.abs(P)
    if dt is None:
        return P, _norm(TP + TP.T + W) + rounding * (2.0 * _norm(size) + _norm(W))
    return P, _norm(TP @ T.T - P + W) + rounding * (_norm(size @ np.abs(T.T)) + _norm(P) + _norm(W))
