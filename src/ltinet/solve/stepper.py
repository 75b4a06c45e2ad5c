"""Streaming: one sample in, one output out, with a state of fixed size."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ltinet.errors import InvalidSignalError
from ltinet.signals.sampled import Hold
from ltinet.solve.exact import ExactEngine
from ltinet.solve.uniform import UniformGrid, pack, unpack

Array = NDArray[np.float64]
_DENSE = 150  # states up to which a dense product beats a sparse one


@final
class Stepper:
    """A network that runs sample by sample: `y_k = stepper.step(u_k)` is the output at the time of u_k.

    Running it over all samples gives what `simulate` gives for the whole signal. `stepper.x` is the state at the time
    of the last sample, in the user's coordinates (before the first sample, the initial state), and can be set.
    """

    def __init__(self, engine: ExactEngine, dt: float, *, hold: Hold, x0: ArrayLike | None) -> None:
        if not (np.isfinite(dt) and dt > 0.0):
            raise InvalidSignalError(f"dt is {dt}; give a positive time step")
        if hold not in ("linear", "zero"):
            raise InvalidSignalError(f'hold is {hold!r}; it must be "linear" or "zero"')
        self.dt, self.hold = float(dt), hold
        self._engine = engine
        self._single = self._grid(width=1)
        self._decay = _decay_matrix(self._single)
        self._out, self._gain = self._single.from_state.T.copy(), self._single.from_input.T.copy()
        self._into, self._shift = self._single.into_state.T.copy(), self._single.shift
        # w = z − G₁ u at the last sample and that sample; w at the next sample does not depend on the next input.
        self._start = self._pack(engine.initial_state(x0, ()))
        self._last: tuple[Array, Array] | None = None
        self._next: Array | None = None

    def step(self, u: ArrayLike) -> Array:
        """Take the next input sample `(m,)` and return the output `(p,)` at its time."""
        value = np.array(u, dtype=np.float64, ndmin=1)
        if value.shape != self._into.shape[1:]:
            raise InvalidSignalError(
                f"u has shape {value.shape}; a step takes {self._into.shape[1]} numbers, one per input"
            )
        if not math.isfinite(value.sum()):
            raise InvalidSignalError("u has entries that are not finite; replace NaN and infinities")
        w = self._start - self._shift @ value if self._next is None else self._next
        self._last, self._next = (w, value), self._decay @ w + self._into @ value
        return np.asarray(self._out @ w + self._gain @ value)

    def run(self, chunks: Iterable[ArrayLike]) -> Iterator[Array]:
        """Outputs `(steps, p)` for one chunk of samples `(steps, m)` after the other; memory is that of a chunk."""
        for chunk in chunks:
            samples = np.asarray(chunk, dtype=np.float64)
            samples = samples[:, None] if samples.ndim == 1 else samples
            if samples.ndim != 2 or samples.shape[1] != self._into.shape[1]:
                raise InvalidSignalError(
                    f"a chunk has shape {np.shape(chunk)}; it must be (steps, {self._into.shape[1]}), time first"
                )
            if not np.all(np.isfinite(samples)):
                raise InvalidSignalError("a chunk has entries that are not finite; replace NaN and infinities")
            yield self._run(samples)

    @property
    def x(self) -> Array:
        """The state at the time of the last sample, in the user's coordinates."""
        packed = self._start if self._last is None else self._last[0] + self._shift @ self._last[1]
        system = self._engine.system
        z = system.network_from_parts(*unpack(system, packed[None]))
        return np.asarray(self._engine.coordinates.user_from_network(z)[0])

    @x.setter
    def x(self, state: ArrayLike) -> None:
        """Set the state at the time of the last sample."""
        packed = self._pack(self._engine.initial_state(state, ()))
        if self._last is None:
            self._start = packed
        else:
            self._advance(packed, self._last[1])

    def state(self) -> dict[str, Any]:
        """All that is needed to go on later, as plain numbers and arrays: save it anyhow, and give it to `restore`."""
        last = None if self._last is None else self._last[1].copy()
        return {"x": self.x, "last_input": last, "dt": self.dt, "hold": self.hold}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        if state["dt"] != self.dt or state["hold"] != self.hold:
            raise InvalidSignalError(
                f"the saved state belongs to dt = {state['dt']}, hold = {state['hold']!r}; this stepper has {self.dt}, "
                f"{self.hold!r}"
            )
        packed = self._pack(self._engine.initial_state(state["x"], ()))
        if state["last_input"] is None:
            self._start, self._last, self._next = packed, None, None
        else:
            self._advance(packed, np.array(state["last_input"], dtype=np.float64))

    def _run(self, samples: Array) -> Array:
        """A chunk: its first and last samples one by one, all between through blocks of time."""
        y = [np.zeros((0, len(self._out)))]
        if len(samples) and self._next is None:
            y.append(self.step(samples[0])[None])
            samples = samples[1:]
        grid = self._grid(n_times=len(samples))
        whole = (max(len(samples) - 1, 0) // grid.width) * grid.width
        if whole and self._next is not None:
            outputs, after = grid.outputs(samples[None, :whole], self._next[None])
            y.append(outputs[0])
            self._next = after[0]
        y.extend(self.step(u)[None] for u in samples[whole:])
        return np.concatenate(y)

    def _advance(self, packed: Array, value: Array) -> None:
        w = packed - self._shift @ value
        self._last, self._next = (w, value), self._decay @ w + self._into @ value

    def _pack(self, z: Array) -> Array:
        system = self._engine.system
        parts = [z[:, block.states] for block in system.blocks]
        return np.asarray(pack(system, system.scalars_from_network(z), parts)[0])

    def _grid(self, *, n_times: int = 1, width: int | None = None) -> UniformGrid:
        return self._engine.grid(self.dt, linear=self.hold == "linear", n_times=n_times, width=width)


def _decay_matrix(grid: UniformGrid) -> Any:
    """P of one step on packed states: rotations for pairs, numbers for reals, the dense blocks."""
    pairs, reals = np.split(grid.decay, [grid.system.n_pairs])
    rotations = [np.array([[p.real, -p.imag], [p.imag, p.real]]) for p in pairs]
    blocks = [*rotations, *([np.diag(reals.real)] if len(reals) else []), *grid.block_decays]
    matrix = sparse.csr_array(sparse.block_diag(blocks)) if blocks else sparse.csr_array((0, 0))
    return matrix.toarray() if matrix.shape[0] <= _DENSE else matrix
