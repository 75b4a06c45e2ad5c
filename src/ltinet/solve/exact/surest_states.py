"""Which of the user's states come from blocks, and which from the user's own matrix.

Either way may lose some: a state that few others act on is a plain integral in the user's matrix, and may be a small
difference of large numbers in blocks; what blocks take apart may grow from rounding in the user's matrix. States are
tried as outputs, and where the two ways differ, their bounds decide: of all states together where they can.
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
from ltinet.solve.exact.infinite_sizes import QUIETLY
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.surest import SURE, blocks_are_surer, some_state
from ltinet.solve.exact.trials import Steps, Trial
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.steps.hump import is_moderate

_KEPT = 16  # runs
_LESS_SURE = 32.0  # times: of two bounds that differ by less, the larger may be that of the smaller error


@QUIETLY
def states_from_blocks(
    prepared: PreparedNetwork, steps: Steps, *, hold: Hold, from_state: bool, usually: bool
) -> NDArray[np.bool_]:
    """Which states `(n,)` come from there: all or none, as usually, where neither way knows a state far worse.

    Errors of one way belong together: combinations of states may be known far better than each of them.
    """
    usual = np.full(prepared.network.n_states, usually)
    if not steps.longest > 0.0 or not _may_differ(prepared, steps, hold=hold, usually=usually):
        return usual
    of_blocks, of_user_states = prepared.keep(_WatchedStates).doubts(steps, hold, from_state=from_state)
    here, there = (of_blocks, of_user_states) if usually else (of_user_states, of_blocks)
    is_turned = _is_far_worse(here, there)
    if is_turned.any() and not _is_far_worse(there, here).any():
        is_turned[:] = True
    return np.asarray((usual ^ is_turned) | np.isinf(of_user_states))


def _is_far_worse(doubts: Array, others: Array) -> NDArray[np.bool_]:
    """Of which states there are such doubts that others would be better."""
    return np.asarray((doubts > SURE) & (doubts > _LESS_SURE * others))


def _may_differ(prepared: PreparedNetwork, steps: Steps, *, hold: Hold, usually: bool) -> bool:
    """Whether states are tried: where there are few of them, or outputs in the user's own came out worse."""
    if not prepared.is_small and (usually or not blocks_are_surer(prepared, steps, hold=hold)):
        return False
    direct = prepared.as_given
    return direct is not None and (not usually or is_moderate(direct.blocks.A, steps.longest))


class _WatchedStates:
    """A network whose outputs are the user's states, in its blocks and as it was given."""

    def __init__(self, prepared: PreparedNetwork) -> None:
        form, origin = prepared.form, prepared.origin
        if form is None or origin is None:
            raise ValueError("a network without a form has no states but its own")
        watched = origin.states_as_outputs
        blocks = replace(prepared.blocks, C=form.T, D=watched.D, magnitudes=None)
        self._in_blocks = PreparedNetwork(prepared.network, form, origin=watched, blocks=blocks)
        self._kept = Recent[Array](_KEPT)

    def doubts(self, steps: Steps, hold: Hold, *, from_state: bool) -> Array:
        """By how much every state may be off in blocks and as given after such steps, relative to its peak, `(2, n)`.

        Nothing where both ways agree.
        """
        trials = self._trials(steps, hold, from_state=from_state)
        return self._kept.get((steps, hold, from_state), lambda: np.max([self._tried(one) for one in trials], axis=0))

    def _trials(self, steps: Steps, hold: Hold, *, from_state: bool) -> Iterator[Trial]:
        inputs = (1.0,) * self._in_blocks.system.n_inputs
        yield Trial(*steps.few, hold, inputs)
        if from_state:
            yield Trial(*steps.few, hold, inputs, some_state(self._in_blocks))

    def _tried(self, trial: Trial) -> Array:
        direct = self._in_blocks.as_given
        assert direct is not None  # noqa: S101 - who asks has looked
        paths = [ExactPath(one, trial.samples, trial.start) for one in (self._in_blocks, direct)]
        try:
            first, second = (np.asarray(path.sampled_outputs(threads=1)) for path in paths)
        except SimulationError:  # the run itself tells when, and fewer steps the rest
            return self._tried(trial.halved) if trial.number > 1.0 else np.full((2, direct.network.n_states), np.inf)
        peak = np.maximum(np.abs(first), np.abs(second)).max(axis=0)
        differ = np.abs(first - second).max(axis=0) > SURE * peak
        if not differ.any():
            return np.zeros((2, len(differ)))
        return np.array([np.where(differ, shares(largest_errors(path), peak), 0.0) for path in paths])
