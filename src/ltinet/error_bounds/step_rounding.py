"""Rounding errors of one step of the exact engine's recurrence and of its outputs.

A step takes w to P^K w + Σ P^{K−1−j} Γ u_j, K samples at a time. A sum of N products is off by at most N u Σ|terms|,
u = eps/2. Independent roundings add up as their root (Higham & Mary 2019): the worst case, partial sums that all grow,
has a standard deviation of √N u Σ|terms|/3. The estimate counts the smaller of N u and 2√N u, six of these standard
deviations. Where the same number is added at every step (a held input to an integrator), rounding is biased and N u is
counted: a constant term is cut by the same amount each time.

Errors of the exponentials themselves are measured against exponentials in extended precision.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, UNDERFLOW_CUTOFF, Array
from ltinet.error_bounds.extended_precision import extended_exponentials
from ltinet.error_bounds.propagation import (
    PropagatorChain,
    cover_rotation,
    initial_response,
    phi1,
    propagator_chain,
    with_measured_errors,
)

# MERGED ltinet.error_bounds.step_rounding
# Roundings that are the same at every step: those of terms that stay as they are, in sums that do not.
#
# A state has so many digits, and what is added to it is cut to these. A term that is the same at every step is cut by the
# same amount each time, whatever digits the state has: such roundings go in one direction, and do not spread by chance.

CONSTANT_TERM_TOLERANCE = 16.0  # eps of a sum: terms that differ by less from step to step are cut alike for long
_TINY = 2.0**-1022


def biased_rounding(largest: Array, usual: Array, states: Array, changes: Array, *, of_products: Array) -> Array:
    """What rounding adds to P z in the same direction at every step, `(cells, n)`.

    |P| is `largest` at most, `(n, n)`, and `usual` in most steps of each cell, `(cells, n, n)`; states are as large as
    `states` and differ by `changes` from step to step. `of_products` is the share of steps, `(cells,)`, whose matrices
    have been multiplied with each other often: there what is kept of a state is cut alike as well.
    """
    sums = (states @ largest.T)[:, :, None]
    unit = 0.5 * EPS * sums
    each = np.minimum(largest * states[:, None], unit)
    each[usual * changes[:, None] > CONSTANT_TERM_TOLERANCE * EPS * sums] = 0.0
    kept = np.arange(len(largest))
    each[:, kept, kept] = of_products[:, None] * unit[:, :, 0]
    # Each goes where it likes: in a sum of many they spread as if by chance (`step_rounding`).
    total = each.sum(axis=-1)
    shares = each / np.maximum(total, _TINY)[:, :, None]
    return np.asarray(total * np.minimum(1.0, 2.0 * np.sqrt(np.square(shares).sum(axis=-1))))


# MERGED ltinet.error_bounds.step_rounding
# What rounding adds in one step of the exact engine's recurrence, and in every output.
#
# A step takes w to P^K w + Σ P^{K−1−j} Γ u_j, K samples at a time. Its factors are exponentials that are right to a few
# units, and its sums have K m terms.
#
# A sum of N products is off by at most N u Σ|terms|, u = eps/2, and roundings that do not know of each other add up as
# their root (Higham & Mary 2019): the worst case for that, partial sums that all grow, has a standard deviation of
# √N u Σ|terms|/3. The bound counts the smaller of N u and 2 √N u, six of these. Roundings do know of each other where
# the same number is added again and again, a held input to an integrator: there the bound counts N u.

_LARGEST_EXPONENT = 700.0  # of a number that is finite
_DECAY_CUTOFF = (
    2.0**-59.9
)  # what is left of a state after a step of K samples where the engine may take it to have faded
_DECAY_MARGIN = (
    1.01  # of that, where it is left out: times stand up to 1e-6 of a step beside an even grid, and e^−745 is 0
)
_STATIONARY_CUTOFF = (
    1e-9  # |λ| times K steps: what a state that changes so little is given by a held input is the same each time
)
_CHUNK_SIZE = 2**20  # numbers
_COMPLEX_FACTOR = 4.0  # eps: a complex product √5 u, the exponential in it two units, the sum another
_COMPLEX_FACTOR_MEASURED = (
    1.7  # eps: the product and the sum alone, √5 u + u, where exponentials are measured by themselves
)
_REAL_FACTOR, _REAL_FACTOR_MEASURED = 2.5, 1.0  # the same for real numbers: product and sum u each, exponential 3 u
_REAL_REDUCTION = 0.6  # eps: a product of real numbers u, not √5 u


def sum_rounding_factor(n_terms: int) -> float:
    """By how many eps a sum of so many products is off, relative to the sum of their sizes."""
    return min(0.5 * n_terms, math.sqrt(n_terms))


def _rounding_bias(n_terms: int) -> float:
    """By how many eps more where all terms are equal, so that all roundings may go in one direction."""
    return 0.5 * n_terms - sum_rounding_factor(n_terms)


def steps_within_block(width: int) -> float:
    """How many steps a state inside a block of so many has behind it: those of blocks of 16 within it."""
    return float(width > 1) + (width // 16 if width > 16 else 0)


def _average_over_lengths(shares: Array, by_length: Array, sizes: Array) -> Array:
    """What steps of some lengths make of sizes `(cells, …)`, weighted by the share of each length."""
    return np.asarray(np.einsum("cl,lij,cj->ci", shares, by_length[: shares.shape[1]], sizes, optimize=True))


@dataclass(frozen=True, eq=False)
class StepMagnitudes:
    """How large states `(cells, modes)` and inputs `(cells, m)` are in each cell of time."""

    here: Array
    """States at the samples of a cell, both ends included."""
    begun: Array
    """States at the samples from which steps go through a cell; no less than `here` where cells are not shorter."""
    behind: Array
    """The same over all cells that a step which ends here began in."""
    inputs: Array
    """|u| over the same cells."""
    summed: Array
    """Σ|u| over the K samples of a step that ends here."""
    norms: Array
    """√Σu² over all samples, `(m,)`."""
    changes: Array | None = None
    """By how much inputs change from sample to sample in half of the steps, `(cells, m)`; None where they repeat."""
    within: Array | None = None
    """States at the edges of a cell and at samples in it, where cells are shorter than steps in which states grow."""

    @property
    def largest(self) -> Array:
        """States at both ends of steps."""
        return np.maximum(self.here, self.behind)

    def part(self, own: slice) -> "StepMagnitudes":
        """Those of some modes."""
        within = None if self.within is None else self.within[:, own]
        here, begun, behind = self.here[:, own], self.begun[:, own], self.behind[:, own]
        return replace(self, here=here, begun=begun, behind=behind, within=within)


@dataclass(frozen=True, eq=False)
class ScalarSteps:
    """Scalars with rates λ that step by K samples of length h at a time."""

    rates: NDArray[np.complex128]
    inputs: Array
    """|G|, (n × m)."""
    outputs: Array
    """|C|, (p × n)."""
    h: float
    width: int
    shares: Array | None
    """For steps of different lengths which share of them, `(cells, …)`, is about as long as each of h, h/2, h/4, …;
    how far their exponentials are off is measured elsewhere."""
    repeats: bool
    """Whether inputs are held for many samples."""

    @cached_property
    def kept(self) -> Array:
        """|P^K|, for steps of different lengths the largest of them."""
        kept = np.exp(np.minimum(self.rates.real * (self.h * self.width), _LARGEST_EXPONENT))
        return np.asarray(kept if self.shares is None else np.maximum(1.0, kept))

    @cached_property
    def in_one_direction(self) -> Array:
        """By how many eps of what is driven a sum is off beyond what chance gives, `(n,)`."""
        stands_still = self.repeats & (np.abs(self.rates) * (self.h * self.width) < _STATIONARY_CUTOFF)
        return np.where(stands_still, _rounding_bias(self.width * self.inputs.shape[1]), 0.0)

    @cached_property
    def entering(self) -> Array:
        """What a unit of input adds in K samples, all signs alike, (n × m): ∫ e^{Re λ s} ds |G|."""
        return self._entering(self.h * self.width)

    def _entering(self, length: float) -> Array:
        return length * phi1(np.minimum(self.rates.real * length, _LARGEST_EXPONENT))[:, None] * self.inputs

    def driven(self, sizes: StepMagnitudes) -> Array:
        """What inputs add in K samples, all signs alike, `(cells, n)`: by their largest, or by their sum."""
        by_sum = self.h * np.maximum(1.0, self.kept)[:, None] * self.inputs
        return np.minimum(sizes.inputs @ self.entering.T, sizes.summed @ by_sum.T)

    def driven_by_step(self, sizes: StepMagnitudes) -> Array:
        """The same in one step, on the average of a cell where they are of different lengths."""
        if self.shares is None:
            return self.driven(sizes)
        by_length = np.array([self._entering(self.h * 0.5**level) for level in range(self.shares.shape[1])])
        return _average_over_lengths(self.shares, by_length, sizes.inputs)

    def inside(self, known: Array, inputs: Array, gap: float) -> Array:
        """How large states are `(cells, n)`, at most so long after they were known."""
        exponent = np.minimum(self.rates.real * gap, _LARGEST_EXPONENT)
        driven = inputs @ (gap * phi1(exponent)[:, None] * self.inputs).T
        return np.asarray(np.maximum(1.0, np.exp(exponent)) * known + driven)

    def committed(self, sizes: StepMagnitudes) -> Array:
        """In one step, `(cells, n)`."""
        n_terms = self.width * self.inputs.shape[1]
        driven = self.driven_by_step(sizes)
        # P^K w is also what is left of the state at the end of the step when its inputs are taken away.
        complex_factor, real_factor = (
            (_COMPLEX_FACTOR, _REAL_FACTOR)
            if self.shares is None
            else (_COMPLEX_FACTOR_MEASURED, _REAL_FACTOR_MEASURED)
        )
        factor = np.where(self.rates.imag == 0.0, real_factor, complex_factor)
        of_states = factor * np.minimum(self.kept * sizes.behind, sizes.here + driven)
        of_inputs = (factor + sum_rounding_factor(n_terms) + self.in_one_direction) * driven
        return np.asarray(EPS * (of_states + of_inputs))

    def left_out(self, sizes: StepMagnitudes) -> Array:
        """Of states that have faded after a step of K samples all that is left then, `(cells, n)`."""
        return np.asarray(np.where(self.kept < _DECAY_CUTOFF, _DECAY_MARGIN * self.kept, 0.0) * sizes.behind)

    def in_outputs(self, sizes: StepMagnitudes, *, share: float, n_within: float) -> Array:
        """Rounding of the sums that make the outputs of K samples, `(cells, p)`, with so many steps within a block."""
        driven = self.driven(sizes)
        states = np.minimum(np.maximum(1.0, self.kept) * sizes.behind, sizes.here + driven)
        # Between samples and for states there are steps within blocks, each off in the same direction.
        with np.errstate(divide="ignore"):
            lasting = np.minimum(n_within, 1.0 + 1.0 / np.maximum(-16.0 * self.rates.real * self.h, 0.0))
        single = EPS * (lasting * (states + driven) + self.in_one_direction * driven)
        own_share = share - EPS * np.where(self.rates.imag == 0.0, _REAL_REDUCTION, 0.0)
        dust = UNDERFLOW_CUTOFF * np.maximum.accumulate(
            sizes.largest + driven, axis=0
        )  # of all that has ever been there
        return np.asarray((own_share * (states + driven) + single + dust + _TINY) @ self.outputs.T)

    def moved_by_sample(self, *, linear: bool) -> Array:
        """What a unit change of an input does to a state when it comes a unit of time late, (n × m)."""
        z = self.rates * self.h
        with np.errstate(over="ignore", invalid="ignore"):
            if not linear:
                return np.exp(np.minimum(z.real, _LARGEST_EXPONENT))[:, None] * self.inputs
            safe = np.where(z == 0.0, 1.0, z)
            first = np.where(z == 0.0, 1.0, np.abs(np.expm1(safe) / safe))
            second = np.where(np.abs(z) < 1.0, 1.0, np.abs((np.expm1(safe) / safe - 1.0) / safe))
            return np.asarray((first + 2.0 * second)[:, None] * self.inputs)


@dataclass(frozen=True, eq=False)
class DenseSteps:
    """A coupled block that steps by K samples of length h at a time."""

    F: Array
    inputs: Array
    """|G|, (n × m)."""
    C: Array
    h: float
    width: int
    shares: Array | None
    """For steps of different lengths which share of them, `(cells, …)`, is about as long as each of h, h/2, h/4, …"""
    repeats: bool
    """Whether inputs are held for many samples."""
    found: Callable[[float], Array]
    """The engine's own e^{Fh} for a length; for steps of different lengths these are measured elsewhere."""

    @cached_property
    def chain(self) -> PropagatorChain:
        """Exponentials up to K steps, with the errors of those that the engine uses."""
        chain = propagator_chain(self.F, self.h * self.width, steps=self.width)
        if self.shares is not None:
            return chain
        n_levels = self.width.bit_length()
        powers = [self.found(self.h)]
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(n_levels - 1):
                powers.append(powers[-1] @ powers[-1])
        exact = extended_exponentials(self.F, self.h * self.width, n_levels - 1)
        return with_measured_errors(chain, exact, np.array(powers[::-1]))

    @cached_property
    def one(self) -> PropagatorChain:
        """Exponentials up to one step."""
        return self.chain.halved(self.width.bit_length() - 1)

    @cached_property
    def in_one_direction(self) -> float:
        """By how many eps of what is driven a sum is off beyond what chance gives."""
        if (
            not self.repeats
            or np.abs(np.linalg.eigvals(self.F)).min(initial=np.inf) * self.h * self.width > _STATIONARY_CUTOFF
        ):
            return 0.0
        return _rounding_bias(self.width * self.inputs.shape[1])

    @cached_property
    def entering(self) -> Array:
        """What a unit of input adds in K samples, all signs alike, (n × m)."""
        return self.chain.integral @ self.inputs

    def driven(self, sizes: StepMagnitudes, response: Array, peak: Array) -> Array:
        """What inputs add in K samples by a response whose integral and peak are known, `(cells, …)`."""
        return np.minimum(sizes.inputs @ (response @ self.inputs).T, sizes.summed @ (self.h * peak @ self.inputs).T)

    def inside(self, known: Array, inputs: Array, gap: float) -> Array:
        """How large states are `(cells, n)`, at most so long after they were known."""
        chain = self.one.halved(int(math.log2(self.h / gap)))
        return np.asarray(known @ chain.reach.T + inputs @ (chain.integral @ self.inputs).T)

    def committed(self, sizes: StepMagnitudes) -> Array:
        """In one step, `(cells, n)`."""
        n, n_terms = len(self.F), self.width * self.inputs.shape[1]
        factor = _COMPLEX_FACTOR if self.shares is None else _COMPLEX_FACTOR_MEASURED
        share = (factor + sum_rounding_factor(n) + sum_rounding_factor(n_terms) + self.in_one_direction) * EPS
        own = (1.0 + sum_rounding_factor(n)) * EPS
        if self.shares is not None:
            return self._by_length(sizes, of_states=own, of_inputs=share)
        of_inputs = share * self.driven(sizes, self.chain.integral, self.chain.reach)
        of_inputs = of_inputs + self.driven(sizes, self.chain.integral_of_errors, self.chain.error_to[0])
        kept = np.abs(self.chain.exponentials[0])
        return np.asarray(sizes.behind @ (self.chain.errors[0] + own * kept).T + of_inputs)

    def left_out(self, sizes: StepMagnitudes) -> Array:
        """Of states that have faded after a step of K samples all that is left then, `(cells, n)`."""
        kept = np.abs(self.chain.exponentials[0])
        share = _DECAY_MARGIN if self.shares is None and np.linalg.norm(kept) < _DECAY_CUTOFF else 0.0
        return np.asarray(share * (sizes.behind @ kept.T))

    def _by_length(self, sizes: StepMagnitudes, *, of_states: float, of_inputs: float) -> Array:
        """The same where steps are of different lengths, on the average of a cell."""
        assert self.shares is not None  # noqa: S101 - who calls has looked
        n_levels = min(self.shares.shape[1], len(self.chain.errors))
        shares = self.shares[:, :n_levels].copy()
        shares[:, -1] += self.shares[:, n_levels:].sum(axis=1)  # shorter steps err less
        by_state, by_input = of_states * self.chain.reach_to, (of_inputs + EPS) * self.chain.integral_to @ self.inputs
        return np.asarray(
            _average_over_lengths(shares, by_state, sizes.behind)
            + _average_over_lengths(shares, by_input, sizes.inputs)
        )

    def in_the_same_direction(
        self, sizes: StepMagnitudes, changes: Array, steps: Array, *, of_products: Array
    ) -> Array:
        """What single steps of some usual lengths `(cells,)` commit alike each time, `(cells, n)`."""
        largest, shortest = self.chain.reach, len(self.chain.errors) - 1
        levels = np.maximum(np.log2(self.h / steps), 0.0).astype(np.intp)
        is_shorter = levels > shortest  # than all of the chain: P is 1 + Fh
        found = np.empty_like(changes)
        for cells in np.array_split(np.arange(len(steps)), math.ceil(len(steps) * largest.size / _CHUNK_SIZE)):
            usual = np.abs(self.chain.exponentials[np.minimum(levels[cells], shortest)])
            usual = np.where(is_shorter[cells, None, None], np.multiply.outer(steps[cells], np.abs(self.F)), usual)
            found[cells] = biased_rounding(
                largest, usual, sizes.behind[cells], changes[cells], of_products=of_products[cells]
            )
        return found

    def in_outputs(self, sizes: StepMagnitudes, *, share: float, n_within: float) -> Array:
        """Rounding of the sums that make the outputs of K samples, `(cells, p)`, with so many steps within a block."""
        area, peak = initial_response(self.C, self.chain)
        weights = np.abs(self.C)
        largest = self.chain.error_to[0]
        # Between samples and for states there are steps within blocks, each off in the same direction.
        level = min(max(math.ceil(math.log2(self.width)) - 4, 0), len(self.chain.errors) - 1)
        once = self.chain.error_to[level] + (1.0 + sum_rounding_factor(len(self.F))) * EPS * self.chain.reach_to[level]
        within = self.chain.reach @ (n_within * once)
        of_states = share * peak + weights @ (largest + within)
        of_sums = share + EPS * self.in_one_direction
        of_inputs = self.driven(sizes, of_sums * area, of_sums * peak)
        of_inputs = of_inputs + self.driven(sizes, weights @ self.chain.integral_of_errors, weights @ largest)
        return np.asarray(sizes.behind @ of_states.T + of_inputs)

    def moved_by_sample(self, *, linear: bool) -> Array:
        """What a unit change of an input does to a state when it comes a unit of time late, (n × m)."""
        if linear:
            return 3.0 * (self.one.integral / self.h) @ self.inputs
        return cover_rotation(np.abs(self.one.exponentials[0]), self.one.pairs, gaps=self.h) @ self.inputs
