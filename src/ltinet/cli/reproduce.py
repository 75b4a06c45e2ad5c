"""`ltinet reproduce`: the paper's numerical section, number by number, as one report."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ltinet.cli.streams import send


class Example(StrEnum):
    """What can be asked for."""

    DIFFUSION = "diffusion"
    HORIZONTAL_LAYERS = "horizontal-layers"
    LAYER_TYPES = "layer-types"
    CONVECTION_DIFFUSION = "convection-diffusion"
    ALL = "all"


def reproduce(
    examples: Annotated[
        list[Example] | None,
        typer.Argument(metavar="EXAMPLE", hidden=True),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")] = Path("reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller runs, done in half a minute.")] = False,
) -> None:
    """Reproduce the figures and numbers of the paper.

    EXAMPLE is one or more of diffusion, horizontal-layers, layer-types and convection-diffusion, or all, which it is
    when left out. Prints the path of the report.
    """
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"{out} is a file; give a folder", param_hint="'--out'")
    # Only this command needs the paper's examples; they take long to import.
    from ltinet.paper.reproduce import reproduce as write_report

    every = [example for example in Example if example != Example.ALL]
    names = every if not examples or Example.ALL in examples else [example for example in every if example in examples]
    send(f"{write_report([str(name) for name in names], out=out, quick=quick)}\n")
