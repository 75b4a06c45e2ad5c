"""Choice of the coordinates in which a system is stepped: the user's for few states, block coordinates for many.

Block coordinates make a step O(n) instead of O(n²), but x = T z mixes states: every state may have an error of up to
cond(T) roundings of the largest state, so that small states lose digits. Blocks are therefore used where n² is
expensive:

* at evenly spaced samples above `FEW_STATES` states. With blocks of time the n × n product is needed only once every K
  samples, so that its cost is negligible for fewer states.
* at unevenly spaced samples above `FEW_STATES_NONUNIFORM` states, because every step has an exponential of its own.

Above these numbers "auto" uses blocks only if they represent the system: if T F T⁻¹ differs from A by at most
`LARGEST_BACKWARD_ERROR` in balanced units. It differs by more where T is ill-conditioned, or where couplings were
below the rounding of larger entries. Below these numbers blocks are used only for steps so long that the exponential
of A h is not accurate enough (`LONGEST_STEP`).
"""

from typing import Literal, get_args

from ltinet.errors import SimulationError
from ltinet.simulation.context import Realization, SimulationContext

# MERGED ltinet.simulation.coordinate_selection
# Choice of the coordinates in which a system is stepped: the user's for few states, block coordinates for many.
#
# Block coordinates make a step O(n) instead of O(n²), but x = T z mixes states: every state may have an error of up to
# cond(T) roundings of the largest state, so that small states lose digits. So blocks are taken where n² is expensive:
#
# * at evenly spaced samples above `FEW_STATES` states. With blocks of time the n × n product is needed only once every K
#   samples, so that its cost is negligible for fewer states.
# * at unevenly spaced samples above `FEW_STATES_NONUNIFORM` states, because every step has an exponential of its own.
#
# Above these numbers "auto" takes blocks only if cond(T) in the user's units is at most `LARGEST_CONDITION`, so that they
# cost at most four digits. Below these numbers blocks are taken only for steps so long that the exponential of A h is not
# accurate enough (`LONGEST_STEP`).

CoordinateChoice = Literal["auto", "original", "blocks"]

# Up to 120 states (cdplayer) a second run of 10,000 even steps takes as long in original coordinates as in blocks,
# within a fifth, and the first run of a system is faster, since no block form is computed.
FEW_STATES = 128
# Up to this size exponentials of short steps use a Taylor series that is accurate in every entry, and 100,000 uneven
# steps take at most twice as long as in blocks.
FEW_STATES_NONUNIFORM = 16
# Largest ‖A‖h. The error of slow states grows to ‖A‖h · 1e-32 in double-double arithmetic; at 1e21 it reaches 1e-11.
LONGEST_STEP = 1e21
# The default limit of `construct`. In ten hostile seeds all five runs in blocks that lost more than 1e-10 of a peak had a
# cond(T) of 1e4 or more: the balanced units of their blocks hid states that are small in the user's units.
LARGEST_CONDITION = 1e4


def select_coordinates(
    in_blocks: SimulationContext, wanted: CoordinateChoice = "auto", *, is_even: bool, longest_step: float
) -> Realization:
    """Return the realization to step: the network in its blocks, or its system in original coordinates.

    Raises:
        SimulationError: original coordinates are requested but not available.
    """
    if wanted not in get_args(CoordinateChoice):
        raise SimulationError(f"coordinates must be 'auto', 'original' or 'blocks', got {wanted!r}")
    if wanted == "blocks":
        return in_blocks
    original = in_blocks.original
    if wanted == "original":
        if original is None:
            raise SimulationError(
                'coordinates="original" needs the matrices of the system as arrays: this network was made without a '
                'system, or from a large sparse one; omit the argument or pass coordinates="blocks"'
            )
        return original
    if original is None:
        return in_blocks
    if in_blocks.n_states <= (FEW_STATES if is_even else FEW_STATES_NONUNIFORM):
        return original if original.norm * longest_step <= LONGEST_STEP else in_blocks
    form = in_blocks.form  # without one the network's matrices are those of the system
    return in_blocks if form is None or form.condition_raw <= LARGEST_CONDITION else original
