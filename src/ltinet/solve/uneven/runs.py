"""Steps in runs that are worked on side by side: how they are laid out, and where the states after them go."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ltinet.arrays import Array
from ltinet.exact_arithmetic import exact_sum
from ltinet.model.matrices import Matrix
from ltinet.solve.uneven.varied_decay import runs_of


@dataclass(frozen=True)
class Runs:
    """Runs of equal length; the last is filled up with steps of length zero, in which nothing moves."""

    n_steps: int
    length: int
    count: int

    @classmethod
    def of(cls, n_steps: int) -> "Runs":
        """Runs for so many steps."""
        return cls(n_steps, *runs_of(n_steps))

    def split(self, values: Array) -> Array:
        """`(batch, steps, m)` in the order of runs: the first steps of all of them, then the second ones, and so on."""
        batch, _, m = values.shape
        filled = np.zeros((batch, self.count * self.length, m))
        filled[:, : self.n_steps] = values
        return filled.reshape(batch, self.count, self.length, m).swapaxes(1, 2).reshape(filled.shape)

    def lengths(self, t: Array) -> tuple[Array, Array]:
        """How long each run lasts, from the times at the ends of all steps, and what rounding took from it."""
        ends = t[np.minimum(np.arange(self.count + 1) * self.length, self.n_steps)]
        return exact_sum(ends[1:], -ends[:-1])

    def at_place(self, place: int) -> tuple[slice, slice]:
        """Which steps are at one place of all runs, and which runs have such a step."""
        return slice(place, None, self.length), slice(len(range(place, self.n_steps, self.length)))


class Sink(Protocol):
    """Takes packed states after some steps, `(batch, steps, …)`, some of them given by their columns."""

    def take(self, steps: slice, columns: Any, states: Array) -> None:
        """Take them."""
        ...


@dataclass(frozen=True)
class StateSink:
    """Keeps them."""

    states: Array
    """`(batch, steps, n)`."""

    def take(self, steps: slice, columns: Any, states: Array) -> None:
        """Write them."""
        self.states[:, steps, columns] = states


@dataclass(frozen=True)
class OutputSink:
    """Keeps what they bring to the outputs."""

    weights: Matrix
    """C of packed states, transposed, (n × p)."""
    y: Array
    """`(batch, steps, p)`."""

    def take(self, steps: slice, columns: Any, states: Array) -> None:
        """Add it."""
        self.y[:, steps] += states @ self.weights[columns]
