"""Samples at any times: exact steps of different lengths, a chunk of them at a time so that memory stays bounded."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ltinet.solve.modal import DenseBlock, ModalSystem
from ltinet.solve.propagators import matrix_steps, scalar_steps

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
_AT_ONCE = 2**17  # numbers: steps times states whose propagators are held at a time


def irregular_states(
    system: ModalSystem, t: Array, u: Array, *, v: Complex, parts: list[Array], linear: bool
) -> Iterator[tuple[slice, Complex, list[Array]]]:
    """Walk through samples u `(batch, T, m)` at times t; yields the states at one slice of samples after the other.

    A repeated time is a step of length zero, across which the states are continuous.
    """
    n_times = len(t)
    lengths = np.append(np.diff(t), 0.0)
    chunk = max(1, _AT_ONCE // max(1, system.n_states))
    walks = [_DenseWalk(block, part, lengths, linear=linear) for block, part in zip(system.blocks, parts, strict=True)]
    for begin in range(0, n_times, chunk):
        at = slice(begin, min(begin + chunk, n_times))
        now, after = u[:, at], u[:, np.minimum(np.arange(begin, at.stop) + 1, n_times - 1)]
        P, first, last = scalar_steps(system.rates, lengths[at], linear=linear)
        added = first * (now @ system.B.T) + last * (after @ system.B.T)
        scalars = np.empty_like(added)
        for k in range(at.stop - begin):
            scalars[:, k] = v
            v = P[k] * v + added[:, k]
        yield at, scalars, [walk.states(at, now, after) for walk in walks]


class _DenseWalk:
    """The states of one dense block along the samples, with a matrix exponential for each distinct step length."""

    def __init__(self, block: DenseBlock, state: Array, lengths: Array, *, linear: bool) -> None:
        self._block, self._state, self._linear = block, state, linear
        self._lengths, self._which = np.unique(lengths, return_inverse=True)
        self._steps: dict[int, tuple[Array, Array, Array]] = {}

    def states(self, at: slice, now: Array, after: Array) -> Array:
        """States at the samples of the next slice."""
        which = self._which[at]
        self._prepare(np.unique(which).tolist())
        states = np.empty((*now.shape[:2], len(self._block.F)))
        for k, number in enumerate(which.tolist()):
            states[:, k] = self._state
            P, first, last = self._steps[number]
            self._state = self._state @ P.T + now[:, k] @ first.T + after[:, k] @ last.T
        return states

    def _prepare(self, numbers: list[int]) -> None:
        if len(self._steps) * self._block.F.size > _AT_ONCE:
            self._steps.clear()
        new = [number for number in numbers if number not in self._steps]
        if new:
            steps = matrix_steps(self._block.F, self._block.G, self._lengths[new], linear=self._linear)
            self._steps.update(zip(new, zip(*steps, strict=True), strict=True))
