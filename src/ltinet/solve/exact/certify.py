"""Bounds for the exact engine, from a network alone."""

import math

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.cell_propagation import Committed
from ltinet.bounds.certificate import Certificate, with_reduction, worse_of
from ltinet.bounds.layer_errors import layer_constant, paper_constant
from ltinet.errors import SimulationError
from ltinet.solve.arguments import positive
from ltinet.solve.exact.infinite_sizes import QUIETLY, or_infinite, weighted
from ltinet.solve.exact.run_errors import ExactRun
from ltinet.solve.exact.sizes import cells_of
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.select_coordinates import select_coordinates


def certificate_of(prepared: PreparedNetwork, *, horizon: float, n_steps: float) -> Certificate:
    """The same for a network as its users ask for it.

    Raises:
        SimulationError: the horizon or the number of steps cannot be used.
    """
    horizon, steps = positive(horizon, "horizon"), positive(n_steps, "n_steps")
    if steps != int(steps):
        raise SimulationError(f"n_steps is {n_steps}; give a whole number of steps")
    own = [certify(prepared, horizon=horizon, n_steps=int(steps), linear=linear) for linear in (True, False)]
    return with_reduction(worse_of(*own), prepared.reduced_error, prepared.system.n_inputs)


@QUIETLY
def certify(prepared: PreparedNetwork, *, horizon: float, n_steps: int, linear: bool = True) -> Certificate:
    """What the exact engine promises for |u| ≤ 1 and x(0) = 0, without running it."""
    step = horizon / n_steps
    realisation = select_coordinates(prepared, is_even=True, longest_step=step)
    arrays = realisation.arrays
    # No run is known here whose states could be looked at within steps: cells are not shorter than these.
    cells = cells_of(arrays, 0.0, horizon, n_samples=n_steps + 1, longest=0.0)
    per_cell = np.full(len(cells) - 1, n_steps / (len(cells) - 1))
    width = realisation.grids.from_any_state(step, linear=linear, n_times=n_steps + 1).width
    run = ExactRun(
        arrays,
        cells,
        h=step,
        width=width,
        n_samples=per_cell,
        n_steps=np.ceil(per_cell / width),
        n_blocks=np.ceil(per_cell / width),
        linear=linear,
        convolution=realisation.grids.from_rest(step, linear=linear, n_times=n_steps + 1),
    )
    states = _largest_states(run)
    ones = np.ones((len(states), arrays.system.n_inputs))
    sizes = run.sizes(states, ones, summed=ones * run.window, norms=ones[0] * math.sqrt(n_steps + 1))
    parts = run.parts(sizes, start=np.zeros(states.shape[1]), user_start=np.zeros(arrays.system.n_states))
    gains = prepared.network_arrays.gains(horizon)
    gain = weighted(states, arrays.mode_outputs) + np.sum(np.abs(arrays.system.D), axis=1)
    return Certificate(
        horizon=horizon,
        n_steps=n_steps,
        rounding=np.max(or_infinite(parts["rounding"]), axis=0),
        decomposition=np.max(or_infinite(parts["decomposition"]), axis=0),
        gain=np.max(or_infinite(gain), axis=0),
        paper_constants=tuple(paper_constant(own) for own in gains),
        layer_constants=tuple(layer_constant(own) for own in gains),
    )


def _largest_states(run: ExactRun) -> Array:
    """How large the states can be in every cell for inputs up to one, from rest."""
    n_cells = len(run.cells) - 1
    driven = np.tile(np.sum(run.arrays.mode_inputs, axis=1), (n_cells, 1))
    return run.states(Committed(np.zeros(driven.shape[1]), np.zeros_like(driven), run.n_steps, driven))
