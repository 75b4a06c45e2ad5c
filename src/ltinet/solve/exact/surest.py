"""In which coordinates a system of few states is run: those of its blocks, or the user's own where blocks lose digits.

A block of several states is known to a rounding of its largest entry, and T to one of all that it could bring to an
output. Where the user's matrix has zeros that matter (a chain of integrators inside other states), or an output sees
little of what moves the system (`seen_through_modes`), that rounding may show, while an exponential of the matrix as it
was given keeps all digits. Both ways are tried (`trials`): two computations that agree are both right, even if one was
made in a hurry (`hasty_outputs`), and where they do not, one to more digits decides (`true_outputs`), or of many states
and steps their bounds. Where neither will do, blocks run with all that rounding left outside of them
(`network.remainder`), if the bound of that is the least.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.share import worst_share
from ltinet.errors import SimulationError
from ltinet.recent import Recent
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.times import TimeAxis
from ltinet.solve.exact.engine_arrays import engine_arrays
from ltinet.solve.exact.error_bound import largest_errors
from ltinet.solve.exact.excitation import Excitation, Sizes
from ltinet.solve.exact.hasty_outputs import hasty_outputs
from ltinet.solve.exact.least_peaks import AGREEMENT, LeastPeaks, agreement_guarded
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.seen_through_modes import SeenThroughModes, seen_through_modes
from ltinet.solve.exact.sizes import peaks
from ltinet.solve.exact.trials import FEW, Lengths, Steps, Trial
from ltinet.solve.exact.true_outputs import LIKE_A_BOUND, true_outputs
from ltinet.solve.prepared import PreparedNetwork
from ltinet.tolerances import EPS

_SEVERAL = 2  # states of a block from which on its rounding is not that of a number
# Of its peak, what an output may be off by where it is known: a run may see more of that than a trial, and 1e-10 is
# what is called right.
SURE, _SURE_OF_MANY = 5e-12, 2e-11
_IN_DOUBT = 1e-10  # of its peak: what is called right, and where a third way is tried
_GROSSLY = 2.0  # times: by what peaks of outputs may differ where neither is lost
_NEAR = 1e-2  # of its peak: who is so near to a run of twice as many digits has not lost all of its own, nor has that
_LOST = 1.0  # of its peak: where both ways may be off by that, which is worse hangs on luck
MODERATE = 128  # states: of more, bounds of steps of all states together take longer than a second
# The share of what modes could bring to an output, below which it may be off by 1e-12, and of more states by 1e-11.
_FEW_DIGITS, _FEW_DIGITS_OF_MANY = 1e-3, 1e-4
_AT_ONCE = 1_024  # members of a batch whose states are looked at together
_KEPT, _FEW_KEPT = 16, 4  # trials, and responses to what enters states


def engine_for_run(
    prepared: PreparedNetwork,
    steps: Steps,
    *,
    hold: Hold,
    from_state: bool,
    excitation: Callable[[], Excitation] | None = None,
    is_guarded: bool = False,
) -> PreparedNetwork:
    """The network that takes such steps: in its blocks, or in the user's states where these keep more.

    Where small outputs are looked at again (`second_look`) a run is guarded, and trials may differ by a little more.
    """
    engine = prepared.for_run(steps.longest, from_state=from_state)
    if engine is not prepared or not steps.longest > 0.0:
        return engine
    direct = prepared.in_user_states if prepared.is_small else None
    if direct is not None and direct.is_short(steps.duration):
        return direct  # of a run so short outputs may have seen little, and T takes that from large states
    choices = prepared.keep(_GuardedChoices if is_guarded else _Choices)
    if not choices.are_several:
        return prepared
    by = Excitation.unknown(prepared.system.n_inputs) if excitation is None else excitation()
    return choices.surest(steps, hold, by, from_state=from_state)


def engine_for_samples(prepared: PreparedNetwork, samples: SampledSignal, start: Array | None) -> PreparedNetwork:
    """The same for a run from states of the user, or from rest."""
    if start is None and (samples.u.shape[-1] == 1 or not prepared.keep(_GuardedChoices).are_several):
        return prepared.keep(_LastRun).engine(samples)
    return engine_for_run(
        prepared,
        Steps.of(samples),
        hold=samples.hold,
        from_state=start is not None,
        excitation=lambda: Excitation.of(samples, start),
        is_guarded=True,
    )


class _LastRun:
    """Runs from rest at the times of the last one take its network without a look: those whose inputs do not matter."""

    def __init__(self, prepared: PreparedNetwork) -> None:
        self._prepared = prepared
        self._last: tuple[TimeAxis, Hold, PreparedNetwork] | None = None

    def engine(self, samples: SampledSignal) -> PreparedNetwork:
        """The network for such a run."""
        last = self._last
        if last is None or last[0] is not samples.axis or last[1] != samples.hold:
            steps, hold = Steps.of(samples), samples.hold
            engine = engine_for_run(self._prepared, steps, hold=hold, from_state=False, is_guarded=True)
            last = self._last = samples.axis, hold, engine
        return last[2]


def blocks_are_surer(prepared: PreparedNetwork, steps: Steps, *, hold: Hold) -> bool:
    """Whether outputs in the user's own states differ from those of the blocks and are known less well."""
    by = Excitation.unknown(prepared.system.n_inputs)
    doubts = prepared.keep(_Choices).of_run(steps, hold, by, from_state=False)
    return doubts.of_blocks < doubts.of_user_states


class _Doubts(NamedTuple):
    """By how much the worst output of each way may be off, relative to its peak."""

    of_blocks: float
    of_user_states: float
    of_whole: float = math.inf
    """Of blocks with all that rounding left outside of them; tried where both others are in doubt."""


_AGREED = _Doubts(0.0, 0.0)


class _Choices:
    """Which of two networks takes steps of some lengths; the last few are kept."""

    is_guarded = False

    def __init__(self, prepared: PreparedNetwork) -> None:
        self._prepared = prepared
        self._kept, self._runs = Recent[_Doubts](_KEPT), Recent[_Doubts](_KEPT)
        self._modes = Recent[SeenThroughModes](_FEW_KEPT)
        self._direct = prepared.as_given if prepared.network.n_states <= MODERATE else None
        self._enough = _FEW_DIGITS if prepared.is_small else _FEW_DIGITS_OF_MANY
        self._is_coupled = any(len(block.F) >= _SEVERAL for block in prepared.system.blocks)

    @property
    def are_several(self) -> bool:
        """Whether there is another one."""
        return self._direct is not None

    def surest(self, steps: Steps, hold: Hold, by: Excitation, *, from_state: bool) -> PreparedNetwork:
        """The one whose outputs are known better: that of blocks, unless the other gives different ones."""
        doubts = self.of_run(steps, hold, by, from_state=from_state)
        ways = self._prepared, self._direct, self._prepared.whole if math.isfinite(doubts.of_whole) else None
        return (ways[int(np.argmin(doubts))] or self._prepared) if doubts.of_blocks > SURE else self._prepared

    def of_run(self, steps: Steps, hold: Hold, by: Excitation, *, from_state: bool) -> _Doubts:
        """What the first trial says in which the two differ: with such inputs, then from the given state."""
        direct = self._direct
        if direct is None:
            return _AGREED
        doubts = self._runs.get(
            (steps, hold, by.inputs, from_state),
            lambda: self._first(direct, self._with_inputs(steps, hold, by.inputs, from_state=from_state)),
        )
        start = self._to_be_tried(steps, by.start) if doubts is _AGREED and by.start is not None else None
        if start is None:
            return doubts
        return self._first(direct, [Trial(*own, hold, by.inputs[0], start) for own in self._lengths(steps)])

    def _first(self, direct: PreparedNetwork, trials: Iterable[Trial]) -> _Doubts:
        """Of the first of these in which the two differ: blocks are not sure enough, or the other way is less so."""
        for trial in trials:
            doubts = self._kept.get(trial, partial(_tried, self._prepared, direct, trial, is_guarded=self.is_guarded))
            if not doubts.of_user_states <= doubts.of_blocks <= SURE:
                return doubts
        return _AGREED

    def _with_inputs(self, steps: Steps, hold: Hold, kinds: tuple[Sizes, ...], *, from_state: bool) -> Iterator[Trial]:
        """From rest, and where somebody may begin elsewhere, from some state in the long run."""
        for inputs in kinds:
            for own in self._lengths(steps) if self._may_differ(steps, inputs) else []:
                yield Trial(*own, hold, inputs)
                if from_state and own.number > FEW:
                    yield Trial(*own, hold, inputs, some_state(self._prepared))

    def _lengths(self, steps: Steps) -> list[Lengths]:
        """Which steps are tried; where to ask twice would cost more than the run, all of them."""
        form = self._prepared.form
        return steps.tried(1.0 if form is None else form.condition_raw) if self._prepared.is_small else [steps.whole]

    def _may_differ(self, steps: Steps, inputs: Sizes) -> bool:
        """Whether there are blocks of several states, or an output has few digits: rates are off, or it sees little."""
        if self._prepared.is_small and (self._is_coupled or self._rates_show(steps)):
            return True
        return not self._seen(steps, driven=not self._is_coupled).least_of_inputs(inputs) > self._enough

    def _rates_show(self, steps: Steps) -> bool:
        """Whether slow modes turn so far that a run shows how far their rates are off: by some eps of the largest."""
        return steps.duration * self._prepared.fastest * EPS > SURE

    def _to_be_tried(self, steps: Steps, start: Array) -> tuple[float, ...] | None:
        """The state of a batch of which outputs see least, where that is little or the run is long."""
        if not start.any():
            return None
        seen = self._seen(steps, driven=False)
        pieces = [start[begin : begin + _AT_ONCE] for begin in range(0, len(start), _AT_ONCE)]
        found = [seen.least_direction(own.T) for own in pieces]
        piece, (first, share) = min(zip(pieces, found, strict=True), key=lambda own: own[1][1])
        is_told = self._prepared.is_small and self._rates_show(steps)
        return tuple(piece[first].tolist()) if is_told or share <= self._enough else None

    def _seen(self, steps: Steps, *, driven: bool) -> SeenThroughModes:
        arrays = engine_arrays(self._prepared)
        return self._modes.get(
            (steps, driven), lambda: seen_through_modes(arrays, steps.longest, steps.duration, driven=driven)
        )


class _GuardedChoices(_Choices):
    """The same for runs of which small outputs are looked at again."""

    is_guarded = True


def some_state(prepared: PreparedNetwork) -> tuple[float, ...] | None:
    """A state of the user in which all are as large as states of the blocks make them, with signs by chance."""
    if prepared.form is None:
        return None
    sizes = np.abs(prepared.form.T).max(axis=1)
    return tuple((sizes * np.random.default_rng(1).choice([-1.0, 1.0], size=len(sizes))).tolist())


def _tried(own: PreparedNetwork, direct: PreparedNetwork, trial: Trial, *, is_guarded: bool) -> _Doubts:
    """What a trial says of both; where numbers are exceeded or all digits lost, what fewer steps say, if one does."""
    compared = partial(_compared, own, direct, is_guarded=is_guarded)
    doubts = compared(trial)
    if doubts is not None:
        return doubts
    of_one = compared(trial.of_one_step)
    while doubts is None and of_one is not None:
        trial = trial.halved
        doubts = compared(trial) if trial.number > 1.0 else of_one
    return _AGREED if doubts is None else doubts


def _compared(own: PreparedNetwork, direct: PreparedNetwork, trial: Trial, *, is_guarded: bool) -> _Doubts | None:
    """What a run of both says; None where it cannot."""
    samples, agreement = trial.samples, SURE
    if own.is_small:
        agreement = agreement_guarded(trial) if is_guarded else AGREEMENT
    first, second = (ExactPath(one, samples, trial.start) for one in (own, direct))
    try:
        y = np.asarray(first.sampled_outputs(threads=1))
        if _agrees(own, trial, y, hasty_outputs(second), agreement=agreement, with_zero=False):
            return _AGREED
        if not own.is_small and _own_doubt(first, y) <= _SURE_OF_MANY:
            return _AGREED
    except SimulationError:
        return None
    other = _finite_outputs(second)
    if other is None and not own.is_small:
        return None
    if _agrees(own, trial, y, other, agreement=agreement, with_zero=True):
        return _AGREED
    truth = true_outputs(second) if own.is_small and other is not None else None
    is_lost = own.is_small and other is not None and _is_lost(y, other)
    if other is None or (is_lost and not _is_told(truth, y, other)):
        of_user_states = math.inf if other is None else _own_doubt(second, other)
        doubts = _Doubts(_own_doubt(first, y), of_user_states, _doubt_of_whole(own, trial))
        return doubts if math.isfinite(min(doubts)) else None
    peak = np.maximum(peaks(y), peaks(other))  # of both: what is nothing but error is no measure of its own
    if is_lost and truth is not None:
        peak = np.where(peaks(truth) > 0.0, peaks(truth), peak)
    if truth is not None:
        errors = (LIKE_A_BOUND * peaks(outputs - truth[0]) for outputs in (y, other))
        doubts = _Doubts(*(worst_share(error, peak) for error in errors))
    else:
        doubts = _Doubts(_doubt(first, peak), _doubt(second, peak))
    if own.is_small and min(doubts) > _IN_DOUBT:
        doubts = doubts._replace(of_whole=_doubt_of_whole(own, trial))
    if truth is None:
        return doubts if math.isfinite(min(doubts)) else None
    return None if min(doubts) >= _LOST else doubts if doubts.of_blocks > SURE else _AGREED


def _agrees(
    own: PreparedNetwork, trial: Trial, y: Array, other: Array | None, *, agreement: float, with_zero: bool
) -> bool:
    """Whether two runs of a trial agree, which is noted; something made in a hurry does not agree with zero."""
    if other is None:
        return False
    seen, differences = peaks(y), peaks(y - other.reshape(y.shape))
    agrees = bool(np.all((differences <= agreement * seen) & ((seen > 0.0) | with_zero)))
    if agrees:
        own.keep(LeastPeaks).note(trial, seen, differences)
    return agrees


def _is_lost(y: Array, other: Array) -> bool:
    """Whether peaks of outputs differ so much that one of them is nothing but error, and more digits may be too."""
    first, second = peaks(y), peaks(other)
    return bool(np.any(np.maximum(first, second) > _GROSSLY * np.minimum(first, second)))


def _is_told(truth: Array | None, y: Array, other: Array) -> bool:
    """Whether one of two runs is so near to one of more digits that this has lost few of them."""
    if truth is None:
        return False
    return any(np.all(peaks(outputs - truth) <= _NEAR * peaks(truth)) for outputs in (y, other))


def _doubt_of_whole(own: PreparedNetwork, trial: Trial) -> float:
    """By how much the worst output of blocks with all that rounding left outside of them may be off."""
    if own.whole is None:
        return math.inf
    path = ExactPath(own.whole, trial.samples, trial.start)
    outputs = _finite_outputs(path)
    return math.inf if outputs is None else _own_doubt(path, outputs)


def _finite_outputs(path: ExactPath) -> Array | None:
    """Those of a run; None where they exceed all numbers."""
    try:
        return np.asarray(path.sampled_outputs(threads=1))
    except SimulationError:
        return None


def _own_doubt(path: ExactPath, outputs: Array) -> float:
    """The same beside its own outputs: one that is zero and need not be is as doubtful as can be."""
    peak, errors = peaks(outputs), largest_errors(path)[0]
    return math.inf if np.any((peak == 0.0) & (errors > 0.0)) else worst_share(errors, peak)


def _doubt(path: ExactPath, peak: Array) -> float:
    """By how much the worst output may be off, relative to a peak of each."""
    return worst_share(largest_errors(path)[0], peak)
