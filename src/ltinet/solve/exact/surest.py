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
from ltinet.signals.plateaus import FEW, plateaus
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.solve.exact.error_bound import judge_exact
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.modal import ModalSystem
from ltinet.solve.prepared import PreparedNetwork
from ltinet.tolerances import EPS

_SEVERAL = 2  # states of a block from which on its rounding is not that of a number
# Of its peak, by what an output may differ between the two, and what may be off where it is known not to: a run may see
# more of the difference than a trial, and 1e-10 is what is called right.
_AGREEMENT, _SURE = 5e-13, 5e-12
_NEAR = 1e-4  # of themselves: scalars that are closer may be coupled by so little that T leaves few digits of it
_KEPT = 16
_MOST = 13  # plateaus: 8,191 steps, of which rounding shows what more would
MANY = 2**_MOST  # steps of a run without end
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
        """Steps of the longest kind, and as many as there are where T of this condition may show in the end.

        Lengths and numbers are powers of two where they differ from run to run, so that few trials serve many runs.
        """
        octaves = min(max(math.ceil(math.log2(self.number)), FEW), _MOST)
        if 2.0**octaves * EPS * condition <= _SURE:
            octaves = FEW
        if self.average == self.longest:
            return [_Trial(self.longest, octaves)]
        nearby = 2.0 ** round(math.log2(self.average))
        return [_Trial(self.longest, FEW), *([_Trial(nearby, octaves)] if octaves > FEW else [])]


class _Trial(NamedTuple):
    """Steps of one length, and after how many doublings of plateaus a trial of them ends."""

    step: float
    octaves: int


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
        self._kept = Recent[_Doubts](_KEPT)
        self._direct = prepared.in_user_states if prepared.is_small and _may_differ(prepared.system) else None

    def surest(self, steps: Steps, hold: Hold, *, from_state: bool) -> PreparedNetwork:
        """The one whose outputs are known better: that of blocks, unless the other gives different ones."""
        doubts = self.of_run(steps, hold, from_state=from_state)
        return self._direct if self._direct and doubts.of_user_states < doubts.of_blocks > _SURE else self._prepared

    def of_run(self, steps: Steps, hold: Hold, *, from_state: bool) -> _Doubts:
        """What the first trial says in which the two differ."""
        condition = 1.0 if self._prepared.form is None else self._prepared.form.condition_raw
        for trial in steps.trials(condition) if self._direct is not None else []:
            doubts = self.doubts(trial, hold, from_state=from_state and trial.octaves > FEW)
            if doubts is not _AGREED:
                return doubts
        return _AGREED

    def doubts(self, trial: _Trial, hold: Hold, *, from_state: bool = False) -> _Doubts:
        """What a trial says of both; none of two that give the same."""
        direct = self._direct
        if direct is None:
            return _AGREED
        return self._kept.get(
            (trial, hold, from_state), lambda: self._tried(direct, trial, hold, from_state=from_state)
        )

    def _tried(self, direct: PreparedNetwork, trial: _Trial, hold: Hold, *, from_state: bool) -> _Doubts:
        samples = plateaus(trial.step, direct.system.n_inputs, hold, count=trial.octaves)
        doubts = _compared(self._prepared, direct, samples, None)
        if doubts is not _AGREED or not from_state:
            return doubts
        nothing = SampledSignal(samples.axis, np.zeros_like(samples.u), hold=hold)
        return _compared(self._prepared, direct, nothing, _some_state(self._prepared))


def _some_state(prepared: PreparedNetwork) -> Array | None:
    """A state of the user in which all are as large as states of the blocks make them, with signs by chance."""
    if prepared.form is None:
        return None
    sizes = np.abs(prepared.form.T).max(axis=1)
    return np.asarray(sizes * np.random.default_rng(1).choice([-1.0, 1.0], size=len(sizes)))


def _may_differ(system: ModalSystem) -> bool:
    """Whether there are blocks of several states, or scalars that nearly are one: what couples these is small."""
    if any(len(block.F) >= _SEVERAL for block in system.blocks):
        return True
    values = np.concatenate([system.rates, system.rates[: system.n_pairs].conj()])
    gaps = np.abs(values[:, None] - values) + np.diag(np.full(len(values), np.inf))
    return bool(np.any(gaps <= _NEAR * np.abs(values)))


def _compared(own: PreparedNetwork, direct: PreparedNetwork, samples: SampledSignal, x0: Array | None) -> _Doubts:
    """What a run of both says."""
    first, second = (ExactPath(one, samples, x0) for one in (own, direct))
    try:
        y, other = (np.asarray(one.sampled_outputs(threads=1)) for one in (first, second))
    except SimulationError:  # one of them exceeds all numbers: the run itself tells when
        return _AGREED
    peaks = [np.abs(outputs).max(axis=0, initial=0.0) for outputs in (y, other)]
    if np.all(np.abs(y - other).max(axis=0, initial=0.0) <= _AGREEMENT * peaks[0]):
        return _AGREED
    peak = np.maximum(*peaks)  # of both: what is nothing but error is no measure of its own
    return _Doubts(_doubt(first, peak), _doubt(second, peak))


def _doubt(path: ExactPath, peak: Array) -> float:
    """By how much the worst output may be off, relative to a peak of each."""
    (bound,) = judge_exact(path, float(path.samples.t[0]), float(path.samples.t[-1]))
    return worst_share(np.asarray(sum(bound.overall().values())), peak)
