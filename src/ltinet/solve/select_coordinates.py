"""In which coordinates a system is stepped: those of its user where states are few, those of its blocks where many.

Block coordinates make a step O(n) instead of O(n²), and their T may lose digits that the user's own matrix keeps, up to
log₁₀ cond(T) of the largest state. So blocks are taken where n² is expensive:

* at evenly spaced samples from `FEW_STATES` states on. In blocks of time a step of all states is one product every K
  samples, which below costs nothing.
* at unevenly spaced samples from `FEW_AT_UNEVEN_TIMES` states on, since every step has an exponential of its own.

Everywhere they are taken only if they represent the system: if the network's own matrix T F T⁻¹ differs from A by at
most `LARGEST_BACKWARD_ERROR` in balanced units. It may differ by rounding in an ill-conditioned T, or because couplings
were below the rounding of larger entries. Nor can a step of all states be so long that its exponential is not known.
"""

from typing import Literal, get_args

from ltinet.errors import SimulationError
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.realisation import Realisation

CoordinateChoice = Literal["auto", "original", "blocks"]

# Up to 120 states (cdplayer) later runs of 10,000 even steps are as fast in original coordinates as in blocks, within a
# tenth, and first results are faster, since no network is constructed: `python -m benchmarks --only first_result`.
FEW_STATES = 128
FEW_AT_UNEVEN_TIMES = 16  # states whose exponentials of short steps are series, right in every entry
# Of ‖A‖h, to which exponentials in pairs of doubles keep slow states: 1e-11 over their rounding, 1e-32.
LONGEST_STEP = 1e21
LARGEST_BACKWARD_ERROR = 1e-11  # a tenth of what outputs may be off by


def select_coordinates(
    prepared: PreparedNetwork, wanted: CoordinateChoice = "auto", *, is_even: bool, longest_step: float
) -> Realisation:
    """The realisation in which a run is stepped.

    Raises:
        SimulationError: original coordinates are wanted and not known.
    """
    if wanted not in get_args(CoordinateChoice):
        raise SimulationError(f"coordinates is {wanted!r}; give 'auto', 'original' or 'blocks'")
    original = prepared.original if wanted != "blocks" else None
    if wanted == "original" and original is None:
        raise SimulationError(
            'coordinates="original" needs the matrices of the system, and this network has none or too many states; '
            'leave it out or give coordinates="blocks"'
        )
    if original is None or wanted == "original":
        return original or prepared
    if prepared.n_states <= (FEW_STATES if is_even else FEW_AT_UNEVEN_TIMES):
        return original if original.norm * longest_step <= LONGEST_STEP else prepared
    form = prepared.form
    represents = form is None or form.backward_error <= LARGEST_BACKWARD_ERROR
    return prepared if represents else original
