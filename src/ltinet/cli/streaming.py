"""A table simulated as it arrives: rows in, rows out, with the memory of a chunk, at even times and at others."""

from collections.abc import Iterable, Iterator
from typing import Any, final

import numpy as np

from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import SimulationError
from ltinet.signals.sampled import Hold
from ltinet.signals.times import even_step
from ltinet.solve.exact.stepper import Stepper
from ltinet.tables.reading import Chunk
from ltinet.tolerances import EPS

# As for the times of a whole table: rounding of each, and little compared with the step.
_ROUNDING, _SHARE = 8.0, 1e-6


def streamed(
    network: DynamicNetwork, chunks: Iterable[Chunk], *, hold: Hold | None, x0: Array | None
) -> Iterator[tuple[Array, Array]]:
    """Times and outputs of chunk after chunk, each as soon as it has come.

    Raises:
        SimulationError: outputs leave the range of double precision; those before have been given.
    """
    if network.signal_settings.has_delays:  # a state alone does not tell what is still on its way: all rows at once
        parts = list(chunks)
        chunks = [Chunk(*(np.concatenate(own) for own in zip(*parts, strict=True)))] if parts else []
    run = _Run(network, hold, x0)
    for chunk in chunks:
        y = run.outputs(chunk)
        place = first_beyond_range(y)
        yield chunk.t[:place], y[:place]
        if place is not None:
            raise beyond_range(float(chunk.t[place]))


def first_beyond_range(y: Array) -> int | None:
    """The first time `(..., T, p)` at which an output is not finite, None if all are."""
    finite = np.isfinite(y).all(axis=-1)
    return None if finite.all() else int(np.argmin(finite.reshape(-1, finite.shape[-1]).all(axis=0)))


def beyond_range(t: float) -> SimulationError:
    """What to say of outputs that are not finite."""
    return SimulationError(
        f"the outputs are beyond the range of double precision from t = {t:g} on; the network is unstable or the "
        "inputs too large: end earlier or scale the inputs"
    )


@final
class _Run:
    """What is known at the last row.

    The first chunk is run as if it were all. If more come, even times go on with a stepper, which keeps its state in
    its own coordinates; others begin anew from the state at the last row.
    """

    def __init__(self, network: DynamicNetwork, hold: Hold | None, x0: Array | None) -> None:
        self._network, self._hold, self._x = network, hold, x0
        self._first: Chunk | None = None  # until it is known whether times are even
        self._stepper: Stepper | None = None
        self._grid = (0.0, 0.0, 0)  # the first time, the step, the rows so far
        self._last: Chunk | None = None  # the last row, which the next chunk begins with
        self._after_first: Any = None  # the solution of the first chunk, as long as that is kept

    def outputs(self, chunk: Chunk) -> Array:
        """Outputs `(T, p)` at the times of the chunk."""
        if self._last is None:
            solution = self._simulate(chunk)
            self._first, self._last = chunk, _last_row(chunk)
            self._after_first = solution
            return np.asarray(solution.y)
        if self._first is not None:
            self._begin_steps(self._first, chunk)
            self._first = None
        if self._stepper is not None and self._goes_on(chunk.t):
            y = next(self._stepper.run([chunk.values]))
        else:
            y = self._anew(chunk)
        self._last = _last_row(chunk)
        return np.asarray(y)

    def _simulate(self, chunk: Chunk) -> Any:
        return self._network.simulate(chunk.values, chunk.t, x0=self._x, hold=self._hold)

    def _begin_steps(self, first: Chunk, second: Chunk) -> None:
        """Take steps if the times so far are even, and go through the first chunk once more: its state is needed."""
        joined = np.concatenate([first.t, second.t])
        step = even_step(joined)
        if step is None:
            self._x = self._after_first.trajectory.user_states(first.t[-1:])[0]
        else:
            self._stepper = self._network.stepper(step, hold=self._hold, x0=self._x)
            next(self._stepper.run([first.values]))
            self._grid = (float(first.t[0]), step, len(first.t))
        self._after_first = None

    def _goes_on(self, t: Array) -> bool:
        """Whether the times stand on the grid of those before, each where rounding puts it."""
        begin, step, n_rows = self._grid
        expected = begin + step * np.arange(n_rows, n_rows + len(t), dtype=np.float64)
        bound = min(_ROUNDING * EPS * max(abs(begin), abs(float(t[-1]))), _SHARE * step)
        if np.abs(t - expected).max() <= bound:
            self._grid = (begin, step, n_rows + len(t))
            return True
        return False

    def _anew(self, chunk: Chunk) -> Array:
        """From the state at the last row on."""
        if self._stepper is not None:
            self._x, self._stepper = self._stepper.x, None
        assert self._last is not None  # noqa: S101 - for mypy: the first chunk is never run anew
        joined = Chunk(np.concatenate([self._last.t, chunk.t]), np.concatenate([self._last.values, chunk.values]))
        solution = self._simulate(joined)
        self._x = solution.trajectory.user_states(joined.t[-1:])[0]
        return np.asarray(solution.y[1:])


def _last_row(chunk: Chunk) -> Chunk:
    return Chunk(chunk.t[-1:].copy(), chunk.values[-1:].copy())
