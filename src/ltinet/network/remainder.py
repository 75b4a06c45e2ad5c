"""What a decomposition leaves of a system, to all digits: with x = X z and z' = F z + G u, y = C z.

Added to F, G and C it gives the system itself in these coordinates. Entries below the triangles of F are then of the
size of roundings and known to digits of their own, which is what outputs of long chains hang on.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.residual import commutator, descriptor_commutator, descriptor_difference, difference
from ltinet.model.descriptor import eliminate_descriptor
from ltinet.model.system_matrices import SystemMatrices


class Remainder(NamedTuple):
    """E⁻¹(A X − E X F), E⁻¹(B − E X G) and C X − C_z."""

    of_states: Array
    of_inputs: Array
    of_outputs: Array


def remainder(origin: SystemMatrices, X: Array, *, F: Array, G: Array, C: Array) -> Remainder:
    """Of a system in some coordinates."""
    of_outputs = -difference(C, origin.C, X)
    if origin.descriptor is None:
        return Remainder(commutator(origin.A, X, F), difference(origin.B, X, G), of_outputs)
    E, A, B = origin.descriptor
    both = np.hstack([descriptor_commutator(A, E, X, F), descriptor_difference(B, E, X, G)])
    of_states, of_inputs = np.split(eliminate_descriptor(E, both), [len(F)], axis=1)
    return Remainder(of_states, of_inputs, of_outputs)
