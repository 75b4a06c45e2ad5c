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
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.double_double import outer_product
from ltinet._util.floating_point import EPS, Array, balancing_units
from ltinet._util.phi_functions import phi_functions
from ltinet.error_bounds.double_double_exponentials import double_double_steps
from ltinet.systems.matrices import Matrix

_SHORT_NORM = 1.0  # Perron root of |F|h up to which a step is short: e^|Fh| is at most e, so that little cancels
_MAX_SERIES_STATES = 16  # states: with more of them few sums of so many terms are tiny beside others
_MAX_SERIES_TERMS = _MAX_SERIES_STATES + 20  # along a chain of all states, and then as for a norm of one
# ‖Fh‖ from which squaring in double precision costs slow states more than 1e-13 of their size: 1e-13/eps.
_MAX_SQUARING_NORM = 5e2
_MAX_DOUBLE_DOUBLE_STATES = 128  # states: for more of them double-double steps take seconds
_MAX_PATTERN_STATES = 32  # states up to which the connections between states are cheap to compute
_MAX_EXPM_NORM = 1e30  # 1-norm; SciPy's exponential of dense matrices does not terminate from about 1e38 on
_TRIANGULAR_RATIO = 20.0  # empirical: sums above and below the diagonal of a nearly triangular matrix
_MAX_RESTORED_ROWS = 24  # rows of matrices, inputs included, whose small entries are restored
# Coupling there and back of two states, relative to their own entries (no unit), that rounding may hide. Empirical.
_WEAK_COUPLING = 1e-6
_MAX_SQUARINGS = 64  # squarings after which nothing but rounding is left

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

    Short steps are series, very long ones are computed in double-double arithmetic: an exponential is squared
    log₂‖Fh‖ times, and each time the error of slow states doubles. `longest` is the longest step of a run of which h
    are some lengths; all steps of a run are computed in the same arithmetic.
    """
    longest_here = float(h.max(initial=0.0))
    if is_short_step(F, longest_here):
        phi, lengths = phi_series(F, h), h[:, None, None]
        first, second = lengths * (phi.first @ G), lengths * (phi.second @ G)
        return _step_from_phi(phi.exponential, first, second, linear=linear)
    if _needs_double_double(F, longest_here if longest is None else longest):
        (P, _), (begin, _), (end, _) = double_double_steps(F, G, h[None], linear=linear)
        return StepMatrices(P, begin, end)
    if not _is_upper(F.T):
        return _expm_steps(F, G, h, linear=linear)
    P, begin, end = _expm_steps(F[::-1, ::-1], G[::-1], h, linear=linear)  # see `_transposed_expm`
    return StepMatrices(*map(np.ascontiguousarray, (P[:, ::-1, ::-1], begin[:, ::-1], end[:, ::-1])))


def perron_norm(F: Array) -> float:
    """Return the 1-norm of F in the units of the states that minimize it: the Perron root of |F| (Perron 1907)."""
    return float(np.linalg.eigvals(np.abs(F)).real.max(initial=0.0)) if F.size else 0.0


def is_short_step(F: Array, longest: float, *, size: float | None = None) -> bool:
    """Return True if steps up to this length are short enough for series; `size` is the Perron root if it is known."""
    return len(F) <= _MAX_SERIES_STATES and (perron_norm(F) if size is None else size) * longest <= _SHORT_NORM


def _needs_double_double(F: Matrix, longest: float) -> bool:
    """Return True if the 1-norm of Fh, in the units that balance F, is too large for squaring in double precision."""
    if len(F) > _MAX_DOUBLE_DOUBLE_STATES:
        return False
    with np.errstate(over="ignore"):
        # ‖F‖₁ ≤ √n ‖F‖_F, and balancing does not increase ‖F‖_F: mostly this decides.
        if math.sqrt(len(F)) * np.linalg.norm(F) * longest <= _MAX_SQUARING_NORM:
            return False
        units = balancing_units(F)
        norm = float(np.abs(F * (units / units[:, None])).sum(axis=0).max(initial=0.0))
    return norm * longest > _MAX_SQUARING_NORM


def _is_upper(sizes: Matrix) -> bool:
    """Return True if nearly all of a matrix is above its diagonal."""
    return bool(np.abs(np.triu(sizes, 1)).sum() > _TRIANGULAR_RATIO * np.abs(np.tril(sizes, -1)).sum())


# Short steps: φ-functions by Taylor series.
#
# SciPy's exponential is accurate relative to the norm of the matrix: where states have units that differ by decades,
# entries that are small beside others keep no digit. The Taylor series Σ M^k/k! has an error of a few units of Σ|M|^k/k!
# in every entry, which does not depend on the units of the states.


class PhiFunctions(NamedTuple):
    """e^M, φ₁(M) and φ₂(M) of matrices along the first axis."""

    exponential: Array
    first: Array
    second: Array


def phi_series(F: Array, h: Array) -> PhiFunctions:
    """Return φ-functions of Fh for short lengths h (first axis): φ₂ by its series, φ₁ = 1 + Fh φ₂, e^{Fh} = 1 + Fh φ₁."""
    M, identity = F * h[:, None, None], np.eye(len(F))
    second = np.broadcast_to(identity, M.shape)
    for power in range(_n_terms(np.abs(F) * h.max(initial=0.0)), 0, -1):  # Horner's rule for 2 Σ M^k/(k+2)!
        second = identity + M @ second / (power + 2)
    second = 0.5 * second
    first = identity + M @ second
    return PhiFunctions(identity + M @ first, first, second)


def _n_terms(sizes: Array) -> int:
    """Return the number of terms after which all others are negligible in every entry of 2 Σ |M|^k/(k+2)!.

    An entry may begin late: it takes k factors for a state to act on one that is k connections away. If a term is
    negligible beside the sum in all entries, so are the next ones: each is the one before times |M|, as the sum is.
    """
    term = total = np.eye(len(sizes))
    for count in range(1, _MAX_SERIES_TERMS):
        term = term @ sizes / (count + 2)
        if count % 4 == 0 and np.all(term <= EPS / 16.0 * total):
            return count
        total = total + term
    return _MAX_SERIES_TERMS


# Steps by SciPy's matrix exponential.


def _expm_steps(F: Matrix, G: Matrix, h: NDArray[np.float64], *, linear: bool) -> StepMatrices:
    """Return steps from one matrix exponential of the augmented system for each length.

    exp([[Fh, Gh, 0], [0, 0, I], [0, 0, 0]]) has e^{Fh}, h φ₁ G and h φ₂ G in its first block row (Van Loan 1978). G is
    scaled to the size of I and multiplied by its size and h at the end; a step of length zero is no special case.

    SciPy treats triangular matrices separately, by divided differences (e^a − e^b)/(a − b): best for stiff ones, but six
    digits are lost where a and b are 1e-9 apart. For eigenvalues that are close but not equal the states are put upside
    down between the inputs and their increments: then nothing is triangular.
    """
    n, m = G.shape
    columns = max(m, 1)  # at least one, of zeros, so that the order below can break the triangular form
    size = float(np.max(np.abs(G), initial=0.0)) or 1.0
    lengths = h[:, None, None]
    augmented = np.zeros((len(h), n + 2 * columns, n + 2 * columns))
    augmented[:, :n, :n], augmented[:, :n, n : n + m] = F * lengths, G / size
    augmented[:, n : n + columns, n + columns :] = np.eye(columns)

    gaps = np.abs(np.diff(F.diagonal(), append=0.0)) * h[:, None]
    nearly_equal = np.any((gaps > 0.0) & (gaps < 1.0), axis=1)
    in_units = linalg.bandwidth(F)[0] > 1
    exponentials = np.empty_like(augmented)
    if not nearly_equal.all():
        exponentials[~nearly_equal] = _balanced_expm(augmented[~nearly_equal], in_units=in_units)
    if nearly_equal.any():
        inputs = n + np.arange(columns)
        order = np.concatenate([inputs, np.arange(n)[::-1], inputs + columns])
        back = np.argsort(order)
        permuted = _balanced_expm(augmented[nearly_equal][:, order[:, None], order], in_units=in_units)
        exponentials[nearly_equal] = permuted[:, back[:, None], back]
    if n <= _MAX_PATTERN_STATES and not F.all():
        exponentials[:, ~reachable_entries(np.any(augmented != 0.0, axis=0))] = 0.0

    first = exponentials[:, :n, n : n + m] * (size * lengths)
    second = exponentials[:, :n, n + columns :][:, :, :m] * (size * lengths)
    return _step_from_phi(exponentials[:, :n, :n], first, second, linear=linear)


def reachable_entries(pattern: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the entries of functions of a matrix that may be nonzero: those with a path from one state to the other.

    SciPy's exponential solves with pivoting, which leaves rounding errors where there is no path.
    """
    paths = (pattern | np.eye(len(pattern), dtype=bool)).astype(np.float32)
    for _ in range(max(len(pattern) - 1, 1).bit_length()):  # paths of up to 2, 4, 8, … connections
        paths = np.minimum(paths @ paths, 1.0)
    return np.asarray(paths > 0.0)


def _balanced_expm(matrices: NDArray[np.float64], *, in_units: bool) -> NDArray[np.float64]:
    """Return SciPy's exponentials, on request in units that balance each matrix; NaN where SciPy would not terminate.

    SciPy squares as often as the norm of a matrix requires. In units that make it large, small entries of the result
    pass many squarings that they do not need, and keep the absolute error of large ones. Triangular matrices have such
    entries on one side only, and keep more digits as they are.
    """
    result = np.full_like(matrices, np.nan)
    finite = np.flatnonzero(np.isfinite(matrices).all(axis=(1, 2)))
    balanced, units = matrices[finite], np.ones((len(finite), matrices.shape[-1]))
    if in_units or not _terminates(balanced).all():
        units = np.array([balancing_units(matrix) for matrix in balanced]).reshape(units.shape)
        balanced = balanced * (units[:, None, :] / units[:, :, None])
    ends = _terminates(balanced)
    result[finite[ends]] = _transposed_expm(balanced[ends]) * (units[:, :, None] / units[:, None, :])[ends]
    return result


def _terminates(matrices: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return True for matrices whose exponentials SciPy can compute in finite time."""
    return np.asarray(np.abs(matrices).sum(axis=-2).max(axis=-1, initial=0.0) < _MAX_EXPM_NORM)


def _transposed_expm(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exponentials of matrices, via their transposes if that eliminates less.

    SciPy divides by a polynomial, and eliminates in its transpose. Where large entries stand below the diagonal there,
    rows are exchanged, and small entries of the result keep the absolute error of large ones: a nearly triangular
    matrix is transposed so that elimination has nothing to do.
    """
    sizes = np.abs(matrices).reshape(-1, *matrices.shape[-2:]).sum(axis=0)
    if _is_upper(sizes):
        exponentials = np.ascontiguousarray(_scaled_expm(matrices.swapaxes(-1, -2)).swapaxes(-1, -2))
    else:
        exponentials = _scaled_expm(matrices)
    return restore_small_entries(exponentials, matrices)


def _scaled_expm(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return SciPy's exponentials of matrices that are scaled to a norm of at most two, then squared.

    For larger norms SciPy's denominator is ill-conditioned. Of 250 random matrices of norms 1 to 40 the worst error
    against mpmath was 1.5e-12 of the largest entry; scaled to a norm of 4, 2, 1 and ½ first it was 1.5e-12, 4.5e-15,
    7.5e-15 and 2.9e-14. Triangular matrices are treated separately by SciPy, and better.
    """
    if not matrices.size or 0 in linalg.bandwidth(np.any(matrices, axis=0)):
        return np.asarray(linalg.expm(matrices))
    norms = np.abs(matrices).sum(axis=-2).max(axis=-1)
    halvings = np.ceil(np.log2(np.maximum(norms, 2.0) / 2.0)).astype(np.intp)
    exponentials = np.asarray(linalg.expm(np.ldexp(matrices, -halvings[:, None, None])))
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(int(halvings.max(initial=0))):
            pending = halvings > level
            exponentials[pending] = exponentials[pending] @ exponentials[pending]
    return exponentials


# Small entries of exponentials of small matrices.
#
# SciPy divides one polynomial by another. Where elimination exchanges rows, entries that are small beside others (couplings
# of weakly coupled states) come out as the rounding of large ones. A series of a short step that is squared until it is
# long divides by nothing: products and sums keep small entries small. It is squared more often, at a cost that is bounded
# for every entry. An entry that differs by more than the bound is taken from the series, any other is SciPy's.


def restore_small_entries(exponentials: Array, matrices: Array) -> Array:
    """Return SciPy's exponentials of matrices along the first axis, with entries replaced that are provably wrong."""
    size = np.inf
    if matrices.shape[-1] <= _MAX_RESTORED_ROWS:
        size = perron_norm(np.abs(matrices).max(axis=0, initial=0.0))
    if not size < 2.0**_MAX_SQUARINGS or not _is_weakly_coupled(matrices, size):
        return exponentials
    series, error = _squared_series(matrices)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(exponentials - series) > 2.0 * error, series, exponentials)


def _is_weakly_coupled(matrices: Array, size: float) -> bool:
    """Return True if some states act on each other so weakly that rounding may hide it."""
    sizes = np.abs(matrices).max(axis=0, initial=0.0) / max(size, 1.0)
    magnitudes = _series_exponential(sizes)
    diagonal = magnitudes.diagonal()
    cycle_weights = magnitudes * magnitudes.T / np.multiply.outer(diagonal, diagonal)
    return bool(np.any((cycle_weights > 0.0) & (cycle_weights < _WEAK_COUPLING)))


def _squared_series(matrices: Array) -> tuple[Array, Array]:
    """Return exponentials by squaring the series of a short step, and a bound on the error of each entry."""
    sizes = np.array([perron_norm(matrix) for matrix in matrices])
    counts = np.asarray(np.ceil(np.log2(np.maximum(sizes, 1.0))), dtype=np.intp)
    short, n = np.ldexp(matrices, -counts[:, None, None]), matrices.shape[-1]
    P, magnitudes = (np.array([_series_exponential(matrix) for matrix in stack]) for stack in (short, np.abs(short)))
    rounding = (n + 3) * EPS  # of a product and the sums beside it
    error = rounding * (magnitudes + np.abs(short) @ magnitudes)
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(int(counts.max(initial=0))):
            pending = counts > level
            size, before = np.abs(P[pending]), error[pending]
            error[pending] = size @ before + before @ (size + before) + rounding * (size @ size)
            P[pending] = P[pending] @ P[pending]
    return P, error


def _series_exponential(M: Array) -> Array:
    return np.asarray(phi_series(M, np.ones(1)).exponential[0])
