"""Vector fits with more and more poles, residues of full rank: what models of any order are truncated from."""

from collections.abc import Iterator
from dataclasses import dataclass

from ltinet.identification.from_frequency.data import ScaledResponse
from ltinet.identification.from_frequency.linear import with_residues
from ltinet.identification.from_frequency.truncation import Truncation, truncations
from ltinet.identification.from_frequency.vector_fitting import first_poles, relocate

_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 72, 80, 96, 112, 128)
_BETTER = 0.98  # of the smallest error so far: what counts as an improvement
_PATIENCE = 3  # vector fits without one, one after the other, before no more are tried
_NO_FIT = 0.1  # error above which a lack of improvement says nothing: half of many peaks is as bad as none of them


@dataclass(frozen=True)
class Parent:
    """A vector fit and its truncations, with its errors where it was fitted and where it was not."""

    n_poles: int
    truncation: Truncation
    error: float
    held_out: float

    @property
    def n_states(self) -> int:
        """States that are more than rounding."""
        return len(self.truncation.singular_values)


def parent(data: ScaledResponse, n_poles: int, *, feedthrough: bool, held_out: ScaledResponse | None = None) -> Parent:
    """One vector fit."""
    poles = relocate(data, first_poles(data.s, n_poles), feedthrough=feedthrough, stable=False)
    model = with_residues(data, poles, feedthrough=feedthrough)
    error = data.error(model.response(data.s))
    other = error if held_out is None else held_out.error(model.response(held_out.s))
    return Parent(n_poles, truncations(model, data.s), error, other)


def ladder(
    data: ScaledResponse, held_out: ScaledResponse, *, feedthrough: bool, most: int, floor: float
) -> Iterator[Parent]:
    """Vector fits of growing size until the data that were held out are fitted no better, or as well as rounding."""
    smallest, waiting = float("inf"), 0
    for n_poles in _COUNTS:
        if n_poles > most or waiting == _PATIENCE or smallest <= floor:
            return
        found = parent(data, n_poles, feedthrough=feedthrough, held_out=held_out)
        waiting = 0 if found.held_out < _BETTER * smallest or smallest > _NO_FIT else waiting + 1
        smallest = min(smallest, found.held_out)
        yield found
