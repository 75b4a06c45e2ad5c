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

from ltinet.bounds.cell_propagation import phi1
from ltinet.bounds.dense_chain import DenseChain, dense_chain
from ltinet.tolerances import EPS

Array = NDArray[np.float64]
_FACTOR = 8.0  # roundings in a complex product and in the exponential that it multiplies by


def roundings(n_terms: int) -> float:
    """By how many units a sum of so many products is off."""
    return min(float(n_terms), 4.0 * math.sqrt(n_terms))


@dataclass(frozen=True, eq=False)
class StepSizes:
    """How large the states, inputs and their changes are in each cell of time, `(cells, modes)` and `(cells, m)`."""

    states: Array
    inputs: Array


@dataclass(frozen=True, eq=False)
class ScalarSteps:
    """Scalars with rates λ that step by K samples of length h at a time."""

    rates: NDArray[np.complex128]
    inputs: Array
    """|G|, (n × m)."""
    h: float
    width: int
    is_exact_multiple: bool
    """Whether λh is known beyond its rounding: on even grids it is, on uneven ones it is a rounded product."""

    @cached_property
    def kept(self) -> Array:
        """|P^K|."""
        return np.asarray(np.exp(np.minimum(self.rates.real * (self.h * self.width), 700.0)))

    @cached_property
    def entering(self) -> Array:
        """What a unit of input adds in K samples, all signs alike, (n × m): ∫ e^{Re λ s} ds |G|."""
        length = self.h * self.width
        return length * phi1(np.minimum(self.rates.real * length, 700.0))[:, None] * self.inputs

    def committed(self, sizes: StepSizes) -> Array:
        """In one step, `(cells, n)`."""
        n_terms = self.width * self.inputs.shape[1]
        turned = 0.0 if self.is_exact_multiple else np.abs(self.rates) * self.h
        of_states = (_FACTOR + turned) * self.kept * sizes.states
        of_inputs = (_FACTOR + turned + roundings(n_terms)) * (sizes.inputs @ self.entering.T)
        return EPS * (of_states + of_inputs)

    def summed(self, sizes: StepSizes) -> Array:
        """What the outputs of one block of samples are sums of, `(cells, n)`."""
        return np.asarray(np.maximum(1.0, self.kept) * sizes.states + sizes.inputs @ self.entering.T)


@dataclass(frozen=True, eq=False)
class DenseSteps:
    """A coupled block that steps by K samples of length h at a time."""

    F: Array
    inputs: Array
    """|G|, (n × m)."""
    h: float
    width: int

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

    def committed(self, sizes: StepSizes) -> Array:
        """In one step, `(cells, n)`."""
        n, n_terms = len(self.F), self.width * self.inputs.shape[1]
        error = np.max(self.chain.errors, axis=0) + (n + 2) * EPS * self.chain.reach
        of_inputs = (_FACTOR + n + roundings(n_terms)) * EPS * self.entering
        of_inputs = of_inputs + self.chain.integral_of_errors @ self.inputs
        return np.asarray(sizes.states @ error.T + sizes.inputs @ of_inputs.T)

    def summed(self, sizes: StepSizes) -> Array:
        """What the outputs of one block of samples are sums of, `(cells, n)`."""
        return np.asarray(sizes.states @ self.chain.reach.T + sizes.inputs @ self.entering.T)
