"""Which of the user's states come from blocks, where outputs in the user's own states are known less well.

Not all need be: a state that few others act on may be a plain integral in the user's matrix, and a small difference of
large numbers in blocks. States are tried as outputs, and their bounds decide.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.share import shares
from ltinet.errors import SimulationError
from ltinet.recent import Recent
from ltinet.signals.sampled import Hold
from ltinet.solve.exact.error_bound import largest_errors
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.surest import blocks_are_surer, some_state
from ltinet.solve.exact.trials import Steps, Trial
from ltinet.solve.prepared import PreparedNetwork

_KEPT = 16  # runs
_LESS_SURE = 32.0  # times: of two bounds that differ by less, the larger may be that of the smaller error


def states_from_blocks(prepared: PreparedNetwork, steps: Steps, *, hold: Hold, from_state: bool) -> NDArray[np.bool_]:
    """Which states `(n,)` are known better there than in the user's own states."""
    if not blocks_are_surer(prepared, steps, hold=hold):
        return np.zeros(prepared.network.n_states, dtype=np.bool_)
    return prepared.keep(_WatchedStates).from_blocks(steps, hold, from_state=from_state)


class _WatchedStates:
    """A network whose outputs are the user's states, in its blocks and as it was given."""

    def __init__(self, prepared: PreparedNetwork) -> None:
        form, origin = prepared.form, prepared.origin
        if form is None or origin is None:
            raise ValueError("a network without a form has no states but its own")
        watched = origin.states_as_outputs
        blocks = replace(prepared.blocks, C=form.T, D=watched.D, magnitudes=None)
        self._in_blocks = PreparedNetwork(prepared.network, form, origin=watched, blocks=blocks)
        self._condition = form.condition_raw
        self._kept = Recent[NDArray[np.bool_]](_KEPT)

    def from_blocks(self, steps: Steps, hold: Hold, *, from_state: bool) -> NDArray[np.bool_]:
        """Which are known better in blocks after such steps."""
        return self._kept.get((steps, hold, from_state), lambda: self._tried(steps, hold, from_state=from_state))

    def _tried(self, steps: Steps, hold: Hold, *, from_state: bool) -> NDArray[np.bool_]:
        doubts = [self._doubts(trial) for trial in self._trials(steps, hold, from_state=from_state)]
        of_blocks, of_user_states = np.max(doubts, axis=0)
        return np.asarray((of_user_states > _LESS_SURE * of_blocks) | np.isinf(of_user_states))

    def _trials(self, steps: Steps, hold: Hold, *, from_state: bool) -> Iterator[Trial]:
        lengths, inputs = steps.tried(self._condition)[-1], (1.0,) * self._in_blocks.system.n_inputs
        yield Trial(*lengths, hold, inputs)
        if from_state:
            yield Trial(*lengths, hold, inputs, some_state(self._in_blocks))

    def _doubts(self, trial: Trial) -> Array:
        """By how much every state may be off in blocks and as given, relative to its peak, `(2, n)`."""
        direct = self._in_blocks.as_given
        assert direct is not None  # noqa: S101 - where it is there for outputs, it is for states
        paths = [ExactPath(one, trial.samples, trial.start) for one in (self._in_blocks, direct)]
        try:
            states = [np.abs(np.asarray(path.sampled_outputs(threads=1))) for path in paths]
        except SimulationError:  # the run itself tells when, and fewer steps the rest
            return self._doubts(trial.halved) if trial.number > 1.0 else np.full((2, direct.network.n_states), np.inf)
        peak = np.max(states, axis=(0, 1))
        return np.array([shares(largest_errors(path), peak) for path in paths])
