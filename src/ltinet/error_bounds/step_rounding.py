"""Rounding errors of one step of the exact engine's recurrence and of its outputs.

A step takes w to P^K w + Σ P^{K−1−j} Γ u_j, K samples at a time. A sum of N products is off by at most N u Σ|terms|,
u = eps/2. Independent roundings add up as their root (Higham & Mary 2019): the worst case, partial sums that all grow,
has a standard deviation of √N u Σ|terms|/3. The estimate counts the smaller of N u and 2√N u, six of these standard
deviations. That roundings are independent is an assumption: what is computed here is an estimate, not a bound. Where
the same number is added at every step (a held input to an integrator), rounding is biased and N u is counted: a
constant term is cut by the same amount each time, whatever digits the state has.

Proven: N u of a sum, √5 u of a complex product (Brent, Percival & Zimmermann 2007), the responses to inputs of a size,
omitted states and underflow. Measured: errors of the exponentials of coupled blocks against double-double ones, at the
lengths that a run uses. Assumed: independent roundings in sums. Empirical: `CONSTANT_TERM_TOLERANCE`, which decides
when roundings are biased, and sizes of exponentials between two lengths (`propagation`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, UNDERFLOW_CUTOFF, Array
from ltinet._util.phi_functions import phi1
from ltinet.error_bounds.double_double_exponentials import double_double_matrix_exponentials
from ltinet.error_bounds.propagation import (
    PropagatorChain,
    cover_rotation,
    initial_response,
    propagator_chain,
)

# Change of a term from step to step, in eps of its sum, below which it is cut alike for many steps: a term that moves by
# c eps each step stays on the grid of one last digit for 1/c steps. Only the median of the changes is known, c: 99 % of the
# sums of 512 roundings are within 7.5, 5.4, 4.0 and 3.9 deviations of independent ones for c = 1, 4, 16 and 64 (python -m
# benchmarks.constants CONSTANT_TERM_TOLERANCE).
CONSTANT_TERM_TOLERANCE = 16.0
_MIN_NORMAL = 2.0**-1022
_LARGEST_EXPONENT = 700.0  # e^700 is finite; whatever grows by more overflows in the outputs as well
_DECAY_CUTOFF = 2.0**-59.9  # |P^K| below which the engine may omit a state after a step of K samples
_DECAY_MARGIN = 1.01  # on an omitted state: times are up to 1e-6 of a step beside an even grid, and e^−745 is 0
# |λ| K h below which a held input adds the same number to a state at every step. A faster state reaches its final value
# within 1e9 steps, and what is added to it changes by 1e-9 of itself at each, far above eps. More steps than that are
# not simulated.
_STATIONARY_CUTOFF = 1e-9
_CHUNK_SIZE = 2**20  # numbers in a temporary array (8 MiB), for memory
# Roundings in units of eps = 2u. A complex product √5 u, the exponential in it two units, the sum another; where the
# errors of exponentials are measured, the product and the sum alone: √5 u + u. Real numbers: product and sum u each,
# the exponential 3 u.
_COMPLEX_FACTOR, _COMPLEX_FACTOR_MEASURED = 4.0, 1.7
_REAL_FACTOR, _REAL_FACTOR_MEASURED = 2.5, 1.0
_REAL_REDUCTION = 0.6  # eps: a real product has u instead of √5 u


def biased_rounding(largest: Array, usual: Array, states: Array, changes: Array, *, common: Array) -> Array:
    """Estimate the rounding that P z adds in the same direction at every step, `(cells, n)`.

    |P| is `largest` at most, `(n, n)`, and `usual` in most steps of each cell, `(cells, n, n)`; states are as large as
    `states` and change by `changes` from step to step, `(cells, n)` each. `common` is the fraction of steps, `(cells,)`,
    whose lengths occur often, so that the diagonal of P is cut alike as well.
    """
    sums = (states @ largest.T)[:, :, None]
    unit = 0.5 * EPS * sums
    terms = np.minimum(largest * states[:, None], unit)
    terms[usual * changes[:, None] > CONSTANT_TERM_TOLERANCE * EPS * sums] = 0.0
    diagonal = np.arange(len(largest))
    terms[:, diagonal, diagonal] = common[:, None] * unit[:, :, 0]
    # Different terms have independent biases: 2√N of N equal terms, as in `sum_rounding_factor`.
    total = terms.sum(axis=-1)
    fractions = terms / np.maximum(total, _MIN_NORMAL)[:, :, None]
    return np.asarray(total * np.minimum(1.0, 2.0 * np.sqrt(np.square(fractions).sum(axis=-1))))


def sum_rounding_factor(n_terms: int) -> float:
    """Return the estimated rounding of a sum of products in eps, relative to the sum of their sizes."""
    return min(0.5 * n_terms, math.sqrt(n_terms))


def _sum_rounding_bias(n_terms: int) -> float:
    """Return how many eps are added where all terms are equal, so that all roundings may have one direction."""
    return 0.5 * n_terms - sum_rounding_factor(n_terms)


def _average_over_lengths(shares: Array, by_length: Array, sizes: Array) -> Array:
    """Return Σ shares · by_length · sizes `(cells, …)`: the average over steps of some lengths."""
    return np.asarray(np.einsum("cl,lij,cj->ci", shares, by_length[: shares.shape[1]], sizes, optimize=True))


@dataclass(frozen=True, eq=False)
class StepMagnitudes:
    """Sizes of states `(cells, modes)` and inputs `(cells, m)` in each cell of time."""

    at_samples: Array
    """States at the samples of a cell, both ends included."""
    at_step_starts: Array
    """States at the samples from which steps go through a cell; at least `at_samples` where cells are not shorter."""
    over_step: Array
    """The largest of `at_step_starts` over all cells in which a step that ends here can begin."""
    inputs: Array
    """|u| over these cells."""
    input_sums: Array
    """Σ|u| over the K samples of a step that ends here."""
    input_norms: Array
    """√Σu² over all samples, `(m,)`."""
    input_changes: Array | None = None
    """Median change of inputs from sample to sample, `(cells, m)`; None where values repeat."""
    within_cells: Array | None = None
    """States at the edges of a cell and at samples in it, where cells are shorter than steps in which states grow."""

    @property
    def largest(self) -> Array:
        """States at both ends of steps."""
        return np.maximum(self.at_samples, self.over_step)

    def part(self, modes: slice) -> "StepMagnitudes":
        """Return the sizes of some modes."""
        return replace(
            self,
            at_samples=self.at_samples[:, modes],
            at_step_starts=self.at_step_starts[:, modes],
            over_step=self.over_step[:, modes],
            within_cells=None if self.within_cells is None else self.within_cells[:, modes],
        )


@dataclass(frozen=True, eq=False)
class ScalarSteps:
    """Steps of scalar modes with rates λ by K samples of length h at a time."""

    rates: NDArray[np.complex128]
    input_weights: Array
    """|G|, (n × m)."""
    output_weights: Array
    """|C|, (p × n)."""
    h: float
    width: int
    length_shares: Array | None
    """For steps of different lengths: fractions `(cells, …)` that are about as long as each of h, h/2, h/4, …

    The errors of their exponentials are measured elsewhere (`simulation.step_errors`).
    """
    held_inputs: bool
    """True if inputs are held for many samples."""

    @cached_property
    def factor(self) -> Array:
        """|P^K|, for steps of different lengths the largest of them."""
        factor = np.exp(np.minimum(self.rates.real * (self.h * self.width), _LARGEST_EXPONENT))
        return np.asarray(factor if self.length_shares is None else np.maximum(1.0, factor))

    @cached_property
    def rounding_bias(self) -> Array:
        """Rounding of a sum in eps of the input response beyond that of independent roundings, `(n,)`."""
        is_stationary = self.held_inputs & (np.abs(self.rates) * (self.h * self.width) < _STATIONARY_CUTOFF)
        return np.where(is_stationary, _sum_rounding_bias(self.width * self.input_weights.shape[1]), 0.0)

    def _unit_response(self, length: float) -> Array:
        """Return ∫ e^{Re λ s} ds |G|, the states after an input of size one with the worst signs, (n × m)."""
        exponent = np.minimum(self.rates.real * length, _LARGEST_EXPONENT)
        return np.asarray(length * phi1(exponent)[:, None] * self.input_weights)

    def input_response(self, sizes: StepMagnitudes) -> Array:
        """Return a bound on what inputs add in K samples, `(cells, n)`: from their largest, or from their sum."""
        by_sum = self.h * np.maximum(1.0, self.factor)[:, None] * self.input_weights
        return np.minimum(sizes.inputs @ self._unit_response(self.h * self.width).T, sizes.input_sums @ by_sum.T)

    def size_within(self, states: Array, inputs: Array, gap: float) -> Array:
        """Return bounds on the states `(cells, n)` up to a time `gap` after they were known."""
        exponent = np.minimum(self.rates.real * gap, _LARGEST_EXPONENT)
        return np.asarray(np.maximum(1.0, np.exp(exponent)) * states + inputs @ self._unit_response(gap).T)

    def local_errors(self, sizes: StepMagnitudes) -> Array:
        """Estimate the rounding of one step, `(cells, n)`; the average of a cell for steps of different lengths."""
        n_terms = self.width * self.input_weights.shape[1]
        if self.length_shares is None:
            driven, real_factor, complex_factor = self.input_response(sizes), _REAL_FACTOR, _COMPLEX_FACTOR
        else:
            n_lengths = self.length_shares.shape[1]
            by_length = np.array([self._unit_response(self.h * 0.5**level) for level in range(n_lengths)])
            driven = _average_over_lengths(self.length_shares, by_length, sizes.inputs)
            real_factor, complex_factor = _REAL_FACTOR_MEASURED, _COMPLEX_FACTOR_MEASURED
        factor = np.where(self.rates.imag == 0.0, real_factor, complex_factor)
        # P^K w is also the state at the end of the step minus the response to its inputs.
        of_states = factor * np.minimum(self.factor * sizes.over_step, sizes.at_samples + driven)
        of_inputs = (factor + sum_rounding_factor(n_terms) + self.rounding_bias) * driven
        return np.asarray(EPS * (of_states + of_inputs))

    def omitted(self, sizes: StepMagnitudes) -> Array:
        """Return the size of states that the engine omits since they decayed in a step of K samples, `(cells, n)`."""
        return np.asarray(np.where(self.factor < _DECAY_CUTOFF, _DECAY_MARGIN * self.factor, 0.0) * sizes.over_step)

    def output_rounding(self, sizes: StepMagnitudes, *, relative: float, n_within: float) -> Array:
        """Estimate the rounding of the sums that form the outputs of K samples, `(cells, p)`.

        `relative` is the rounding of these sums, and `n_within` the number of steps within a block.
        """
        driven = self.input_response(sizes)
        states = np.minimum(np.maximum(1.0, self.factor) * sizes.over_step, sizes.at_samples + driven)
        # Between samples and for states there are steps within blocks, all of them biased alike.
        with np.errstate(divide="ignore"):
            n_remembered = np.minimum(n_within, 1.0 + 1.0 / np.maximum(-16.0 * self.rates.real * self.h, 0.0))
        steps = EPS * (n_remembered * (states + driven) + self.rounding_bias * driven)
        sums = (relative - EPS * np.where(self.rates.imag == 0.0, _REAL_REDUCTION, 0.0)) * (states + driven)
        # What underflows is relative to the largest state of all cells so far.
        underflow = UNDERFLOW_CUTOFF * np.maximum.accumulate(sizes.largest + driven, axis=0)
        return np.asarray((sums + steps + underflow + _MIN_NORMAL) @ self.output_weights.T)

    def delay_response(self, *, linear: bool) -> Array:
        """Return the effect on the states of a unit change of an input per unit of time that it is late, (n × m)."""
        z = self.rates * self.h
        with np.errstate(over="ignore", invalid="ignore"):
            if not linear:
                return np.exp(np.minimum(z.real, _LARGEST_EXPONENT))[:, None] * self.input_weights
            first, is_small = phi1(z), np.abs(z) < 1.0
            second = np.where(is_small, 1.0, np.abs((first - 1.0) / np.where(is_small, 1.0, z)))
            return np.asarray((np.abs(first) + 2.0 * second)[:, None] * self.input_weights)


@dataclass(frozen=True, eq=False)
class DenseSteps:
    """Steps of a coupled block by K samples of length h at a time."""

    F: Array
    input_weights: Array
    """|G|, (n × m)."""
    C: Array
    h: float
    width: int
    length_shares: Array | None
    """For steps of different lengths: fractions `(cells, …)` that are about as long as each of h, h/2, h/4, …"""
    held_inputs: bool
    """True if inputs are held for many samples."""
    computed_exponential: Callable[[float], Array]
    """The engine's e^{Fh} for a length; for steps of different lengths errors are measured elsewhere."""

    @cached_property
    def chain(self) -> PropagatorChain:
        """Exponentials up to K steps, with the errors of the exponentials that the engine uses."""
        chain = propagator_chain(self.F, self.h * self.width, steps=self.width)
        if self.length_shares is not None:
            return chain
        n_levels = self.width.bit_length()
        powers = [self.computed_exponential(self.h)]
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(n_levels - 1):
                powers.append(powers[-1] @ powers[-1])
        exact = double_double_matrix_exponentials(self.F, self.h * self.width, n_levels - 1)
        # Errors are measured, since bounds on the rounding of each squaring would double with every one of them.
        measured = [np.abs((P - high) - low) for P, (high, low) in zip(powers[::-1], exact, strict=True)]
        errors = chain.errors.copy()
        errors[:n_levels] += np.array(measured)
        return replace(chain, errors=errors)

    @cached_property
    def single_step(self) -> PropagatorChain:
        """Exponentials up to one step."""
        return self.chain.halved(self.width.bit_length() - 1)

    @cached_property
    def rounding_bias(self) -> float:
        """Rounding of a sum in eps of the input response beyond that of independent roundings."""
        if not self.held_inputs:
            return 0.0
        slowest = np.abs(np.linalg.eigvals(self.F)).min(initial=np.inf)
        is_stationary = slowest * self.h * self.width <= _STATIONARY_CUTOFF
        return _sum_rounding_bias(self.width * self.input_weights.shape[1]) if is_stationary else 0.0

    def _input_response(self, sizes: StepMagnitudes, integral: Array, peak: Array) -> Array:
        """Return a bound on what inputs add in K samples by a response of known integral and peak, `(cells, …)`."""
        by_sum = self.h * peak @ self.input_weights
        return np.minimum(sizes.inputs @ (integral @ self.input_weights).T, sizes.input_sums @ by_sum.T)

    def size_within(self, states: Array, inputs: Array, gap: float) -> Array:
        """Return bounds on the states `(cells, n)` up to a time `gap` after they were known."""
        chain = self.single_step.halved(int(math.log2(self.h / gap)))
        return np.asarray(states @ chain.peak.T + inputs @ (chain.integral @ self.input_weights).T)

    def local_errors(self, sizes: StepMagnitudes) -> Array:
        """Estimate the rounding of one step, `(cells, n)`; the average of a cell for steps of different lengths."""
        n, n_terms, chain = len(self.F), self.width * self.input_weights.shape[1], self.chain
        factor = _COMPLEX_FACTOR if self.length_shares is None else _COMPLEX_FACTOR_MEASURED
        of_inputs = (factor + sum_rounding_factor(n) + sum_rounding_factor(n_terms) + self.rounding_bias) * EPS
        of_states = (1.0 + sum_rounding_factor(n)) * EPS
        if self.length_shares is None:
            added = of_inputs * self._input_response(sizes, chain.integral, chain.peak)
            added = added + self._input_response(sizes, chain.error_integral, chain.error_to[0])
            return np.asarray(sizes.over_step @ (chain.errors[0] + of_states * np.abs(chain.exponentials[0])).T + added)
        n_levels = min(self.length_shares.shape[1], len(chain.errors))
        shares = self.length_shares[:, :n_levels].copy()
        shares[:, -1] += self.length_shares[:, n_levels:].sum(axis=1)  # shorter steps have smaller errors
        by_state, by_input = of_states * chain.peak_to, (of_inputs + EPS) * chain.integral_to @ self.input_weights
        return np.asarray(
            _average_over_lengths(shares, by_state, sizes.over_step)
            + _average_over_lengths(shares, by_input, sizes.inputs)
        )

    def omitted(self, sizes: StepMagnitudes) -> Array:
        """Return the size of states that the engine omits since they decayed in a step of K samples, `(cells, n)`."""
        P = np.abs(self.chain.exponentials[0])
        margin = _DECAY_MARGIN if self.length_shares is None and np.linalg.norm(P) < _DECAY_CUTOFF else 0.0
        return np.asarray(margin * (sizes.over_step @ P.T))

    def biased_rounding(self, sizes: StepMagnitudes, changes: Array, steps: Array, *, common: Array) -> Array:
        """Estimate the biased rounding of single steps of the usual lengths `steps` `(cells,)`, `(cells, n)`."""
        chain, shortest = self.chain, len(self.chain.errors) - 1
        levels = np.maximum(np.log2(self.h / steps), 0.0).astype(np.intp)
        is_shorter = levels > shortest  # than all of the chain: P is 1 + Fh
        result = np.empty_like(changes)
        for cells in np.array_split(np.arange(len(steps)), math.ceil(len(steps) * chain.peak.size / _CHUNK_SIZE)):
            usual = np.abs(chain.exponentials[np.minimum(levels[cells], shortest)])
            usual = np.where(is_shorter[cells, None, None], np.multiply.outer(steps[cells], np.abs(self.F)), usual)
            result[cells] = biased_rounding(
                chain.peak, usual, sizes.over_step[cells], changes[cells], common=common[cells]
            )
        return result

    def output_rounding(self, sizes: StepMagnitudes, *, relative: float, n_within: float) -> Array:
        """Estimate the rounding of the sums that form the outputs of K samples, `(cells, p)`.

        `relative` is the rounding of these sums, and `n_within` the number of steps within a block.
        """
        chain, weights = self.chain, np.abs(self.C)
        area, peak = initial_response(self.C, chain)
        largest_error = chain.error_to[0]
        # Between samples and for states there are steps within blocks of 16 samples, all of them biased alike.
        level = min(max(math.ceil(math.log2(self.width)) - 4, 0), len(chain.errors) - 1)
        per_step = chain.error_to[level] + (1.0 + sum_rounding_factor(len(self.F))) * EPS * chain.peak_to[level]
        of_states = relative * peak + weights @ (largest_error + chain.peak @ (n_within * per_step))
        of_sums = relative + EPS * self.rounding_bias
        of_inputs = self._input_response(sizes, of_sums * area, of_sums * peak)
        of_inputs = of_inputs + self._input_response(sizes, weights @ chain.error_integral, weights @ largest_error)
        underflow = _MIN_NORMAL * weights.sum(axis=1)
        return np.asarray(sizes.over_step @ of_states.T + of_inputs + underflow)

    def delay_response(self, *, linear: bool) -> Array:
        """Return the effect on the states of a unit change of an input per unit of time that it is late, (n × m)."""
        step = self.single_step
        if linear:
            return 3.0 * (step.integral / self.h) @ self.input_weights
        return cover_rotation(np.abs(step.exponentials[0]), step.pairs, gaps=self.h) @ self.input_weights
