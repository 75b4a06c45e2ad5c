"""Exact steps of many lengths for scalars v' = λ v + B u, without an exponential for each step.

Lengths within a factor of eight are processed together, below a power of two H; the method depends on |λ|H.

Slow rates (|λ|H up to about ten): e^{λh}, h(φ₁ − φ₂) and h φ₂ are Chebyshev series in h between 0 and H. All rates
share the polynomials of the lengths, so that all steps of all rates are one matrix product with the coefficients. The
largest coefficients are corrected in double-double precision, since their rounding is the same in every step and
would add up.

Fast rates (|λh| ≥ 1): e^{λh} = e^{λg} e^{λd} for the nearest grid point g, which is looked up in a table, and a
Chebyshev series in d. φ₁ and φ₂ are then differences without cancellation; with the slope s of the inputs

    h φ₁ B u_k + h φ₂ B (u_{k+1} − u_k) = (e^{λh} − 1) (B u_k/λ + B s/λ²) − h B s/λ.

Few lengths, rates that grow fast and rates beyond all tables take one exponential per step. For states that hardly
decay P − 1 is returned in place of P = e^{λh}.
"""

import math
from collections.abc import Callable, Container
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ltinet._util.double_double import DoubleDouble, subtract_product
from ltinet._util.floating_point import EPS, Array
from ltinet._util.phi_functions import phi_functions
from ltinet.error_bounds.double_double_exponentials import double_double_exponential_table
from ltinet.simulation import chebyshev
from ltinet.simulation.propagators import scalar_steps

StepResult = tuple[NDArray[Any], NDArray[Any]]

# Limits on |λ|H of the methods.
_MIN_FAST = 8.0  # from here on |λh| ≥ 1 for all lengths, which differ by less than a factor of eight
_MAX_SLOW = 32.0  # speed only: up to here series have fewer than 64 terms, and all rates may share them
_MAX_SLOW_GROWTH = 1.0  # of growing states: series round relative to their largest value, e times that of a short step
_MAX_FAST = 4096.0  # four times the largest number of cells: |λd| ≤ 2 within a cell, and e^{|λd|} ≤ 7.4 roundings
# |Re λ|H up to which a state is propagated by its increment: more of it would be lost along a run of steps.
_MAX_INCREMENTAL_DECAY = 2.0**-5

_OCTAVES = 3  # lengths that are processed together differ by less than 2³
_MIN_PREPARED_LENGTHS = 256  # speed only: lengths from which on preparation pays off; measured on one core
_MIN_PREPARED_STEPS = 16 * _MIN_PREPARED_LENGTHS  # steps of which there are about as many runs
_MIN_EXPONENT = -1000  # exponent of the shortest lengths that have a range of their own: normal numbers begin at −1021
_MAX_RANGES = 1024  # more than the number of ranges of lengths, (1024 + 1000)/3
_MAX_PRODUCT_TERMS = (
    128  # speed only: terms up to which one product for all inputs is faster than products of every number
)
_CORRECTION_POINTS = 64  # intervals between the points at which a series is corrected: more than its degree
# Largest coefficients, which are stored as two doubles. Those of incremental rates, |Re λ|H ≤ 2⁻⁵, fall as 2 (|λ|H/4)^k/k!:
# for slow pairs, |λ|H ≤ 1, those from the tenth on are below 2⁻⁴⁰, and their rounding below 2⁻⁹². Empirical for faster
# ones: with 1 tests/unit/simulation/test_scalar_lengths.py or test_varied_decay.py fails.
_N_DOUBLE_DOUBLE = 10
_MIN_TABLE_CELLS, _MAX_TABLE_CELLS = 64, 1024  # speed only: cells of the grid between 0 and H, about |λ|H of them


class NonuniformScalarSteps:
    """Steps of rates (real, or complex for pairs) with inputs B (transposed), for lengths below 2^octave.

    With `many_follow`, for long sequences of steps, states that hardly decay are propagated by P − 1.
    """

    def __init__(
        self, rates: NDArray[Any], drive: NDArray[Any], *, octave: int, linear: bool, many_follow: bool
    ) -> None:
        self.rates, self.drive, self._octave, self._linear = rates, drive, octave, linear
        longest = math.ldexp(1.0, octave)
        self._incremental = (np.abs(rates.real) * longest <= _MAX_INCREMENTAL_DECAY) & many_follow
        with np.errstate(over="ignore"):
            self.growth = float(np.exp(np.max(rates.real, initial=0.0) * longest))
            """Bound on |P|."""
        self._prepared: dict[int, _MixedMethod] = {}
        self._run_ranges: Container[int] | None = None

    def for_run(self, h: Array) -> "NonuniformScalarSteps":
        """Return steps for a run of these lengths, which alone decide what is prepared: runs are repeatable."""
        return self._for_ranges(np.flatnonzero(np.bincount(self._ranges(h)[0]) >= _MIN_PREPARED_LENGTHS).tolist())

    def for_runs(self, n_steps: int) -> "NonuniformScalarSteps":
        """Return steps as long as runs of many steps, for `n_steps` short steps in total."""
        return self._for_ranges(range(_MAX_RANGES if n_steps >= _MIN_PREPARED_STEPS else 0))

    def _for_ranges(self, ranges: Container[int]) -> "NonuniformScalarSteps":
        steps = copy(self)
        steps._run_ranges = ranges
        return steps

    @property
    def incremental(self) -> NDArray[Any] | bool:
        """Mask of factors that are P − 1: all, none, or an array of ones and zeros."""
        mask = self._incremental
        return bool(mask[0]) if np.all(mask == mask[0]) else mask.astype(np.float64)

    def factors(self, h: Array) -> NDArray[Any]:
        """Return P or P − 1 of steps of lengths h, `(k, n_rates)`."""
        ranges, present = self._ranges(h)
        factors = np.empty((len(h), len(self.rates)), dtype=self.rates.dtype)
        for number in present:
            rows = np.flatnonzero(ranges == number)
            factors[rows] = self._method(number, len(rows)).factors(h[rows])
        factors[h == 0.0] = np.where(self._incremental, 0.0, 1.0)
        return factors

    def step(self, h: Array, now: Array, then: Array) -> StepResult:
        """Return the factors, and the contributions `(batch, k, n_rates)` of inputs `(batch, k, m)` at both ends."""
        ranges, present = self._ranges(h)
        if len(present) == 1:
            factors, added = self._method(present[0], len(h)).step(h, now, then)
        else:
            factors = np.empty((len(h), len(self.rates)), dtype=self.rates.dtype)
            added = np.empty((len(now), *factors.shape), dtype=self.rates.dtype)
            for number in present:
                rows = np.flatnonzero(ranges == number)
                method = self._method(number, len(rows))
                factors[rows], added[:, rows] = method.step(h[rows], now[:, rows], then[:, rows])
        if not h.all():
            factors[h == 0.0], added[:, h == 0.0] = np.where(self._incremental, 0.0, 1.0), 0.0
        return factors, added

    def _ranges(self, h: Array) -> tuple[NDArray[np.intp], list[int]]:
        """Return by how many factors of eight each length is below the longest, and the values that occur."""
        exponents = np.frexp(h)[1]
        exponents[h == 0.0] = self._octave  # a step of length zero does not change the state
        ranges = (self._octave - np.clip(exponents, _MIN_EXPONENT, self._octave)) // _OCTAVES
        return ranges, np.flatnonzero(np.bincount(ranges)).tolist()

    def _method(self, number: int, n_lengths: int) -> "StepMethod | _MixedMethod":
        """Return the method for lengths below 2^(octave − 3 number); two threads may prepare the same at once."""
        pays = n_lengths >= _MIN_PREPARED_LENGTHS if self._run_ranges is None else number in self._run_ranges
        if not pays:
            return _DirectExponentials(self.rates, self.drive, self._incremental, self._linear)
        if number not in self._prepared:
            longest = math.ldexp(1.0, self._octave - _OCTAVES * number)
            self._prepared[number] = _select_methods(
                self.rates, self.drive, longest, incremental=self._incremental, linear=self._linear
            )
        return self._prepared[number]


@dataclass(frozen=True)
class _MixedMethod:
    """One method for most rates, whose results for other rates are replaced by those of other methods."""

    main: "StepMethod"
    others: list[tuple[NDArray[np.intp], "StepMethod"]]

    def factors(self, h: Array) -> NDArray[Any]:
        factors = self.main.factors(h)
        for columns, method in self.others:
            factors[:, columns] = method.factors(h)
        return factors

    def step(self, h: Array, now: Array, then: Array) -> StepResult:
        factors, added = self.main.step(h, now, then)
        for columns, method in self.others:
            factors[:, columns], added[:, :, columns] = method.step(h, now, then)
        return factors, added


def _select_methods(
    rates: NDArray[Any], drive: NDArray[Any], longest: float, *, incremental: NDArray[np.bool_], linear: bool
) -> _MixedMethod:
    """Select a method for each rate by |λ|H."""
    size, grows = np.abs(rates) * longest, rates.real > 0.0
    slow_limit = _MAX_SLOW if np.all(size <= _MAX_SLOW) else _MIN_FAST
    slow = size <= np.where(grows, _MAX_SLOW_GROWTH, slow_limit)
    fast = ~slow & ~grows & (size <= _MAX_FAST)
    makers: list[tuple[NDArray[np.bool_], Callable[..., StepMethod]]]
    makers = [(slow, prepare_slow_rates), (fast, prepare_fast_rates), (~slow & ~fast, _direct_exponentials)]
    (main, make_main), *rest = sorted(makers, key=lambda maker: -np.count_nonzero(maker[0]))
    # The method of most rates is applied to all of them, with a harmless rate in place of others: writing columns costs
    # more than computing some results in vain.
    harmless = np.where(main, rates, rates[main][0])
    others = [
        (np.flatnonzero(mask), make(rates[mask], drive[:, mask], longest, incremental=incremental[mask], linear=linear))
        for mask, make in rest
        if mask.any()
    ]
    return _MixedMethod(make_main(harmless, drive, longest, incremental=incremental, linear=linear), others)


@dataclass(frozen=True)
class _DirectExponentials:
    """One exponential per step: for few steps, for rates that grow fast and those beyond all tables."""

    rates: NDArray[Any]
    drive: NDArray[Any]
    incremental: NDArray[np.bool_]
    linear: bool

    def factors(self, h: Array) -> NDArray[Any]:
        P, begin, end = scalar_steps(self.rates, h, linear=False)
        return np.where(self.incremental, self.rates * (begin + end), P)

    def step(self, h: Array, now: Array, then: Array) -> StepResult:
        P, begin, end = scalar_steps(self.rates, h, linear=self.linear)
        added = apply_inputs(now, self.drive) * begin + apply_inputs(then, self.drive) * end
        return np.where(self.incremental, self.rates * (begin + end), P), added


def _direct_exponentials(rates: NDArray[Any], drive: NDArray[Any], _: float, **settings: Any) -> _DirectExponentials:
    return _DirectExponentials(rates, drive, **settings)


# Slow rates.


@dataclass(frozen=True)
class SlowRates:
    """Chebyshev series for rates with |λ|H up to about ten and lengths from 0 to H."""

    longest: float
    series: NDArray[Any]
    """Coefficients of e^{λh} or e^{λh} − 1, after the corrections of the largest of them."""
    inputs: tuple[NDArray[Any], ...]
    """Coefficients of φ₁ − φ₂ and φ₂; of φ₁ for a zero-order hold."""
    drive: NDArray[Any]
    """B, transposed, (m × n_rates)."""
    driven: NDArray[Any] | None
    """Coefficients of the contributions of each of a few inputs at either end."""

    def factors(self, h: Array) -> NDArray[Any]:
        """Return P or P − 1 of steps of lengths h, `(k, n_rates)`."""
        return evaluate_series(self._polynomials(h), self.series)

    def step(self, h: Array, now: Array, then: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the factors, and the contributions `(batch, k, n_rates)` of inputs `(batch, k, m)` at both ends."""
        polynomials = self._polynomials(h)
        factors = evaluate_series(polynomials, self.series)
        polynomials = polynomials[-len(self.inputs[0]) :]
        polynomials *= h
        ends = (now, then)[: len(self.inputs)]
        if self.driven is not None and len(now) == 1:
            rows = np.concatenate([polynomials * channel for u in ends for channel in u[0].T])
            return factors, evaluate_series(rows, self.driven)[None]
        added = apply_inputs(now, self.drive)
        added *= evaluate_series(polynomials, self.inputs[0])
        for u, coefficients in zip(ends[1:], self.inputs[1:], strict=True):
            added += apply_inputs(u, self.drive) * evaluate_series(polynomials, coefficients)
        return factors, added

    def _polynomials(self, h: Array) -> Array:
        """Return the polynomials of all coefficients, after those of the corrections."""
        polynomials, n_corrections = np.empty((len(self.series), len(h))), len(self.series) - len(self.inputs[0])
        chebyshev.evaluate_polynomials(h, 0.0, self.longest, out=polynomials[n_corrections:])
        polynomials[:n_corrections] = polynomials[len(polynomials) - n_corrections :]
        return polynomials


def prepare_slow_rates(
    rates: NDArray[Any], drive: NDArray[Any], longest: float, *, incremental: NDArray[np.bool_], linear: bool
) -> SlowRates:
    """Prepare series for lengths up to the longest, a power of two; of e^{λh} − 1 where `incremental`."""
    rho = 0.5 * longest * float(np.abs(rates).max())
    degree = max(chebyshev.exponential_degree(rho, tolerance=EPS / 16.0), _N_DOUBLE_DOUBLE)
    lengths = chebyshev.interpolation_lengths(0.0, longest, degree)[:, None]
    first, second = phi_functions(rates * lengths)
    changes = lengths * rates * first
    changes += ~incremental
    inputs = tuple(map(_coefficients, (first - second, second) if linear else (first,)))
    series = _coefficients(changes)
    if incremental.any():
        spacing = longest / _CORRECTION_POINTS
        table = double_double_exponential_table(rates, spacing, _CORRECTION_POINTS + 1, less_one=incremental)
        series = _corrected(series, table)
    is_small = 0 < len(drive) * len(inputs) * len(inputs[0]) <= _MAX_PRODUCT_TERMS
    return SlowRates(
        longest=longest,
        series=series,
        inputs=inputs,
        drive=drive,
        driven=np.concatenate([series * weights for series in inputs for weights in drive]) if is_small else None,
    )


def _corrected(coefficients: NDArray[Any], table: DoubleDouble) -> NDArray[Any]:
    """Return coefficients after corrections with which the series interpolates a table in double-double precision.

    The rounding of coefficients is the same in every step: it would add up, unlike that of a single step.
    """
    polynomials = chebyshev.double_double_polynomials(
        np.linspace(-1.0, 1.0, _CORRECTION_POINTS + 1), count=len(coefficients)
    )
    residual = subtract_product(
        DoubleDouble(complex_as_real(table.high), complex_as_real(table.low)),
        polynomials,
        complex_as_real(coefficients),
    )
    solution = np.linalg.lstsq(polynomials.high, residual, rcond=None)[0]
    corrections = np.ascontiguousarray(solution).view(coefficients.dtype)
    coefficients[:-_N_DOUBLE_DOUBLE] += corrections[:-_N_DOUBLE_DOUBLE]
    return np.concatenate([corrections[-_N_DOUBLE_DOUBLE:], coefficients])


def _coefficients(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(chebyshev.interpolation_coefficients(complex_as_real(values))).view(values.dtype)


def evaluate_series(functions: Array, coefficients: NDArray[Any]) -> NDArray[Any]:
    """Return Σ functions_k · coefficients_k for all lengths (columns of the functions) and rates, by a real product."""
    return (functions.T @ complex_as_real(coefficients)).view(coefficients.dtype)


def apply_inputs(u: Array, weights: NDArray[Any]) -> NDArray[Any]:
    """Return u · weights, `(…, n_rates)`; a column times a row is broadcast, since `matmul` is slow for it."""
    real = complex_as_real(weights)
    return (u * real if len(real) == 1 else u @ real).view(weights.dtype)


def complex_as_real(values: NDArray[Any]) -> Array:
    """Return the numbers as reals, (Re, Im) in turn."""
    return np.ascontiguousarray(values).view(np.float64)


# Fast rates.


@dataclass(frozen=True)
class FastRates:
    """Tables for rates with |λh| ≥ 1 and lengths up to H."""

    incremental: NDArray[np.bool_]
    """Mask of the rates whose factors are e^{λh} − 1."""
    cell: float
    """Distance of grid points."""
    high: NDArray[Any]
    """e^{λg}, or e^{λg} − 1, on the grid, `(cells + 1, n_rates)`."""
    low: NDArray[Any] | None
    """Rounding errors of the table, which matter for slow decay: they are the same in many steps."""
    series: NDArray[Any]
    """Coefficients of (e^{λd} − 1)/d, `(terms, n_rates)`."""
    value_weights: NDArray[Any]
    """B/λ, transposed."""
    slope_weights: NDArray[Any]
    """B/λ², transposed."""
    linear: bool

    def step(self, h: Array, now: Array, then: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the factors, and the contributions `(batch, k, n_rates)` of inputs `(batch, k, m)` at both ends."""
        factors = self.factors(h)
        changes = factors if self.incremental.all() else factors - np.where(self.incremental, 0.0, 1.0)
        if not self.linear:
            added = apply_inputs(now, self.value_weights)
            added *= changes
            return factors, added
        lengths = h[:, None]
        rise = np.where(lengths > 0.0, then - now, 0.0)
        slopes = rise / np.where(lengths > 0.0, lengths, 1.0)
        added = apply_inputs(
            np.concatenate([now, slopes], axis=-1), np.concatenate([self.value_weights, self.slope_weights])
        )
        added *= changes
        added -= apply_inputs(rise, self.value_weights)
        return factors, added

    def factors(self, h: Array) -> NDArray[Any]:
        """Return P or P − 1 of steps of lengths h, `(k, n_rates)`."""
        cells = np.rint(h / self.cell).astype(np.intp)
        d = h - cells * self.cell  # exact: a cell is a power of two
        polynomials = np.empty((len(self.series), len(h)))
        chebyshev.evaluate_polynomials(d, -0.5 * self.cell, 0.5 * self.cell, out=polynomials)
        polynomials *= d
        rest, high = evaluate_series(polynomials, self.series), self.high.take(cells, axis=0)
        factors: NDArray[Any] = rest * high
        if self.low is not None:
            factors += rest if self.incremental.all() else rest * self.incremental
            factors += self.low.take(cells, axis=0)
        factors += high
        return factors


def prepare_fast_rates(
    rates: NDArray[Any], drive: NDArray[Any], longest: float, *, incremental: NDArray[np.bool_], linear: bool
) -> FastRates:
    """Prepare tables for lengths up to the longest, a power of two; of e^{λh} − 1 where `incremental`."""
    cells = max(_MIN_TABLE_CELLS, min(float(np.abs(rates).max()) * longest, _MAX_TABLE_CELLS))
    cells = 2 ** math.ceil(math.log2(cells))
    cell = longest / cells
    table = double_double_exponential_table(rates, cell, cells + 1, less_one=incremental)
    rho = 0.5 * cell * float(np.abs(rates).max())
    degree = chebyshev.exponential_degree(rho, tolerance=EPS / 16.0)
    first, _ = phi_functions(rates * chebyshev.interpolation_lengths(-0.5 * cell, 0.5 * cell, degree)[:, None])
    return FastRates(
        incremental=incremental,
        cell=cell,
        high=table.high,
        low=table.low if incremental.any() else None,
        series=_coefficients(rates * first),
        value_weights=drive / rates,
        slope_weights=drive / rates / rates,
        linear=linear,
    )


StepMethod: TypeAlias = SlowRates | FastRates | _DirectExponentials
"""Algorithm for the steps of some rates, with the methods `factors` and `step`."""
