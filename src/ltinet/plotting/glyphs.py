"""The paper's signs for neurons: a solid ball for first order, a yin-yang ball for second order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

RADIUS = 0.38
_EYE = 0.15  # radius of the dots, relative to the ball
_OUTLINE = "0.15"


def add_balls(
    axes: "Axes", places: Sequence[tuple[float, float]], *, second_order: Sequence[bool], colours: Sequence[str]
) -> None:
    """Draw one ball for each neuron at its place, in the units of the axes."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path

    ball, teardrop = Path.unit_circle(), _teardrop()
    lower_eye, upper_eye = _circle(0.0, -0.5, _EYE), _circle(0.0, 0.5, _EYE)
    discs, dark, dark_colours, light = [], [], [], []
    faces = []
    for (x, y), is_second, colour in zip(places, second_order, colours, strict=True):
        discs.append(_moved(ball, x, y))
        faces.append("white" if is_second else colour)
        if is_second:
            dark += [_moved(teardrop, x, y), _moved(upper_eye, x, y)]
            dark_colours += [colour, colour]
            light.append(_moved(lower_eye, x, y))
    axes.add_collection(PathCollection(discs, facecolors=faces, edgecolors="none", zorder=3))
    axes.add_collection(PathCollection(dark, facecolors=dark_colours, edgecolors="none", zorder=4))
    axes.add_collection(PathCollection(light, facecolors="white", edgecolors="none", zorder=5))
    axes.add_collection(PathCollection(discs, facecolors="none", edgecolors=_OUTLINE, linewidths=0.6, zorder=6))


def _teardrop() -> "Path":
    """The dark half of a yin-yang of radius one: a half circle, less the upper small disc and with the lower one."""
    from matplotlib.path import Path

    left, right = Path.arc(90.0, 270.0), Path.arc(-90.0, 90.0)
    outside = np.asarray(left.vertices)
    lower = 0.5 * np.asarray(right.vertices) + (0.0, -0.5)
    upper = 0.5 * np.asarray(left.vertices)[::-1] + (0.0, 0.5)
    curves = [Path.CURVE4] * (len(outside) - 1)
    codes = [Path.MOVETO, *curves, Path.LINETO, *[Path.CURVE4] * (len(lower) - 1), Path.LINETO, *curves]
    return Path(np.vstack([outside, lower, upper]), codes)


def _circle(x: float, y: float, radius: float) -> "Path":
    from matplotlib.path import Path

    return Path.circle((x, y), radius)


def _moved(path: "Path", x: float, y: float) -> "Path":
    from matplotlib.path import Path

    return Path(RADIUS * np.asarray(path.vertices) + (x, y), path.codes)
