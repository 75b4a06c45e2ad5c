"""Command `ltinet plot`: a picture of a network."""

from typing import Annotated, Literal

import typer

from ltinet.cli.io import (
    STANDARD_STREAM,
    check_target,
    picture_suffix,
    print_note,
    refuse_overwriting,
    refuse_terminal,
    show_status,
    write_output,
)
from ltinet.cli.sources import read_network
from ltinet.plotting import new_figure, save_figure
from ltinet.plotting.plots import SLIDE_SIZE

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
    suffix = picture_suffix(output, stream_format)
    check_target(output)
    refuse_overwriting(output, {"the network": net})
    if suffix != ".svg":
        refuse_terminal(output)
    drawings = read_network(net).plot
    with show_status(f"drawing the {kind}"):
        if kind == "overview":
            figure = new_figure(*SLIDE_SIZE)
            drawings.overview(figure=figure)
        else:
            figure = new_figure()
            getattr(drawings, kind)(ax=figure.add_subplot())
        write_output(output, lambda path: save_figure(figure, path), suffix=suffix)
    if output != STANDARD_STREAM:
        print_note(f"{kind} written to {output}")
