"""How much of what modes could bring from inputs to an output comes there: T is right to some eps of all of it.

Where states know little of each other, or modes nearly cancel, an output is a small part of what the norms of T allow,
and has as many digits less.
"""

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.solve.exact.engine_arrays import EngineArrays

_TIMES = 24  # at which responses are looked at, from one step to all of them


def least_share_seen(arrays: EngineArrays, step: float, duration: float) -> float:
    """The share of the output that sees least, for an engine whose modes are scalars.

    Responses to impulses are compared with the largest that norms allow, in units that make the rows of T one, so that
    those of the user do not matter.
    """
    if arrays.basis is None:
        return 1.0
    X, X_inv = arrays.basis
    units = np.linalg.norm(X, axis=1)
    X, X_inv = X / units[:, None], X_inv * units
    turned = _responses(arrays, np.geomspace(step, max(duration, step), _TIMES))
    most = arrays.modes(np.linalg.norm(X, axis=0)) * arrays.modes(np.linalg.norm(X_inv, axis=1))
    possible = np.linalg.norm(arrays.C @ X_inv, axis=1) * np.linalg.norm(X @ arrays.G, axis=0).max(initial=0.0)
    possible *= np.max(np.abs(turned) * most, initial=0.0)
    C, G = _complex_weights(arrays)
    seen = np.abs(np.einsum("ik,tk,kj->tij", C, turned, G).real).max(axis=(0, 2), initial=0.0)
    return float(np.min(seen[possible > 0.0] / possible[possible > 0.0], initial=1.0))


def _responses(arrays: EngineArrays, times: Array) -> Complex:
    """e^{λt} beside the mode that grows most, `(times, modes)`."""
    growth = max(0.0, np.max(arrays.growth, initial=0.0))
    return np.asarray(np.exp(np.multiply.outer(times, arrays.system.rates - growth)))


def _complex_weights(arrays: EngineArrays) -> tuple[Complex, Complex]:
    """C and G by modes, of which the real part of C e^{λt} G counts: packed states are the parts of those of pairs."""
    pairs = slice(0, 2 * arrays.n_pairs)
    C = np.hstack([arrays.C[:, pairs][:, ::2] - 1j * arrays.C[:, pairs][:, 1::2], arrays.C[:, pairs.stop :]])
    G = np.vstack([arrays.G[pairs][::2] + 1j * arrays.G[pairs][1::2], arrays.G[pairs.stop :]])
    return C, G
