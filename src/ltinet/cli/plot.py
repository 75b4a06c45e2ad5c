"""Command `ltinet plot`: a picture of a network."""

from typing import Annotated, Literal

import typer

from ltinet.cli.io import STANDARD_STREAM, check_target, picture_suffix, print_note, show_status, write_output
from ltinet.cli.options import option
from ltinet.cli.sources import read_network
from ltinet.plotting import new_figure, save_figure
from ltinet.plotting.plots import SLIDE_SIZE

Kind = Literal["overview", "architecture", "spectrum", "sparsity"]


def plot(
    net: Annotated[str, typer.Argument(metavar="NET", hidden=True)],
    output: Annotated[str, option("FILE", "Picture to write: .png, .svg or .pdf.", "--output", "-o")],
    *,
    kind: Annotated[
        Kind, option(None, "Neurons by layer, poles in the complex plane, connections, or all three.", default=True)
    ] = "overview",
    stream_format: Annotated[
        str | None, option("png|svg|pdf", "Format of output to -.", "--format", default="png")
    ] = None,
) -> None:
    """Draw a network.

    NET is a network file, as `ltinet construct` writes it.
    """
    suffix = picture_suffix(output, stream_format)
    check_target(output, {"the network": net}, is_text=suffix == ".svg")
    plots = read_network(net).plot
    with show_status(f"drawing the {kind}"):
        if kind == "overview":
            figure = new_figure(*SLIDE_SIZE)
            plots.overview(figure=figure)
        else:
            figure = new_figure()
            getattr(plots, kind)(ax=figure.add_subplot())
        write_output(output, lambda path: save_figure(figure, path), suffix=suffix)
    if output != STANDARD_STREAM:
        print_note(f"{kind} written to {output}")
