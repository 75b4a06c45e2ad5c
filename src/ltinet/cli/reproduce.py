"""Command `ltinet reproduce`: the figures and numbers of the paper as one report."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ltinet._util.text import sanitize
from ltinet.cli.io import write_stdout


class PaperExample(StrEnum):
    """Examples of the paper by name."""

    DIFFUSION = "diffusion"
    HORIZONTAL_LAYERS = "horizontal-layers"
    LAYER_TYPES = "layer-types"
    CONVECTION_DIFFUSION = "convection-diffusion"
    ALL = "all"


SECTION_NUMBERS = {
    "3.1": PaperExample.DIFFUSION,
    "3.2": PaperExample.HORIZONTAL_LAYERS,
    "3.3": PaperExample.LAYER_TYPES,
    "SM2.2": PaperExample.CONVECTION_DIFFUSION,
}
"""Examples by the numbers of their sections in the paper."""


def _complete_example(incomplete: str) -> list[str]:
    return [name for name in (*PaperExample, *SECTION_NUMBERS) if name.startswith(incomplete)]


def reproduce(
    examples: Annotated[
        list[str] | None,
        typer.Argument(metavar="EXAMPLE", hidden=True, autocompletion=_complete_example),
    ] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to.")] = Path("reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Smaller runs, half a minute in all.")] = False,
) -> None:
    """Reproduce the figures and numbers of the paper.

    EXAMPLE is one or more of diffusion, horizontal-layers, layer-types and convection-diffusion, or their sections in
    the paper, 3.1, 3.2, 3.3 and SM2.2; all by default. Prints the path of the report.
    """
    selected = [_example(text) for text in examples or []]
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"{out} is a file; give a folder", param_hint="'--out'")
    # Imported here, since the paper's examples take long to import.
    from ltinet.paper.reproduce import reproduce as write_report

    every = [example for example in PaperExample if example != PaperExample.ALL]
    is_all = not selected or PaperExample.ALL in selected
    names = [str(example) for example in every if is_all or example in selected]
    write_stdout(f"{write_report(names, out=out, quick=quick)}\n")


def _example(text: str) -> PaperExample:
    if text.upper() in SECTION_NUMBERS:
        return SECTION_NUMBERS[text.upper()]
    if text in list(PaperExample):
        return PaperExample(text)
    known = ", ".join([*PaperExample, *SECTION_NUMBERS])
    raise typer.BadParameter(f"there is no example {sanitize(repr(text))}; choose from {known}", param_hint="'EXAMPLE'")
