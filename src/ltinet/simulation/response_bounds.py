"""Bounds on impulse responses and on free responses of a network in block coordinates over a horizon."""

from typing import NamedTuple

import numpy as np

from ltinet._util.floating_point import Array
from ltinet._util.phi_functions import phi1
from ltinet.error_bounds.exponential_sizes import exponential_sizes
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.modal import unpack_states


class ResponseBounds(NamedTuple):
    """Bounds on sup |h_ij| and ∫|h_ij| over a run, `(p, k)` each."""

    peak: Array
    integral: Array


def input_vectors(context: SimulationContext) -> Array:
    """Return the packed states after an impulse of each input, `(m, n)`."""
    return context.system.packed_from_blocks(context.blocks.B.T)


def bound_impulse_responses(context: SimulationContext, horizon: float) -> ResponseBounds:
    """Return bounds on the impulse responses."""
    return bound_free_responses(context, input_vectors(context), horizon)


def bound_free_responses(context: SimulationContext, packed: Array, horizon: float) -> ResponseBounds:
    """Return bounds on sup |C e^{At} z| and ∫|C e^{At} z| over 0 ≤ t ≤ horizon for packed states z `(k, n)`.

    Scalar modes count with the modulus of their weight: |c e^{λt} v| ≤ |c||v| e^{Re λ t}. Coupled blocks count with
    the entries of |e^{Ft}| from `exponential_sizes`.
    """
    system = context.system
    v, parts = unpack_states(system, packed)
    modes, growth = np.abs(v), system.rates.real
    with np.errstate(over="ignore", invalid="ignore"):
        largest, total = np.exp(np.maximum(growth, 0.0) * horizon), horizon * phi1(growth * horizon)
        weights = np.abs(system.C)
        peak, integral = weights @ (modes * largest).T, weights @ (modes * total).T
        for block, part in zip(system.blocks, parts, strict=True):
            sizes, states = exponential_sizes(block.F, horizon), np.abs(part).T
            peak = peak + np.abs(block.C) @ (sizes.peak @ states)
            integral = integral + np.abs(block.C) @ (sizes.integral @ states)
    return ResponseBounds(np.nan_to_num(peak, nan=np.inf), np.nan_to_num(integral, nan=np.inf))
