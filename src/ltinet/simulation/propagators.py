"""Exact steps of z' = F z + G u over a time h, for inputs that are constant or linear between two samples.

    linear    z(t+h) = e^{Fh} z + h(φ₁ − φ₂)(Fh) G u_k + h φ₂(Fh) G u_{k+1}
    constant  z(t+h) = e^{Fh} z + h φ₁(Fh) G u_k

with the entire functions φ₁(z) = (e^z − 1)/z and φ₂(z) = (e^z − 1 − z)/z²; λ = 0 and defective blocks need no special
case. Scalars use these formulas directly. Dense blocks use the Taylor series of φ₂ for a short step, which is doubled
until it is as long as the step: only products and sums, so that entries that are small beside others keep their digits,
relative to the same sums of absolute values, in whatever units the states are, and zeros stay exact. Each doubling
doubles the error of states that are slow beside the fastest. Steps so long that this would be felt are taken in
double-double arithmetic.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.double_double import DoubleDouble, outer_product
from ltinet._util.floating_point import EPS, Array, balancing_units
from ltinet._util.phi_functions import phi_functions
from ltinet.error_bounds.double_double_exponentials import double_double_steps
from ltinet.systems.matrices import Matrix

_SHORT_NORM = 1.0  # ‖Fh‖ up to which a step is short: e^|Fh| is at most e, so that little cancels
_MAX_SERIES_STATES = 16  # states: with more of them few sums of so many terms are tiny beside others
_SERIES_TERMS = 20  # of 2 Σ M^k/(k+2)! for a norm of one: 2/22! < eps/16
_MAX_SERIES_TERMS = _MAX_SERIES_STATES + _SERIES_TERMS  # along a chain of all states, and then as for a norm of one
# ‖Fh‖ beyond which log₂‖Fh‖ doublings in double precision cost slow states more than 1e-13 of their size: 1e-13/eps.
_MAX_NORM = 1e-13 / EPS
_MAX_DOUBLE_DOUBLE_STATES = 128  # states, speed only: for more of them double-double steps take seconds
_MAX_DOUBLINGS = 100  # of a short step: after a step of 1e30/‖F‖ nothing but rounding is left; longer ones give NaN

# Scalars.


def exp_of_multiples(rates: NDArray[np.complex128], length: float, counts: NDArray[np.intp]) -> NDArray[np.complex128]:
    """Return e^{kλh} for rates λ (last axis) and integers k (first axis), to a few units whatever the size of kλh.

    The rounding of the product alone would cost |kλh| units; it comes back as a factor 1 + (kλh − fl(kλh)).
    """
    k = counts.astype(np.float64)
    z, rounding = outer_product(rates, np.array([length]))
    z, more = outer_product(z[0], k)
    return _scalar_exponentials(z, more + k[:, None] * rounding)


def _scalar_exponentials(z: NDArray[Any], rounding: NDArray[Any]) -> NDArray[Any]:
    """Return e^{z + rounding}."""
    result: NDArray[Any] = np.exp(z)
    result += np.multiply(result, rounding, out=np.zeros_like(result), where=np.isfinite(result))
    return result


class StepMatrices(NamedTuple):
    """Matrices of a step z(t+h) = P z + begin u_k + end u_{k+1}, P = e^{Fh}."""

    P: NDArray[Any]
    begin: NDArray[Any]
    end: NDArray[Any]


def scalar_steps(rates: NDArray[Any], h: NDArray[np.float64], *, linear: bool) -> StepMatrices:
    """Return steps of v' = λ v + g for many rates λ (last axis) and many lengths h (first axis), per unit of g."""
    if not len(rates):
        return StepMatrices(*np.zeros((3, len(h), 0), dtype=rates.dtype))
    z, rounding = outer_product(rates, h)
    P, lengths = _scalar_exponentials(z, rounding), h[:, None]
    first, second = phi_functions(z, P)
    return _step_from_phi(P, lengths * first, lengths * second, linear=linear)


def _step_from_phi(P: NDArray[Any], first: NDArray[Any], second: NDArray[Any], *, linear: bool) -> StepMatrices:
    """Return a step from P, h φ₁ G and h φ₂ G."""
    return StepMatrices(P, first - second, second) if linear else StepMatrices(P, first, np.zeros_like(first))


# Dense blocks.


def matrix_steps(
    F: Matrix, G: Matrix, h: NDArray[np.float64], *, linear: bool, longest: float | None = None
) -> StepMatrices:
    """Return steps of z' = F z + G u for many lengths h (first axis).

    Short steps are series that are doubled log₂‖Fh‖ times. Very long ones are computed in double-double arithmetic.
    `longest` is the longest step of a run of which h are some lengths; all steps of a run are computed in the same
    arithmetic.
    """
    norm = step_norm(F)
    if len(F) <= _MAX_DOUBLE_DOUBLE_STATES and norm * (h.max(initial=0.0) if longest is None else longest) > _MAX_NORM:
        return _double_double_steps(F, G, h, linear=linear)
    return _step_from_phi(*_doubled_steps(F, G, h, norm), linear=linear)


def _double_double_steps(F: Matrix, G: Matrix, h: Array, *, linear: bool) -> StepMatrices:
    """Return steps in double-double arithmetic, rounded once."""
    (n, m), none = G.shape, np.zeros_like
    system = DoubleDouble(F, none(F)), DoubleDouble(G, none(G))
    steps = [double_double_steps(*system, length, 0, linear=linear, estimate_errors=False)[0] for length in h.tolist()]
    both = np.array([step.high for step in steps]).reshape(len(h), n, n + 2 * m)
    return StepMatrices(both[:, :, :n], both[:, :, n : n + m], both[:, :, n + m :])


def step_norm(F: Array) -> float:
    """Return the 1-norm of F in the units of the states that minimize it; for many states in units that balance F.

    The smallest norm is the Perron root of |F| (Perron 1907).
    """
    if len(F) <= _MAX_SERIES_STATES:
        return float(np.linalg.eigvals(np.abs(F)).real.max(initial=0.0)) if F.size else 0.0
    units = balancing_units(F)
    with np.errstate(over="ignore"):
        return float(np.abs(F * (units / units[:, None])).sum(axis=0).max())


def is_short_step(F: Array, longest: float) -> bool:
    """Return True if steps up to this length are series that are right to a few units in every entry."""
    return len(F) <= _MAX_SERIES_STATES and step_norm(F) * longest <= _SHORT_NORM


class PhiFunctions(NamedTuple):
    """e^M, φ₁(M) and φ₂(M) of matrices along the first axis."""

    exponential: Array
    first: Array
    second: Array


def phi_series(F: Array, h: Array) -> PhiFunctions:
    """Return φ-functions of Fh for short lengths h (first axis): φ₂ by its series, φ₁ = 1 + Fh φ₂, e^{Fh} = 1 + Fh φ₁.

    The polynomial Σ M^k/(k+2)! is one in M⁴ with cubic polynomials as coefficients (Paterson & Stockmeyer 1973).
    """
    M, identity = F * h[:, None, None], np.eye(len(F))
    square = M @ M
    powers, fourth = (identity, M, square, square @ M), square @ square
    second = np.zeros_like(M)
    for begin in range(_n_terms(np.abs(F) * h.max(initial=0.0)) - 4, -1, -4):
        second = fourth @ second
        for offset, power in enumerate(powers):
            second += power / float(math.factorial(begin + offset + 2))
    first = identity + M @ second
    return PhiFunctions(identity + M @ first, first, second)


def _n_terms(sizes: Array) -> int:
    """Return the number of terms, a multiple of four, after which all others are negligible in Σ |M|^k/(k+2)!.

    Up to `_MAX_SERIES_STATES` states that holds for every entry. An entry may begin late: it takes k factors for a state
    to act on one that is k connections away. If a term is negligible beside the sum in all entries, so are the next
    ones: each is the one before times |M|, as the sum is. For more states it holds for the norm: 2/22! < eps/16.
    """
    if len(sizes) > _MAX_SERIES_STATES:
        return _SERIES_TERMS
    term = total = np.eye(len(sizes))
    for count in range(1, _MAX_SERIES_TERMS):
        term = term @ sizes / (count + 2)
        if count % 4 == 0 and np.all(term <= EPS / 16.0 * total):
            return count
        total = total + term
    return _MAX_SERIES_TERMS


def _doubled_steps(F: Matrix, G: Matrix, h: Array, norm: float) -> tuple[Array, Array, Array]:
    """Return e^{Fh}, a = h φ₁(Fh) G and b = h φ₂(Fh) G from short steps that are doubled until they are long.

    A constant input adds a in the first half of a double step and e^{Fh} a to its end; one that rises from 0 to 1 over
    both halves is half a rise, then a constant of one half and half a rise: b(2h) = (e^{Fh} b + a + b)/2. Nothing is
    divided, so that no entry is the difference of larger ones of other states.
    """
    with np.errstate(over="ignore"):
        doublings = np.ceil(np.log2(np.maximum(norm * h / _SHORT_NORM, 1.0)))
    is_endless = ~(doublings <= _MAX_DOUBLINGS)
    doublings = np.where(is_endless, 0.0, doublings).astype(np.intp)
    short = np.ldexp(h, -doublings)
    phi, lengths = phi_series(F, short), short[:, None, None]
    P, first, second = phi.exponential, lengths * (phi.first @ G), lengths * (phi.second @ G)
    P[is_endless] = np.nan
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(int(doublings.max(initial=0))):
            longer = doublings > level
            half, constant, rise = P[longer], first[longer], second[longer]
            second[longer] = 0.5 * (half @ rise + constant + rise)
            first[longer] = half @ constant + constant
            P[longer] = half @ half
    return P, first, second
