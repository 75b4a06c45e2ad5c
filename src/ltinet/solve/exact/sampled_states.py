"""States at the samples of a run, a piece of time after the other: memory is that of a piece, whatever is asked for.

What a later question needs of an earlier walk is the state at the beginning of every piece; short runs are kept whole.
"""

from collections.abc import Iterator
from typing import Protocol

from ltinet.arrays import Array

_AT_ONCE, _FEWEST = 2**18, 64  # numbers in a piece, and samples at least: calls cost time as well
_KEPT = 2**20  # numbers of a run that is kept whole


class Walk(Protocol):
    """How states follow each other along the samples of a run."""

    def begin(self) -> Array:
        """What is needed to go on from the first sample, `(batch, n)`."""
        ...

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states `(batch, stop − first, n)` at samples before `stop`, and what is needed to go on from there."""
        ...


class SampledStates:
    """The states of a run at its samples."""

    def __init__(self, walk: Walk, *, n_samples: int, numbers_per_sample: int, width: int = 1) -> None:
        self._walk, self.n_samples = walk, n_samples
        length = max(_FEWEST, _AT_ONCE // max(1, numbers_per_sample))
        self.length = -(-length // width) * width  # pieces begin where blocks of so many samples do
        self._begins = [walk.begin()]
        self._keeps = n_samples * numbers_per_sample <= _KEPT
        self._pieces: dict[int, Array] = {}
        self._last: tuple[int, Array] | None = None

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """All pieces in turn, and which samples they hold."""
        for number in range(-(-self.n_samples // self.length)):
            yield self._samples(number), self._piece(number)

    def piece(self, number: int) -> tuple[slice, Array]:
        """One of them, which may be asked for again."""
        while len(self._begins) <= number:
            self._piece(len(self._begins) - 1, keeps=self._keeps)
        last = self._last
        if last is None or last[0] != number:  # questions come in the order of time
            last = self._last = number, self._piece(number, keeps=self._keeps)
        return self._samples(number), last[1]

    def _samples(self, number: int) -> slice:
        return slice(number * self.length, min((number + 1) * self.length, self.n_samples))

    def _piece(self, number: int, *, keeps: bool = False) -> Array:
        if number in self._pieces:
            return self._pieces[number]
        own = self._samples(number)
        states, after = self._walk.advance(own.start, own.stop, self._begins[number])
        if len(self._begins) == number + 1:
            self._begins.append(after.copy())  # a view would keep the whole piece alive
        if keeps:
            self._pieces[number] = states
        return states
