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
from ltinet._util.text import install_hint
from ltinet.errors import FileFormatError, MissingDependencyError, PlottingError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

PICTURE_FORMATS = ("png", "svg", "pdf")


def get_axes(ax: "Axes | None", *, width: float = 6.4, height: float = 4.8) -> "Axes":
    """Return the given axes, or those of a new pyplot figure of this size in inches, which a notebook displays."""
    require_matplotlib()
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise PlottingError(f"ax must be a matplotlib Axes or None, got a {type(ax).__name__}")
    return ax


def figure_of(axes: Any) -> "Figure":
    """Return the figure of Axes, or of the first of an array of Axes."""
    figure: Figure = np.asarray(axes).flat[0].figure.canvas.figure  # also of axes in nested subfigures
    return figure


def get_figure(figure: "Figure | SubFigure | None", *, width: float, height: float) -> "Figure | SubFigure":
    """Return the given empty figure, or a new pyplot figure of this size in inches, for several panels."""
    require_matplotlib()
    from matplotlib.figure import FigureBase

    if figure is None:
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained")
    if not isinstance(figure, FigureBase):
        raise PlottingError(f"figure must be a matplotlib Figure or None, got a {type(figure).__name__}")
    if figure.axes:
        raise PlottingError(
            f"figure must be empty, but has {len(figure.axes)} axes; pass an empty figure or a subfigure"
        )
    return figure


def has_layout_engine(figure: "Figure | SubFigure") -> bool:
    """Return whether a figure has constrained layout, which reserves space for legends beside axes."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return isinstance(figure.figure.get_layout_engine(), ConstrainedLayoutEngine)


def new_figure(width: float = 6.4, height: float = 4.8) -> "Figure":
    """Return an empty figure of this size in inches for files: no window opens, and pyplot does not keep it."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure atomically as PNG, SVG or PDF, chosen by the suffix of the path.

    Files contain no date, so that the same figure gives the same bytes.

    Raises:
        PlottingError: the suffix is not supported.
        FileFormatError: the file cannot be written.
    """
    target = Path(path)
    suffix = target.suffix.lower().removeprefix(".")
    if suffix not in PICTURE_FORMATS:
        raise PlottingError(f"the suffix of {target.name} is not supported; use one of .{', .'.join(PICTURE_FORMATS)}")
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
    """Raise MissingDependencyError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401 - tested for being installed
    except ImportError as error:
        raise MissingDependencyError(f"plots require matplotlib; {install_hint('plot')}") from error


def use_integer_ticks(axis: "Axis") -> None:
    """Set ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True))


def add_grid(axes: "Axes", *, axis: Literal["both", "x", "y"] = "both") -> None:
    """Draw faint grid lines behind everything else."""
    axes.grid(True, axis=axis, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def draw_placeholder(axes: "Axes", text: str) -> None:
    """Write a text in the middle of axes without data, which would otherwise look like a failed drawing."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="0.35")


def draw_offscreen(draw: Callable[[], Any]) -> "Figure":
    """Return the figure that `draw` returns, or that of its Axes; no window opens."""
    require_matplotlib()
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    with pyplot.ioff():
        drawn = draw()
    figure = drawn if isinstance(drawn, Figure) else figure_of(drawn)
    pyplot.close(figure)
    return figure
