"""Exact steps of z' = F z + G u over a time h, for inputs that are constant or linear between two samples.

    linear    z(t+h) = e^{Fh} z + h(φ₁ − φ₂)(Fh) G u_k + h φ₂(Fh) G u_{k+1}
    constant  z(t+h) = e^{Fh} z + h φ₁(Fh) G u_k

with the entire functions φ₁(z) = (e^z − 1)/z and φ₂(z) = (e^z − 1 − z)/z²; λ = 0 and defective blocks need no special
case. Scalars use these formulas directly. Dense blocks use one exponential of the augmented matrix (Van Loan 1978)

    exp [[Fh, Gh, 0], [0, 0, I], [0, 0, 0]] = [[e^{Fh}, h φ₁ G, h φ₂ G], [0, I, I], [0, 0, I]],

evaluated by SciPy's scaling and squaring. For few states and short steps (Perron root of |F|h at most one) the Taylor
series of φ₂ is right entry by entry, relative to Σ|Fh|^k/k!, whatever the units of the states. For small matrices
whose states are weakly coupled, entries that SciPy lost in its elimination are replaced by those of a squared series.
Steps so long that squaring in double precision would lose slow states are taken in double-double arithmetic.
Exponentials e^{kλh} of scalars are also available in double-double precision, for tables whose rounding must not add
up over many steps.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, two_product, two_sum
from ltinet.error_bounds.extended_precision import balancing_units, extended_exponentials
from ltinet.systems.matrices import Matrix

# MERGED ltinet.simulation.propagators
# φ-functions of a matrix whose step is short, right relative to the sizes of their terms, entry by entry.
#
# SciPy's exponential is right relative to the norm of the matrix: where states have units that differ by decades, entries
# that are small beside others keep no digit. The Taylor series Σ M^k/k! has an error of a few units of Σ|M|^k/k! in every
# entry, which no change of units of the states makes better or worse. It is short where |M| is at most one in units that
# suit it, and cancels little there.

_SHORT_NORM = 1.0  # size of Fh in the best units: e^|Fh| is at most e there, so that little cancels
_MAX_SERIES_STATES = 16  # states: in more of them an entry is a sum of so many terms that few are tiny beside others
_MOST_TERMS = _MAX_SERIES_STATES + 20  # along a chain of so many states, and then as for a norm of one


class PhiFunctions(NamedTuple):
    """e^M, φ₁(M) and φ₂(M) of matrices along the first axis."""

    exponential: Array
    first: Array
    second: Array


def perron_norm(F: Array) -> float:
    """The norm of F in units of the states that make it smallest: the largest eigenvalue of |F| (Perron 1907)."""
    return float(np.linalg.eigvals(np.abs(F)).real.max(initial=0.0)) if F.size else 0.0


def is_short_step(F: Array, longest: float, *, size: float | None = None) -> bool:
    """Whether steps up to this length are short for F: small enough that a series costs little, and of few terms.

    Its size, where it is known, saves time.
    """
    return len(F) <= _MAX_SERIES_STATES and (perron_norm(F) if size is None else size) * longest <= _SHORT_NORM


def phi_series(F: Array, h: Array) -> PhiFunctions:
    """φ-functions of Fh for short lengths h (first axis): φ₂ by its series, then φ₁ = 1 + Fh φ₂ and e^{Fh} likewise."""
    M, identity = F * h[:, None, None], np.eye(len(F))
    second = np.broadcast_to(identity, M.shape)
    for power in range(_n_terms(np.abs(F) * h.max(initial=0.0)), 0, -1):  # 2 Σ M^k/(k+2)!, innermost factor first
        second = identity + M @ second / (power + 2)
    second = 0.5 * second
    first = identity + M @ second
    return PhiFunctions(identity + M @ first, first, second)


def _n_terms(sizes: Array) -> int:
    """After how many terms all that follow are dust in every entry of 2 Σ |M|^k/(k+2)!.

    An entry may begin late: it takes k factors for a state to act on one that is k connections away. Once a term is
    dust beside the sum in all entries, so are those after it: each is one before it, times |M| as the sum is.
    """
    term = total = np.eye(len(sizes))
    for count in range(1, _MOST_TERMS):
        term = term @ sizes / (count + 2)
        if count % 4 == 0 and np.all(term <= EPS / 16.0 * total):
            return count
        total = total + term
    return _MOST_TERMS


# MERGED ltinet.simulation.propagators
# Exponentials of small matrices that keep the digits of small entries, where SciPy's are known to have lost them.
#
# SciPy divides one polynomial by another. Where elimination changes rows, entries that are small beside others (what
# states do that are hardly coupled to the rest) come out as rounding of large ones. A series of a short step that is
# squared until it is long divides by nothing: products and sums leave small entries small. It is squared oftener, and
# what that costs is known for every entry. An entry that differs by more is taken from it, any other is SciPy's.

_MAX_ROWS = 24  # rows, those of inputs included
_WEAK_COUPLING = (
    1e-6  # of what two states do on themselves: how much they do on each other and back, which has no units
)
_MAX_SQUARINGS = 64  # squarings: rounding is all that more of them leave


def restore_small_entries(found: Array, matrices: Array) -> Array:
    """SciPy's exponentials of matrices along the first axis, without the entries that are known to be wrong."""
    size = perron_norm(np.abs(matrices).max(axis=0, initial=0.0)) if matrices.shape[-1] <= _MAX_ROWS else np.inf
    if not size < 2.0**_MAX_SQUARINGS or not _is_weakly_coupled(matrices, size):
        return found
    own, error = _squared_exponentials(matrices)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(found - own) > 2.0 * error, own, found)


def _is_weakly_coupled(matrices: Array, size: float) -> bool:
    """Whether some states act on each other so weakly that rounding may hide it."""
    sizes = np.abs(matrices).max(axis=0, initial=0.0) / max(size, 1.0)
    reach = _series_exponential(sizes)
    on_itself = reach.diagonal()
    there_and_back = reach * reach.T / np.multiply.outer(on_itself, on_itself)
    return bool(np.any((there_and_back > 0.0) & (there_and_back < _WEAK_COUPLING)))


def _squared_exponentials(matrices: Array) -> tuple[Array, Array]:
    """Exponentials by squaring a short one, and by how much each entry may be off."""
    counts = _n_squarings(matrices)
    short, n = np.ldexp(matrices, -counts[:, None, None]), matrices.shape[-1]
    P, reach = (np.array([_series_exponential(own) for own in stack]) for stack in (short, np.abs(short)))
    rounding = (n + 3) * EPS  # of a product and the sums beside it
    error = rounding * (reach + np.abs(short) @ reach)
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(int(counts.max(initial=0))):
            on = counts > level
            sizes = np.abs(P[on])
            error[on] = sizes @ error[on] + error[on] @ (sizes + error[on]) + rounding * (sizes @ sizes)
            P[on] = P[on] @ P[on]
    return P, error


def _series_exponential(M: Array) -> Array:
    """e^M, by its series."""
    return np.asarray(phi_series(M, np.ones(1)).exponential[0])


def _n_squarings(matrices: Array) -> NDArray[np.intp]:
    """How often each is halved until its step is short."""
    sizes = np.array([perron_norm(own) for own in matrices])
    return np.asarray(np.ceil(np.log2(np.maximum(sizes, 1.0))), dtype=np.intp)


# MERGED ltinet.simulation.propagators
# Steps of a coupled block in pairs of doubles.
#
# The engine takes them where a step is so long that squaring an exponential in double precision would lose slow states,
# and error bounds compare shorter steps with them.

_TINY = 2.0**-1000  # below it the inverse of a power of two overflows


def double_double_steps(F: Array, G: Array, lengths: Array, *, linear: bool) -> list[tuple[Array, Array]]:
    """P and what inputs at both ends add, `(lengths, …)`, each as high + low, from one exponential (Van Loan 1978).

    Lengths come in rows, each half of the one before. exp(h [[F, G, 0], [0, 0, I/s], [0, 0, 0]]) has e^{Fh}, h φ₁ G and
    h² φ₂ G/s in its first rows; s, a power of two near h, keeps all of one size. So do units of inputs: balancing finds
    none for what nothing acts on.
    """
    n, m = G.shape
    scale = 2.0 ** math.frexp(float(lengths.max()))[1]
    whole = np.zeros((n + 2 * m, n + 2 * m))
    whole[:n, :n], whole[:n, n : n + m] = F, G
    whole[n : n + m, n + m :] = np.eye(m) / scale
    states = balancing_units(F)
    inputs = _power_of_two_scale(scale * np.abs(G / states[:, None]).max(axis=0, initial=0.0))
    units = np.concatenate([states, 1.0 / inputs, 1.0 / inputs])
    levels = [extended_exponentials(whole, float(first), len(lengths) - 1, units=units) for first in lengths[0]]
    high, low = (np.array([[own[part] for own in column] for column in levels]) for part in (0, 1))
    high, low = (part.swapaxes(0, 1).reshape(lengths.size, *whole.shape)[:, :n] for part in (high, low))
    first = high[:, :, n : n + m], low[:, :, n : n + m]
    nothing = np.zeros_like(first[0])
    if not linear:
        return [(high[:, :, :n], low[:, :, :n]), first, (nothing, nothing)]
    shares = (scale / lengths.ravel())[:, None, None]
    second = high[:, :, n + m :] * shares
    # One more rounding, of numbers no larger than what inputs add: far below what is looked for.
    return [(high[:, :, :n], low[:, :, :n]), (first[0] - second, first[1]), (second, nothing)]


def _power_of_two_scale(sizes: Array) -> Array:
    """Powers of two that are as large; 1 for nothing, and for what is no number."""
    usable = np.where((sizes > _TINY) & (sizes < 1.0 / _TINY), sizes, 1.0)
    return np.asarray(np.ldexp(1.0, np.frexp(usable)[1]))


# MERGED ltinet.simulation.propagators
# Exact steps of z' = F z + G u over a time h, for inputs that are constant or straight lines between two samples.
#
#     linear    z(t+h) = e^{Fh} z + h(φ₁ − φ₂)(Fh) G u_k + h φ₂(Fh) G u_{k+1}
#     constant  z(t+h) = e^{Fh} z + h φ₁(Fh) G u_k
#
# with φ₁(z) = (e^z − 1)/z and φ₂(z) = (e^z − 1 − z)/z², entire functions: λ = 0 and defective blocks are ordinary cases.

# Of ‖Fh‖, from which squaring in double precision costs slow states more than 1e-13 of their size: 1e-13/eps.
_MAX_SQUARING_NORM = 5e2
_MAX_PATTERN_STATES = 32  # states up to which it costs little to see which of them act on which
_MAX_DOUBLE_DOUBLE_STATES = 128  # states: of more it takes seconds
_MAX_EXPM_NORM = 1e30  # in the 1-norm: of dense matrices from about 1e38 on SciPy's exponential is never done
_TRIANGULAR_RATIO = 20.0  # by how much more stands above the diagonal of a matrix that is nearly triangular
_TAYLOR_LIMIT = 1.0  # |z| below which φ₂ is a Taylor series: the subtraction in (φ₁ − 1)/z would lose digits


def phi_functions(z: NDArray[Any], exponentials: NDArray[Any] | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """φ₁ and φ₂, right to a few units for any z; e^z, where it is known, saves time.

    Near 0 φ₂ is its Taylor series and φ₁ = 1 + z φ₂, elsewhere both are differences.
    """
    size = np.abs(z)
    small = size < _TAYLOR_LIMIT
    if small.all():
        second = _phi2_near_zero(z, largest=float(size.max(initial=0.0)))
        return 1.0 + z * second, second
    away = np.where(small, 1.0, z) if small.any() else z
    first = ((np.exp(away) if exponentials is None else exponentials) - 1.0) / away
    second = (first - 1.0) / away
    if away is not z:
        near = z[small]
        second[small] = _phi2_near_zero(near, largest=float(size[small].max()))
        first[small] = 1.0 + near * second[small]
    return first, second


def phi2(z: NDArray[Any]) -> NDArray[Any]:
    """(e^z − 1 − z)/z², with 1/2 at z = 0."""
    return phi_functions(z)[1]


def _phi2_near_zero(z: NDArray[Any], *, largest: float) -> NDArray[Any]:
    """Σ z^k/(k+2)! for |z| up to `largest` ≤ 1, innermost factor first, as far as terms matter beside the first."""
    term, count = 1.0, 0
    while term > EPS / 16.0:
        count += 1
        term *= largest / (count + 2)
    series = np.ones_like(z)
    for power in range(count - 1, 0, -1):
        series *= z
        series /= power + 2
        series += 1.0
    series *= 0.5
    return series


def exp_of_multiples(rates: NDArray[np.complex128], length: float, counts: NDArray[np.intp]) -> NDArray[np.complex128]:
    """e^{kλh} for rates λ (last axis) and whole numbers k (first axis), right to a few units whatever the size of kλh.

    The product alone would be rounded, and its exponential be off by |kλh| units. What rounding took from it comes back
    as a factor 1 + (kλh − fl(kλh)).
    """
    k = counts.astype(np.float64)[:, None]
    z, lost = exact_exponents(rates, np.array([length]))
    z, more = exact_exponents(z[0], k[:, 0])
    return _scalar_exponentials(z, more + k * lost)


def exact_exponents(rates: NDArray[Any], h: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """λh for rates (last axis) and lengths (first axis), and what rounding took from it."""
    z, lost = np.empty((2, len(h), len(rates)), dtype=rates.dtype)
    parts = [(rates, z, lost)]
    if np.iscomplexobj(rates):
        parts = [(rates.real, z.real, lost.real), (rates.imag, z.imag, lost.imag)]
    for own, own_z, own_lost in parts:
        own_z[:], own_lost[:] = two_product(own, h[:, None])
    return z, lost


def _scalar_exponentials(z: NDArray[Any], lost: NDArray[Any]) -> NDArray[Any]:
    """e^{z + lost}."""
    result: NDArray[Any] = np.exp(z)
    result += np.multiply(result, lost, out=np.zeros_like(result), where=np.isfinite(result))
    return result


class StepMatrices(NamedTuple):
    """P = e^{Fh}, and what u at both ends of the step adds: z(t+h) = P z + begin u_k + end u_{k+1}."""

    P: NDArray[Any]
    begin: NDArray[Any]
    end: NDArray[Any]


def scalar_steps(rates: NDArray[Any], h: NDArray[np.float64], *, linear: bool) -> StepMatrices:
    """Steps of v' = λ v + g for many rates λ (last axis) and many lengths h (first axis), per unit of g."""
    if not len(rates):
        return StepMatrices(*np.zeros((3, len(h), 0), dtype=rates.dtype))
    z, lost = exact_exponents(rates, h)
    P, lengths = _scalar_exponentials(z, lost), h[:, None]
    first, second = phi_functions(z, P)
    first *= lengths
    if not linear:
        return StepMatrices(P, first, np.zeros_like(first))
    second *= lengths
    return StepMatrices(P, first - second, second)


def matrix_steps(
    F: Matrix, G: Matrix, h: NDArray[np.float64], *, linear: bool, longest: float | None = None
) -> StepMatrices:
    """Steps of z' = F z + G u for many lengths h (first axis).

    By series where all are short, in pairs of doubles where some are very long: an exponential is squared
    log₂‖Fh‖ times, and each time the error of slow states doubles. `longest` decides on that
    for all steps of a run, of which h are some.
    """
    if is_short_step(F, float(h.max(initial=0.0))):
        return _short_steps(F, G, h, linear=linear)
    if (
        len(F) <= _MAX_DOUBLE_DOUBLE_STATES
        and _balanced_norm(F) * (float(h.max(initial=0.0)) if longest is None else longest) > _MAX_SQUARING_NORM
    ):
        (P, _), (begin, _), (end, _) = double_double_steps(F, G, h[None], linear=linear)
        return StepMatrices(P, begin, end)
    if not _is_upper(F.T):
        return _long_steps(F, G, h, linear=linear)
    P, begin, end = _long_steps(F[::-1, ::-1], G[::-1], h, linear=linear)  # see `_with_less_elimination`
    return StepMatrices(*map(np.ascontiguousarray, (P[:, ::-1, ::-1], begin[:, ::-1], end[:, ::-1])))


def _balanced_norm(F: Matrix) -> float:
    """‖F‖₁ in the units that balance F."""
    units = balancing_units(F)
    with np.errstate(over="ignore"):
        return float(np.abs(F * (units / units[:, None])).sum(axis=0).max(initial=0.0))


def _is_upper(sizes: Matrix) -> bool:
    """Whether nearly all of a matrix is above its diagonal."""
    return bool(np.abs(np.triu(sizes, 1)).sum() > _TRIANGULAR_RATIO * np.abs(np.tril(sizes, -1)).sum())


def _short_steps(F: Matrix, G: Matrix, h: NDArray[np.float64], *, linear: bool) -> StepMatrices:
    """Steps in which every entry is right relative to the terms that make it."""
    phi, lengths = phi_series(F, h), h[:, None, None]
    first = lengths * (phi.first @ G)
    if not linear:
        return StepMatrices(phi.exponential, first, np.zeros_like(first))
    second = lengths * (phi.second @ G)
    return StepMatrices(phi.exponential, first - second, second)


def _long_steps(F: Matrix, G: Matrix, h: NDArray[np.float64], *, linear: bool) -> StepMatrices:
    """One matrix exponential of the augmented system for each length.

    exp([[Fh, Gh, 0], [0, 0, I], [0, 0, 0]]) has e^{Fh}, h φ₁ G and h φ₂ G in its first block row (Van Loan 1978). Gh is
    scaled to the size of I and its size multiplied in at the end; a step of length zero is no special case.
    """
    n, m = G.shape
    columns = max(m, 1)  # without inputs one of zeros: see `_exponentials`
    size = float(np.max(np.abs(G), initial=0.0)) or 1.0
    lengths = h[:, None, None]
    augmented = np.zeros((len(h), n + 2 * columns, n + 2 * columns))
    augmented[:, :n, :n], augmented[:, :n, n : n + m] = F * lengths, G / size
    augmented[:, n : n + columns, n + columns :] = np.eye(columns)
    exponentials = _exact_exponentials(F, h, augmented)
    first = exponentials[:, :n, n : n + m] * (size * lengths)
    if not linear:
        return StepMatrices(exponentials[:, :n, :n], first, np.zeros_like(first))
    second = exponentials[:, :n, n + columns :][:, :, :m] * (size * lengths)
    return StepMatrices(exponentials[:, :n, :n], first - second, second)


def _exact_exponentials(F: Matrix, h: NDArray[np.float64], augmented: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those of augmented systems of F and lengths h, with zeros where there are zeros."""
    n, gaps = len(F), np.abs(np.diff(F.diagonal(), append=0.0)) * h[:, None]
    nearly_equal = np.any((gaps > 0.0) & (gaps < 1.0), axis=1)
    exponentials = _exponentials(augmented, n, nearly_equal=nearly_equal, in_units=bool(np.tril(F, -2).any()))
    if n <= _MAX_PATTERN_STATES and not F.all():
        exponentials[:, ~reachable_entries(np.any(augmented != 0.0, axis=0))] = 0.0
    return exponentials


def reachable_entries(pattern: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which entries of functions of a matrix may not be zero: where there is a way from one state to the other.

    SciPy's exponential solves with pivots, which leaves rounding where there is none.
    """
    ways = (pattern | np.eye(len(pattern), dtype=bool)).astype(np.float32)
    for _ in range(max(len(pattern) - 1, 1).bit_length()):  # ways of up to 2, 4, 8, … connections
        ways = np.minimum(ways @ ways, 1.0)
    return np.asarray(ways > 0.0)


def _exponentials(
    augmented: NDArray[np.float64], n: int, *, nearly_equal: NDArray[np.bool_], in_units: bool
) -> NDArray[np.float64]:
    """Matrix exponentials, by a way that spares the digits of eigenvalues that are close but not equal.

    SciPy treats triangular matrices apart, by divided differences (e^a − e^b)/(a − b): best for stiff ones, but six
    digits are lost where a and b are 1e-9 apart. With the states upside down between the inputs and their increase
    nothing is triangular, and SciPy squares its Padé approximant as it does for any other matrix.
    """
    result = np.empty_like(augmented)
    of_any_size = partial(_balanced_exponentials, in_units=in_units)
    if not nearly_equal.all():
        result[~nearly_equal] = of_any_size(augmented[~nearly_equal])
    if nearly_equal.any():
        columns = (augmented.shape[-1] - n) // 2
        order = np.concatenate([n + np.arange(columns), np.arange(n)[::-1], n + columns + np.arange(columns)])
        back = np.argsort(order)
        turned = of_any_size(augmented[nearly_equal][:, order[:, None], order])
        result[nearly_equal] = turned[:, back[:, None], back]
    return result


def _balanced_exponentials(matrices: NDArray[np.float64], *, in_units: bool) -> NDArray[np.float64]:
    """SciPy's exponentials, where asked for in units in which a matrix is smallest; NaN where SciPy would not end.

    SciPy squares as often as the size of a matrix asks for. In units that make it large, small entries of the result go
    through many squarings that they do not need, and are known to a unit of large ones. Triangular matrices have such
    entries on one side only, and keep more digits as they are.
    """
    result = np.full_like(matrices, np.nan)
    finite = np.flatnonzero(np.isfinite(matrices).all(axis=(1, 2)))
    own, units = matrices[finite], np.ones((len(finite), matrices.shape[-1]))
    if in_units or not _terminates(own).all():
        units = np.array([balancing_units(matrix) for matrix in own]).reshape(units.shape)
        own = own * (units[:, None, :] / units[:, :, None])
    ends = _terminates(own)
    result[finite[ends]] = _with_less_elimination(own[ends]) * (units[:, :, None] / units[:, None, :])[ends]
    return result


def _terminates(matrices: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the exponentials of such matrices do."""
    return np.asarray(np.abs(matrices).sum(axis=-2).max(axis=-1, initial=0.0) < _MAX_EXPM_NORM)


def _with_less_elimination(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exponentials of matrices or of their transposes, whichever eliminates less.

    SciPy divides by a polynomial, and eliminates in its transpose. Where large entries stand below the diagonal there,
    rows change places, and small entries of the result are known to a unit of large ones: a nearly triangular matrix is
    transposed so that elimination has nothing to do.
    """
    sizes = np.abs(matrices).reshape(-1, *matrices.shape[-2:]).sum(axis=0)
    if _is_upper(sizes):
        found = np.ascontiguousarray(_scaled_and_squared(matrices.swapaxes(-1, -2)).swapaxes(-1, -2))
    else:
        found = _scaled_and_squared(matrices)
    return restore_small_entries(found, matrices)


def _scaled_and_squared(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """SciPy's exponentials of matrices that are scaled to a norm of two at most, squared afterwards.

    Of larger norms SciPy's denominator is ill-conditioned. Of 250 random matrices of norms 1 to 40 the worst error
    beside mpmath was 1.5e-12 of the largest entry; scaled to a norm of 4, 2, 1 and ½ first it was 1.5e-12, 4.5e-15,
    7.5e-15 and 2.9e-14. Triangular matrices SciPy treats apart, and better.
    """
    if not matrices.size or not np.tril(matrices, -1).any() or not np.triu(matrices, 1).any():
        return np.asarray(linalg.expm(matrices))
    norms = np.abs(matrices).sum(axis=-2).max(axis=-1)
    halvings = np.ceil(np.log2(np.maximum(norms, 2.0) / 2.0)).astype(np.intp)
    found = np.asarray(linalg.expm(np.ldexp(matrices, -halvings[:, None, None])))
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(int(halvings.max(initial=0))):
            on = halvings > level
            found[on] = found[on] @ found[on]
    return found


# MERGED ltinet.simulation.propagators
# Numbers with twice the digits of a double, as the sum of two, and exponentials e^{kλq}, k = 0, 1, 2 … of that kind.
#
# What is prepared for many steps must not be off in the same direction in all of them: what is below the last digit of
# one step is above it after a million.

_CUBIC_LIMIT = 2.0**-10  # |x| below which x³/6 + … need no more than the digits of a double, beside x
_MAX_EXPONENT = 2.0**1000  # exponents beyond are like it: nothing is left, or what is left is no number


class DoubleDouble(NamedTuple):
    """The numbers high + low, real or complex."""

    high: NDArray[Any]
    low: NDArray[Any]

    def part(self, own: slice) -> "DoubleDouble":
        """Some rows."""
        return DoubleDouble(self.high[own], self.low[own])


def double_double_exponential_table(
    rates: NDArray[Any], step: float, count: int, *, less_one: NDArray[np.bool_]
) -> DoubleDouble:
    """e^{kλq}, or e^{kλq} − 1, `(count, n_rates)`, for a step q that is a power of two; right to 2⁻⁷⁰ max(1, |kλq|)."""
    z = rates * step
    once = _expm1_by_doubling(z, np.zeros_like(z))
    found = DoubleDouble(np.zeros((1, *z.shape), dtype=z.dtype), np.zeros((1, *z.shape), dtype=z.dtype))
    while len(found.high) < count:
        more = _compose_expm1(found, once)
        found = DoubleDouble(np.concatenate([found.high, more.high]), np.concatenate([found.low, more.low]))
        once = _compose_expm1(once, once)
    ones = DoubleDouble(np.where(less_one, 0.0, 1.0), np.zeros(len(rates)))
    return add(ones, found.part(slice(0, count)))


def double_double_exponentials(rates: NDArray[Any], lengths: NDArray[np.float64]) -> DoubleDouble:
    """e^{λh}, `(lengths, n_rates)`, for any lengths; right to 2⁻⁷⁰ max(1, |λh|)."""
    found = _expm1_by_doubling(*exact_exponents(rates, lengths))
    return add(DoubleDouble(np.ones_like(found.high), np.zeros_like(found.low)), found)


def _expm1_by_doubling(z: NDArray[Any], lost: NDArray[Any]) -> DoubleDouble:
    """e^{z + lost} − 1."""
    largest = float(np.abs(z).max(initial=0.0))
    if not largest < _MAX_EXPONENT:
        z, lost, largest = _clip_exponents(z), np.where(np.isfinite(lost), lost, 0.0), 2.0 * _MAX_EXPONENT
    halvings = max(0, int(np.ceil(np.log2(max(largest, _CUBIC_LIMIT) / _CUBIC_LIMIT))))
    share = np.ldexp(1.0, -halvings)
    high, low = _expm1(share * z)
    once = DoubleDouble(high, low + share * lost * (1.0 + share * z))
    for _ in range(halvings):
        once = _compose_expm1(once, once)
    return once


def _clip_exponents(z: NDArray[Any]) -> NDArray[Any]:
    """Exponents of which nothing is left, or which exceed all numbers or turn by more than any digit tells."""
    if not np.iscomplexobj(z):
        return np.asarray(np.clip(z, -_MAX_EXPONENT, _MAX_EXPONENT))
    return np.asarray(
        np.clip(z.real, -_MAX_EXPONENT, _MAX_EXPONENT) + 1j * np.clip(z.imag, -_MAX_EXPONENT, _MAX_EXPONENT)
    )


def subtract_product(given: DoubleDouble, left: DoubleDouble, right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Given − left @ right for real matrices, of which the leading digits cancel."""
    total, lost = given.high, given.low - left.low @ right
    for column, row in zip(left.high.T, right, strict=True):
        term, lost_term = two_product(column[:, None], row)
        total, more = two_sum(total, -term)
        lost = lost + (more - lost_term)
    return np.asarray(total + lost)


def multiply(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """The product."""
    if not np.iscomplexobj(a.high):
        high, low = two_product(a.high, b.high)
    else:
        high, low = _complex_product(a.high, b.high)
    return DoubleDouble(*two_sum(high, low + (a.high * b.low + a.low * b.high)))


def add(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """The sum."""
    high, low = two_sum(a.high, b.high)
    return DoubleDouble(*two_sum(high, low + (a.low + b.low)))


def _expm1(x: NDArray[Any]) -> DoubleDouble:
    """e^x − 1 for tiny x."""
    whole = DoubleDouble(x, np.zeros_like(x))
    square = multiply(whole, DoubleDouble(0.5 * x, np.zeros_like(x)))
    rest = x * x * x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x / 5040.0))))
    return add(whole, DoubleDouble(square.high, square.low + rest))


def _compose_expm1(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """e^{x+y} − 1 = a + b + a b from a = e^x − 1 and b = e^y − 1."""
    return add(add(a, b), multiply(a, b))


def _complex_product(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The product of complex doubles rounded, and what rounding took from it."""
    high, low = (np.empty(np.broadcast_shapes(a.shape, b.shape), dtype=np.complex128) for _ in range(2))
    (xv, lost_xv), (yw, lost_yw) = two_product(a.real, b.real), two_product(a.imag, b.imag)
    (xw, lost_xw), (yv, lost_yv) = two_product(a.real, b.imag), two_product(a.imag, b.real)
    high.real, lost = two_sum(xv, -yw)
    low.real = lost + (lost_xv - lost_yw)
    high.imag, lost = two_sum(xw, yv)
    low.imag = lost + (lost_xw + lost_yv)
    return high, low
