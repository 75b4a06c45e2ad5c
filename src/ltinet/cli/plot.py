"""`ltinet plot`: a picture of a network."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ltinet.cli.messages import remark
from ltinet.cli.overwriting import refuse_overwriting
from ltinet.cli.sources import read_network
from ltinet.cli.streams import STANDARD, check_target, deliver, is_stream, refuse_terminal
from ltinet.errors import FileFormatError
from ltinet.plotting import new_figure, save_figure
from ltinet.plotting.canvas import FORMATS
from ltinet.plotting.overview import SLIDE
from ltinet.shown import shown, shown_path

Kind = Literal["overview", "architecture", "spectrum", "sparsity"]


def plot(
    net: Annotated[str, typer.Argument(metavar="NET", hidden=True)],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", show_default=False, help="The .png, .svg or .pdf to write.")
    ],
    *,
    kind: Annotated[
        Kind,
        typer.Option(help="Neurons in their layers, poles in the complex plane, connections; or all side by side."),
    ] = "overview",
    stream_format: Annotated[
        str | None, typer.Option("--format", metavar="png|svg|pdf", show_default="png", help="What to write to -.")
    ] = None,
) -> None:
    """Draw a network.

    NET is a file that `ltinet construct` wrote.
    """
    suffix = _suffix_for(output, stream_format)
    check_target(output)
    refuse_overwriting(output, {"the network": net})
    if suffix != ".svg":
        refuse_terminal(output)
    drawings = read_network(net).plot
    if kind == "overview":
        figure = new_figure(*SLIDE)
        drawings.overview(figure=figure)
    else:
        figure = new_figure()
        getattr(drawings, kind)(ax=figure.add_subplot())
    deliver(output, lambda path: save_figure(figure, path), suffix=suffix)
    if output != STANDARD:
        remark(f"{kind} written to {output}")


def _suffix_for(output: str, wanted: str | None) -> str:
    """The suffix says what is written; a stream has none."""
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
