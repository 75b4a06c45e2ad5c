"""In which coordinates a small system is run: those of its blocks, or the user's own where blocks lose its outputs.

A block of several states is known to a rounding of its largest entry. Where the user's matrix has zeros that matter (a
chain of integrators inside other states) or an output is a small difference of states, that rounding may show in the
outputs, while an exponential of the matrix as it was given keeps them. Both ways are tried on a few samples: two
computations that agree are both right, and where they do not, their bounds decide.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.share import worst_share
from ltinet.errors import SimulationError
from ltinet.recent import Recent
from ltinet.signals.plateaus import plateaus
from ltinet.signals.sampled import Hold
from ltinet.solve.exact.error_bound import judge_exact
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.modal import ModalSystem
from ltinet.solve.prepared import PreparedNetwork

_SEVERAL = 2  # states of a block from which on its rounding is not that of a number
_AGREEMENT = 2e-11  # of its peak: by what an output may differ between the two, a fifth of what is called right
_NEAR = 1e-4  # of themselves: scalars that are closer may be coupled by so little that T leaves few digits of it
_KEPT = 16
# Beside the doubt of blocks, and beside an output: in the user's own states T costs their small ones nothing, and only
# where outputs are known far less well there, or not at all, so are states.
_FAR, _NOTHING = 1e3, 1.0


def engine_for_run(prepared: PreparedNetwork, step: float, *, hold: Hold, from_state: bool) -> PreparedNetwork:
    """The network that takes steps of this length: in its blocks, or in the user's states where these keep more."""
    engine = prepared.for_run(step, from_state=from_state)
    return prepared.keep(_Choices).surest(step, hold) if engine is prepared and step > 0.0 else engine


def blocks_are_surer(prepared: PreparedNetwork, step: float, *, hold: Hold) -> bool:
    """Whether outputs in the user's own states differ from those of the blocks and are known far less well."""
    doubts = prepared.keep(_Choices).doubts(step, hold) if step > 0.0 else _AGREED
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

    def surest(self, step: float, hold: Hold) -> PreparedNetwork:
        """The one whose outputs are known better: that of blocks, unless the other gives different ones."""
        doubts = self.doubts(step, hold)
        return self._direct if self._direct and doubts.of_user_states < doubts.of_blocks else self._prepared

    def doubts(self, step: float, hold: Hold) -> _Doubts:
        """What a trial with this step says of both; none of two that give the same."""
        direct = self._direct
        if direct is None:
            return _AGREED
        return self._kept.get((step, hold), lambda: _tried(self._prepared, direct, step, hold))


def _may_differ(system: ModalSystem) -> bool:
    """Whether there are blocks of several states, or scalars that nearly are one: what couples these is small."""
    if any(len(block.F) >= _SEVERAL for block in system.blocks):
        return True
    values = np.concatenate([system.rates, system.rates[: system.n_pairs].conj()])
    gaps = np.abs(values[:, None] - values) + np.diag(np.full(len(values), np.inf))
    return bool(np.any(gaps <= _NEAR * np.abs(values)))


def _tried(own: PreparedNetwork, direct: PreparedNetwork, step: float, hold: Hold) -> _Doubts:
    samples = plateaus(step, own.system.n_inputs, hold)
    first, second = (ExactPath(one, samples, None) for one in (own, direct))
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
