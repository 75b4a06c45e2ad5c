"""Choice of the coordinates in which a system is stepped: the user's for few states, block coordinates for many.

Block coordinates make a step O(n) instead of O(n²), but x = T z mixes states: every state may have an error of up to
cond(T) roundings of the largest state, so that small states lose digits. Blocks are therefore used where n² is
expensive:

* at evenly spaced samples above `MAX_ORIGINAL_STATES` states. With blocks of time the n × n product is needed only once
  every K samples, so that its cost is negligible for fewer states.
* at unevenly spaced samples above `MAX_ORIGINAL_STATES_NONUNIFORM` states, because every step has an exponential of its
  own.

Above these numbers "auto" uses blocks only if cond(T) in the user's units is at most `MAX_CONDITION`, so that they cost
at most four digits. Below these numbers blocks are used only for steps so long that the exponential of A h is not
accurate enough (`MAX_STEP_NORM`).

In discrete time "auto" uses original coordinates. A step needs no exponential, and the small distances of eigenvalues from
one, on which slow states depend, are those of the user's matrix; in block coordinates they are rounded eigenvalues.
"""

from typing import Literal, get_args

from ltinet.errors import SimulationError
from ltinet.simulation.context import Realization, SimulationContext

CoordinateChoice = Literal["auto", "original", "blocks"]
_CHOICES = get_args(CoordinateChoice)

# Empirical: up to 120 states (cdplayer) a second run of 10,000 even steps takes as long in original coordinates as in
# blocks, within a fifth, and the first run of a system is faster, since no block form is computed.
MAX_ORIGINAL_STATES = 128
# Up to this size exponentials of short steps use a Taylor series that is accurate in every entry. Empirical: 100,000
# uneven steps take at most twice as long as in blocks.
MAX_ORIGINAL_STATES_NONUNIFORM = 16
# Largest ‖A‖h. The error of slow states grows to ‖A‖h · 1e-32 in double-double arithmetic; at 1e21 it reaches 1e-11.
MAX_STEP_NORM = 1e21
# In the units of the user, where `construct` limits cond(T) in balanced units. Empirical: in ten fuzz seeds all five
# runs in blocks that lost more than 1e-10 of a peak had a cond(T) of 1e4 or more, since balanced units of their blocks
# hid states that are small in the user's units.
MAX_CONDITION = 1e4


def select_coordinates(
    context: SimulationContext, coordinates: CoordinateChoice = "auto", *, is_even: bool, longest_step: float
) -> Realization:
    """Return the realization to step: the network in its blocks, or its system in original coordinates.

    Raises `SimulationError` if original coordinates are requested but not available.
    """
    if coordinates not in _CHOICES:
        raise SimulationError(f"coordinates must be 'auto', 'original' or 'blocks', got {coordinates!r}.")
    if coordinates == "blocks":
        return context
    original = context.original
    if coordinates == "original" and original is None:
        raise SimulationError(
            'coordinates="original" needs the matrices of the system as arrays, but this network was made without a '
            'system or from a large sparse one. Omit the argument or pass coordinates="blocks".'
        )
    if original is None:
        return context
    if coordinates == "original" or context.dt is not None:
        return original
    if original.norm * longest_step > MAX_STEP_NORM:
        return context
    if context.n_states <= (MAX_ORIGINAL_STATES if is_even else MAX_ORIGINAL_STATES_NONUNIFORM):
        return original
    form = context.form  # a network without a form represents its system without a transformation T
    return context if form is None or form.condition_raw <= MAX_CONDITION else original
