"""What is wrong with the network itself: the system in its coordinates is not quite its own.

With x = X z the system x' = A x + B u, y = C x + D u becomes z' = (F + ΔF) z + (G + ΔG) u, y = (Φ + ΔΦ) z + …, where
ΔF = X⁻¹(A X − X F), ΔG = X⁻¹(B − X G) and ΔΦ = C X − Φ would be zero without rounding in the decomposition.
"""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.layer_errors import LayerGains
from ltinet.bounds.residual import commutator, difference
from ltinet.tolerances import EPS


@dataclass(frozen=True, eq=False)
class Mismatch:
    """Bounds on |ΔF|, |ΔG| and |ΔΦ|, and by which share of z a state x can be off in these coordinates."""

    F: Array
    G: Array
    Phi: Array
    start: Array
    """(n × n): rounding of X⁻¹ x per unit of |z|."""


def measure_mismatch(
    A: Array, X: Array, X_inv: Array, *, F: Array, G: Array, Phi: Array, B: Array | None, C: Array | None
) -> Mismatch:
    """Measure what the decomposition left, in extended precision; where B and C are not known, rounding is assumed.

    Cost O(n³).
    """
    n = len(A)
    amplified = (n + 4) * EPS * (np.abs(X_inv) @ np.abs(X))  # X_inv X = I up to this, and so is all that it multiplies
    in_F = np.abs(X_inv @ commutator(A, X, F))
    in_G = amplified @ np.abs(G) if B is None else np.abs(X_inv @ difference(B, X, G))
    in_Phi = np.abs(Phi) @ amplified if C is None else np.abs(difference(Phi, C, X))
    return Mismatch(in_F + amplified @ in_F, in_G + amplified @ in_G, in_Phi, amplified)


def bound_decomposition(
    layers: tuple[LayerGains, ...], mismatch: Mismatch, *, size: Array, largest_input: Array, start: Array,
    cells: Array,
) -> Array:  # fmt: skip
    """Bounds `(cells, n)` on what the mismatch does to the states, which are up to `size` `(cells, n)` large.

    ε' = F ε + ΔF (z + ε) + ΔG u: a bound b without the ε on the right and a share r with K b ≤ r b, where K stands for
    the way of ΔF ε through the layers, give ε ≤ b/(1 − r).
    """
    shift = mismatch.start @ np.abs(start)
    F_shift = np.concatenate([np.zeros(0), *(np.abs(own.equations.F) @ part for own, part in _split(layers, shift))])
    source = size @ mismatch.F.T + mismatch.G @ largest_input + F_shift
    first = shift + _through(layers, source, cells=cells)
    second = _through(layers, first @ mismatch.F.T, cells=cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = float(np.max(np.where(second > 0.0, second / first, 0.0), initial=0.0))
    return first / (1.0 - share) if share < 1.0 else np.full(first.shape, np.inf)


def _through(layers: tuple[LayerGains, ...], source: Array, *, cells: Array) -> Array:
    parts = [own.propagate_in_time(part, cells=cells) for own, part in _split(layers, source)]
    return np.concatenate([source[..., :0], *parts], axis=-1)


def _split(layers: tuple[LayerGains, ...], values: Array) -> list[tuple[LayerGains, Array]]:
    """The values of each layer, from the last axis."""
    stops = np.cumsum([own.equations.n_states for own in layers]).tolist()
    return [(own, values[..., stop - own.equations.n_states : stop]) for own, stop in zip(layers, stops, strict=True)]
