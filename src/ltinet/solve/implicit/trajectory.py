"""The outputs of an implicit run at any time, and how far they may be off: an estimate, never a bound."""

from dataclasses import dataclass
from typing import NoReturn, final

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.unknown import UnknownBound
from ltinet.errors import SimulationError
from ltinet.signals.signal import Signal
from ltinet.solve.implicit.walk import Curve, Walked


@final
@dataclass(frozen=True, eq=False)
class ImplicitTrajectory:
    """y = q + D u, q by cubics between the steps of the finer walk."""

    walked: Walked
    signal: Signal
    D: Array
    batch_shape: tuple[int, ...]

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times, `(..., len(t), p)`."""
        q = self._shaped(_interpolated(self.walked.fine, t))
        return np.asarray(q + self.signal.value(t) @ self.D.T)

    def error_estimate(self, t: Array) -> Array:
        """How far both walks are apart at any times, `(..., len(t), p)`: what the coarser one errs, about."""
        difference = _interpolated(self.walked.fine, t) - _interpolated(self.walked.coarse, t)
        return self._shaped(np.abs(difference))

    def user_states(self, t: Array) -> NoReturn:  # noqa: ARG002 - every trajectory is asked for times
        """No states are kept: n numbers a step would fill the memory.

        Raises:
            SimulationError: always.
        """
        raise SimulationError(
            "states of a large sparse model are not kept; make those that you need outputs: rows of C"
        )

    def neuron_states(self, t: Array) -> NoReturn:  # noqa: ARG002
        """There are no neurons.

        Raises:
            SimulationError: always.
        """
        raise SimulationError("the model was run as it is and has no neurons; construct(system, tolerance=1e-6) has")

    def error_bound(self, start: float, stop: float) -> UnknownBound:  # noqa: ARG002
        """Not known, so infinite."""
        return UnknownBound(self.batch_shape, len(self.D))

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Times and inputs before and after each of the times t and each knot between them."""
        knots = self.signal.knots
        times = np.unique(np.concatenate([t, knots[(knots > t[0]) & (knots < t[-1])]]))
        both = np.stack([self.signal.value_before(times), self.signal.value(times)], axis=-2)
        return np.repeat(times, 2), both.reshape(*both.shape[:-3], -1, both.shape[-1])

    def _shaped(self, values: Array) -> Array:
        """(T, p, batch) as (..., T, p)."""
        return np.ascontiguousarray(values.transpose(2, 0, 1)).reshape(*self.batch_shape, *values.shape[:2])


def _interpolated(curve: Curve, t: Array) -> Array:
    """Cubic polynomials through values and derivatives, (len(t), p, batch)."""
    if len(curve.t) == 1:
        return np.repeat(curve.q, len(t), axis=0)
    at = np.clip(np.searchsorted(curve.t, t, side="right") - 1, 0, len(curve.t) - 2)
    h = (curve.t[at + 1] - curve.t[at])[:, None, None]
    s = (t - curve.t[at])[:, None, None] / h
    rise = curve.q[at + 1] - curve.q[at]
    bend_left, bend_right = h * curve.after[at] - rise, rise - h * curve.before[at + 1]
    return np.asarray(curve.q[at] + s * rise + s * (1.0 - s) * ((1.0 - s) * bend_left + s * bend_right))
