"""Samples at any times: exact steps of different lengths."""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property
from ltinet.solve.uneven.any_length import AnyLength, Dense, Scalars
from ltinet.solve.uneven.runs import OutputSink, Runs, Sink, StateSink
from ltinet.solve.uneven.varied_decay import follow

_AT_ONCE = 2**18  # numbers: states, or entries of small blocks, of steps that are worked on together
_FEWEST = 64  # steps worked on together, however many states there are: calls cost time as well
_SMALL_BLOCK = 16  # states up to which products of matrices, all runs side by side, beat a loop over steps
_MATRICES_AT_ONCE = 2**20  # numbers in the matrices of larger blocks


@dataclass(frozen=True, eq=False)
class IrregularWalk:
    """States along samples u `(batch, T, m)` at times t; a repeated time is a step of length zero."""

    steps: AnyLength
    t: Array
    u: Array
    z0: Array
    """Packed states at the first sample, `(batch, n)`."""

    def begin(self) -> Array:
        """The states at the first sample."""
        return self.z0

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states at some samples, and the state at the next one; after the last there is none."""
        last = min(stop, len(self.t) - 1)  # steps go from sample k to k + 1
        states = np.empty((len(self.u), last - first + 1, before.shape[-1]))
        states[:, 0] = before
        for begin in range(first, last, self._at_once):
            end = min(begin + self._at_once, last)
            own = slice(begin - first + 1, end - first + 1)
            self._through(begin, end, StateSink(states[:, own]), states[:, own.start - 1])
        return states[:, : stop - first], states[:, -1]

    def outputs(self, weights: Matrix) -> Array:
        """C z at all samples, `(batch, T, p)`; states are not kept."""
        y = np.zeros((*self.u.shape[:2], weights.shape[1]))
        state = self.z0
        y[:, 0] = state @ weights
        for begin in range(0, len(self.t) - 1, self._at_once):
            end = min(begin + self._at_once, len(self.t) - 1)
            state = self._through(begin, end, OutputSink(weights, y[:, begin + 1 : end + 1]), state)
        return y

    @cached_property
    def _at_once(self) -> int:
        small = [dense.steps.numbers for dense in self.steps.dense if dense.n_states <= _SMALL_BLOCK]
        return max(_FEWEST, _AT_ONCE // max(1, self.z0.size, *small))

    def _through(self, begin: int, end: int, sink: Sink, before: Array) -> Array:
        """Go from one sample to another and give the states after all steps to a sink; those after the last."""
        now, then = self.u[:, begin:end], self.u[:, begin + 1 : end + 1]
        steps = _Steps(Runs.of(end - begin), self.t[begin : end + 1], now, then)
        after = np.empty_like(before)
        for scalars in self.steps.scalars:
            after[:, scalars.place] = steps.of_scalars(scalars, before[:, scalars.place], sink)
        for dense in self.steps.dense:
            walk = steps.of_small_blocks if steps.may_multiply(dense) else steps.of_large_blocks
            after[:, dense.columns] = walk(dense, before, sink)
        return after


@dataclass(frozen=True)
class _Steps:
    """Steps between times t, with inputs `(batch, steps, m)` at their beginnings and ends."""

    runs: Runs
    t: Array
    now: Array
    then: Array

    @cached_property
    def _in_runs(self) -> tuple[Array, Array, Array]:
        lengths = self.runs.split(np.diff(self.t)[None, :, None])[0, :, 0]
        return lengths, self.runs.split(self.now), self.runs.split(self.then)

    def of_scalars(self, scalars: Scalars, first: Array, sink: Sink) -> Array:
        """Scalars from their packed states at the beginning; those at the end."""
        decays, added = scalars.step(*self._in_runs)
        states = added.reshape(len(added), self.runs.length, self.runs.count, added.shape[-1]).transpose(1, 2, 0, 3)
        decays = decays._replace(factors=decays.factors.reshape(*states.shape[:2], 1, -1))
        over_runs = scalars.over_runs(*self.runs.lengths(self.t))
        begin = np.ascontiguousarray(first).view(added.dtype)
        for place, own in enumerate(follow(decays, states, begin, over_runs=over_runs)):
            steps, runs = self.runs.at_place(place)
            sink.take(steps, scalars.place, own[runs].view(np.float64).swapaxes(0, 1))
        return np.asarray(states[-1, -1].view(np.float64))

    def may_multiply(self, dense: Dense) -> bool:
        """Whether the matrices of a run may be multiplied with each other: it pays, and rounding does not grow.

        In products of matrices that rise before they fall, digits are lost that a product with a state keeps.
        """
        if dense.n_states > _SMALL_BLOCK:
            return False
        return not dense.steps.rises(float(self.runs.lengths(self.t)[0].max(initial=0.0)))

    def of_small_blocks(self, dense: Dense, before: Array, sink: Sink) -> Array:
        """Dense blocks from all packed states at the beginning; their own at the end."""
        decays, added = dense.step(*self._in_runs)
        shape = (self.runs.length, self.runs.count)
        states, factors = (own.reshape(*shape, *own.shape[1:]) for own in (added, decays.factors))
        for place, own in enumerate(follow(decays._replace(factors=factors), states, dense.states(before))):
            steps, runs = self.runs.at_place(place)
            sink.take(steps, dense.columns, dense.packed(own[runs]))
        return dense.packed(states[-1, -1:])[:, 0]

    def of_large_blocks(self, dense: Dense, before: Array, sink: Sink) -> Array:
        """The same one step after the other: products of matrices would cost more than a loop."""
        h, at_once = np.diff(self.t), max(1, _MATRICES_AT_ONCE // dense.steps.numbers)
        state = dense.states(before)
        scratch = np.empty_like(state)
        for begin in range(0, len(h), at_once):
            own = slice(begin, begin + at_once)
            decays, states = dense.step(h[own], self.now[:, own], self.then[:, own])
            for P, after in zip(decays.factors, states, strict=True):
                np.matmul(P, state, scratch)
                after += scratch
                state = after
            sink.take(own, dense.columns, dense.packed(states))
        return dense.packed(state[None])[:, 0]
