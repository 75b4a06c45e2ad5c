"""`ltinet construct`: from a system to the file of its network."""

from pathlib import Path
from typing import Annotated

import typer

from ltinet.cli.channels import listed_names
from ltinet.cli.messages import remark, working
from ltinet.cli.overwriting import refuse_overwriting
from ltinet.cli.sources import NETWORK_SUFFIX, MatrixNames, SourceName, read_system, refuse_discrete_time
from ltinet.cli.streams import check_target, deliver, is_stream, refuse_terminal
from ltinet.errors import FileFormatError, PartitionError
from ltinet.networks import construct as construct_network
from ltinet.shown import shown_path

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
        raise FileFormatError(f"{shown_path(output)} does not end in {NETWORK_SUFFIX}, as the file of a network does")
    check_target(output)
    refuse_overwriting(output, {"the system": file})
    refuse_terminal(output)
    system = read_system(file, matrix)
    system = system.with_names(inputs=listed_names(inputs), outputs=listed_names(outputs))
    refuse_discrete_time(system, file, "a network")
    budget = _DEFAULT_CONDITION if max_condition is None else max_condition
    try:
        with working(f"constructing the network of {system.n_states} states"):
            net = construct_network(system, max_condition=budget, n_layers=layers)
    except PartitionError as error:
        raise PartitionError(_as_options(str(error))) from None
    deliver(output, net.save)
    remark(f"{net.n_neurons} neurons in {net.n_layers} layers written to {output}")


def _as_options(message: str) -> str:
    """The names that a user of the program knows."""
    return message.replace("max_condition", "--max-condition").replace("n_layers", "--layers")
