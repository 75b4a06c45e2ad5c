"""φ-functions of a matrix whose step is short, right relative to the sizes of their terms, entry by entry.

SciPy's exponential is right relative to the norm of the matrix: where states have units that differ by decades, entries
that are small beside others keep no digit. The Taylor series Σ M^k/k! has an error of a few units of Σ|M|^k/k! in every
entry, which no change of units of the states makes better or worse. It is short where |M| is at most one in units that
suit it, and cancels little there.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.tolerances import EPS

_SHORT = 1.0  # size of Fh in the best units: e^|Fh| is at most e there, so that little cancels
_FEW = 16  # states: in more of them an entry is a sum of so many terms that few are tiny beside others
_MOST_TERMS = _FEW + 20  # along a chain of so many states, and then as for a norm of one


class PhiFunctions(NamedTuple):
    """e^M, φ₁(M) and φ₂(M) of matrices along the first axis."""

    exponential: Array
    first: Array
    second: Array


def size_in_best_units(F: Array) -> float:
    """The norm of F in units of the states that make it smallest: the largest eigenvalue of |F| (Perron 1907)."""
    return float(np.linalg.eigvals(np.abs(F)).real.max(initial=0.0)) if F.size else 0.0


def is_short(F: Array, longest: float, *, size: float | None = None) -> bool:
    """Whether steps up to this length are short for F: small enough that a series costs little, and of few terms.

    Its size, where it is known, saves time.
    """
    return len(F) <= _FEW and (size_in_best_units(F) if size is None else size) * longest <= _SHORT


def phi_functions_of_short(F: Array, h: Array) -> PhiFunctions:
    """φ-functions of Fh for short lengths h (first axis): φ₂ by its series, then φ₁ = 1 + Fh φ₂ and e^{Fh} likewise."""
    M, identity = F * h[:, None, None], np.eye(len(F))
    second = np.broadcast_to(identity, M.shape)
    for power in range(_n_terms(np.abs(F) * h.max(initial=0.0)), 0, -1):  # 2 Σ M^k/(k+2)!, innermost factor first
        second = identity + M @ second / (power + 2)
    second = 0.5 * second
    first = identity + M @ second
    return PhiFunctions(identity + M @ first, first, second)


def _n_terms(sizes: Array) -> int:
    """After how many terms all that follow are dust in every entry of 2 Σ |M|^k/(k+2)!.

    An entry may begin late: it takes k factors for a state to act on one that is k connections away. Once a term is
    dust beside the sum in all entries, so are those after it: each is one before it, times |M| as the sum is.
    """
    term = total = np.eye(len(sizes))
    for count in range(1, _MOST_TERMS):
        term = term @ sizes / (count + 2)
        if count % 4 == 0 and np.all(term <= EPS / 16.0 * total):
            return count
        total = total + term
    return _MOST_TERMS
