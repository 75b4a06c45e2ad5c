"""Command `ltinet construct`: the network of a system, written to a file."""

from pathlib import Path
from typing import Annotated

import typer

from ltinet._util.text import format_path
from ltinet.cli.io import (
    check_target,
    is_stream,
    print_note,
    refuse_overwriting,
    refuse_terminal,
    show_status,
    write_output,
)
from ltinet.cli.options import parse_names
from ltinet.cli.sources import NETWORK_SUFFIX, MatrixNames, SourceName, read_system, refuse_discrete_time
from ltinet.construction import construct as construct_network
from ltinet.errors import FileFormatError, PartitionError

_DEFAULT_CONDITION = 1e4


def construct(
    file: SourceName,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="NET", show_default=False, help="The network file to write, or -.")
    ],
    max_condition: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            show_default=f"{_DEFAULT_CONDITION:g}",
            help="The sparsest network found with a condition number of the transformation up to X, at least 1.",
        ),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(metavar="N", show_default=False, help="N layers, with a small condition number, instead."),
    ] = None,
    matrix: MatrixNames = None,
    inputs: Annotated[
        str | None,
        typer.Option(metavar="NAMES", show_default=False, help='What the inputs are called: "Force (N),Torque (Nm)".'),
    ] = None,
    outputs: Annotated[
        str | None, typer.Option(metavar="NAMES", show_default=False, help="What the outputs are called.")
    ] = None,
) -> None:
    """Construct the network of a system.

    FILE is a .mat or .npz file with matrices A, B, C and optionally D and E, a folder of Matrix Market files (A.mtx,
    B.mtx, …), or a built-in system such as example:heat_rod.
    """
    if max_condition is not None and layers is not None:
        raise typer.BadParameter("give one of them, not both", param_hint="'--max-condition' / '--layers'")
    if not is_stream(output) and Path(output).suffix.lower() != NETWORK_SUFFIX:
        raise FileFormatError(f"{format_path(output)} does not end in {NETWORK_SUFFIX}, as the file of a network does")
    check_target(output)
    refuse_overwriting(output, {"the system": file})
    refuse_terminal(output)
    system = read_system(file, matrix)
    system = system.with_names(inputs=parse_names(inputs), outputs=parse_names(outputs))
    refuse_discrete_time(system, file, "a network")
    budget = _DEFAULT_CONDITION if max_condition is None else max_condition
    try:
        with show_status(f"constructing the network of {system.n_states} states"):
            net = construct_network(system, max_condition=budget, n_layers=layers)
    except PartitionError as error:
        raise PartitionError(_typed_names(str(error))) from None
    write_output(output, net.save)
    print_note(f"{net.n_neurons} neurons in {net.n_layers} layers written to {output}")


def _typed_names(message: str) -> str:
    """The names that a user of the program knows."""
    return message.replace("max_condition", "--max-condition").replace("n_layers", "--layers")
