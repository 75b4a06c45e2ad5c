"""Poles with the regions that hold the true ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import PlottingError
from ltinet.plotting.canvas import add_grid
from ltinet.plotting.colours import LINE_COLOURS
from ltinet.plotting.spectrum import draw_spectrum

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of the χ² distribution with one and with two degrees of freedom, the root of the value that 99 % stay below.
_REACH = {1: 2.5758293035489004, 2: 3.0348542587702927}
_LEAST = 0.5  # width of the picture, in units of the largest pole
_ANGLES = np.linspace(0.0, 2.0 * np.pi, 181)


def draw_uncertain_poles(
    poles: ArrayLike, regions: Sequence[tuple[complex, ArrayLike]], *, ax: "Axes | None" = None
) -> "Axes":
    """Draw poles and, around those with a covariance, the region that holds the true one at 99 %.

    A region is a pole and its covariance: `(1, 1)` of a real one, a line; `(2, 2)` of the real and the imaginary part
    of a pair, an ellipse around each of both.
    """
    values = np.atleast_1d(np.asarray(poles, dtype=np.complex128))
    axes = draw_spectrum([values], ax=ax)
    is_real = not np.any(values.imag)
    for pole, given in regions:
        covariance = np.asarray(given, dtype=np.float64)
        if covariance.shape not in ((1, 1), (2, 2)):
            raise PlottingError(f"the covariance of {pole:.4g} has shape {covariance.shape}; give (1, 1) or (2, 2)")
        if not np.all(np.isfinite(covariance)):
            continue
        if len(covariance) == 1:
            half = _REACH[1] * float(np.sqrt(max(covariance[0, 0], 0.0)))
            axes.plot([pole.real - half, pole.real + half], [0.0, 0.0], color=LINE_COLOURS[1], linewidth=3.0,
                      alpha=0.6, solid_capstyle="butt", zorder=3)  # fmt: skip
            continue
        outline = _ellipse(covariance)
        for side in (1.0, -1.0):
            axes.fill(pole.real + outline[0], side * (pole.imag + outline[1]), facecolor="none",
                      edgecolor=LINE_COLOURS[1], linewidth=1.6, zorder=3)  # fmt: skip
    if not is_real:
        add_grid(axes)
    _widen(axes, _LEAST * float(np.abs(values).max(initial=0.0)))
    axes.set_title("99 % regions" if regions else "how certain they are is not known", fontsize="medium", color="0.25")
    return axes


def _widen(axes: "Axes", least: float) -> None:
    """A single pole would fill the picture with its last digits."""
    low, high = axes.get_xlim()
    if axes.get_xscale() == "linear" and high - low < least:
        axes.set_xlim(0.5 * (low + high - least), 0.5 * (low + high + least))


def _ellipse(covariance: Array) -> Array:
    """The outline around 0, `(2, angles)`."""
    sizes, directions = np.linalg.eigh(covariance)
    circle = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
    return np.asarray(_REACH[2] * directions @ (np.sqrt(np.maximum(sizes, 0.0))[:, None] * circle))
