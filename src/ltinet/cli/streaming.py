"""A table simulated as it arrives: rows in, rows out, with the memory of a chunk, at even times and at others.

A run goes on from its last chunk in one of two ways. At even times a stepper goes on; it keeps what is late in buffers.
At other times the run begins anew at the end of an earlier chunk, t_c, from the state there. Outputs that are late by σ
are those of the core at t − σ, so that t_c is the last such end that lies at least σ before the next row, and an input
that is late by τ acts from t_c on with what it was from t_c − τ on: rows since then are kept.
"""

from collections.abc import Iterable, Iterator
from typing import final

import numpy as np

from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import SimulationError
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.times import even_step
from ltinet.solve.exact.stepper import Stepper
from ltinet.solve.simulation import hold_of
from ltinet.tables.reading import Chunk
from ltinet.tolerances import EPS

# As for the times of a whole table: rounding of each, and little compared with the step.
_ROUNDING, _SHARE = 8.0, 1e-6
_MARGIN = 2  # rows that are kept beyond those that are needed: rounding may move a late row past the next one


def streamed(
    network: DynamicNetwork, chunks: Iterable[Chunk], *, hold: Hold | None, x0: Array | None
) -> Iterator[tuple[Array, Array]]:
    """Times and outputs of chunk after chunk, each as soon as it has come.

    Raises:
        SimulationError: outputs leave the range of double precision; those before have been given.
    """
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
    its own coordinates; others begin anew from the state at the end of an earlier chunk.
    """

    def __init__(self, network: DynamicNetwork, hold: Hold | None, x0: Array | None) -> None:
        self._network, self._x0 = network, x0
        settings = network.signal_settings
        self._hold: Hold = hold_of(hold, settings)
        self._longest_input_delay = float(settings.array("input_delay", network.n_inputs).max(initial=0.0))
        self._longest_output_delay = float(settings.array("output_delay", network.n_outputs).max(initial=0.0))
        self._first: Chunk | None = None  # until it is known whether times are even
        self._stepper: Stepper | None = None
        self._grid = (0.0, 0.0, 0)  # the first time, the step, the rows so far
        self._rows: Chunk | None = None  # those that a new beginning needs
        self._ends: list[tuple[float, Array | None]] = []  # ends of chunks to begin at, with their states

    def outputs(self, chunk: Chunk) -> Array:
        """Outputs `(T, p)` at the times of the chunk."""
        if self._rows is None:
            solution = self._network.simulate(chunk.values, chunk.t, x0=self._x0, hold=self._hold)
            self._first, self._rows = chunk, chunk
            self._ends = [(float(chunk.t[0]), self._x0)]
            self._keep(float(chunk.t[-1]), solution.trajectory.user_states(chunk.t[-1:])[0])
            return np.asarray(solution.y)
        if self._first is not None:
            self._begin_steps(self._first, chunk)
            self._first = None
        self._rows = Chunk(np.concatenate([self._rows.t, chunk.t]), np.concatenate([self._rows.values, chunk.values]))
        if self._stepper is not None and self._goes_on(chunk.t):
            y = next(self._stepper.run([chunk.values]))
            x = self._stepper.x
        else:
            self._stepper = None
            y, x = self._anew(chunk, self._rows)
        self._keep(float(chunk.t[-1]), x)
        return np.asarray(y)

    def _begin_steps(self, first: Chunk, second: Chunk) -> None:
        """Take steps if the times so far are even, and go through the first chunk once more: its state is needed."""
        step = even_step(np.concatenate([first.t, second.t]))
        if step is not None:
            self._stepper = self._network.stepper(step, hold=self._hold, x0=self._x0)
            next(self._stepper.run([first.values]))
            self._grid = (float(first.t[0]), step, len(first.t))

    def _goes_on(self, t: Array) -> bool:
        """Whether the times stand on the grid of those before, each where rounding puts it."""
        begin, step, n_rows = self._grid
        expected = begin + step * np.arange(n_rows, n_rows + len(t), dtype=np.float64)
        bound = min(_ROUNDING * EPS * max(abs(begin), abs(float(t[-1]))), _SHARE * step)
        if np.abs(t - expected).max() <= bound:
            self._grid = (begin, step, n_rows + len(t))
            return True
        return False

    def _anew(self, chunk: Chunk, rows: Chunk) -> tuple[Array, Array]:
        """Outputs at the times of the chunk and the state at its end, from the state at an earlier end on."""
        begin, x = self._ends[0]
        t = np.concatenate([[begin], chunk.t])
        signal = SampledSignal(rows.t, rows.values, hold=self._hold)
        solution = self._network.simulate(signal, t, x0=x)
        return np.asarray(solution.y[1:]), solution.trajectory.user_states(t[-1:])[0]

    def _keep(self, end: float, x: Array) -> None:
        """Keep this end and its state, and of what came before only what a new beginning needs."""
        assert self._rows is not None  # noqa: S101 - for mypy: rows have come
        self._ends.append((end, x))
        n_old = sum(own <= end - self._longest_output_delay for own, _ in self._ends)
        self._ends = self._ends[max(n_old - 1, 0) :]
        since = self._ends[0][0] - self._longest_input_delay
        t = self._rows.t
        first = int(np.searchsorted(t, since, side="left")) - _MARGIN
        if first > 0:
            first = int(np.searchsorted(t, t[first], side="left"))  # both rows of a jump
            self._rows = Chunk(t[first:].copy(), self._rows.values[first:].copy())
