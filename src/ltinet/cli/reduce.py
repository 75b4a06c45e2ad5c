"""Command `ltinet reduce`: a reduced system with an error bound, written as a network file."""

from typing import TYPE_CHECKING, Annotated

import typer

from ltinet.cli.io import is_stream, print_note, write_output, write_stdout
from ltinet.cli.options import flag, option
from ltinet.cli.sources import MatrixNames, SourceName, check_network_target, read_system

if TYPE_CHECKING:
    from ltinet.reduction.dispatch import ReductionMethod


def reduce(
    file: SourceName,
    output: Annotated[str | None, option("NET", "Network file to write, or -.", "--output", "-o")] = None,
    order: Annotated[int | None, option("N", "Number of states to keep; exclusive with --tolerance.")] = None,
    tolerance: Annotated[float | None, option("X", "Fewest states with relative error ≤ X.")] = None,
    exact_at_rest: Annotated[
        bool, flag("--exact-at-rest", "Keep the DC gain exactly (singular perturbation).")
    ] = False,
    jobs: Annotated[
        int, option("N", "Number of processes for a large sparse system; -1: one per core.", default=True)
    ] = 1,
    matrix: MatrixNames = None,
) -> None:
    """Reduce a system to few states, with a bound on the error.

    FILE is a .mat or .npz file with matrices A, B, C and optionally D and E, a folder of Matrix Market files, or a
    built-in system such as example:heat_plate,n=10000. Sparse matrices stay sparse. The order and the error bound are
    printed; with --output the network of the reduced system is written.
    """
    from ltinet.reduction.api import reduce as reduce_system  # here: other commands need not wait for it

    if (order is None) == (tolerance is None):
        raise typer.BadParameter("exactly one of them is required", param_hint="'--order' / '--tolerance'")
    if output is not None:
        check_network_target(output, {"the system": file})
    system = read_system(file, matrix)
    method: ReductionMethod = "singular_perturbation" if exact_at_rest else "truncation"
    result = reduce_system(system, order=order, tolerance=tolerance, method=method, n_jobs=jobs)
    if output is None or not is_stream(output):
        write_stdout(f"{result}\n")
    if output is not None:
        net = result.net
        write_output(output, net.save)
        print_note(f"{net.n_neurons} neurons in {net.n_layers} layers written to {output}")
