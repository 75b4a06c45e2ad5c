"""How large outputs must be for a trial to say something of them: what its two ways differ by must not show in them.

It may be off by as much as they do, and an output that is a hundredth of what inputs of such sizes usually make of it
by a hundred times as much of its peak.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import SimulationError
from ltinet.recent import Recent
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.sizes import peaks
from ltinet.solve.exact.trials import FEW, Trial
from ltinet.solve.prepared import PreparedNetwork

AGREEMENT, _AGREEMENT_OF_MANY = 5e-13, 1e-12  # of a peak: by what two ways to run a trial may differ; of many steps
_SHOWS = 5e-11  # of a peak: half of what is called right
_KEPT = 16  # trials


def agreement_guarded(trial: Trial) -> float:
    """Of a peak, by what two ways to run a trial may differ where smaller outputs are looked at themselves."""
    return _AGREEMENT_OF_MANY if trial.start is None and trial.number > FEW else AGREEMENT


class LeastPeaks:
    """Of all outputs `(p,)`, by trials from rest; the last few are kept."""

    def __init__(self, prepared: PreparedNetwork) -> None:
        self._prepared = prepared
        self._kept = Recent[Array](_KEPT)

    def of(self, trial: Trial) -> Array:
        """Those of one, by as much as it may differ where that is not known; nothing where numbers are exceeded."""
        return self._kept.get(trial, lambda: agreement_guarded(trial) / _SHOWS * self._usual(trial))

    def note(self, trial: Trial, seen: Array, differences: Array) -> None:
        """Keep those of one that was run in two ways: the peaks of outputs, and those of what the ways differ by."""
        if trial.start is None:
            self._kept.get(trial, lambda: np.maximum(AGREEMENT * seen, differences) / _SHOWS)

    def _usual(self, trial: Trial) -> Array:
        try:
            return peaks(ExactPath(self._prepared, trial.samples, None).sampled_outputs(threads=1))
        except SimulationError:
            n_outputs = self._prepared.system.n_outputs
            return self._usual(trial.halved) if trial.number > 1.0 else np.zeros(n_outputs)
