"""An engine written through the seams alone: solve_ivp of the whole system in the user's states, restarted at knots."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from ltinet.error_bounds.output_bounds import OutputErrorBound, SolutionErrorBound
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.solution import Solution, outputs_at_jumps


class ToyTrajectory:
    """Dense outputs of one signal after the other, and a bound that is honest about knowing little: the tolerance."""

    def __init__(self, prepared, signal, t, x0, rtol):
        moved = signal.counted_from(float(t[0]))  # at a large offset a solver's steps would drown in its rounding
        self.origin = 0.0 if moved is None else float(t[0])
        signal, t = signal if moved is None else moved, t - self.origin
        self.prepared, self.signal, self.rtol = prepared, signal, rtol
        batch = signal.batch_shape
        starts = (
            np.zeros((max(1, int(np.prod(batch))), prepared.network.n_states))
            if x0 is None
            else prepared.broadcast_initial_state(x0, batch)
        )
        knots = signal.knots[(signal.knots > t[0]) & (signal.knots < t[-1])]
        self.breaks = np.unique(np.concatenate([[t[0]], knots, [t[-1]]]))
        self.runs = [self._pieces(own, start) for own, start in zip(signal.unbatched(), starts, strict=True)]

    def _pieces(self, signal, x):
        A, B = self.prepared.origin.A, self.prepared.origin.B
        pieces = []
        for left, right in zip(self.breaks[:-1], self.breaks[1:], strict=True):
            last = np.nextafter(right, left)
            solved = solve_ivp(
                lambda s, x, last=last: A @ x + B @ signal.value(np.array([min(s, last)]))[0],
                (left, right), x, method="DOP853", rtol=self.rtol, atol=1e-2 * self.rtol, dense_output=True,
            )  # fmt: skip
            pieces.append(solved.sol)
            x = solved.y[:, -1]
        return pieces or [lambda s, x=x: np.tile(x[:, None], len(s))]

    def user_states(self, t):
        t = t - self.origin
        piece = np.clip(np.searchsorted(self.breaks, t, side="right") - 1, 0, max(len(self.breaks) - 2, 0))
        states = np.empty((len(self.runs), len(t), self.prepared.network.n_states))
        for own, pieces in zip(states, self.runs, strict=True):
            for k in np.unique(piece):
                own[piece == k] = pieces[k](t[piece == k]).T
        return states.reshape(*self.signal.batch_shape, *states.shape[1:])

    def outputs(self, t):
        origin = self.prepared.origin
        return self.user_states(t) @ origin.C.T + self.signal.value(t - self.origin) @ origin.D.T

    def neuron_states(self, t):
        coordinates = self.prepared.coordinates
        blocks = coordinates.blocks_from_user(self.user_states(t))
        return coordinates.neurons_from_blocks(blocks) + self.signal.value(t - self.origin) @ coordinates.J.T

    def error_bound(self, start, stop):
        cells = np.array([start, max(stop, np.nextafter(start, np.inf))])
        t = np.linspace(start, stop, 200)
        sizes = np.abs(self.outputs(t)).reshape(len(self.runs), len(t), -1).max(axis=1)
        bounds = tuple(OutputErrorBound(cells, {"solver": 1e3 * self.rtol * (1.0 + own)[None]}) for own in sizes)
        return SolutionErrorBound(bounds, self.signal.batch_shape)


class ToyEngine:
    """The whole system by one solver."""

    options = frozenset({"rtol"})

    def run(
        self,
        prepared: SimulationContext,
        signal,
        t,
        *,
        x0,
        n_jobs: int,  # noqa: ARG002
        options: Mapping[str, Any],
    ) -> Solution:
        trajectory = ToyTrajectory(prepared, signal, t, x0, options.get("rtol", 1e-10))
        y = outputs_at_jumps(trajectory.outputs(t), t, signal, prepared.origin.D)
        return Solution(t, y, trajectory, {"engine": "toy"})
