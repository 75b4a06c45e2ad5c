"""Command `ltinet reduce`: a reduced system with an error bound, written as a network file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltinet._util.text import format_path
from ltinet.cli.io import (
    check_target,
    is_stream,
    print_note,
    refuse_overwriting,
    refuse_terminal,
    show_reduction_progress,
    write_output,
    write_stdout,
)
from ltinet.cli.sources import NETWORK_SUFFIX, MatrixNames, SourceName, read_system, refuse_discrete_time
from ltinet.errors import FileFormatError

if TYPE_CHECKING:
    from ltinet.reduction.dispatch import ReductionMethod


def reduce(
    file: SourceName,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="NET", show_default=False, help="The network file to write, or -."),
    ] = None,
    order: Annotated[
        int | None, typer.Option(metavar="N", show_default=False, help="Keep N states; either this or --tolerance.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(metavar="X", show_default=False, help="As few states as err by X of the largest gain at most."),
    ] = None,
    exact_at_rest: Annotated[
        bool, typer.Option("--exact-at-rest", help="Keep the gain at zero frequency exactly (singular perturbation).")
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(metavar="N", help="Processes that share the work on a large sparse system; -1 for all."),
    ] = 1,
    matrix: MatrixNames = None,
) -> None:
    """Reduce a system to few states, with a bound on the error.

    FILE is a .mat or .npz file with matrices A, B, C and optionally D and E, a folder of Matrix Market files, or a
    built-in system such as example:heat_plate,n=10000. Sparse matrices stay sparse. What was found is printed; with
    --output its network is written, whole or not at all.
    """
    from ltinet.reduction.api import reduce as reduce_system  # here: other commands need not wait for it

    if (order is None) == (tolerance is None):
        raise typer.BadParameter("give one of them", param_hint="'--order' / '--tolerance'")
    if output is not None:
        _check_output(output, file)
    system = read_system(file, matrix)
    refuse_discrete_time(system, file, "a reduced system")
    method: ReductionMethod = "singular_perturbation" if exact_at_rest else "truncation"
    with show_reduction_progress(f"reducing {system.n_states} states") as callback:
        found = reduce_system(system, order=order, tolerance=tolerance, method=method, n_jobs=jobs, callback=callback)
    if output is None or not is_stream(output):
        write_stdout(f"{found}\n")
    if output is not None:
        net = found.net
        write_output(output, net.save)
        print_note(f"{net.n_neurons} neurons in {net.n_layers} layers written to {output}")


def _check_output(output: str, file: str) -> None:
    if not is_stream(output) and Path(output).suffix.lower() != NETWORK_SUFFIX:
        raise FileFormatError(f"{format_path(output)} does not end in {NETWORK_SUFFIX}, as the file of a network does")
    check_target(output)
    refuse_overwriting(output, {"the system": file})
    refuse_terminal(output)
