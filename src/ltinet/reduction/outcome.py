"""What a reduction found, whatever the way: the small system, the bound on its error, and what it cost."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ltinet.arrays import Array
from ltinet.model.second_order_matrices import SecondOrderMatrices
from ltinet.reduction.balancing import Matrices


@dataclass(frozen=True, eq=False)
class Outcome:
    """A reduced system G_r of G."""

    matrices: Matrices
    order: int
    way: str
    """In words: how it was reduced."""
    error_bound: float | None
    """Proven: ‖G(iω) − G_r(iω)‖ ≤ this for every ω. None where there is no proof."""
    estimate: float
    """What the largest ‖G(iω) − G_r(iω)‖ is thought to be."""
    mean: Callable[[], float]
    """Proven: ‖G − G_r‖ ≤ this in the H2 norm, so that |e(t)| ≤ this · ‖u‖ in L2(0, t); infinite where nothing is."""
    gain: float
    """The largest ‖G_r(iω)‖ of what decays, or a little less."""
    hankel_values: Array | None
    parts: dict[str, float] = field(default_factory=dict)
    """Where the bound comes from."""
    n_aside: int = 0
    remarks: tuple[str, ...] = ()
    second_order: SecondOrderMatrices | None = None
    """The reduced model as masses, dampers and springs, where it was given so."""
