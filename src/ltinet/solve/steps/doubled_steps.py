"""φ-functions of few coupled states over a long step, from those of a short one, doubled until it is long.

SciPy divides by a polynomial. Where elimination changes rows, entries that are small beside others (what states do that
are hardly coupled to the rest) come out as rounding of large ones. Here nothing is divided: a short step is right entry
by entry (`short_steps`), and products and sums of such matrices leave small entries small,

    e^{2M} = e^M e^M    φ₁(2M) = (φ₁ + e^M φ₁)/2    φ₂(2M) = (φ₁ φ₁ + 2 φ₂)/4    with φ₁ and φ₂ of M.
"""

import numpy as np

from ltinet.arrays import Array
from ltinet.solve.steps.short_steps import PhiFunctions, phi_functions_of_short, size_in_best_units

_FEW = 32  # states: of more, the products take longer than SciPy's division
_ENDS = 1e30  # size of a step: rounding is all that so many doublings leave


def is_doubled(F: Array, longest: float) -> bool:
    """Whether long steps of F are made in this way: not of triangular matrices, which have an exact diagonal."""
    if len(F) > _FEW or not (np.triu(F, 1).any() and np.tril(F, -1).any()):
        return False
    return size_in_best_units(F) * longest < _ENDS


def phi_functions_by_doubling(F: Array, h: Array) -> PhiFunctions:
    """φ-functions of Fh for lengths h (first axis), each doubled as often as it asks for."""
    counts = np.ceil(np.log2(np.maximum(size_in_best_units(F) * h, 1.0))).astype(np.intp)
    found = PhiFunctions(*(np.empty((len(h), *F.shape)) for _ in PhiFunctions._fields))
    for count in np.unique(counts):
        own = counts == count
        phi = phi_functions_of_short(F, np.ldexp(h[own], -count))
        with np.errstate(over="ignore", invalid="ignore"):  # who asks sees what is no number
            for _ in range(count):
                phi = _doubled(phi)
        for part, value in zip(found, phi, strict=True):
            part[own] = value
    return found


def _doubled(phi: PhiFunctions) -> PhiFunctions:
    """The functions of twice the matrix."""
    P, first, second = phi
    return PhiFunctions(P @ P, 0.5 * (first + P @ first), 0.25 * (first @ first + 2.0 * second))
