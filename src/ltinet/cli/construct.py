"""Command `ltinet construct`: the network of a system, written to a file."""

from typing import Annotated

import typer

from ltinet.cli.io import print_note, show_status, write_output
from ltinet.cli.options import option, parse_names
from ltinet.cli.sources import MatrixNames, SourceName, check_network_target, read_system
from ltinet.construction import construct as construct_network
from ltinet.errors import PartitionError
from ltinet.network_builder import DEFAULT_MAX_CONDITION


def construct(
    file: SourceName,
    output: Annotated[str, option("NET", "Network file to write, or -.", "--output", "-o")],
    max_condition: Annotated[
        float | None,
        option(
            "X",
            "Limit on cond(T), at least 1: the sparsest network found within it.",
            default=f"{DEFAULT_MAX_CONDITION:g}",
        ),
    ] = None,
    layers: Annotated[int | None, option("N", "Number of layers, instead of a limit on cond(T).")] = None,
    matrix: MatrixNames = None,
    inputs: Annotated[str | None, option("NAMES", 'Names of inputs: "Force (N),Torque (Nm)".')] = None,
    outputs: Annotated[str | None, option("NAMES", "Names of outputs.")] = None,
) -> None:
    """Construct the network of a system.

    FILE is a .mat or .npz file with matrices A, B, C and optionally D and E, a folder of Matrix Market files (A.mtx,
    B.mtx, …), or a built-in system such as example:heat_rod.
    """
    if max_condition is not None and layers is not None:
        raise typer.BadParameter("give one of them, not both", param_hint="'--max-condition' / '--layers'")
    check_network_target(output, {"the system": file})
    system = read_system(file, matrix)
    system = system.with_names(inputs=parse_names(inputs), outputs=parse_names(outputs))
    limit = DEFAULT_MAX_CONDITION if max_condition is None else max_condition
    try:
        with show_status(f"constructing the network of {system.n_states} states"):
            net = construct_network(system, max_condition=limit, n_layers=layers)
    except PartitionError as error:
        message = str(error).replace("max_condition", "--max-condition").replace("n_layers", "--layers")
        raise PartitionError(message) from None
    write_output(output, net.save)
    print_note(f"{net.n_neurons} neurons in {net.n_layers} layers written to {output}")
