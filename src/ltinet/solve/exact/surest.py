"""In which coordinates a small system is run: those of its blocks, or the user's own where blocks lose its outputs.

A block of several states is known to a rounding of its largest entry. Where the user's matrix has zeros that matter (a
chain of integrators inside other states) or an output is a small difference of states, that rounding may show in the
outputs, while an exponential of the matrix as it was given keeps them. Both ways are tried on a few samples: two
computations that agree are both right, and where they do not, their bounds decide.
"""

import math
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.share import worst_share
from ltinet.errors import SimulationError
from ltinet.recent import Recent
from ltinet.signals.plateaus import plateaus
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.solve.exact.engine_arrays import engine_arrays
from ltinet.solve.exact.error_bound import judge_exact
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.seen_through_modes import least_share_seen
from ltinet.solve.prepared import PreparedNetwork
from ltinet.tolerances import EPS

_SEVERAL = 2  # states of a block from which on its rounding is not that of a number
# Of its peak, by what an output may differ between the two, and what may be off where it is known not to: a run may see
# more of the difference than a trial, and 1e-10 is what is called right.
_AGREEMENT, _SURE, _SURE_OF_MANY = 5e-13, 5e-12, 2e-11
_MODERATE = 128  # states: of more, bounds of steps of all states together take longer than a second
_FEW_DIGITS = 1e-3  # the share of what modes could bring to an output, below which it may be off by 1e-12
_KEPT = 16
_FEW, MANY = 2**8, 2**13  # steps that excite all states, and of a run without end: rounding shows what more would
# Beside the doubt of blocks, and beside an output: in the user's own states T costs their small ones nothing, and only
# where outputs are known far less well there, or not at all, so are states.
_FAR, _NOTHING = 1e3, 1.0


class Steps(NamedTuple):
    """The steps of a run, as far as trials take them: how long at most and on the average, and how many."""

    longest: float
    average: float
    number: int

    @classmethod
    def of(cls, samples: SampledSignal) -> "Steps":
        """Those between samples."""
        number = len(samples.t) - 1
        if samples.step is not None or number < 1:
            return cls.even(samples.longest_step, max(number, 1))
        return cls(samples.longest_step, float(samples.t[-1] - samples.t[0]) / number, number)

    @classmethod
    def even(cls, length: float, number: int) -> "Steps":
        """Of one length."""
        return cls(length, length, number)

    def trials(self, condition: float) -> list["_Trial"]:
        """A few steps of the longest kind, then as many as there are where T of this condition may show in the end.

        No more than there are: an output may see little until something arrives. The few come first because many of a
        system that grows exceed all numbers and say nothing. Numbers are rounded so that few trials serve many runs.
        """
        few, whole = _Trial(self.longest, _rounded_down(min(self.number, _FEW))), self.whole
        shows = self.number <= _FEW or whole.number * EPS * condition > _SURE
        return [few, whole] if shows and few != whole else [few]

    @property
    def whole(self) -> "_Trial":
        """As many as there are, of the usual kind."""
        usual = self.longest if self.average == self.longest else _rounded_down(self.average)
        return _Trial(usual, _rounded_down(min(self.number, MANY)))


class _Trial(NamedTuple):
    """Steps of one length, and how many."""

    step: float
    number: float

    @property
    def halved(self) -> "_Trial":
        """Half as many steps."""
        return self._replace(number=self.number // 2)


def _rounded_down(number: float) -> float:
    """With three binary digits."""
    fraction, exponent = math.frexp(number)
    return math.ldexp(math.floor(8.0 * fraction), exponent - 3)


def engine_for_run(prepared: PreparedNetwork, steps: Steps, *, hold: Hold, from_state: bool) -> PreparedNetwork:
    """The network that takes such steps: in its blocks, or in the user's states where these keep more."""
    engine = prepared.for_run(steps.longest, from_state=from_state)
    if engine is not prepared or not steps.longest > 0.0:
        return engine
    direct = prepared.in_user_states if prepared.is_small else None
    if direct is not None and direct.is_short(steps.average * steps.number):
        return direct  # of a run so short outputs may have seen little, and T takes that from large states
    return prepared.keep(_Choices).surest(steps, hold, from_state=from_state)


def blocks_are_surer(prepared: PreparedNetwork, steps: Steps, *, hold: Hold) -> bool:
    """Whether outputs in the user's own states differ from those of the blocks and are known far less well."""
    doubts = prepared.keep(_Choices).of_run(steps, hold, from_state=False) if steps.longest > 0.0 else _AGREED
    return doubts.of_blocks < doubts.of_user_states > min(_NOTHING, _FAR * doubts.of_blocks)


class _Doubts(NamedTuple):
    """By how much the worst output of two ways may be off, relative to its peak."""

    of_blocks: float
    of_user_states: float


_AGREED = _Doubts(0.0, 0.0)


class _Choices:
    """Which of two networks takes steps of some lengths; the last few are kept."""

    def __init__(self, prepared: PreparedNetwork) -> None:
        self._prepared = prepared
        self._kept, self._shares = Recent[_Doubts](_KEPT), Recent[float](_KEPT)
        self._direct = prepared.as_given if prepared.network.n_states <= _MODERATE else None

    def surest(self, steps: Steps, hold: Hold, *, from_state: bool) -> PreparedNetwork:
        """The one whose outputs are known better: that of blocks, unless the other gives different ones."""
        doubts = self.of_run(steps, hold, from_state=from_state)
        return self._direct if self._direct and doubts.of_user_states < doubts.of_blocks > _SURE else self._prepared

    def of_run(self, steps: Steps, hold: Hold, *, from_state: bool) -> _Doubts:
        """What the first trial says in which the two differ."""
        if self._direct is None or not self._may_differ(steps):
            return _AGREED
        condition = 1.0 if self._prepared.form is None else self._prepared.form.condition_raw
        # Where to ask twice would cost more than the run, what happens in the end decides.
        for trial in steps.trials(condition) if self._prepared.is_small else [steps.whole]:
            doubts = self.doubts(trial, hold, from_state=from_state and trial.number > _FEW)
            if doubts is not _AGREED:
                return doubts
        return _AGREED

    def _may_differ(self, steps: Steps) -> bool:
        """Whether there are blocks of several states, or scalars that leave few digits in an output."""
        if any(len(block.F) >= _SEVERAL for block in self._prepared.system.blocks):
            return True
        duration = steps.average * steps.number
        share = self._shares.get(
            (steps.longest, duration),
            lambda: least_share_seen(engine_arrays(self._prepared), steps.longest, duration),
        )
        return share <= _FEW_DIGITS

    def doubts(self, trial: _Trial, hold: Hold, *, from_state: bool = False) -> _Doubts:
        """What a trial says of both; none of two that give the same."""
        direct = self._direct
        if direct is None:
            return _AGREED
        return self._kept.get(
            (trial, hold, from_state), lambda: self._tried(direct, trial, hold, from_state=from_state)
        )

    def _tried(self, direct: PreparedNetwork, trial: _Trial, hold: Hold, *, from_state: bool) -> _Doubts:
        samples = plateaus(trial.step, direct.system.n_inputs, hold, n_steps=int(trial.number))
        doubts = _compared(self._prepared, direct, samples, None)
        if doubts is None:  # outputs or bounds exceed all numbers: the run itself tells when, fewer steps the rest
            return self._tried(direct, trial.halved, hold, from_state=from_state) if trial.number > 1 else _AGREED
        if doubts is not _AGREED or not from_state:
            return doubts
        nothing = SampledSignal(samples.axis, np.zeros_like(samples.u), hold=hold)
        return _compared(self._prepared, direct, nothing, _some_state(self._prepared)) or _AGREED


def _some_state(prepared: PreparedNetwork) -> Array | None:
    """A state of the user in which all are as large as states of the blocks make them, with signs by chance."""
    if prepared.form is None:
        return None
    sizes = np.abs(prepared.form.T).max(axis=1)
    return np.asarray(sizes * np.random.default_rng(1).choice([-1.0, 1.0], size=len(sizes)))


def _compared(
    own: PreparedNetwork, direct: PreparedNetwork, samples: SampledSignal, x0: Array | None
) -> _Doubts | None:
    """What a run of both says; None where it cannot."""
    first, second = (ExactPath(one, samples, x0) for one in (own, direct))
    try:
        y = np.asarray(first.sampled_outputs(threads=1))
        if not own.is_small and _doubt(first, np.abs(y).max(axis=0, initial=0.0)) <= _SURE_OF_MANY:
            return _AGREED
        other = np.asarray(second.sampled_outputs(threads=1))
    except SimulationError:
        return None
    peaks = [np.abs(outputs).max(axis=0, initial=0.0) for outputs in (y, other)]
    if np.all(np.abs(y - other).max(axis=0, initial=0.0) <= (_AGREEMENT if own.is_small else _SURE) * peaks[0]):
        return _AGREED
    peak = np.maximum(*peaks)  # of both: what is nothing but error is no measure of its own
    doubts = _Doubts(_doubt(first, peak), _doubt(second, peak))
    return doubts if math.isfinite(min(doubts)) else None


def _doubt(path: ExactPath, peak: Array) -> float:
    """By how much the worst output may be off, relative to a peak of each."""
    (bound,) = judge_exact(path, float(path.samples.t[0]), float(path.samples.t[-1]))
    return worst_share(np.asarray(sum(bound.overall().values())), peak)
