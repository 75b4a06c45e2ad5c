"""Pictures as files: which kinds there are, and a figure without a window."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltinet.cli.streams import is_stream
from ltinet.errors import FileFormatError
from ltinet.plotting.canvas import FORMATS, require_matplotlib
from ltinet.plotting.windowless import figure_of
from ltinet.shown import shown, shown_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture_suffix(output: str, wanted: str | None = None) -> str:
    """The suffix says what is written; a stream has none, and is PNG unless something else is wanted.

    Raises:
        FileFormatError: it is no kind of picture, or two are asked for.
    """
    known = ", ".join(FORMATS)
    if is_stream(output):
        chosen = wanted or "png"
        if chosen not in FORMATS:
            raise FileFormatError(f"--format is {shown(repr(chosen))}; known are {known}")
        return f".{chosen}"
    suffix = Path(output).suffix.lower()
    if suffix.removeprefix(".") not in FORMATS:
        raise FileFormatError(f"{shown_path(output)} is of an unknown kind; known are {known}")
    if wanted is not None and suffix != f".{wanted}":
        raise FileFormatError(
            f"{shown_path(output)} and --format {shown(wanted)} do not agree; --format is for standard output"
        )
    return suffix


def drawn(draw: Callable[[], Any]) -> "Figure":
    """The figure of the Axes that `draw` returns, where there may be no display at all."""
    without_display()
    return figure_of(draw)


def without_display() -> None:
    """Let matplotlib look for none."""
    require_matplotlib()
    import matplotlib as mpl

    mpl.use("Agg")
