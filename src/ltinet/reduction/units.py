"""Systems in units so large or small that squares leave the range of doubles: brought near one, and back, exactly.

With s = τ s' the system C (sE − A)⁻¹B is C (s'E − A/τ)⁻¹(B/τ); B and C take factors of their own, all powers of 2.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.balancing import Matrices
from ltinet.reduction.outcome import Outcome

_WIDE = 2.0**60  # sizes between the inverse of this and this are no trouble


@dataclass(frozen=True)
class Units:
    """A = time·A', B = time·inputs·B', C = outputs·C'; G = inputs·outputs·G'."""

    time: float
    inputs: float
    outputs: float

    @property
    def gain(self) -> float:
        """By how much G is larger."""
        return self.inputs * self.outputs

    def applied(self, system: SystemMatrices) -> SystemMatrices:
        """The system in these units."""
        pencil = system.sparse
        given: tuple[Any, Any, Any]
        if pencil is not None:
            given = (pencil.mass, pencil.state, pencil.B)
        else:
            given = (None, system.A, system.B) if system.descriptor is None else system.descriptor
        E, A, B = given
        C, D = system.C / self.outputs, system.D / self.outputs / self.inputs
        return SystemMatrices(A * (1.0 / self.time), B / self.time / self.inputs, C, D, E)

    def undone(self, found: Outcome) -> Outcome:
        """What was found, in the units that were given; bounds are rounded up where they leave the normal numbers."""
        A, B, C, D = found.matrices
        mean, gain = found.mean, self.gain
        matrices = Matrices(
            A * self.time, B * self.time * self.inputs, C * self.outputs, D * self.outputs * self.inputs
        )
        up = np.finfo(np.float64).tiny
        return replace(
            found,
            matrices=matrices,
            error_bound=None if found.error_bound is None else found.error_bound * gain + up,
            estimate=found.estimate * gain,
            mean=lambda: mean() * gain * math.sqrt(self.time) + up,
            gain=found.gain * gain,
            hankel_values=None if found.hankel_values is None else found.hankel_values * gain,
            parts={name: value * gain for name, value in found.parts.items()},
        )


def units_of(system: SystemMatrices) -> Units | None:
    """Units in which A, B and C are near one; None where they are not far from it, as hardly any system is."""
    pencil = system.sparse
    if pencil is not None:
        A, B, E = abs(pencil.state).max() if pencil.n_nonzeros else 0.0, pencil.B, pencil.mass
        mass = float(abs(E).max()) if E is not None and E.nnz else 1.0
    else:
        A, B, mass = float(np.abs(system.A).max(initial=0.0)), system.B, 1.0
    time = _power(float(A) / mass)
    inputs, outputs = _power(float(np.abs(B).max(initial=0.0)) / time), _power(float(np.abs(system.C).max(initial=0.0)))
    if all(1.0 / _WIDE < own < _WIDE for own in (time, inputs, outputs)):
        return None
    return Units(time, inputs, outputs)


def _power(size: float) -> float:
    """The power of two nearest to a size, or 1 for none."""
    return 2.0 ** round(math.log2(size)) if 0.0 < size < math.inf else 1.0
