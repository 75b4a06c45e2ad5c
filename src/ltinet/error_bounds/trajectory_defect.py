"""Error of a trajectory of a linear recurrence from its defect, whatever computed the trajectory.

For exact steps x[k+1] = P x[k] + G₀ u[k] + G₁ u[k+1] and any x̃ with the defect r[k] = P x̃[k] + G₀ u[k] + G₁ u[k+1] − x̃[k+1],
the error e = x − x̃ obeys e[k+1] = P e[k] + r[k], e[0] = x[0] − x̃[0]. If e is stepped in double precision as ẽ, that has
a defect r̃ of its own, of second order, and outputs ỹ are off by

    y − ỹ = (C x̃ + D u − ỹ) + C ẽ + Σ_j C P^j r̃[k − 1 − j] .

The first two terms have signs; the sum is bounded by absolute values. It is small because r is computed exactly but for
its last digits: x̃ and u are cut into slices of about 22 bits below the largest of them at the same time, and [P G₀ G₁],
known in pairs of doubles, is cut likewise. Products of slices are sums of integers below 2⁵³ (Ozaki, Ogita, Oishi & Rump
2012), without rounding in any BLAS. What the first two slices leave is 2⁻⁴⁴ of them, and its products are rounded. Slices
are taken in units of powers of two in which states and inputs are at most one.

Besides IEEE arithmetic it is assumed that steps in pairs of doubles have the estimated errors
(`double_double_exponentials`). Rounding of the sums Σ |C P^j| is of third order and neglected.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.double_double import DoubleDouble, add, multiply, sum_matrices, two_product, two_sum
from ltinet._util.floating_point import MAX_FLOAT, Array
from ltinet.error_bounds.double_double_exponentials import DoubleDoubleStep

UNIT_ROUNDOFF = 2.0**-53
_SMALLEST = 2.0**-1074  # of underflow
_MIN_EXPONENT, _MAX_EXPONENT = (
    -900,
    900,
)  # of the largest number of a row, relative to its units; smaller ones count as 0
_MAX_RATIO = 2**14  # of exponents: beyond any of double precision
_PAIR_ROUNDING = 2.0**-96  # of sums of pairs of doubles, and of numbers that are one
_MAX_SUM_WORK = 2**33  # multiplications in sums of |C P^j|; with more lags are taken in groups
_PEAK_LAGS = (
    32  # at which |C e^{As}| is evaluated in a cell, and |e^{As}| between two of them; more give smaller bounds
)
N_CELLS = 64  # cells of time, in which defects that remain are counted; more are slower and give smaller bounds
_MAX_PRODUCT_STATES = 64  # up to which bounds of second order are products; above, cheaper ones do
_REMAINDER = 2.0**-42  # of a step and of a time constant, whose square is far below rounding
_MAX_GROWTH = 64.0  # sum of the entries of |A| times a remainder


class SlicedInput(NamedTuple):
    """Rows of factors v = first + second + rest, and the exponents of their largest entries."""

    first: Array
    second: Array
    rest: Array
    exponents: Array
    sizes: Array
    """|v|, not in the units of the slices."""


class Residual(NamedTuple):
    """Residual M v − w, and a bound on its error."""

    value: Array
    error: Array


def _split(values: Array, exponents: Array, bits: int) -> tuple[Array, Array]:
    """Return values rounded to multiples of 2^(exponents − bits), and what remains; both are exact."""
    shift = np.ldexp(1.5, exponents + (52 - bits))
    first = (values + shift) - shift
    return first, values - first


def exponents_of(values: Array, axis: int) -> Array:
    """Return exponents of the powers of two above the largest values along an axis, −900 for zeros."""
    largest = np.abs(values).max(axis=axis, initial=0.0)
    exponents = np.where(largest > 0.0, np.frexp(largest)[1], _MIN_EXPONENT)
    return np.asarray(np.clip(exponents, _MIN_EXPONENT, _MAX_EXPONENT), dtype=np.int64)


class ExactProduct:
    """Product with a matrix M = high + low, exact to about 2⁻⁸⁰ of its largest terms, for factors in certain units.

    Parameters
    ----------
    high, low : ndarray
        The matrix, (p × q).
    error : ndarray or None
        Bound on the distance from the exact matrix, entry by entry; None for none.
    units : ndarray
        Exponents of powers of two above the factors, `(q,)`.
    results : ndarray, optional
        Exponents of powers of two above the numbers that are subtracted, `(p,)`.
    """

    def __init__(
        self, high: Array, low: Array, error: Array | None, *, units: Array, results: Array | None = None
    ) -> None:
        q, sizes = high.shape[1], np.where(high != 0.0, np.frexp(high)[1], -_MAX_RATIO)
        exponents = (sizes + units).max(axis=1, initial=-_MAX_RATIO)
        if results is not None:
            exponents = np.maximum(exponents, results)
        self.rows = np.where(exponents > -_MAX_RATIO // 2, exponents, 0)
        # Units of the factors in which the largest entry of each column is about one, so that factors have the sizes of
        # their contributions.
        widest = (self.rows[:, None] - sizes).min(axis=0, initial=_MAX_RATIO)
        self.units = units = np.maximum(widest, units)  # factors of columns of zeros become zero
        ratios = units - self.rows[:, None]
        self.bits = (53 - math.ceil(math.log2(max(q, 1) + 1))) // 2
        scaled = np.ldexp(high, ratios)
        largest = exponents_of(scaled, axis=1)[:, None]
        self.first, rest = _split(scaled, largest, self.bits)
        self.second, rest = _split(rest, largest - self.bits, self.bits)
        self.rest = rest + np.ldexp(low, ratios)
        # Of each of three rounded products of 2⁻²ᵇ, of the pairs of doubles, and of the matrix itself.
        slices = 2.0 ** (-2 * self.bits) * (q + 4) * UNIT_ROUNDOFF
        self.error = np.ldexp(4.0 * q * (slices + _PAIR_ROUNDING), largest[:, 0])
        self._matrix_error = error

    def slices(self, values: Array, low: Array | None = None) -> SlicedInput:
        """Cut factors `(K, q)`, high + low, into slices."""
        scaled = np.ldexp(values, -self.units)
        exponents = exponents_of(scaled, axis=1)[:, None]
        first, rest = _split(scaled, exponents, self.bits)
        second, rest = _split(rest, exponents - self.bits, self.bits)
        rest = rest if low is None else rest + np.ldexp(low, -self.units)
        return SlicedInput(first, second, rest, exponents, np.abs(values))

    def residual(self, factors: SlicedInput, subtracted: Array) -> Residual:
        """Return M v − w for w `(K, p)`; both results in the units of w."""
        total = factors.first + factors.second + factors.rest
        rounded = total @ self.rest.T + (factors.second + factors.rest) @ self.second.T + factors.rest @ self.first.T
        minuend = np.ldexp(subtracted, -self.rows)
        high, low = two_sum(factors.first @ self.first.T, -minuend)
        # Both products are sums of integers of one unit, and so is their sum.
        value, lost = two_sum(high, factors.second @ self.first.T + factors.first @ self.second.T)
        value = value + ((low + lost) + rounded)
        error = np.ldexp(self.error, factors.exponents) + 2.0 * UNIT_ROUNDOFF * np.abs(value)
        error += _PAIR_ROUNDING * np.abs(minuend) + (self.first.shape[1] + 4) * _SMALLEST
        error = np.ldexp(error, self.rows)
        if self._matrix_error is not None:
            error += bounded_product(factors.sizes, self._matrix_error)
        return Residual(np.ldexp(value, self.rows), error + (self.first.shape[1] + 4) * _SMALLEST)


# Steps


@dataclass(frozen=True, eq=False)
class StateEquation:
    """x' = A x + B u or x[k+1] = A x[k] + B u[k], y = C x + D u, with matrices in pairs of doubles."""

    A: DoubleDouble
    B: DoubleDouble
    C: Array
    D: DoubleDouble


class Defects(NamedTuple):
    """Defects of substeps: which steps have them, their values and bounds on their errors, `(len(rows), n)`."""

    level: int
    """Index of their length; −1 for the remainder of steps."""
    rows: NDArray[np.intp]
    value: Array
    error: Array


@dataclass(frozen=True, eq=False)
class StepInputs:
    """Inputs at both ends of K intervals, `(K, m)`, with the lengths of these as high + low."""

    begin: Array
    end: Array
    lengths: DoubleDouble
    linear: bool

    def at(self, index: NDArray[np.intp], offset: Array, offset_low: Array | float = 0.0) -> DoubleDouble:
        """Return the inputs in some intervals at times `offset` after their beginnings."""
        begin = DoubleDouble(self.begin[index], np.zeros_like(self.begin[index]))
        if not self.linear or not offset.any():
            return begin
        length, low = self.lengths.high[index], self.lengths.low[index]
        length = np.where(length > 0.0, length, 1.0)  # a jump
        quotient = offset / length
        product = two_product(quotient, length)
        rest = ((offset - product.high) - product.low + (offset_low - quotient * low)) / length
        change = two_sum(self.end[index], -self.begin[index])
        return add(begin, multiply(change, DoubleDouble(quotient[:, None], rest[:, None])))


@dataclass(frozen=True, eq=False)
class StepLadder:
    """Exact steps of some lengths, longest first, of which all steps of a run are composed, and a small remainder.

    There is one length, that of all steps but for the rounding of their times, or each length is half of the one before.
    """

    equation: StateEquation
    lengths: Array
    steps: list[DoubleDoubleStep]
    smallest: float
    """Length from which on halves are neglected: the remainder is of first order."""
    _second_orders: dict[int, Array] = field(default_factory=dict)

    def decompose(self, lengths: DoubleDouble) -> tuple[NDArray[np.bool_], Array]:
        """Return which lengths steps consist of, `(levels, K)`, and the remainder of each step."""
        if len(self.lengths) == 1:
            return np.ones((1, len(lengths.high)), dtype=bool), (lengths.high - self.lengths[0]) + lengths.low
        rest, masks = lengths.high.copy(), []
        least = np.minimum(self.smallest, _REMAINDER * rest)
        for length in self.lengths:
            masks.append((rest >= length) & (length >= least))
            rest = rest - np.where(masks[-1], length, 0.0)
        return np.array(masks), rest + lengths.low

    def defects(
        self, before: Array, after: Array | None, inputs: StepInputs, lengths: DoubleDouble
    ) -> tuple[list[Defects], Array]:
        """Return the defects of steps of some lengths between states `(K, n)`, and the states after them.

        States between substeps are computed by the same steps, and so are those after them where none are given.
        """
        masks, remainder = self.decompose(lengths)
        x, offset, results = before.copy(), np.zeros(len(before)), []
        is_single = len(self.lengths) == 1
        last = np.where(masks.any(axis=0), len(masks) - 1 - np.argmax(masks[::-1], axis=0), -1)
        for level, (mask, step) in enumerate(zip(masks, self.steps, strict=True)):
            index = np.flatnonzero(mask)
            if not len(index):
                continue
            later = offset[index] + self.lengths[level]
            begin, end = inputs.at(index, offset[index]), inputs.at(index, later)
            if (
                is_single
            ):  # of the step without its remainder, at the end of which the input has the value of the sample
                end = DoubleDouble(inputs.end[index], np.zeros_like(inputs.end[index]))
            values = np.hstack([x[index], begin.high, end.high])
            low = np.hstack([np.zeros_like(x[index]), begin.low, end.low])
            ends_here = (last[index] == level) & (is_single | (remainder[index] == 0.0))
            if after is None:
                target = values @ step.high.T
            elif ends_here.all():
                target = after[index]
            else:
                target = np.where(ends_here[:, None], after[index], values @ step.high.T)
            product = ExactProduct(*step, units=exponents_of(values, axis=0), results=exponents_of(target, axis=0))
            residual = product.residual(product.slices(values, low if low.any() else None), target)
            results.append(Defects(level, index, *residual))
            x[index], offset[index] = target, later
        late = (
            np.flatnonzero(remainder)
            if after is None
            else np.flatnonzero((remainder != 0.0) | np.any(x != after, axis=1))
        )
        if len(late):
            state_after = None if after is None else after[late]
            u = inputs.at(late, lengths.high[late]).high if inputs.linear else inputs.begin[late]
            defects, x[late] = self._remainder(x[late], state_after, remainder[late][:, None], inputs, late, u)
            results.append(defects)
        return results, x

    def _remainder(
        self,
        x: Array,
        after: Array | None,
        delta: Array,
        inputs: StepInputs,
        index: NDArray[np.intp],
        u: Array,
    ) -> tuple[Defects, Array]:
        """Return the defects of the remainders δ of steps, of first order δ ẋ, and the states after them.

        With ẋ = A x + B u at their ends the second order is at most δ² |A| e^{|A||δ|} (|ẋ| + |B||u̇||δ|) + δ² |B||u̇|. With
        a single length h the slope Δu/h was that of a step without remainder: it changes by −Δu δ/h², and so do the
        states by −G₁ Δu δ/h, to first order.
        """
        A, B, n = self.equation.A.high, self.equation.B.high, x.shape[1]
        change = (inputs.end if inputs.linear else inputs.begin)[index] - inputs.begin[index]
        lengths = inputs.lengths.high[index][:, None]
        slope = np.abs(change) / np.where(lengths > 0.0, lengths, 1.0)
        moving = x @ A.T + u @ B.T
        sizes = bounded_product(np.abs(x), np.abs(A)) + np.abs(u) @ np.abs(B).T
        delta_size = np.abs(delta)
        error = 2.0 * delta_size**2 * (slope @ np.abs(B).T)
        if len(self.lengths) == 1 and inputs.linear:
            h = self.lengths[0]
            end = self.steps[0].high[:, n + B.shape[1] :]
            moving -= (change / h) @ end.T
            of_slope = (np.abs(change) / h) @ np.abs(end).T
            sizes += of_slope
            error += 2.0 * delta_size**2 * (of_slope / h + bounded_product(of_slope, np.abs(A)))
        weights = self._second_order(math.frexp(max(float(delta_size.max()), _SMALLEST))[1])
        error += delta_size**2 * bounded_product(np.abs(moving) + delta_size * (slope @ np.abs(B).T), weights)
        error += (n + B.shape[1] + 4) * 2.0 * UNIT_ROUNDOFF * delta_size * sizes
        target = x + delta * moving if after is None else after
        value = delta * moving
        if len(self.lengths) > 1:  # a single step ends at the state after it
            value = sum_matrices([x, -target, value]).high
        error += 2.0 * UNIT_ROUNDOFF * np.abs(value) + 4.0 * _SMALLEST
        return Defects(-1, index, value, error), target

    def _second_order(self, exponent: int) -> Array:
        """Return |A| e^{|A|δ} for a remainder δ of 2^exponent."""
        if exponent not in self._second_orders:
            A, delta = np.abs(self.equation.A.high), math.ldexp(1.0, exponent)
            is_small = delta * float(A.sum()) < _MAX_GROWTH
            self._second_orders[exponent] = A @ linalg.expm(A * delta) if is_small else np.where(A > 0.0, np.inf, 0.0)
        return self._second_orders[exponent]


def weighted_sizes(sizes: Array, weights: Array) -> Array:
    """Return sizes · |weights|ᵀ, where 0 · ∞ is 0."""
    with np.errstate(invalid="ignore"):
        if np.isfinite(sizes).all() and np.isfinite(weights).all():
            return np.asarray(sizes @ weights.T)
        is_zero = (weights == 0.0) | (sizes[..., None, :] == 0.0)
        return np.asarray(np.where(is_zero, 0.0, sizes[..., None, :] * weights).sum(axis=-1))


def bounded_product(sizes: Array, weights: Array) -> Array:
    """Return a bound on sizes · weightsᵀ for sizes `(K, n)`: of many states, the largest ratio of each row to all others."""
    if sizes.shape[1] <= _MAX_PRODUCT_STATES or not np.isfinite(weights).all():
        return weighted_sizes(sizes, weights)
    largest = sizes.max(axis=0, initial=0.0)
    ratios = (sizes / np.where(largest > 0.0, largest, 1.0)).max(axis=1, initial=0.0)
    return np.asarray(ratios[:, None] * (weights @ largest))


# Propagation of what remains


def lag_sums(C: Array, P: Array, *, length: int, count: int) -> Array:
    """Return Σ |C P^j| over the lags j between two cells of `length` steps, by their distance, `(count, p, n)`.

    With many lags only every s-th is evaluated, and |P^j| between them is bounded by products of |P|, |P²|, |P⁴|, ….
    """
    p, n = C.shape
    if not n or not p:
        return np.zeros((count, p, n))
    if p > n:
        return np.abs(C) @ lag_sums(np.eye(n), P, length=length, count=count)
    stride, within, power = 1, np.eye(n), P
    while stride < length and p * n * n * (length // stride) * count > _MAX_SUM_WORK:
        within = np.maximum(within, np.abs(power) @ within)
        stride, power = 2 * stride, power @ power
    inner = -(-length // stride)
    rows = np.empty((inner, p, n))
    rows[0] = C
    for index in range(1, inner):
        rows[index] = rows[index - 1] @ power
    over_cell = np.linalg.matrix_power(P, length)
    sums = np.empty((count, p, n))
    for index in range(count):
        sums[index] = stride * np.abs(rows).sum(axis=0)
        if index + 1 < count:
            rows = (rows.reshape(-1, n) @ over_cell).reshape(rows.shape)
    sums[1:] += sums[:-1].copy()
    return sums if stride == 1 else sums @ within


def lag_peaks(C: Array, A: Array, *, cell: float, count: int) -> Array:
    """Return bounds on |C e^{As}| over the lags s between two cells, by their distance, `(count, p, n)`.

    A step that begins in a cell ends in it or in the next one: lags are those of three cells. The response is evaluated at
    some lags, and |e^{As}| up to the next of them is bounded by e^{|A|s} for a short time and products of exponentials for
    longer ones.
    """
    n_lags = max(1, min(_PEAK_LAGS, _MAX_SUM_WORK // max(1, count * C.size * len(A))))
    spacing = cell / n_lags
    norm = float(np.abs(A).sum(axis=0).max(initial=0.0)) * spacing
    levels = max(0, math.ceil(math.log2(norm) / math.log2(_PEAK_LAGS))) if 0.0 < norm < MAX_FLOAT else 0
    short = spacing / float(_PEAK_LAGS) ** levels
    within, P = linalg.expm(np.abs(A) * short), linalg.expm(A * short)
    for _ in range(levels):
        power, peak = np.eye(len(A)), np.eye(len(A))
        for _ in range(_PEAK_LAGS - 1):
            power = power @ P
            peak = np.maximum(peak, np.abs(power))
        within, P = peak @ within, power @ P
    rows, peaks = C, np.empty((count, *C.shape))
    for index in range(count):
        peaks[index] = np.abs(rows)
        for _ in range(n_lags):
            rows = rows @ P
            peaks[index] = np.maximum(peaks[index], np.abs(rows))
    for _ in range(2):
        peaks[1:] = np.maximum(peaks[1:], peaks[:-1].copy())
    return peaks @ within


def propagate(errors: Array, weights: Array) -> Array:
    """Return Σ weights[k − j] errors[j] over all cells j up to k, `(..., cells, p)`; NaN counts as infinite."""
    n_cells = errors.shape[-2]
    result = np.zeros((*errors.shape[:-1], weights.shape[1]))
    for lag in range(n_cells):
        result[..., lag:, :] += weighted_sizes(errors[..., : n_cells - lag, :], weights[lag])
    return np.nan_to_num(result, nan=np.inf, posinf=np.inf)
