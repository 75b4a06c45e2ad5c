"""What solvers leave behind: dense outputs of all neurons, put together on request."""

from collections.abc import Sequence

import numpy as np

from ltinet.arrays import Array
from ltinet.signals.corners import input_corners
from ltinet.signals.signal import Signal
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solvers.layer_path import LayerRun


class SolverPath:
    """Dense outputs of all neurons, put together on request."""

    def __init__(
        self, prepared: PreparedNetwork, signal: Signal, batches: tuple[Sequence[LayerRun], ...], *, stop: float
    ) -> None:
        self.prepared, self.signal, self.batches = prepared, signal, batches
        self._stop = stop

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        n_states = self.prepared.network.output_weights.shape[1]
        states = np.array([_states(runs, t) for runs in self.batches])
        states = states.reshape(*self.signal.batch_shape, len(t), n_states)
        final = (t == self._stop)[:, None]  # dense outputs end before a jump at the very end
        jump = self.signal.value(t) - self.signal.value_before(t)
        return np.asarray(states + np.where(final, jump, 0.0) @ self.prepared.coordinates.J.T)

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        network = self.prepared.network
        return np.asarray(self.neuron_states(t) @ network.output_weights.T + self.signal.value(t) @ network.Psi.T)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """The input as a picture shows it, at the times t and at knots between them."""
        return input_corners(self.signal, t)

    def user_states(self, t: Array) -> Array:
        """States x at any times."""
        coordinates = self.prepared.coordinates
        states = self.neuron_states(t) - self.signal.value(t) @ coordinates.J.T
        return coordinates.user_from_blocks(coordinates.blocks_from_neurons(states))


def _states(runs: Sequence[LayerRun], t: Array) -> Array:
    """(ξ of all neurons, then ξ̇ of second-order ones) of layer after layer, `(len(t), n)`."""
    columns = [np.zeros((len(t), 0))]
    for run in runs:
        outputs = [path(t) for path in run.paths]
        columns += [output[:, :1] for output in outputs] + [output[:, 1:] for output in outputs]
    return np.hstack(columns)
