"""Streaming simulation: one sample in, one output out, with a state of fixed size.

A step is one product with [[P, Γ], [C, D + C G₁]] (`step_model`); long chunks of samples go through blocks of time.
The state can be saved with `state()` and resumed with `restore()`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.network.realization import sparse_block_diagonal
from ltinet.signals.arrays import all_finite, as_real_array
from ltinet.signals.sampled import Hold, validate_hold
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.coordinate_selection import select_coordinates
from ltinet.simulation.step_model import SingleSteps

MAX_DENSE_STATES = 150  # states up to which a dense product is faster than a sparse one; measured on one core


class Stepper:
    """Streaming simulation: `y_k = stepper.step(u_k)` is the output at the time of u_k.

    All samples together give the outputs of `simulate` for the whole signal. Steppers are made by
    `DynamicNetwork.stepper` and `StateSpace.stepper`. `x` is the state at the time of the last sample in the user's
    coordinates (before the first sample, the initial state), and can be set.

    Parameters
    ----------
    prepared
        Simulation context of the network.
    dt
        Time step between samples; that of the model in discrete time.
    hold
        "linear" or "zero": course of the input between samples; "zero" in discrete time.
    x0
        Initial state in the user's coordinates; zero by default.

    Raises
    ------
    InvalidSignalError
        dt, hold or x0 is not valid.
    """

    def __init__(self, prepared: SimulationContext, dt: float, *, hold: Hold, x0: ArrayLike | None) -> None:
        if not (np.isfinite(dt) and dt > 0.0):
            raise InvalidSignalError(f"dt must be a positive time step, got {dt}.")
        self.dt, self.hold = float(dt), validate_hold(hold)
        self._engine = engine = select_coordinates(prepared, is_even=True, longest_step=self.dt)
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported at the sample where it shows
            single = engine.grids.single(self.dt, linear=hold == "linear")
            # (w at the next sample, y at this one) from (w, u) at this one: one product is faster than four.
            self._matrix = _step_matrix(single)
        self._step, self._shift = single.step, single.step.shift
        self._n_states, self._n_inputs = self._shift.shape
        self._state_and_input = np.empty(self._n_states + self._n_inputs)
        self._start = self._pack(None if x0 is None else _as_real_array(x0, "x0"))
        self._n_taken = 0
        # At the last sample its input and w = z − G₁ u, or z itself if that was set; w at the next sample does not
        # depend on the next input.
        self._last: tuple[Array, Array] | None = None
        self._known_state: Array | None = self._start
        self._next: Array | None = None

    def step(self, u: ArrayLike) -> Array:
        """Advance by one sample.

        Parameters
        ----------
        u
            Input at the next sample, `(m,)`.

        Returns
        -------
        Array
            Output at the time of this sample, `(p,)`.

        Raises
        ------
        InvalidSignalError
            u has the wrong shape or is not finite.
        SimulationError
            The outputs overflow.
        """
        value = _as_real_array(u, "u")
        if value.shape != (self._n_inputs,):
            expected = format_count(self._n_inputs, "number")
            raise InvalidSignalError(f"u has shape {value.shape}; a step takes {expected}, one per input")
        if not _is_finite(value):
            raise InvalidSignalError("u has entries that are not finite; replace NaN and infinities")
        with np.errstate(over="ignore", invalid="ignore"):  # checked in the output
            return self._advance(value)

    def output(self) -> Array:
        """Return the output at the next sample, before its input is known; the state does not change.

        A control loop reads it, computes the input from it, and passes that to `step`.

        Returns
        -------
        Array
            Output at the time of the next sample, `(p,)`; `step` will return the same.

        Raises
        ------
        InvalidSignalError
            The output depends on the input at the same sample: D is not zero, or the hold is "linear".
        SimulationError
            The outputs overflow.
        """
        if self._depends_on_next_input:
            reason = "D is not zero" if self.hold == "zero" else 'hold is "linear"'
            raise InvalidSignalError(
                f"the output at the next sample depends on its input, because {reason}. "
                + ("Use step(u)." if self.hold == "zero" else 'Make the stepper with hold="zero", or use step(u).')
            )
        with np.errstate(over="ignore", invalid="ignore"):  # checked in the output
            return self._preview()

    @property
    def _depends_on_next_input(self) -> bool:
        return bool(np.any(self._step.direct))

    def _preview(self) -> Array:
        """Return the output for any next input, and leave the state as it is."""
        before = self._last, self._known_state, self._next, self._n_taken
        try:
            return self._advance(np.zeros(self._n_inputs))
        finally:
            self._last, self._known_state, self._next, self._n_taken = before

    def run(self, chunks: Iterable[ArrayLike]) -> Iterator[Array]:
        """Advance by one chunk of samples after the other; memory is that of a chunk.

        Parameters
        ----------
        chunks
            Inputs `(steps, m)` of each chunk.

        Yields
        ------
        Array
            Outputs `(steps, p)` of each chunk.

        Raises
        ------
        InvalidSignalError
            A chunk has the wrong shape or is not finite.
        SimulationError
            The outputs overflow.
        """
        if not isinstance(chunks, Iterable):
            raise InvalidSignalError(
                f"chunks is a {type(chunks).__name__}; give a list or a generator of arrays (steps, {self._n_inputs})"
            )
        for chunk in chunks:
            samples = _as_real_array(chunk, "a chunk")
            samples = samples[:, None] if samples.ndim == 1 else samples
            if samples.ndim != 2 or samples.shape[1] != self._n_inputs:
                raise InvalidSignalError(
                    f"a chunk has shape {np.shape(chunk)}; it must be (steps, {self._n_inputs}), time first"
                )
            if not all_finite(samples):
                raise InvalidSignalError("a chunk has entries that are not finite; replace NaN and infinities")
            with np.errstate(over="ignore", invalid="ignore"):  # checked in the outputs
                outputs = self._run_chunk(samples)
            yield outputs

    @property
    def x(self) -> Array:
        """State at the time of the last sample, in the user's coordinates."""
        z = self._engine.system.blocks_from_packed(self._packed_state())
        return np.asarray(self._engine.coordinates.user_from_blocks(z))

    @x.setter
    def x(self, state: ArrayLike) -> None:
        """Set the state at the time of the last sample."""
        self._set_packed_state(self._pack(_as_real_array(state, "x")))

    def _packed_state(self) -> Array:
        if self._known_state is None and self._last is not None:
            return np.asarray(self._last[0] + self._shift @ self._last[1])
        return self._start if self._known_state is None else self._known_state

    def _set_packed_state(self, packed: Array) -> None:
        if self._last is None:
            self._start = self._known_state = packed
        else:
            self._begin(packed, self._last[1])

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs to continue later, as plain numbers and arrays.

        `np.savez(path, **stepper.state())` saves it, `stepper.restore(np.load(path))` continues from there.

        Returns
        -------
        dict
            x, last_input, started, dt and hold.
        """
        last = np.zeros(self._n_inputs) if self._last is None else self._last[1].copy()
        return {"x": self.x, "last_input": last, "started": self._last is not None, "dt": self.dt, "hold": self.hold}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; an error leaves the stepper unchanged.

        Parameters
        ----------
        state
            Result of `state` of a stepper of the same network, dt and hold.

        Raises
        ------
        InvalidSignalError
            The saved state does not fit this stepper.
        """
        arrays = self._validate_saved(state, "x", "last_input")
        packed = self._pack(arrays["x"])
        if state["started"]:
            self._begin(packed, arrays["last_input"])
        else:
            self._start, self._known_state, self._last, self._next = packed, packed, None, None

    def _validate_saved(self, state: Mapping[str, Any], *names: str) -> dict[str, Array]:
        """Return the arrays with these names of a saved state; its settings must be those of this stepper."""
        present = self.state()
        missing = [key for key in present if key not in state]
        if missing:
            raise InvalidSignalError(
                f"the saved state has no {', '.join(missing)}; give all of what state() returned: {', '.join(present)}"
            )
        settings = [key for key in present if key not in (*names, "started", "n_taken")]
        if not all(np.array_equal(np.asarray(state[key]), np.asarray(present[key])) for key in settings):
            saved, own = (", ".join(f"{key} = {values[key]}" for key in settings) for values in (state, present))
            raise InvalidSignalError(f"the saved state belongs to {saved}; this stepper has {own}")
        arrays = {name: _as_real_array(state[name], f"the saved {name}") for name in names}
        for name, value in arrays.items():
            if value.shape != present[name].shape or not np.isfinite(value).all():
                raise InvalidSignalError(
                    f"the saved {name} has shape {value.shape}; this stepper needs {present[name].shape}, all finite. "
                    "Restore the state of a stepper of the same network."
                )
        return arrays

    def _run_chunk(self, samples: Array) -> Array:
        """Return the outputs of a chunk: whole blocks of time in products, other samples one by one."""
        y = [np.zeros((0, self._engine.system.n_outputs))]
        if len(samples) and self._next is None:
            y.append(self._advance(samples[0])[None])
            samples = samples[1:]
        grid = self._engine.grids.uniform(self.dt, linear=self.hold == "linear", n_times=len(samples))
        n_in_blocks = (max(len(samples) - 1, 0) // grid.width) * grid.width
        if n_in_blocks and self._next is not None:
            outputs, after = grid.outputs_and_state(samples[None, :n_in_blocks], self._next[None])
            if all_finite(outputs) and all_finite(after):
                y.append(outputs[0])
                self._n_taken += n_in_blocks
                self._next = after[0]
            else:  # products of blocks may overflow before outputs do: single steps decide
                n_in_blocks = 0
        y.extend(self._advance(u)[None] for u in samples[n_in_blocks:])
        return np.concatenate(y)

    def _advance(self, value: Array) -> Array:
        """Take a sample and return the output."""
        if self._next is None:
            return self._begin(self._start, value)
        both, w = self._state_and_input, self._next
        both[: self._n_states], both[self._n_states :] = w, value
        result = self._matrix.dot(both)  # a third faster than @ for one vector
        self._last, self._known_state, self._next = (w, value), None, result[: self._n_states]
        return self._checked_output(np.array(result[self._n_states :]))

    def _begin(self, packed: Array, value: Array) -> Array:
        """Take a sample from z itself, which w = z − G₁ u would lose where a state grows fast; return the output."""
        self._last, self._known_state = (packed, value), packed
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported at the sample where it shows
            self._next = self._step.after_first(packed[None], value[None])[0]
        return self._checked_output(self._engine.output_weights @ packed + self._engine.system.D @ value)

    def _checked_output(self, y: Array) -> Array:
        self._n_taken += 1
        if not _is_finite(y):
            raise self._overflow(self._n_taken - 1)
        return y

    def _overflow(self, k: int) -> SimulationError:
        return SimulationError(
            f"the outputs overflow at sample {k}, t = {k * self.dt:.6g} after the first. Restore an earlier state."
        )

    def _pack(self, x: Array | None) -> Array:
        return np.asarray(self._engine.system.packed_from_blocks(self._engine.initial_state(x, ()))[0])


def _is_finite(values: Array) -> bool:
    """Return True if all numbers are finite. For few numbers a finite sum is proof; a sum that overflows is not."""
    return math.isfinite(sum(values.tolist())) or bool(np.isfinite(values).all())


def _step_matrix(grid: SingleSteps) -> Any:
    """Return [[P, Γ], [C, D + C G₁]] on packed states, dense for few states and sparse for many."""
    rotations = [np.array([[p.real, -p.imag], [p.imag, p.real]]) for p in grid.decay.pairs]
    reals = [np.diag(grid.decay.reals)] if len(grid.decay.reals) else []
    decay = sparse_block_diagonal([*rotations, *reals, *grid.decay.blocks])
    Gamma, C, direct = grid.from_inputs.T, grid.to_outputs.T, grid.step.direct
    if decay.shape[0] <= MAX_DENSE_STATES:
        return np.block([[decay.toarray(), Gamma], [C, direct]])
    parts: list[list[Any]] = [[decay, Gamma], [C, direct]]
    return sparse.csr_array(sparse.block_array(parts))


def _as_real_array(values: ArrayLike, name: str) -> Array:
    """Return a copy as real numbers, at least one-dimensional."""
    if type(values) is np.ndarray and values.dtype == np.float64:  # the fast path of `step`
        return np.array(values, ndmin=1)
    return np.array(as_real_array(values, name), ndmin=1)
