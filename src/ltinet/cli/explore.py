"""Command `ltinet explore`: the interactive page in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from ltinet.cli.io import check_target, print_note, show_status, write_stdout
from ltinet.cli.options import flag, option
from ltinet.cli.sources import complete_source, read_any_model
from ltinet.explorer.api import explore as open_page
from ltinet.explorer.files import TABLE_SUFFIXES


def explore(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", show_default=False, autocompletion=complete_source)
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, show_default="any", help="Port to listen on.")
    ] = 0,
    output: Annotated[str | None, option("PAGE", "Write a standalone .html instead.", "--output", "-o")] = None,
    no_browser: Annotated[bool, flag("--no-browser", "Print the address only.")] = False,
) -> None:
    """Open a page with a slider for the condition-number limit.

    MODEL is a system (.mat, .npz, a folder of Matrix Market files, example:NAME), a network (.safetensors), or a table
    (.csv), of which the page identifies a system; an example by default. The page is served to this machine only; stop
    it with Ctrl-C.
    """
    if output is not None:
        check_target(output, {"the model": model or ""}, is_text=True)
    is_table = model is not None and Path(model).suffix.lower() in TABLE_SUFFIXES
    system = model if model is None or is_table else read_any_model(model)
    title = None if model is None else Path(model).stem
    if output is not None:
        with show_status("computing all views"):
            open_page(system, title=title, page=output)
        print_note(f"page written to {output}")
        return
    open_page(system, title=title, port=port, browser=not no_browser, callback=lambda line: write_stdout(f"{line}\n"))
