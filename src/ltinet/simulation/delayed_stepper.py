"""Streaming simulation of models with delays and an operating point.

A delay is τ = (d + f) Δt with a whole number d of samples and 0 ≤ f < 1. While the core goes from t_{k−1} to t_k, an
input j passes through the last part, f Δt long, of the piece between its samples k − d − 2 and k − d − 1, and then
through the first part of the next piece. States and outputs at t_k are linear in the state at t_{k−1} and the ends of
both pieces (a_l, a_r, b_l, b_r): the columns of that map are exact steps between the times at which an input goes
from one piece to the next, taken once. An output that is late by (e + g) Δt is that of the core at t_{k−e} − g Δt, an
exact step of (1 − g) Δt from t_{k−e−1}; it waits e samples in a buffer. A step costs one product with a matrix of (n
+ p) × (n + 5m) numbers.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
from scipy import sparse

from ltinet._util.floating_point import EPS, Array
from ltinet.errors import InvalidSignalError
from ltinet.simulation.context import Realization
from ltinet.simulation.stepper import MAX_DENSE_STATES, Stepper
from ltinet.systems.signal_settings import SignalSettings

_CHUNK_SAMPLES = 4096  # samples whose delayed inputs are gathered together
_WHOLE_SAMPLE_TOLERANCE = 8.0  # eps: relative distance at which a delay counts as a whole number of samples


class SampleDelays(NamedTuple):
    """Delays in samples: whole numbers d and remainders f with 0 ≤ f < 1."""

    whole: Any
    remainder: Array


def delays_in_samples(delays: Array, dt: float, *, is_discrete: bool = False) -> SampleDelays:
    """Return delays in samples; those within rounding of a whole number, in discrete time all, are that number."""
    ratio = delays / dt
    nearest = np.round(ratio)
    if is_discrete:  # they were validated to be multiples of dt
        return SampleDelays(nearest.astype(np.intp), np.zeros(len(nearest)))
    is_whole = np.abs(ratio - nearest) <= _WHOLE_SAMPLE_TOLERANCE * EPS * np.maximum(ratio, 1.0)
    whole = np.where(is_whole, nearest, np.floor(ratio))
    return SampleDelays(whole.astype(np.intp), np.where(is_whole, 0.0, ratio - whole))


@final
class DelayedStepper(Stepper):
    """Stepper of a model with delays or an operating point, with the methods of `Stepper`.

    `stepper.x` is the state of the core at the time of the last sample, relative to the operating point.

    Parameters
    ----------
    core : Stepper
        Stepper of the model without delays.
    settings : SignalSettings
        Delays and operating point.
    """

    def __init__(self, core: Stepper, settings: SignalSettings) -> None:  # replaces all attributes of `Stepper`
        self.dt, self.hold = core.dt, core.hold
        engine = self._engine = core._engine
        system = engine.system
        self._n_states, self._n_inputs, n_outputs = system.n_states, system.n_inputs, system.n_outputs
        self._settings = settings
        self._u0, self._y0 = settings.array("u0", self._n_inputs), settings.array("y0", n_outputs)
        is_discrete = engine.dt is not None
        self._in = delays_in_samples(settings.array("input_delay", self._n_inputs), self.dt, is_discrete=is_discrete)
        self._out = delays_in_samples(settings.array("output_delay", n_outputs), self.dt, is_discrete=is_discrete)
        with np.errstate(over="ignore", invalid="ignore"):  # checked in the output
            self._matrix = self._step_matrix()
        self._z = self._start = core._start
        self._C, self._D = engine.output_weights, system.D
        self._channels = np.arange(self._n_inputs)
        self._rows = np.arange(n_outputs)
        self._inputs = np.zeros((int(self._in.whole.max(initial=0)) + 3, self._n_inputs))
        self._outputs = np.zeros((int(self._out.whole.max(initial=0)) + 1, n_outputs))
        self._n_taken = 0

    def _packed_state(self) -> Array:
        return self._z

    def _set_packed_state(self, packed: Array) -> None:
        self._z = packed

    def state(self) -> dict[str, Any]:
        """Return everything that `restore` needs to continue, buffers included.

        Returns
        -------
        dict
            Numbers and arrays.
        """
        return {
            "x": self.x,
            "inputs": self._inputs.copy(),
            "outputs": self._outputs.copy(),
            "n_taken": self._n_taken,
            "dt": self.dt,
            "hold": self.hold,
            "input_delay": self._settings.array("input_delay", self._n_inputs),
            "output_delay": self._settings.array("output_delay", len(self._rows)),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state; one that is not valid changes nothing.

        Parameters
        ----------
        state : mapping
            Result of `state()` of a stepper of the same network, step and hold.

        Raises
        ------
        InvalidSignalError
            Entries are missing or belong to another model, step or hold.
        """
        arrays = self._validate_saved(state, "x", "inputs", "outputs")
        n_taken = int(state["n_taken"])
        if n_taken < 0:
            raise InvalidSignalError(f"the saved n_taken must not be negative, got {n_taken}.")
        self._z, self._n_taken = self._pack(arrays["x"]), n_taken
        self._inputs, self._outputs = arrays["inputs"], arrays["outputs"]

    @property
    def _depends_on_next_input(self) -> bool:
        """True if an output that is not late by a sample depends on an input that is not: by D, or by a linear hold."""
        n, m = self._n_states, self._n_inputs
        rows = self._matrix[n:] @ np.eye(n + 5 * m)  # an array, also of a sparse matrix
        of_sample = np.abs(rows[:, n + 3 * m : n + 4 * m]) + np.abs(rows[:, n + 4 * m :])
        return bool(of_sample[np.ix_(self._out.whole == 0, self._in.whole == 0)].any())

    def _preview(self) -> Array:
        before = self._z, self._n_taken, self._inputs.copy(), self._outputs.copy()
        try:
            return self._advance(self._u0)
        finally:
            self._z, self._n_taken, self._inputs, self._outputs = before

    def _advance(self, value: Array) -> Array:
        k, (whole, _), n = self._n_taken, self._in, self._n_states
        self._inputs[k % len(self._inputs)] = value - self._u0
        last = self._read(k - whole)  # sample k − d; entries that no sample has reached yet are zero
        if k == 0:
            raw = self._C @ self._z + self._D @ np.where(self._in.remainder == 0.0, last, 0.0)
            raw[self._out.remainder > 0.0] = 0.0
        else:
            before, earlier = self._read(k - whole - 1), self._read(k - whole - 2)
            # There is no line to the first sample: the input before it is zero.
            a_right = np.where(k - whole - 2 >= 0, before, 0.0)
            b_right = np.where(k - whole - 1 >= 0, last, 0.0)
            both = self._matrix @ np.concatenate([self._z, earlier, a_right, before, b_right, last])
            self._z, raw = both[:n], both[n:]
        self._outputs[k % len(self._outputs)] = raw
        self._n_taken = k + 1
        y = self._outputs[(k - self._out.whole) % len(self._outputs), self._rows] + self._y0
        if not np.isfinite(y).all():
            raise self._overflow(k)
        return np.asarray(y)

    def _run_chunk(self, samples: Array) -> Array:
        starts = range(0, len(samples), _CHUNK_SAMPLES)
        pieces = [self._advance_all(samples[begin : begin + _CHUNK_SAMPLES]) for begin in starts]
        return np.concatenate([np.zeros((0, len(self._rows))), *pieces])

    def _advance_all(self, values: Array) -> Array:
        """Take samples `(S, m)`; the contributions of inputs to all of these steps are one product."""
        if self._n_taken == 0:
            first = self._advance(values[0])[None]
            return first if len(values) == 1 else np.concatenate([first, self._advance_all(values[1:])])
        n, k0, count = self._n_states, self._n_taken, len(values)
        k = np.arange(k0, k0 + count)[:, None]
        size, delay = len(self._inputs), self._in.whole
        samples = np.concatenate([self._inputs[np.arange(k0 - size, k0) % size], values - self._u0])

        def read(index: Array) -> Array:
            return np.asarray(samples[index - (k0 - size), self._channels])

        last, before, earlier = read(k - delay), read(k - delay - 1), read(k - delay - 2)
        a_right = np.where(k - delay - 2 >= 0, before, 0.0)
        b_right = np.where(k - delay - 1 >= 0, last, 0.0)
        added = (self._matrix[:, n:] @ np.concatenate([earlier, a_right, before, b_right, last], axis=1).T).T
        into_state, into_outputs = self._matrix[:n, :n], self._matrix[n:, :n]
        states = np.empty((count, n))
        z = self._z
        for number, driven in enumerate(added[:, :n]):
            states[number] = z
            z = into_state @ z + driven
        raw = (into_outputs @ states.T).T + added[:, n:]
        n_buffered = len(self._outputs)
        outputs = np.concatenate([self._outputs[np.arange(k0 - n_buffered, k0) % n_buffered], raw])
        y = outputs[k - self._out.whole - (k0 - n_buffered), self._rows] + self._y0
        self._z, self._n_taken = z, k0 + count
        for buffer, newest in ((self._inputs, samples), (self._outputs, outputs)):
            numbers = np.arange(k0 + count - len(buffer), k0 + count)
            buffer[numbers % len(buffer)] = newest[-len(buffer) :]
        overflown = np.flatnonzero(~np.isfinite(y).all(axis=1))
        if len(overflown):
            raise self._overflow(k0 + int(overflown[0]))
        return np.asarray(y)

    def _read(self, index: Any) -> Array:
        return np.asarray(self._inputs[index % len(self._inputs), self._channels])

    def _step_matrix(self) -> Any:
        """Return the map from (z, a_l, a_r, b_l, b_r, sample k − d) to the next z and the delayed outputs of the core."""
        n, m = self._n_states, self._n_inputs
        remainder, linear = self._in.remainder, self.hold == "linear"
        C, D = self._engine.output_weights, self._engine.system.D
        into_state = state_map(self._engine, self.dt, remainder, stop=1.0, linear=linear)
        rows = np.zeros((len(C), n + 5 * m))
        for i, delay in enumerate(self._out.remainder.tolist()):
            at = 1.0 - delay
            before = state_map(self._engine, self.dt, remainder, stop=at, linear=linear) if delay else into_state
            rows[i, : n + 4 * m] = C[i] @ before
            weights = input_map(remainder, at, linear=linear)
            if not delay:  # at t_k an input without a remainder is at its sample k − d, after a jump
                weights = np.where(remainder > 0.0, weights, 0.0)
                rows[i, n + 4 * m :] = np.where(remainder > 0.0, 0.0, D[i])
            rows[i, n : n + 4 * m] += (D[i] * weights).sum(axis=1)
        matrix = np.zeros((n + len(C), n + 5 * m))
        matrix[:n, : n + 4 * m], matrix[n:] = into_state, rows
        return matrix if n <= MAX_DENSE_STATES else sparse.csr_array(matrix)


def input_map(remainder: Array, at: float, *, linear: bool, is_next: Any = None) -> Array:
    """Return the weights of (a_l, a_r, b_l, b_r) of each input in it at a fraction `at` of the step, `(4 m, m)`.

    `is_next` are the inputs in their second piece; by default those whose remainder is over, jumps included.
    """
    m, fractions = len(remainder), np.full(len(remainder), at)
    is_next = remainder <= at + _WHOLE_SAMPLE_TOLERANCE * EPS if is_next is None else is_next
    if not linear:
        a_left, a_right, b_left, b_right = (~is_next).astype(float), np.zeros(m), is_next.astype(float), np.zeros(m)
    else:
        within = np.where(is_next, fractions - remainder, 1.0 - remainder + fractions)
        a_left, a_right = np.where(is_next, 0.0, 1.0 - within), np.where(is_next, 0.0, within)
        b_left, b_right = np.where(is_next, 1.0 - within, 0.0), np.where(is_next, within, 0.0)
    return np.concatenate([np.diag(weights) for weights in (a_left, a_right, b_left, b_right)])


def state_map(
    engine: Realization, dt: float, remainder: Array, *, stop: float, linear: bool, inputs_only: bool = False
) -> Array:
    """Return the map from (z, a_l, a_r, b_l, b_r) to the packed state at a fraction `stop` of a step, `(n, n + 4 m)`.

    With `inputs_only` the n² numbers of the columns of z are omitted.
    """
    n, m = engine.system.n_states, len(remainder)
    n_columns = 0 if inputs_only else n
    if engine.dt is not None:  # delays are whole samples, and all inputs are those at the beginning of the step
        step = engine.grids.step(engine.dt, linear=False)
        from_states = step.after_first(np.eye(n_columns, n), np.zeros((n_columns, m)))
        from_inputs = step.after_first(np.zeros((m, n)), np.eye(m))
        none = np.zeros((m, n))
        return np.ascontiguousarray(np.concatenate([from_states, none, none, from_inputs, none]).T)
    edges = np.unique(np.concatenate([[0.0], remainder[remainder < stop], [stop]]))
    steps = engine.grids.nonuniform(dt, linear=linear)
    z = np.concatenate([np.eye(n_columns, n), np.zeros((4 * m, n))])
    no_input = np.zeros((n_columns, m))
    for begin, end in pairwise(edges):
        is_next = remainder <= begin
        now, then = (
            np.concatenate([no_input, input_map(remainder, at, linear=linear, is_next=is_next)]) for at in (begin, end)
        )
        h = np.array([(end - begin) * dt])
        z = steps.step(h, z[:, None], now[:, None], then[:, None])[:, 0]
    return np.ascontiguousarray(z.T)
