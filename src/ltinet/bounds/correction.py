"""The error of dense outputs, followed through the equations of their layer with its sign.

A dense output ẑ has the defect ẑ' − F ẑ − G u, and its error ε = z − ẑ obeys ε' = F ε − defect. The equation is solved
by collocation on the pieces of the dense outputs, in the Schur basis of F, in which it is one scalar equation after the
other. What this solution misses is bounded elsewhere, by gains: it needs few digits to be of use.
"""

import numpy as np
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.bounds.collocation import PieceValues, Rule


def integrated_defect(F: Array, forcing: PieceValues, dense: PieceValues, *, lengths: Array, rule: Rule) -> Array:
    """ẑ(t) − ẑ(start) − ∫(F ẑ + G u) at the nodes of every piece, `(N, q, n)`; `forcing` is G u.

    The integral of the defect and not the defect: differentiating ẑ would raise its rounding errors by 1/length.
    """
    slopes = dense.nodes @ F.T + forcing.nodes
    return np.asarray(dense.nodes - dense.start[:, None] - lengths[:, None, None] * (rule.integrals @ slopes))


def follow_error(F: Array, defect: Array, seams: Array, *, lengths: Array, rule: Rule) -> PieceValues:
    """Solve ε = ε(start) + ∫F ε − defect along all pieces; `seams` `(N, n)` is added to ε at the start of each."""
    T, U = linalg.schur(F, output="complex")
    own_defect, own_seams = defect @ U.conj(), seams @ U.conj()
    starts = np.zeros(own_seams.shape, dtype=np.complex128)
    nodes = np.zeros(own_defect.shape, dtype=np.complex128)
    integrals = rule.integrals
    for i in range(len(F) - 1, -1, -1):
        entering = nodes[:, :, i + 1 :] @ T[i, i + 1 :]
        right = lengths[:, None] * (entering @ integrals.T) - own_defect[:, :, i]
        damping = 1.0 / (1.0 - lengths[:, None] * T[i, i] * rule.eigenvalues)
        forced = ((right @ rule.inverse_eigenvectors.T) * damping) @ rule.eigenvectors.T
        free = (np.sum(rule.inverse_eigenvectors, axis=1) * damping) @ rule.eigenvectors.T
        starts[:, i] = _scan(free[:, -1], forced[:, -1], own_seams[:, i])
        nodes[:, :, i] = forced + starts[:, i, None] * free
    return PieceValues(np.asarray((starts @ U.T).real), np.asarray((nodes @ U.T).real))


def _scan(factors: Complex, added: Complex, seams: Complex) -> Complex:
    """s_0 = seams_0, s_{n+1} = factors_n s_n + added_n + seams_{n+1}: a plain loop, scalars being fastest there."""
    state, states = 0j, []
    for factor, rest, seam in zip(
        np.append(0.0, factors[:-1]).tolist(), np.append(0.0, added[:-1]).tolist(), seams.tolist(), strict=True
    ):
        state = factor * state + rest + seam
        states.append(state)
    return np.array(states, dtype=np.complex128)
