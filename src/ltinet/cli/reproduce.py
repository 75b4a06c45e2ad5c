"""Command `ltinet reproduce`: the figures and numbers of the paper as one report."""

from pathlib import Path
from typing import Annotated

import typer

from ltinet._util.text import sanitize
from ltinet.cli.io import write_stdout
from ltinet.cli.options import flag, option

SECTIONS = {"diffusion": "3.1", "horizontal-layers": "3.2", "layer-types": "3.3", "convection-diffusion": "SM2.2"}
"""Examples of the paper, with the numbers of their sections."""
_CHOICES = (*SECTIONS, "all", *SECTIONS.values())


def reproduce(
    examples: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXAMPLE",
            hidden=True,
            autocompletion=lambda incomplete: [name for name in _CHOICES if name.startswith(incomplete)],
        ),
    ] = None,
    *,
    out: Annotated[Path, option("DIR", "Folder to write to.", default=True)] = Path("reproduction"),
    quick: Annotated[bool, flag("--quick", "Smaller runs, half a minute in all.")] = False,
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

    names = [name for name in SECTIONS if not selected or name in selected or "all" in selected]
    write_stdout(f"{write_report(names, out=out, quick=quick)}\n")


def _example(text: str) -> str:
    for name, section in SECTIONS.items():
        if text == name or text.upper() == section:
            return name
    if text == "all":
        return text
    raise typer.BadParameter(
        f"there is no example {sanitize(repr(text))}; choose from {', '.join(_CHOICES)}", param_hint="'EXAMPLE'"
    )
