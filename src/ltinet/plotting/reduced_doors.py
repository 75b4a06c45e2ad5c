"""The drawings of a reduction as its users call them: `result.plot.error(omega)`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.listing import listed_without
from ltinet.plotting.reduction import draw_hankel_values, draw_reduction_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class DrawnReduction:
    """What was found, as far as it is drawn; computed where a drawing asks for it."""

    errors: Callable[[ArrayLike], tuple[Array, Array]]
    frequencies: Callable[[], Array]
    bound: float | None
    estimate: float
    hankel_values: Array | None
    n_kept: int


@final
@dataclass(frozen=True)
class ReducedPlots:
    """Drawings of a reduction; they need matplotlib, take the Axes to draw on or make new ones, and return them."""

    found: DrawnReduction

    def error(self, omega: ArrayLike | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw ‖G − G_r‖ over frequency below ‖G‖, with the bound; without omega around the reduced system's poles.

        Both systems are solved at every frequency: a large one takes a factorisation for each.
        """
        omega = self.found.frequencies() if omega is None else omega
        errors, gains = self.found.errors(omega)
        return draw_reduction_error(omega, errors, gains, bound=self.found.bound, estimate=self.found.estimate, ax=ax)

    def hankel(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the Hankel singular values that were kept and those that were left out."""
        return draw_hankel_values(self.found.hankel_values, order=self.found.n_kept, ax=ax)

    def __dir__(self) -> list[str]:
        return listed_without(self, "found")
