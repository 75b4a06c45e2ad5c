"""What a reduction left out of outputs at any time: |e(t)| ≤ ‖G − G_r‖ ‖u‖, in the H2 norm and in L2(0, t)."""

import math
from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.signals.sampled import Lines
from ltinet.signals.signal import Signal

_TOLERANCE = 1e-3  # of max |u|: lines within it stand for an input, and it is counted


@dataclass(frozen=True, eq=False)
class ReductionError:
    """The energy of every input of a batch up to any time, and the H2 norm that it is multiplied by."""

    norm: float
    """‖G − G_r‖ in the H2 norm; infinite where that is not known."""
    t: Array
    energy: Array
    """∫ |u|² from the first time to each of t, `(..., K)`."""
    n_outputs: int

    def at(self, t: Array) -> Array:
        """The bound at any times, `(..., len(t), p)`; the energy up to the next place where it is known."""
        place = np.clip(np.searchsorted(self.t, t, side="left"), 0, len(self.t) - 1)
        return self._bound(self.energy[..., place])

    def overall(self) -> Array:
        """The bound over all times, `(..., p)`."""
        return self._bound(self.energy[..., -1])

    def _bound(self, energy: Array) -> Array:
        with np.errstate(invalid="ignore"):
            bound = np.where(energy > 0.0, self.norm * np.sqrt(energy), 0.0)
        return np.repeat(bound[..., None], self.n_outputs, axis=-1)


def reduction_error(norm: float, signal: Signal, t: Array, *, from_rest: bool, n_outputs: int) -> ReductionError:
    """Bound what a reduction left out of a run; without end where it began in a state, of which nobody knows."""
    lines: Lines = signal.sampled_over(t, tolerance=_TOLERANCE)
    samples = lines.samples
    u = np.asarray(samples.u, dtype=np.float64)
    steps = np.diff(samples.t)
    first, second = u[..., :-1, :], u[..., 1:, :]
    if samples.hold == "zero":
        squares = (first * first).sum(axis=-1)
    else:
        squares = ((first * first + first * second + second * second) / 3.0).sum(axis=-1)
    off = lines.off * math.sqrt(u.shape[-1])
    # ‖u‖ ≤ ‖lines‖ + ‖u − lines‖ in L2, and (a + b)² ≤ 1.01 a² + 101 b².
    energy = np.concatenate([np.zeros_like(squares[..., :1]), np.cumsum(squares * steps, axis=-1)], axis=-1)
    energy = 1.01 * energy + 101.0 * off**2 * (samples.t - samples.t[0]) if off > 0.0 else energy
    return ReductionError(norm if from_rest else math.inf, samples.t, energy, n_outputs)
