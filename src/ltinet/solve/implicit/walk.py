"""Two walks of a model side by side, one with steps of half the length: how far they are apart is the error, estimated.

Between knots of the input steps are the distance of the knots divided by a power of two, so that few lengths occur, and
few factorisations. How long they are is decided by the embedded method; that both walks agree is seen at the end.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import SimulationError
from ltinet.model.sparse_factors import SparseFactors, has_symmetric_pattern
from ltinet.model.sparse_pencil import SparsePencil
from ltinet.signals.signal import Signal
from ltinet.solve.implicit.sdirk import NODES, Stepping

_DEEPEST = 40  # halvings of the time between two knots: less is no time
_LENGTHENS = 1.0 / 50.0  # of the tolerance: a step twice as long has an error 16 times as large, and some room
_ORDER = 4.0  # of the local difference of the two methods
_HAIR = 1e-9  # of a level: what rounding makes of a ratio of two lengths
_SAME_LENGTH = 12  # digits in which even spacings agree


class Outputs:
    """Wᵀ = C E⁻¹: q = C x and q' = Wᵀ(A x + B u), p numbers a step instead of n."""

    def __init__(self, pencil: SparsePencil, C: Array) -> None:
        self.C = C
        if pencil.mass is None:
            W = C.T
        else:
            factors = SparseFactors(pencil.mass, has_symmetric_pattern=has_symmetric_pattern(pencil.mass))
            W = factors.solve(C.T, transposed=True)
        self.of_state, self.of_input = np.asarray(pencil.state.T @ W).T, W.T @ pencil.B

    def at(self, x: Array, u: Array) -> tuple[Array, Array]:
        """The curve q and its derivative q', (p, batch) each."""
        return self.C @ x, self.of_state @ x + self.of_input @ u


class Curve(NamedTuple):
    """q at the ends of all steps, and its derivative after and before them, (steps + 1, p, batch)."""

    t: Array
    q: Array
    after: Array
    before: Array


class Walked(NamedTuple):
    """Both curves, and what they cost."""

    coarse: Curve
    fine: Curve
    n_factorisations: int
    n_solves: int


def walk(stepping: Stepping, outputs: Outputs, signal: Signal, knots: Array, *, x0: Array, tolerance: float) -> Walked:
    """From x0, (n, batch), at the first knot to the last; `tolerance` is of a step, relative to the largest state.

    Raises:
        SimulationError: steps become too short, or the states overflow.
    """
    walkers = _Walkers(stepping, outputs, signal, x0, tolerance)
    walkers.begin(float(knots[0]))
    for start, stop in zip(knots[:-1].tolist(), knots[1:].tolist(), strict=True):
        walkers.cross(start, stop)
    coarse, fine = (notes.curve for notes in walkers.notes)
    return Walked(coarse, fine, stepping.n_factorisations, stepping.n_solves)


class _Walkers:
    """Both walks as they go: the states, the largest state so far, and the length of the last step."""

    def __init__(self, stepping: Stepping, outputs: Outputs, signal: Signal, x0: Array, tolerance: float) -> None:
        self.stepping, self.signal, self.tolerance = stepping, signal, tolerance
        self.coarse = self.fine = x0
        self.largest, self.length = float(np.linalg.norm(x0)), math.inf
        self.notes = _Notes(outputs, signal), _Notes(outputs, signal)

    def begin(self, t: float) -> None:
        """Write down where both walks start."""
        for notes in self.notes:
            notes.begin(t, self.coarse)

    def cross(self, start: float, stop: float) -> None:
        """From one knot to the next, in steps of their distance divided by powers of two."""
        span = float(f"{stop - start:.{_SAME_LENGTH}e}")
        level = max(math.ceil(math.log2(span / self.length) - _HAIR), 0) if self.length < span else 0
        place = 0  # in steps of the present level
        while place < 2**level:
            h, t = span / 2**level, _between(start, stop, place, level)
            end = _between(start, stop, place + 1, level)
            error = self._try(h, t, end)
            if error > self.tolerance:
                deeper = max(math.ceil(math.log2(error / self.tolerance) / _ORDER), 1)
                level, place = level + deeper, place * 2**deeper
                if level > _DEEPEST:
                    raise SimulationError(f"steps at t = {t:g} became too short; allow a larger tolerance")
                continue
            place, self.length = place + 1, h
            if error <= _LENGTHENS * self.tolerance and level and place % 2 == 0:
                level, place, self.length = level - 1, place // 2, 2.0 * h

    def _try(self, h: float, t: float, end: float) -> float:
        """The error of a step of the coarse walk; both walks go on where it is small enough."""
        tried = self.stepping.step(self.coarse, h, _inputs(self.signal, t, end))
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.linalg.norm(tried.state))
        if not math.isfinite(size):
            raise SimulationError(f"the states overflow at t = {t:g}; the model is unstable, or its units too small")
        largest = max(self.largest, size)
        # The first step must resolve what is fastest: a long one would damp an unstable state as it does a stiff one.
        difference = tried.difference if self.length == math.inf else tried.filtered
        error = float(np.linalg.norm(difference)) / largest if largest else 0.0
        if error <= self.tolerance:
            middle = 0.5 * (t + end)
            for first, last in ((t, middle), (middle, end)):
                self.fine = self.stepping.step(self.fine, 0.5 * h, _inputs(self.signal, first, last)).state
                self.notes[1].add(last, self.fine)
            self.coarse, self.largest = tried.state, largest
            self.notes[0].add(end, self.coarse)
        return error


def _between(start: float, stop: float, place: int, level: int) -> float:
    """A place between two knots, which it meets exactly."""
    return stop if place == 2**level else start + (stop - start) * place / 2**level


class _Notes:
    """What is written down on a walk."""

    def __init__(self, outputs: Outputs, signal: Signal) -> None:
        self._outputs, self._signal = outputs, signal
        self._rows: list[tuple[float, Array, Array, Array]] = []

    def begin(self, t: float, x: Array) -> None:
        q, rate = self._outputs.at(x, _value(self._signal, t))
        self._rows.append((t, q, rate, rate))

    def add(self, t: float, x: Array) -> None:
        q, before = self._outputs.at(x, _value_before(self._signal, t))
        after = before if t >= self._signal.stop else self._outputs.at(x, _value(self._signal, t))[1]
        self._rows.append((t, q, after, before))

    @property
    def curve(self) -> Curve:
        t, q, after, before = zip(*self._rows, strict=True)
        return Curve(np.array(t), np.array(q), np.array(after), np.array(before))


def _inputs(signal: Signal, start: float, stop: float) -> Array:
    """The input at the nodes of a step, (5, m, batch); at its end the value before a jump."""
    t = start + NODES * (stop - start)
    values = np.concatenate([signal.value(t[:-1]), signal.value_before(np.array([stop]))], axis=-2)
    return _last_batch(values)


def _value(signal: Signal, t: float) -> Array:
    return np.asarray(_last_batch(signal.value(np.array([t])))[0])


def _value_before(signal: Signal, t: float) -> Array:
    return np.asarray(_last_batch(signal.value_before(np.array([t])))[0])


def _last_batch(values: Array) -> Array:
    """(batch, T, m) as (T, m, batch)."""
    flat = values.reshape(-1, *values.shape[-2:])
    return np.ascontiguousarray(flat.transpose(1, 2, 0))


def knots_between(signal: Signal, t: Array) -> Iterator[float]:
    """The first time, the knots of the input after it, and the last time."""
    yield float(t[0])
    inside = signal.knots[(signal.knots > t[0]) & (signal.knots < t[-1])]
    yield from np.unique(inside).tolist()
    if t[-1] > t[0]:
        yield float(t[-1])
