"""`ltinet reduce`: from a system of many states to the file of a small network, the bound on its error shown."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ltinet.cli.messages import falling, remark
from ltinet.cli.overwriting import refuse_overwriting
from ltinet.cli.sources import NETWORK_SUFFIX, MatrixNames, SourceName, read_system, refuse_discrete_time
from ltinet.cli.streams import check_target, deliver, is_stream, refuse_terminal, send
from ltinet.errors import FileFormatError
from ltinet.shown import shown_path

if TYPE_CHECKING:
    from ltinet.reductions import ReductionMethod


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
    from ltinet.reduced import reduce as reduce_system  # here: other commands need not wait for it

    if (order is None) == (tolerance is None):
        raise typer.BadParameter("give one of them", param_hint="'--order' / '--tolerance'")
    if output is not None:
        _check_output(output, file)
    system = read_system(file, matrix)
    refuse_discrete_time(system, file, "a reduced system")
    method: ReductionMethod = "singular_perturbation" if exact_at_rest else "truncation"
    with falling(f"reducing {system.n_states} states") as told:
        found = reduce_system(system, order=order, tolerance=tolerance, method=method, n_jobs=jobs, told=told)
    if output is None or not is_stream(output):
        send(f"{found}\n")
    if output is not None:
        net = found.net
        deliver(output, net.save)
        remark(f"{net.n_neurons} neurons in {net.n_layers} layers written to {output}")


def _check_output(output: str, file: str) -> None:
    if not is_stream(output) and Path(output).suffix.lower() != NETWORK_SUFFIX:
        raise FileFormatError(f"{shown_path(output)} does not end in {NETWORK_SUFFIX}, as the file of a network does")
    check_target(output)
    refuse_overwriting(output, {"the system": file})
    refuse_terminal(output)
