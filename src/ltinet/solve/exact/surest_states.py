"""Which of the user's states come from blocks, and which from the user's own matrix.

Either way may lose some: a state that few others act on is a plain integral in the user's matrix, and may be a small
difference of large numbers in blocks; what blocks take apart may grow from rounding in the user's matrix. States are
tried as outputs, and where the two ways differ, one to more digits decides, or their bounds: of all states together
where they can.
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
from ltinet.solve.exact.second_look import shows_less
from ltinet.solve.exact.sizes import peaks
from ltinet.solve.exact.surest import SURE, blocks_are_surer, some_state
from ltinet.solve.exact.trials import Steps, Trial
from ltinet.solve.exact.true_outputs import LIKE_A_BOUND, true_outputs
from ltinet.solve.prepared import PreparedNetwork

_KEPT = 16  # runs
_ROUNDING = 1e-13  # of peaks, as large as doubts are made where errors are known
_LESS_SURE = 8.0  # times: a run may tell two errors apart that a trial did not, or the other way round


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
    return _decided(usual, prepared.keep(_WatchedStates).doubts(steps, hold, from_state=from_state))


@QUIETLY
def after_second_look(path: ExactPath, from_blocks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which states come from blocks after all, where a run shows far less of some of these than trials did."""
    prepared = path.prepared
    if not from_blocks.any() or not prepared.is_small or prepared.as_given is None:
        return from_blocks
    watched = prepared.keep(_WatchedStates)
    try:
        less = watched.shown_less(path) & from_blocks
        doubts = watched.compared(path) if less.any() else np.zeros((2, len(less)))
    except SimulationError:  # whoever reads the states is told when
        return from_blocks
    return _decided(from_blocks, np.where(less, doubts, 0.0))


def _decided(usual: NDArray[np.bool_], doubts: Array) -> NDArray[np.bool_]:
    """Which states come from blocks, by doubts about these there and as given `(2, n)`."""
    here, there = np.where(usual, doubts, doubts[::-1])
    is_turned = _is_worse(here, there, beyond=SURE)
    is_one_way = usual.all() or not usual.any()
    # However small they are, of all states doubts must be known: what a trial hardly shows may show in a run.
    if is_turned.any() and is_one_way and doubts.all() and not _is_worse(there, here, beyond=_ROUNDING).any():
        is_turned[:] = True
    return np.asarray((usual ^ is_turned) | np.isinf(doubts[1]))


def _is_worse(doubts: Array, others: Array, *, beyond: float) -> NDArray[np.bool_]:
    """Of which states there are such doubts that others would be better."""
    return np.asarray((doubts > beyond) & (doubts > _LESS_SURE * others))


def _may_differ(prepared: PreparedNetwork, steps: Steps, *, hold: Hold, usually: bool) -> bool:
    """Whether states are tried: where there are few of them, or outputs in the user's own came out worse."""
    if prepared.as_given is None:
        return False
    return prepared.is_small or (not usually and blocks_are_surer(prepared, steps, hold=hold))


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
        try:
            return self.compared(ExactPath(self._in_blocks, trial.samples, trial.start))
        except SimulationError:  # the run itself tells when, and fewer steps the rest
            n_states = self._in_blocks.network.n_states
            return self._tried(trial.halved) if trial.number > 1.0 else np.full((2, n_states), np.inf)

    def compared(self, path: ExactPath) -> Array:
        """By how much every state of some run may be off in blocks and as given; nothing where these agree.

        Where all are known to more digits, of all of them.
        """
        direct = self._in_blocks.as_given
        assert direct is not None  # noqa: S101 - who asks has looked
        paths = [path.through(one) for one in (self._in_blocks, direct)]
        first, second = (_members(path.sampled_outputs(threads=1)) for path in paths)
        peak = np.maximum(peaks(first), peaks(second))
        second -= first
        differ = peaks(second) > SURE * peak
        if not differ.any():
            return np.zeros((2, peak.shape[-1]))
        truth = true_outputs(paths[1])
        if truth is None:
            errors = [largest_errors(path) for path in paths]
        else:
            first -= truth
            errors = [LIKE_A_BOUND * peaks(own) for own in (first, first + second)]
            differ[:] = True
        return np.array([np.where(differ, shares(own, peak), 0.0).max(axis=0) for own in errors])

    def shown_less(self, path: ExactPath) -> NDArray[np.bool_]:
        """Which states are far less in some run than inputs of such sizes usually make them."""
        system, coordinates = path.prepared.system, path.prepared.coordinates
        seen = np.zeros((len(path.u), system.n_states))
        for _, z in path.sampled_states.pieces():
            np.maximum(seen, peaks(coordinates.user_from_blocks(system.blocks_from_packed(z))), out=seen)
        return np.asarray(shows_less(self._in_blocks, path.samples, seen).any(axis=0))


def _members(values: Array) -> Array:
    """Batch, time and states, `(batch, T, n)`."""
    return values.reshape(-1, *values.shape[-2:])
