"""Certificates: a priori error bounds of the exact engine for all inputs with |u| ≤ 1 and x(0) = 0.

States are at most Z = ∫ |e^{Fs}| |G| ds over the horizon, in the coordinates of the engine. From there follow an estimate
of the rounding of one step, ΔP Z + ΔΓ + γ (|P| Z + |Γ|) with the measured errors of P and Γ and γ = N u for sums of N
terms, and the defect ΔF Z + ΔG of the decomposition, integrated over a step. Both are propagated by Σ |C P^j|. Sums in
blocks of time are rounded otherwise, but have no more terms: rounding is an estimate in this respect, and in the sizes
|e^{Fs}| of coupled blocks, which are evaluated at some lags.
"""

import math
from dataclasses import replace

import numpy as np

from ltinet._util.double_double import DoubleDouble
from ltinet._util.floating_point import EPS, Array
from ltinet._util.phi_functions import phi1
from ltinet.error_bounds.double_double_exponentials import double_double_steps
from ltinet.error_bounds.exponential_sizes import exponential_sizes
from ltinet.error_bounds.gains import layer_error_constant, theorem2_constant
from ltinet.error_bounds.output_bounds import Certificate
from ltinet.error_bounds.trajectory_defect import N_CELLS, lag_sums, weighted_sizes
from ltinet.errors import SimulationError
from ltinet.simulation.context import Realization, SimulationContext
from ltinet.simulation.coordinate_selection import select_coordinates
from ltinet.simulation.options import validate_positive
from ltinet.simulation.propagators import matrix_steps
from ltinet.simulation.recurrence import scan_states
from ltinet.simulation.system_arrays import EngineArrays

_SCALAR_ROUNDINGS = 8.0  # eps: rounding of the exponential, and of the input weights, of a scalar mode


def network_certificate(context: SimulationContext, *, horizon: float, n_steps: float) -> Certificate:
    """Return the certificate for straight lines and held inputs: the larger errors, and the bound on outputs.

    Raises
    ------
    SimulationError
        The horizon is not positive and finite, or the number of steps is not a positive integer.
    """
    horizon, steps = validate_positive(horizon, "horizon"), validate_positive(n_steps, "n_steps")
    if steps != int(steps):
        raise SimulationError(f"n_steps must be an integer of at least 1, got {n_steps}.")
    linear, held = (_certify(context, horizon=horizon, n_steps=int(steps), linear=hold) for hold in (True, False))
    reduction = None
    if context.reduction_error is not None:  # |u| ≤ 1 has at most the energy m·horizon
        largest = context.reduction_error * math.sqrt(context.system.n_inputs * horizon)
        reduction = np.full(context.system.n_outputs, largest)
    return replace(
        linear,
        rounding=np.maximum(linear.rounding, held.rounding),
        decomposition=np.maximum(linear.decomposition, held.decomposition),
        reduction=reduction,
    )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _certify(context: SimulationContext, *, horizon: float, n_steps: int, linear: bool) -> Certificate:
    """Return the certificate for lines or held inputs."""
    step = horizon / n_steps
    realization = select_coordinates(context, is_even=True, longest_step=step)
    arrays, system = realization.arrays, realization.system
    C, D, entering = np.abs(arrays.C), np.abs(system.D), np.abs(arrays.G).sum(axis=1)
    states = driven_sizes(arrays, entering, horizon)
    P, Gamma, shift = _step_matrices(realization, step, linear=linear)
    sums = lag_sums(arrays.C, P, length=-(-n_steps // N_CELLS), count=min(n_steps, N_CELLS))
    per_step = 0.5 * (sums.sum(axis=0) + sums[-1])  # every lag is in two of them, those of the last cell in one
    # Rounding.
    n, m = system.n_states, system.n_inputs
    shifted, rounding_of_sum = states + np.abs(shift).sum(axis=1), 0.5 * (np.count_nonzero(P, axis=1) + m + 4) * EPS
    local = _propagator_errors(realization, states, step, linear=linear)
    local += rounding_of_sum * (weighted_sizes(shifted[None], np.abs(P))[0] + np.abs(Gamma).sum(axis=1) + shifted)
    of_outputs = weighted_sizes((states + shifted)[None], C)[0] + D.sum(axis=1)
    rounding = weighted_sizes(local[None], per_step)[0] + (n + m + 4) * EPS * of_outputs
    convolution = realization.grids.convolution(step, linear=linear, n_times=n_steps + 1)
    if convolution is not None:
        rounding += convolution.rounding(np.full(m, math.sqrt(n_steps + 1)))
    # Decomposition: errors that follow from the defect have a defect of their own, at most q times as large.
    residuals = arrays.residuals
    defect = weighted_sizes(states[None], residuals.per_state)[0] + residuals.per_input.sum(axis=1)
    next_defect = weighted_sizes(driven_sizes(arrays, defect, horizon)[None], residuals.per_state)[0]
    q = float(np.divide(next_defect, defect, out=np.zeros_like(defect), where=next_defect > 0.0).max(initial=0.0))
    amplified = driven_sizes(arrays, defect, step) / (1.0 - q) if q < 1.0 else np.full_like(defect, np.inf)
    decomposition = weighted_sizes(amplified[None], per_step)[0] + weighted_sizes(states[None], residuals.in_output)[0]
    if residuals.part == "rounding":
        rounding, decomposition = rounding + decomposition, np.zeros_like(decomposition)
    gains = context.network_arrays.gains(horizon)
    return Certificate(
        horizon=horizon,
        n_steps=n_steps,
        rounding=_nan_to_infinity(rounding),
        decomposition=_nan_to_infinity(decomposition),
        gain=_nan_to_infinity(weighted_sizes(states[None], C)[0] + D.sum(axis=1)),
        paper_constants=tuple(theorem2_constant(layer) for layer in gains),
        layer_constants=tuple(layer_error_constant(layer) for layer in gains),
    )


def driven_sizes(arrays: EngineArrays, entering: Array, duration: float) -> Array:
    """Return bounds on packed states after inputs that enter with these sizes at most, ∫ |e^{Fs}| ds times them."""
    modes = arrays.modes(entering)
    scalars = slice(0, arrays.n_scalars)
    sizes = np.empty_like(modes)
    sizes[scalars] = duration * phi1(arrays.growth * duration) * modes[scalars]
    for states, block in zip(arrays.mode_slices, arrays.system.blocks, strict=True):
        sizes[states] = weighted_sizes(modes[None, states], exponential_sizes(block.F, duration).integral)[0]
    return arrays.packed(sizes)


def _step_matrices(realization: Realization, step: float, *, linear: bool) -> tuple[Array, Array, Array]:
    """Return P, Γ and G₁ of the engine as arrays."""
    n = realization.system.n_states
    steps = realization.grids.single(step, linear=linear)
    after = np.zeros((n, 1, n))
    scan_states(after, np.eye(n), steps.decay)
    return after[:, 0].T, steps.from_inputs.T, steps.step.shift


def _propagator_errors(realization: Realization, states: Array, step: float, *, linear: bool) -> Array:
    """Return the effect of errors of P, G₀ and G₁ on packed states in a step, measured for coupled blocks."""
    arrays, system = realization.arrays, realization.system
    sizes = np.abs(arrays.G).sum(axis=1)
    errors = _SCALAR_ROUNDINGS * EPS * (states + driven_sizes(arrays, sizes, step))
    for index, block in zip(system.block_slices, system.blocks, strict=True):
        computed = matrix_steps(block.F, block.G, np.array([step]), linear=linear)
        none = np.zeros_like
        pairs = DoubleDouble(block.F, none(block.F)), DoubleDouble(block.G, none(block.G))
        exact = double_double_steps(*pairs, step, 0, linear=linear)[0]
        difference = np.abs((np.hstack([part[0] for part in computed]) - exact.high) - exact.low) + exact.error
        n = len(block.F)
        errors[index] += weighted_sizes(states[None, index], difference[:, :n])[0] + difference[:, n:].sum(axis=1)
    return errors


def _nan_to_infinity(values: Array) -> Array:
    return np.where(np.isnan(values), np.inf, values)
