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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Array
from ltinet.simulation import chebyshev
from ltinet.simulation.propagators import (
    DoubleDouble,
    double_double_exponential_table,
    phi_functions,
    scalar_steps,
    subtract_product,
)

# MERGED ltinet.simulation.nonuniform_scalars
# Steps of scalars that change little in a step, as matrix products: series in the length, the same for all rates.
#
# Everything is a Chebyshev series in the length between 0 and H: e^{λh}, and h times φ₁ − φ₂ and φ₂. All rates share the
# polynomials of the lengths, so that all steps of all rates are one product with coefficients. A few inputs are
# multiplied into the polynomials, and what they add is one product as well.

_MAX_PRODUCT_TERMS = 128  # with which one product for all inputs is faster than products of every number
_CORRECTION_POINTS = 64  # between which a series is corrected
_DOUBLE_DOUBLE_TERMS = 10  # coefficients with twice the digits: those that are not small


@dataclass(frozen=True)
class SlowRates:
    """Rates with |λ|H up to about ten, for lengths from 0 to H."""

    longest: float
    series: NDArray[Any]
    """Coefficients of e^{λh} or, for states that last, of e^{λh} − 1, after what the largest of them lack."""
    inputs: tuple[NDArray[Any], ...]
    """Coefficients of φ₁ − φ₂ and φ₂; of φ₁ for inputs that are kept."""
    drive: NDArray[Any]
    """B, transposed, (m × n_rates)."""
    driven: NDArray[Any] | None
    """Coefficients of what each of a few inputs adds at either end."""

    def factors(self, h: Array) -> NDArray[Any]:
        """By what steps of lengths h multiply states, `(k, n_rates)`."""
        return evaluate_series(self._polynomials(h), self.series)

    def step(self, h: Array, now: Array, then: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """The same, and what inputs `(batch, k, m)` at both ends add, `(batch, k, n_rates)`."""
        polynomials = self._polynomials(h)
        factors = evaluate_series(polynomials, self.series)
        polynomials = polynomials[-len(self.inputs[0]) :]
        polynomials *= h
        ends = (now, then)[: len(self.inputs)]
        if self.driven is not None and len(now) == 1:
            rows = np.concatenate([polynomials * own for u in ends for own in u[0].T])
            return factors, evaluate_series(rows, self.driven)[None]
        added = apply_inputs(now, self.drive)
        added *= evaluate_series(polynomials, self.inputs[0])
        for u, coefficients in zip(ends[1:], self.inputs[1:], strict=True):
            more = apply_inputs(u, self.drive)
            more *= evaluate_series(polynomials, coefficients)
            added += more
        return factors, added

    def _polynomials(self, h: Array) -> Array:
        """Those of all coefficients, after those of the small ones."""
        found, n_small = np.empty((len(self.series), len(h))), len(self.series) - len(self.inputs[0])
        chebyshev.evaluate_polynomials(h, 0.0, self.longest, out=found[n_small:])
        found[:n_small] = found[len(found) - n_small :]
        return found


def prepare_slow_rates(
    rates: NDArray[Any], drive: NDArray[Any], longest: float, *, kept: NDArray[np.bool_], linear: bool
) -> SlowRates:
    """Prepare rates for lengths up to the longest, a power of two; of those `kept` for many steps, less one."""
    rho = 0.5 * longest * float(np.abs(rates).max())
    degree = max(chebyshev.exponential_degree(rho, left=EPS / 16.0), _DOUBLE_DOUBLE_TERMS)
    lengths = chebyshev.interpolation_lengths(0.0, longest, degree)[:, None]
    first, second = phi_functions(rates * lengths)
    changes = lengths * rates * first
    changes += ~kept
    inputs = tuple(map(_coefficients, (first - second, second) if linear else (first,)))
    series = _coefficients(changes)
    if kept.any():
        series = _corrected(
            series,
            double_double_exponential_table(rates, longest / _CORRECTION_POINTS, _CORRECTION_POINTS + 1, less_one=kept),
        )
    few = 0 < len(drive) * len(inputs) * len(inputs[0]) <= _MAX_PRODUCT_TERMS
    return SlowRates(
        longest=longest,
        series=series,
        inputs=inputs,
        drive=drive,
        driven=np.concatenate([own * weights for own in inputs for weights in drive]) if few else None,
    )


def _corrected(coefficients: NDArray[Any], table: DoubleDouble) -> NDArray[Any]:
    """Coefficients, and before them small ones with which a series goes through a table of more digits.

    Rounding of coefficients is the same in every step: it would add up, where that of a step does not.
    """
    polynomials = chebyshev.double_double_polynomials(
        np.linspace(-1.0, 1.0, _CORRECTION_POINTS + 1), count=len(coefficients)
    )
    left = subtract_product(
        DoubleDouble(complex_as_real(table.high), complex_as_real(table.low)),
        polynomials,
        complex_as_real(coefficients),
    )
    small = np.ascontiguousarray(np.linalg.lstsq(polynomials.high, left, rcond=None)[0]).view(coefficients.dtype)
    coefficients[:-_DOUBLE_DOUBLE_TERMS] += small[:-_DOUBLE_DOUBLE_TERMS]
    return np.concatenate([small[-_DOUBLE_DOUBLE_TERMS:], coefficients])


def _coefficients(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(chebyshev.interpolation_coefficients(complex_as_real(values))).view(values.dtype)


def evaluate_series(functions: Array, coefficients: NDArray[Any]) -> NDArray[Any]:
    """Σ functions_k · coefficients_k for all lengths (columns) and rates, in real numbers."""
    return (functions.T @ complex_as_real(coefficients)).view(coefficients.dtype)


def apply_inputs(u: Array, weights: NDArray[Any]) -> NDArray[Any]:
    """U · weights, `(…, n_rates)`; a column times a row is no work for BLAS, and NumPy's own loop for it is slow."""
    real = complex_as_real(weights)
    return (u * real if len(real) == 1 else u @ real).view(weights.dtype)


def complex_as_real(values: NDArray[Any]) -> Array:
    """The same numbers as reals: (Re, Im) in turn."""
    return np.ascontiguousarray(values).view(np.float64)


# MERGED ltinet.simulation.nonuniform_scalars
# Steps of scalars that turn or decay far in a step: exponentials from a table, the rest from them.
#
# e^{λh} is e^{λg} e^{λd} for the nearest g on a grid, which is looked up, and what is left of h. That is a Chebyshev
# series in d, with the same polynomials for all rates: a matrix product. Where |λh| ≥ 1, φ₁ and φ₂ are differences
# without loss, and with the slope s of the inputs
#
#     h φ₁ B u_k + h φ₂ B (u_{k+1} − u_k) = (e^{λh} − 1) (B u_k/λ + B s/λ²) − h B s/λ

_MIN_TABLE_CELLS, _MAX_TABLE_CELLS = 64, 1024  # of the grid between 0 and H: as many as |λ|H


@dataclass(frozen=True)
class FastRates:
    """Rates with |λh| ≥ 1, for lengths up to H."""

    kept: NDArray[np.bool_]
    """Whose factors are e^{λh} − 1."""
    cell: float
    high: NDArray[Any]
    """e^{λg}, or e^{λg} − 1, on the grid, `(cells + 1, n_rates)`."""
    low: NDArray[Any] | None
    """What its doubles lack, which counts where states last: it is the same in many steps."""
    series: NDArray[Any]
    """Of (e^{λd} − 1)/d, `(terms, n_rates)`."""
    of_values: NDArray[Any]
    """B/λ, transposed."""
    of_slopes: NDArray[Any]
    """B/λ², transposed."""
    linear: bool

    def step(self, h: Array, now: Array, then: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """The same, and what inputs `(batch, k, m)` at both ends add, `(batch, k, n_rates)`."""
        factors = self.factors(h)
        changes = factors if self.kept.all() else factors - np.where(self.kept, 0.0, 1.0)
        if not self.linear:
            added = apply_inputs(now, self.of_values)
            added *= changes
            return factors, added
        lengths = h[:, None]
        rise = np.where(lengths > 0.0, then - now, 0.0)
        slopes = rise / np.where(lengths > 0.0, lengths, 1.0)
        added = apply_inputs(np.concatenate([now, slopes], axis=-1), np.concatenate([self.of_values, self.of_slopes]))
        added *= changes
        added -= apply_inputs(rise, self.of_values)
        return factors, added

    def factors(self, h: Array) -> NDArray[Any]:
        """By what steps of lengths h multiply states, `(k, n_rates)`."""
        cells = np.rint(h / self.cell).astype(np.intp)
        d = h - cells * self.cell  # exact: a cell is a power of two
        polynomials = np.empty((len(self.series), len(h)))
        chebyshev.evaluate_polynomials(d, -0.5 * self.cell, 0.5 * self.cell, out=polynomials)
        polynomials *= d
        rest, high = evaluate_series(polynomials, self.series), self.high.take(cells, axis=0)
        factors: NDArray[Any] = rest * high
        if self.low is not None:
            factors += rest if self.kept.all() else rest * self.kept
            factors += self.low.take(cells, axis=0)
        factors += high
        return factors


def prepare_fast_rates(
    rates: NDArray[Any], drive: NDArray[Any], longest: float, *, kept: NDArray[np.bool_], linear: bool
) -> FastRates:
    """Prepare rates for lengths up to the longest, a power of two; factors less one where they are `kept`."""
    wanted = max(_MIN_TABLE_CELLS, min(float(np.abs(rates).max()) * longest, _MAX_TABLE_CELLS))
    cells = 2 ** math.ceil(math.log2(wanted))
    cell = longest / cells
    table = double_double_exponential_table(rates, cell, cells + 1, less_one=kept)
    rho = 0.5 * cell * float(np.abs(rates).max())
    parts = chebyshev.interpolation_lengths(-0.5 * cell, 0.5 * cell, chebyshev.exponential_degree(rho, left=EPS / 16.0))
    first, _ = phi_functions(rates * parts[:, None])
    return FastRates(
        kept=kept,
        cell=cell,
        high=table.high,
        low=table.low if kept.any() else None,
        series=np.ascontiguousarray(chebyshev.interpolation_coefficients(complex_as_real(rates * first))).view(
            rates.dtype
        ),
        of_values=drive / rates,
        of_slopes=drive / rates / rates,
        linear=linear,
    )


# MERGED ltinet.simulation.nonuniform_scalars
# Exact steps of many lengths for scalars v' = λ v + B u, without an exponential for each.
#
# Lengths within a factor of eight are worked on together, below a power of two H. What is prepared for them depends on
# |λ|H: see `prepare_slow_rates` and `prepare_fast_rates`. Of states that hardly decay, P − 1 is given in place of P = e^{λh}.

StepResult = tuple[NDArray[Any], NDArray[Any]]
_OCTAVES = 3  # lengths that are worked on together differ by less than 2³
_FAST = 8.0  # |λ|H, from which on |λh| ≥ 1 for all lengths
_SLOWEST = 32.0  # |λ|H up to which series are not too long, so that all rates may go one way
_SLOW_GROWTH = 1.0  # |λ|H of growing states, whose φ₁ rises as e^{λh}
_FASTEST = 4096.0  # |λ|H, beyond which tables would be too long
_SLOW_DECAY = (
    2.0**-5
)  # |Re λ|H up to which a state is told by what changes: more of it would be lost along a run of steps
_MIN_PREPARED_LENGTHS = 256  # lengths, from which on preparation pays
_MIN_PREPARED_STEPS = 16 * _MIN_PREPARED_LENGTHS  # of which there are about as many runs
_MIN_EXPONENT = -1000  # exponent of the shortest lengths that are told from shorter ones
_MAX_KINDS = 1024  # more than there are


class NonuniformScalarSteps:
    """Steps of rates (real, or complex for pairs) with inputs B (transposed), for lengths below 2^octave.

    Where many of them follow each other, states that hardly decay are told by what changes.
    """

    def __init__(
        self, rates: NDArray[Any], drive: NDArray[Any], *, octave: int, linear: bool, many_follow: bool
    ) -> None:
        self.rates, self.drive, self._octave, self._linear = rates, drive, octave, linear
        self._kept = (np.abs(rates.real) * math.ldexp(1.0, octave) <= _SLOW_DECAY) & many_follow
        with np.errstate(over="ignore"):
            self.growth = float(np.exp(np.max(rates.real, initial=0.0) * math.ldexp(1.0, octave)))
            """By what a step multiplies states at most."""
        self._seen: dict[int, int] = {}
        self._prepared: dict[int, _MixedMethod] = {}
        self._decided: Container[int] | None = None

    def for_run(self, h: Array) -> "NonuniformScalarSteps":
        """The same for a run with steps of these lengths: they alone decide what is prepared, not what came before."""
        return self._with(frozenset(np.flatnonzero(np.bincount(self._kinds(h)[0]) >= _MIN_PREPARED_LENGTHS).tolist()))

    def for_runs(self, n_steps: int) -> "NonuniformScalarSteps":
        """The same for lengths of many steps together, of which a run has so many."""
        return self._with(range(_MAX_KINDS if n_steps >= _MIN_PREPARED_STEPS else 0))

    def _with(self, decided: Container[int]) -> "NonuniformScalarSteps":
        found = copy(self)
        found._decided = decided
        return found

    @property
    def incremental(self) -> NDArray[Any] | bool:
        """Where factors are P − 1: everywhere, nowhere, or as numbers that are 1 there and 0 elsewhere."""
        return bool(self._kept[0]) if np.all(self._kept == self._kept[0]) else self._kept.astype(np.float64)

    def factors(self, h: Array) -> NDArray[Any]:
        """By what steps of lengths h multiply states, `(k, n_rates)`."""
        kinds, present = self._kinds(h)
        found = np.empty((len(h), len(self.rates)), dtype=self.rates.dtype)
        for kind in present:
            rows = np.flatnonzero(kinds == kind)
            found[rows] = self._way(kind, len(rows)).factors(h[rows])
        found[h == 0.0] = np.where(self._kept, 0.0, 1.0)
        return found

    def step(self, h: Array, now: Array, then: Array) -> StepResult:
        """The same, and what inputs `(batch, k, m)` at both ends add, `(batch, k, n_rates)`."""
        kinds, present = self._kinds(h)
        if len(present) == 1:
            factors, added = self._way(present[0], len(h)).step(h, now, then)
        else:
            factors = np.empty((len(h), len(self.rates)), dtype=self.rates.dtype)
            added = np.empty((len(now), *factors.shape), dtype=self.rates.dtype)
            for kind in present:
                rows = np.flatnonzero(kinds == kind)
                factors[rows], added[:, rows] = self._way(kind, len(rows)).step(h[rows], now[:, rows], then[:, rows])
        if not h.all():
            factors[h == 0.0], added[:, h == 0.0] = np.where(self._kept, 0.0, 1.0), 0.0
        return factors, added

    def _kinds(self, h: Array) -> tuple[NDArray[np.intp], list[int]]:
        """By how many factors of eight each length is below the longest, and which there are."""
        exponents = np.frexp(h)[1]
        exponents[h == 0.0] = self._octave  # nothing moves in a step of length zero
        kinds = (self._octave - np.clip(exponents, _MIN_EXPONENT, self._octave)) // _OCTAVES
        return kinds, np.flatnonzero(np.bincount(kinds)).tolist()

    def _way(self, kind: int, n_lengths: int) -> "_StepMethod":
        """For lengths below 2^(octave − 3 kind); what two threads prepare at once is the same."""
        if not self._pays(kind, n_lengths):
            return _DirectExponentials(self.rates, self.drive, self._kept, self._linear)
        if kind not in self._prepared:
            longest = math.ldexp(1.0, self._octave - _OCTAVES * kind)
            self._prepared[kind] = _select_methods(
                self.rates, self.drive, longest, kept=self._kept, linear=self._linear
            )
        return self._prepared[kind]

    def _pays(self, kind: int, n_lengths: int) -> bool:
        """Whether preparation does: as was decided for a run, or for as many lengths as were asked for until now."""
        if self._decided is not None:
            return kind in self._decided
        self._seen[kind] = self._seen.get(kind, 0) + n_lengths
        return self._seen[kind] >= _MIN_PREPARED_LENGTHS or kind in self._prepared


class _StepMethod(Protocol):
    """Steps of some rates."""

    def factors(self, h: Array) -> NDArray[Any]: ...

    def step(self, h: Array, now: Array, then: Array) -> StepResult: ...


@dataclass(frozen=True)
class _MixedMethod:
    """All rates, for lengths that are worked on together: one way for most, others in place of it for their own."""

    most: _StepMethod
    others: list[tuple[NDArray[np.intp], _StepMethod]]

    def factors(self, h: Array) -> NDArray[Any]:
        factors = self.most.factors(h)
        for columns, way in self.others:
            factors[:, columns] = way.factors(h)
        return factors

    def step(self, h: Array, now: Array, then: Array) -> StepResult:
        factors, added = self.most.step(h, now, then)
        for columns, way in self.others:
            factors[:, columns], added[:, :, columns] = way.step(h, now, then)
        return factors, added


def _select_methods(
    rates: NDArray[Any], drive: NDArray[Any], longest: float, *, kept: NDArray[np.bool_], linear: bool
) -> _MixedMethod:
    size, grows = np.abs(rates) * longest, rates.real > 0.0
    most_slow = _SLOWEST if np.all(size <= _SLOWEST) else _FAST
    slow = size <= np.where(grows, _SLOW_GROWTH, most_slow)
    fast = ~slow & ~grows & (size <= _FASTEST)
    makers: list[tuple[NDArray[np.bool_], Callable[..., _StepMethod]]]
    makers = [(slow, prepare_slow_rates), (fast, prepare_fast_rates), (~slow & ~fast, _direct_exponentials)]
    (most, make_most), *rest = sorted(makers, key=lambda maker: -np.count_nonzero(maker[0]))
    # The way of most goes through all rates: writing columns costs more than working on some in vain.
    harmless = np.where(most, rates, rates[most][0])
    others = [
        (np.flatnonzero(own), make(rates[own], drive[:, own], longest, kept=kept[own], linear=linear))
        for own, make in rest
        if own.any()
    ]
    return _MixedMethod(make_most(harmless, drive, longest, kept=kept, linear=linear), others)


@dataclass(frozen=True)
class _DirectExponentials:
    """An exponential for every step: for few of them, for rates that grow fast and those beyond all tables."""

    rates: NDArray[Any]
    drive: NDArray[Any]
    kept: NDArray[np.bool_]
    linear: bool

    def factors(self, h: Array) -> NDArray[Any]:
        P, begin, end = scalar_steps(self.rates, h, linear=False)
        return np.where(self.kept, self.rates * (begin + end), P)

    def step(self, h: Array, now: Array, then: Array) -> StepResult:
        P, begin, end = scalar_steps(self.rates, h, linear=self.linear)
        added = apply_inputs(now, self.drive) * begin + apply_inputs(then, self.drive) * end
        return np.where(self.kept, self.rates * (begin + end), P), added


def _direct_exponentials(
    rates: NDArray[Any], drive: NDArray[Any], _: float, *, kept: NDArray[np.bool_], linear: bool
) -> _DirectExponentials:
    return _DirectExponentials(rates, drive, kept, linear)
