"""What rounding adds in one step of the exact engine's recurrence, and in every output.

A step takes w to P^K w + Σ P^{K−1−j} Γ u_j, K samples at a time. Its factors are exponentials that are right to a few
units, and its sums have K m terms. Sums of N numbers are off by at most N units and by about √N where roundings are
independent; the bound takes the smaller of N and 4√N (Higham & Mary 2019: exceeded with a probability below 1e-3 for a
single sum at its worst, and never by the largest of all sums together in any run seen).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ltinet.bounds.cell_propagation import beginning, phi1
from ltinet.bounds.dense_chain import DenseChain, dense_chain, smeared
from ltinet.tolerances import EPS

Array = NDArray[np.float64]
_LARGEST_EXPONENT = 700.0  # of a number that is finite
_FACTOR = 8.0  # roundings in a complex product and in the exponential that it multiplies by


def roundings(n_terms: int) -> float:
    """By how many units a sum of so many products is off."""
    return min(float(n_terms), 4.0 * math.sqrt(n_terms))


@dataclass(frozen=True, eq=False)
class StepSizes:
    """How large states `(cells, modes)` and inputs `(cells, m)` are in each cell of time."""

    here: Array
    """States at the samples of a cell, both ends included."""
    behind: Array
    """The same over all cells that a step which ends here began in."""
    inputs: Array
    """|u| over the same cells."""

    def part(self, own: slice) -> "StepSizes":
        """Those of some modes."""
        return StepSizes(self.here[:, own], self.behind[:, own], self.inputs)


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
    is_exact_multiple: bool
    """Whether λh is known beyond its rounding: on even grids it is, on uneven ones it is a rounded product."""

    @cached_property
    def kept(self) -> Array:
        """|P^K|."""
        return np.asarray(np.exp(np.minimum(self.rates.real * (self.h * self.width), _LARGEST_EXPONENT)))

    @cached_property
    def entering(self) -> Array:
        """What a unit of input adds in K samples, all signs alike, (n × m): ∫ e^{Re λ s} ds |G|."""
        length = self.h * self.width
        return length * phi1(np.minimum(self.rates.real * length, _LARGEST_EXPONENT))[:, None] * self.inputs

    def inside(self, sizes: StepSizes) -> Array:
        """How large states are between samples, `(cells, n)`."""
        exponent = np.minimum(self.rates.real * self.h, _LARGEST_EXPONENT)
        driven = sizes.inputs @ (self.h * phi1(exponent)[:, None] * self.inputs).T
        return np.asarray(np.maximum(1.0, np.exp(exponent)) * sizes.here + driven)

    def committed(self, sizes: StepSizes) -> Array:
        """In one step, `(cells, n)`."""
        n_terms = self.width * self.inputs.shape[1]
        turned = 0.0 if self.is_exact_multiple else np.abs(self.rates) * self.h
        driven = sizes.inputs @ self.entering.T
        # P^K w is also what is left of the state at the end of the step when its inputs are taken away.
        of_states = (_FACTOR + turned) * np.minimum(self.kept * sizes.behind, sizes.here + driven)
        return np.asarray(EPS * (of_states + (_FACTOR + turned + roundings(n_terms)) * driven))

    def in_outputs(self, sizes: StepSizes, *, share: float) -> Array:
        """Rounding of the sums that make the outputs of K samples, `(cells, p)`."""
        driven = sizes.inputs @ self.entering.T
        states = np.minimum(np.maximum(1.0, self.kept) * sizes.behind, sizes.here + driven)
        return np.asarray(share * ((states + driven) @ self.outputs.T))

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
    is_even: bool

    @cached_property
    def chain(self) -> DenseChain:
        """Exponentials up to K steps."""
        return dense_chain(self.F, self.h * self.width)

    @cached_property
    def one(self) -> DenseChain:
        """Exponentials up to one step."""
        return self.chain if self.width == 1 else dense_chain(self.F, self.h)

    @cached_property
    def entering(self) -> Array:
        """What a unit of input adds in K samples, all signs alike, (n × m)."""
        return self.chain.integral @ self.inputs

    def inside(self, sizes: StepSizes) -> Array:
        """How large states are between samples, `(cells, n)`."""
        return np.asarray(sizes.here @ self.one.reach.T + sizes.inputs @ (self.one.integral @ self.inputs).T)

    def committed(self, sizes: StepSizes) -> Array:
        """In one step, `(cells, n)`."""
        n, n_terms = len(self.F), self.width * self.inputs.shape[1]
        kept = np.abs(self.chain.exponentials[0]) if self.is_even else self.chain.reach
        error = self.chain.errors[0] if self.is_even else np.max(self.chain.errors, axis=0)
        of_inputs = (_FACTOR + n + roundings(n_terms)) * EPS * self.entering
        of_inputs = of_inputs + self.chain.integral_of_errors @ self.inputs
        return np.asarray(sizes.behind @ (error + (n + 2) * EPS * kept).T + sizes.inputs @ of_inputs.T)

    def in_outputs(self, sizes: StepSizes, *, share: float) -> Array:
        """Rounding of the sums that make the outputs of K samples, `(cells, p)`."""
        area, peak = beginning(self.C, self.chain)
        weights = np.abs(self.C)
        of_states = share * peak + weights @ np.max(self.chain.errors, axis=0)
        of_inputs = (share * area + weights @ self.chain.integral_of_errors) @ self.inputs
        return np.asarray(sizes.behind @ of_states.T + sizes.inputs @ of_inputs.T)

    def moved_by_sample(self, *, linear: bool) -> Array:
        """What a unit change of an input does to a state when it comes a unit of time late, (n × m)."""
        if linear:
            return 3.0 * (self.one.integral / self.h) @ self.inputs
        return smeared(np.abs(self.one.exponentials[0]), self.one.pairs, gaps=self.h) @ self.inputs
