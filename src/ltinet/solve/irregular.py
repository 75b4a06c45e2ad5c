"""Samples at any times: exact steps of different lengths."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ltinet.solve.modal import DenseBlock, ModalSystem
from ltinet.solve.packing import pack, unpack
from ltinet.solve.propagators import matrix_steps, scalar_steps

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
_AT_ONCE = 2**17  # numbers: steps times states whose propagators are held at a time


@dataclass(eq=False)
class IrregularWalk:
    """States along samples u `(batch, T, m)` at times t; a repeated time is a step of length zero."""

    system: ModalSystem
    t: Array
    u: Array
    z0: Array
    """Packed states at the first sample, `(batch, n)`."""
    linear: bool
    _dense: list["_DenseSteps"] = field(init=False)

    def __post_init__(self) -> None:
        self._dense = [_DenseSteps(block, np.diff(self.t), linear=self.linear) for block in self.system.blocks]

    def begin(self) -> Array:
        """The states at the first sample."""
        return self.z0

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states at some samples, and the state at the next one; after the last there is none."""
        states = np.empty((len(self.u), stop - first, self.system.n_states))
        after = before
        chunk = max(1, _AT_ONCE // max(1, self.system.n_states))
        for begin in range(first, stop, chunk):
            own = slice(begin, min(begin + chunk, stop))
            states[:, begin - first : own.stop - first], after = self._some(own, after)
        return states, after

    def _some(self, at: slice, before: Array) -> tuple[Array, Array]:
        last = min(at.stop, len(self.t) - 1)  # steps go from sample k to k + 1
        v, parts = unpack(self.system, before)
        now, then = self.u[:, at.start : last], self.u[:, at.start + 1 : last + 1]
        lengths = self.t[at.start + 1 : last + 1] - self.t[at.start : last]
        P, begin, end = scalar_steps(self.system.rates, lengths, linear=self.linear)
        added = begin * (now @ self.system.B.T) + end * (then @ self.system.B.T)
        scalars = np.empty((len(self.u), len(lengths) + 1, len(self.system.rates)), dtype=np.complex128)
        scalars[:, 0] = v
        for k in range(len(lengths)):
            scalars[:, k + 1] = P[k] * scalars[:, k] + added[:, k]
        walks = zip(self._dense, parts, strict=True)
        blocks = [steps.states(slice(at.start, last), part, now, then) for steps, part in walks]
        packed = pack(self.system, scalars, blocks)
        return packed[:, : at.stop - at.start], packed[:, -1]


class _DenseSteps:
    """Steps of one dense block, with a matrix exponential for each distinct length."""

    def __init__(self, block: DenseBlock, lengths: Array, *, linear: bool) -> None:
        self._block, self._linear = block, linear
        self._lengths, self._which = np.unique(lengths, return_inverse=True)
        self._steps: dict[int, tuple[Array, Array, Array]] = {}

    def states(self, at: slice, state: Array, now: Array, then: Array) -> Array:
        """States before and after each of some steps."""
        which = self._which[at]
        self._prepare(np.unique(which).tolist())
        states = np.empty((len(now), len(which) + 1, len(self._block.F)))
        states[:, 0] = state
        for k, number in enumerate(which.tolist()):
            P, begin, end = self._steps[number]
            states[:, k + 1] = states[:, k] @ P.T + now[:, k] @ begin.T + then[:, k] @ end.T
        return states

    def _prepare(self, numbers: list[int]) -> None:
        if len(self._steps) * self._block.F.size > _AT_ONCE:
            self._steps.clear()
        new = [number for number in numbers if number not in self._steps]
        if new:
            steps = matrix_steps(self._block.F, self._block.G, self._lengths[new], linear=self._linear)
            self._steps.update(zip(new, zip(*steps, strict=True), strict=True))
