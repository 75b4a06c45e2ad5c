"""What rounding does to an exact simulation: every step commits a little, and gains tell what becomes of it."""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.layer_errors import LayerEquations, LayerGains
from ltinet.tolerances import EPS

_UNDERDAMPED = 1e-3  # ω/√k below which a pair is not split into two complex numbers


class LayerRounding(NamedTuple):
    """How large the states of a layer can be in every cell of time, and by how much they can be off."""

    size: Array
    error: Array


def bound_rounding(
    gains: LayerGains, *, largest_input: Array, start: Array, step: float, cells: Array
) -> LayerRounding:
    """Bound the rounding errors of exact steps of length `step`, for inputs up to `largest_input` `(m,)`.

    A step forms e^{Fh} z + … from sums of n + m products, and errs by that many roundings of what it adds: the state,
    and what enters in the time of the step. All states of a layer mix in it, so that rounding is relative to the
    largest of them. No input is needed, only its size: the states are bounded by gains.
    """
    equations = gains.equations
    n_states, n_inputs = equations.G.shape
    shape = (len(cells) - 1, n_states)
    entering = np.abs(equations.G) @ largest_input
    still = np.abs(equations.F) @ np.abs(start)  # z = z(0) + w, and w' = F w + F z(0) + G u starts at zero
    size = np.abs(start) + gains.propagate_in_time(np.broadcast_to(entering + still, shape), cells=cells)
    mixed = _mixed(equations, size)
    share = (n_states + n_inputs + 8) * EPS
    source = share * (mixed / step + mixed @ np.abs(equations.F).T + entering)
    return LayerRounding(size, gains.propagate_in_time(source, cells=cells) + share * mixed)


def _mixed(equations: LayerEquations, size: Array) -> Array:
    """To what rounding in each state is relative: the largest state of the layer, or the modulus of a single pair.

    A pair a ± iω steps as one complex number ξ − i (ξ̇ − a ξ)/ω.
    """
    F = equations.F
    if len(equations.places) == 1 and len(F) == 2:
        a, stiffness = 0.5 * float(F[1, 1]), -float(F[1, 0])
        if stiffness - a * a > _UNDERDAMPED**2 * stiffness > 0.0:
            omega = np.sqrt(stiffness - a * a)
            modulus = size[:, :1] + (size[:, 1:] + abs(a) * size[:, :1]) / omega
            return np.hstack([modulus, np.sqrt(stiffness) * modulus])
    return np.repeat(np.max(size, axis=1, initial=0.0, keepdims=True), len(F), axis=1)
