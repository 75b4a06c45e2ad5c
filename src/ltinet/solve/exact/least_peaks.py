"""How large outputs must be for a trial to say something of them: not far less than inputs of such sizes make them.

And not so small that what two ways to run it differed by would show.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import SimulationError
from ltinet.recent import Recent
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.sizes import peaks
from ltinet.solve.exact.trials import Trial
from ltinet.solve.prepared import PreparedNetwork

_LESS = 0.01  # of what is usual
_SHOWS = 5e-11  # of a peak: half of what is called right
_KEPT = 16  # trials


class LeastPeaks:
    """Of all outputs `(p,)`, by trials from rest; the last few are kept."""

    def __init__(self, prepared: PreparedNetwork) -> None:
        self._prepared = prepared
        self._kept = Recent[Array](_KEPT)

    def of(self, trial: Trial) -> Array:
        """Those of one; nothing where outputs exceed all numbers."""
        return self._kept.get(trial, lambda: _LESS * self._usual(trial))

    def note(self, trial: Trial, seen: Array, differences: Array) -> None:
        """Keep those of one that was run in two ways: the peaks of outputs, and those of what the ways differ by."""
        if trial.start is None:
            self._kept.get(trial, lambda: np.maximum(_LESS * seen, differences / _SHOWS))

    def _usual(self, trial: Trial) -> Array:
        try:
            return peaks(ExactPath(self._prepared, trial.samples, None).sampled_outputs(threads=1))
        except SimulationError:
            n_outputs = self._prepared.system.n_outputs
            return self._usual(trial.halved) if trial.number > 1.0 else np.zeros(n_outputs)
