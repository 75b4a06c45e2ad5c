"""The door of the program: its commands, its version, and how it ends."""

import sys
import warnings
from typing import Annotated

import typer

import ltinet
from ltinet.cli.compare import compare
from ltinet.cli.construct import construct
from ltinet.cli.ending import exit_code_of
from ltinet.cli.examples import answer_to_bash
from ltinet.cli.explore import explore
from ltinet.cli.export import export
from ltinet.cli.identify import identify
from ltinet.cli.info import info
from ltinet.cli.plot import plot
from ltinet.cli.reduce import reduce
from ltinet.cli.reproduce import reproduce
from ltinet.cli.response import response
from ltinet.cli.simulate import simulate
from ltinet.cli.stopping import stopping_in_order
from ltinet.cli.streams import send

app = typer.Typer(
    name="ltinet",
    help="Sparse continuous-time neural networks from linear time-invariant systems, constructed without training.",
    epilog="Give - instead of a file to read standard input or to write standard output.",
    rich_markup_mode=None,  # without frames help fits into 80 columns, and into a pipe
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
)
for command in (info, response, identify, compare, reduce, construct, simulate, export, plot, explore, reproduce):
    app.command()(command)


def main() -> None:
    """Run the program with the arguments of this process, and end the process with its exit code."""
    if not sys.warnoptions:
        # What matters in NumPy's warnings, results that are not finite, is an error of the command.
        warnings.simplefilter("ignore")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without → or ‖ shows a question mark instead of failing
            stream.reconfigure(errors="replace")
    answers = answer_to_bash()
    if answers is not None:
        send("\n".join(answers) + "\n")
        sys.exit(0)
    with stopping_in_order():
        code = exit_code_of(lambda: app(prog_name="ltinet", standalone_mode=False))
    sys.exit(code)


def _print_version(wanted: bool) -> None:
    if wanted:
        send(f"ltinet {ltinet.__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback has printed it
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        send(context.get_help() + "\n")
