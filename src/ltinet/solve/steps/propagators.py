"""Exact steps of z' = F z + G u over a time h, for inputs that are constant or straight lines between two samples.

    linear    z(t+h) = e^{Fh} z + h(φ₁ − φ₂)(Fh) G u_k + h φ₂(Fh) G u_{k+1}
    constant  z(t+h) = e^{Fh} z + h φ₁(Fh) G u_k

with φ₁(z) = (e^z − 1)/z and φ₂(z) = (e^z − 1 − z)/z², entire functions: λ = 0 and defective blocks are ordinary cases.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.bounds.units import best_units
from ltinet.exact_arithmetic import exact_product
from ltinet.model.matrices import Matrix
from ltinet.solve.steps.double_steps import double_steps
from ltinet.solve.steps.entrywise_exponentials import keep_small_entries
from ltinet.solve.steps.short_steps import is_short, phi_functions_of_short
from ltinet.tolerances import EPS

# Of ‖Fh‖, from which squaring in double precision costs slow states more than 1e-13 of their size: 1e-13/eps.
_LONGEST = 5e2
_FEW = 32  # states up to which it costs little to see which of them act on which
_LARGEST_IN_PAIRS = 128  # states: of more it takes seconds
_ENDS = 1e30  # in the 1-norm: of dense matrices from about 1e38 on SciPy's exponential is never done
_NEARLY_ALL = 20.0  # by how much more stands above the diagonal of a matrix that is nearly triangular
_SMALL = 1.0  # |z| below which φ₂ is a Taylor series: the subtraction in (φ₁ − 1)/z would lose digits


def phi_functions(z: NDArray[Any], exponentials: NDArray[Any] | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """φ₁ and φ₂, right to a few units for any z; e^z, where it is known, saves time.

    Near 0 φ₂ is its Taylor series and φ₁ = 1 + z φ₂, elsewhere both are differences.
    """
    size = np.abs(z)
    small = size < _SMALL
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
        own_z[:], own_lost[:] = exact_product(own, h[:, None])
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
    if is_short(F, float(h.max(initial=0.0))):
        return _short_steps(F, G, h, linear=linear)
    if (
        len(F) <= _LARGEST_IN_PAIRS
        and _balanced_norm(F) * (float(h.max(initial=0.0)) if longest is None else longest) > _LONGEST
    ):
        (P, _), (begin, _), (end, _) = double_steps(F, G, h[None], linear=linear)
        return StepMatrices(P, begin, end)
    if not _is_upper(F.T):
        return _long_steps(F, G, h, linear=linear)
    P, begin, end = _long_steps(F[::-1, ::-1], G[::-1], h, linear=linear)  # see `_by_elimination`
    return StepMatrices(*map(np.ascontiguousarray, (P[:, ::-1, ::-1], begin[:, ::-1], end[:, ::-1])))


def _balanced_norm(F: Matrix) -> float:
    """‖F‖₁ in the units that balance F."""
    units = best_units(F)
    with np.errstate(over="ignore"):
        return float(np.abs(F * (units / units[:, None])).sum(axis=0).max(initial=0.0))


def _is_upper(sizes: Matrix) -> bool:
    """Whether nearly all of a matrix is above its diagonal."""
    return bool(np.abs(np.triu(sizes, 1)).sum() > _NEARLY_ALL * np.abs(np.tril(sizes, -1)).sum())


def _short_steps(F: Matrix, G: Matrix, h: NDArray[np.float64], *, linear: bool) -> StepMatrices:
    """Steps in which every entry is right relative to the terms that make it."""
    phi, lengths = phi_functions_of_short(F, h), h[:, None, None]
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
    if n <= _FEW and not F.all():
        exponentials[:, ~reached(np.any(augmented != 0.0, axis=0))] = 0.0
    return exponentials


def reached(pattern: NDArray[np.bool_]) -> NDArray[np.bool_]:
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
    of_any_size = partial(_of_any_size, in_units=in_units)
    if not nearly_equal.all():
        result[~nearly_equal] = of_any_size(augmented[~nearly_equal])
    if nearly_equal.any():
        columns = (augmented.shape[-1] - n) // 2
        order = np.concatenate([n + np.arange(columns), np.arange(n)[::-1], n + columns + np.arange(columns)])
        back = np.argsort(order)
        turned = of_any_size(augmented[nearly_equal][:, order[:, None], order])
        result[nearly_equal] = turned[:, back[:, None], back]
    return result


def _of_any_size(matrices: NDArray[np.float64], *, in_units: bool) -> NDArray[np.float64]:
    """SciPy's exponentials, where asked for in units in which a matrix is smallest; NaN where SciPy would not end.

    SciPy squares as often as the size of a matrix asks for. In units that make it large, small entries of the result go
    through many squarings that they do not need, and are known to a unit of large ones. Triangular matrices have such
    entries on one side only, and keep more digits as they are.
    """
    result = np.full_like(matrices, np.nan)
    finite = np.flatnonzero(np.isfinite(matrices).all(axis=(1, 2)))
    own, units = matrices[finite], np.ones((len(finite), matrices.shape[-1]))
    if in_units or not _end(own).all():
        units = np.array([best_units(matrix) for matrix in own]).reshape(units.shape)
        own = own * (units[:, None, :] / units[:, :, None])
    ends = _end(own)
    result[finite[ends]] = _by_elimination(own[ends]) * (units[:, :, None] / units[:, None, :])[ends]
    return result


def _end(matrices: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the exponentials of such matrices do."""
    return np.asarray(np.abs(matrices).sum(axis=-2).max(axis=-1, initial=0.0) < _ENDS)


def _by_elimination(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Exponentials of matrices or of their transposes, whichever eliminates less.

    SciPy divides by a polynomial, and eliminates in its transpose. Where large entries stand below the diagonal there,
    rows change places, and small entries of the result are known to a unit of large ones: a nearly triangular matrix is
    transposed so that elimination has nothing to do.
    """
    sizes = np.abs(matrices).reshape(-1, *matrices.shape[-2:]).sum(axis=0)
    if _is_upper(sizes):
        found = np.ascontiguousarray(_scaled(matrices.swapaxes(-1, -2)).swapaxes(-1, -2))
    else:
        found = _scaled(matrices)
    return keep_small_entries(found, matrices)


def _scaled(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
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
