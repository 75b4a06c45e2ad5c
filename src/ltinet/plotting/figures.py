"""Figures and axes for all drawings, and files of them.

Matplotlib is imported when something is drawn, never when ltinet is. A drawing takes the axes or the empty figure of
the caller, or makes a pyplot figure, which a notebook shows by itself; `new_figure` and `draw_offscreen` make
figures for files, without a window. Files are written atomically as PNG, SVG or PDF.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ltinet._util.atomic_files import write_file_atomically
from ltinet.errors import FileFormatError, MissingDependencyError, PlottingError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

# MERGED ltinet.plotting.figures
# Where drawings go: matplotlib, which is imported only when somebody draws, and the axes and figures drawn on.

PICTURE_FORMATS = ("png", "svg", "pdf")


def get_axes(ax: "Axes | None", *, width: float = 6.4, height: float = 4.8) -> "Axes":
    """The axes that came, or those of a new pyplot figure of this size in inches, which a notebook shows by itself."""
    require_matplotlib()
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise PlottingError(f"ax is a {type(ax).__name__}; give one matplotlib Axes, or leave it out for a new figure")
    return ax


def get_figure(figure: "Figure | SubFigure | None", *, width: float, height: float) -> "Figure | SubFigure":
    """The empty figure that came, or a new pyplot figure of this size in inches, for drawings of several panels."""
    require_matplotlib()
    from matplotlib.figure import FigureBase

    if figure is None:
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained")
    if not isinstance(figure, FigureBase):
        raise PlottingError(f"figure is a {type(figure).__name__}; give a matplotlib Figure, or leave it out")
    if figure.axes:
        raise PlottingError(f"figure has {len(figure.axes)} axes already; give an empty one, or a subfigure")
    return figure


def has_layout_engine(figure: "Figure | SubFigure") -> bool:
    """Whether a figure arranges its axes so that all which stands beside them fits, as those that are made here do."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return isinstance(figure.figure.get_layout_engine(), ConstrainedLayoutEngine)


def new_figure(width: float = 6.4, height: float = 4.8) -> "Figure":
    """An empty figure of this size in inches for programs that write files: no window, nothing kept by pyplot."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF, by the suffix of the path, whole or not at all.

    No date goes in, so that the same figure gives the same bytes.

    Raises:
        PlottingError: the suffix is none of these.
        FileFormatError: the file cannot be written.
    """
    target = Path(path)
    suffix = target.suffix.lower().removeprefix(".")
    if suffix not in PICTURE_FORMATS:
        raise PlottingError(
            f"{target.name} does not end in .{', .'.join(PICTURE_FORMATS)}; the suffix chooses the format"
        )
    require_matplotlib()
    import matplotlib

    undated: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[suffix]
    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "ltinet"}):
        figure.savefig(content, format=suffix, metadata=undated)
    try:
        write_file_atomically(target, content.getvalue())
    except OSError as error:
        raise FileFormatError(f"{target} cannot be written: {error.strerror}") from error


def require_matplotlib() -> None:
    """Say how to get matplotlib where it is missing."""
    try:
        import matplotlib  # noqa: F401 - whether it is there is all that is asked
    except ImportError as error:
        raise MissingDependencyError('drawing needs matplotlib; install it with pip install "ltinet[plot]"') from error


def use_integer_ticks(axis: "Axis") -> None:
    """Ticks at whole numbers only, where layers, neurons or states are counted."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def add_grid(axes: "Axes", *, axis: Literal["both", "x", "y"] = "both") -> None:
    """Faint lines behind everything that is drawn, to read values by."""
    axes.grid(True, axis=axis, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def draw_placeholder(axes: "Axes", text: str) -> None:
    """A sentence in the middle of axes that have nothing to show, so that nobody takes them for a failed drawing."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="0.35")


# MERGED ltinet.plotting.figures
# Figures for files: drawn as any other, without a window.


def draw_offscreen(draw: Callable[[], Any]) -> "Figure":
    """The figure of the Axes that `draw` returns, at the size that the drawing asks for; no window opens."""
    require_matplotlib()
    from matplotlib import pyplot

    with pyplot.ioff():
        axes = np.asarray(draw()).flat[0]
    figure: Figure = axes.figure
    pyplot.close(figure)
    return figure
