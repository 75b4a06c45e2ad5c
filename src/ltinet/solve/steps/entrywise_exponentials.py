"""Exponentials of small matrices that keep the digits of small entries, where SciPy's are known to have lost them.

SciPy divides one polynomial by another. Where elimination changes rows, entries that are small beside others (what
states do that are hardly coupled to the rest) come out as rounding of large ones. A series of a short step that is
squared until it is long divides by nothing: products and sums leave small entries small. It is squared oftener, and
what that costs is known for every entry. An entry that differs by more is taken from it, any other is SciPy's.
"""

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.solve.steps.short_steps import phi_functions_of_short, size_in_best_units
from ltinet.tolerances import EPS

_FEW = 24  # rows, those of inputs included
_WEAK = 1e-6  # of what two states do on themselves: how much they do on each other and back, which has no units
_MOST = 64  # squarings: rounding is all that more of them leave


def keep_small_entries(found: Array, matrices: Array) -> Array:
    """SciPy's exponentials of matrices along the first axis, without the entries that are known to be wrong."""
    size = size_in_best_units(np.abs(matrices).max(axis=0, initial=0.0)) if matrices.shape[-1] <= _FEW else np.inf
    if not size < 2.0**_MOST or not _is_weakly_coupled(matrices, size):
        return found
    own, error = _squared(matrices)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(found - own) > 2.0 * error, own, found)


def _is_weakly_coupled(matrices: Array, size: float) -> bool:
    """Whether some states act on each other so weakly that rounding may hide it."""
    sizes = np.abs(matrices).max(axis=0, initial=0.0) / max(size, 1.0)
    reach = _short(sizes)
    on_itself = reach.diagonal()
    there_and_back = reach * reach.T / np.multiply.outer(on_itself, on_itself)
    return bool(np.any((there_and_back > 0.0) & (there_and_back < _WEAK)))


def _squared(matrices: Array) -> tuple[Array, Array]:
    """Exponentials by squaring a short one, and by how much each entry may be off."""
    counts = _squarings(matrices)
    short, n = np.ldexp(matrices, -counts[:, None, None]), matrices.shape[-1]
    P, reach = (np.array([_short(own) for own in stack]) for stack in (short, np.abs(short)))
    rounding = (n + 3) * EPS  # of a product and the sums beside it
    error = rounding * (reach + np.abs(short) @ reach)
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(int(counts.max(initial=0))):
            on = counts > level
            sizes = np.abs(P[on])
            error[on] = sizes @ error[on] + error[on] @ (sizes + error[on]) + rounding * (sizes @ sizes)
            P[on] = P[on] @ P[on]
    return P, error


def _short(M: Array) -> Array:
    """e^M, by its series."""
    return np.asarray(phi_functions_of_short(M, np.ones(1)).exponential[0])


def _squarings(matrices: Array) -> NDArray[np.intp]:
    """How often each is halved until its step is short."""
    sizes = np.array([size_in_best_units(own) for own in matrices])
    return np.asarray(np.ceil(np.log2(np.maximum(sizes, 1.0))), dtype=np.intp)
