"""One input or all of them, one output or all of them."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import InvalidSignalError
from ltinet.model.names import Names
from ltinet.shown import near, shown
from ltinet.solve.solution import ErrorBound, KnowsInput, Solution, Trajectory

Channel: TypeAlias = int | str | None
"""An input or an output by its name, or counted from 0; None for all of them."""
Times: TypeAlias = ArrayLike | None
"""The times of a response; None for those that suit it."""


def checked_index(index: Any, names: Names, what: str) -> int | None:
    """An input or an output by its name or its number, counted from 0; None for all of them.

    Raises:
        InvalidSignalError: there is no such one.
    """
    if index is None:
        return None
    if isinstance(index, str):
        if index not in names:
            raise InvalidSignalError(f"there is no {what} {shown(repr(index))}; {near(index, names)}")
        return names.index(index)
    count = len(names)
    try:
        number = -1 if isinstance(index, bool) else operator.index(index)
    except TypeError:
        number = -1
    if not 0 <= number < count:
        known = f"0 to {count - 1}" if count > 1 else "0" if count else "none, there are no such"
        raise InvalidSignalError(f"{what} is {shown(repr(index))}; give one of {known}, or None for all")
    return number


def of_output(solution: Solution, output: int | None) -> Solution:
    """The solution of one output alone, or as it is."""
    if output is None:
        return solution
    own = slice(output, output + 1)
    alone = _OneOutput(solution.trajectory, own)
    return replace(
        solution, y=solution.y[..., own], trajectory=alone, signal_names=solution.signal_names.with_output(output)
    )


@dataclass(frozen=True, eq=False)
class _OneOutput:
    """A trajectory of which one output is shown."""

    whole: Trajectory
    own: slice

    def outputs(self, t: Array) -> Array:
        return self.whole.outputs(t)[..., self.own]

    def user_states(self, t: Array) -> Array:
        return self.whole.user_states(t)

    def neuron_states(self, t: Array) -> Array:
        return self.whole.neuron_states(t)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        if not isinstance(self.whole, KnowsInput):
            return t, np.zeros((len(t), 0))
        return self.whole.input_corners(t)

    def error_bound(self, start: float, stop: float) -> ErrorBound:
        return _OneBound(self.whole.error_bound(start, stop), self.own)


@dataclass(frozen=True, eq=False)
class _OneBound:
    whole: ErrorBound
    own: slice

    def at(self, t: Array) -> dict[str, Array]:
        return self._chosen(self.whole.at(t))

    def overall(self) -> dict[str, Array]:
        return self._chosen(self.whole.overall())

    def _chosen(self, parts: Mapping[str, Array]) -> dict[str, Array]:
        return {name: part[..., self.own] for name, part in parts.items()}
