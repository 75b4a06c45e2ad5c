"""Figures for files: drawn as any other, without a window."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ltinet.plotting.canvas import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_of(draw: Callable[[], Any]) -> "Figure":
    """The figure of the Axes that `draw` returns, at the size that the drawing asks for; no window opens."""
    require_matplotlib()
    from matplotlib import pyplot

    with pyplot.ioff():
        axes = np.asarray(draw()).flat[0]
    figure: Figure = axes.figure
    pyplot.close(figure)
    return figure
