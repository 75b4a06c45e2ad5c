"""`ltinet simulate`: from a table of inputs to a table of outputs."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from ltinet.cli.initial_state import is_file, read_initial_state
from ltinet.cli.messages import remark
from ltinet.cli.overwriting import refuse_overwriting
from ltinet.cli.samples import Samples, format_of, read_samples
from ltinet.cli.sources import read_network
from ltinet.cli.streams import STANDARD, check_target, deliver, refuse_terminal
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.export.sample_files import WRITERS
from ltinet.signals.sampled import Hold
from ltinet.solve.engines import ENGINES
from ltinet.solve.solvers.options import DEGREES

if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[tuple(ENGINES)]  # those that there are: the command line lists them and refuses others


def simulate(  # noqa: PLR0913 - every option of the command is a parameter
    net: Annotated[str, typer.Argument(metavar="NET", hidden=True)],
    table: Annotated[
        str, typer.Option("--input", "-i", metavar="FILE", show_default=False, help="The table of inputs, or -.")
    ],
    *,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The table of outputs.")] = STANDARD,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="csv|npz|mat",
            show_default="by the name of the output, csv for -",
            help="The kind of the output.",
        ),
    ] = None,
    hold: Annotated[
        Hold, typer.Option(help="The input between samples: straight lines, or steps (zero-order hold).")
    ] = "linear",
    x0: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            show_default="zero",
            help="The state of the system at the first time: numbers as in 1,0,-2, or a .npz or .mat file with x0.",
        ),
    ] = None,
    engine: Annotated[
        EngineName,
        typer.Option(help="In closed form, or with a solver for each neuron (the paper's Algorithms 3 and A.1)."),
    ] = "exact",
    method: Annotated[
        str | None,
        typer.Option(metavar="|".join(DEGREES), show_default="DOP853", help="Solver engines: the method."),
    ] = None,
    rtol: Annotated[
        float | None, typer.Option(show_default="1e-8", help="Solver engines: the relative tolerance.")
    ] = None,
    atol: Annotated[
        float | None, typer.Option(show_default="1e-10", help="Solver engines: the absolute tolerance.")
    ] = None,
) -> None:
    """Run a network: outputs at the times of a table of inputs.

    NET is a file that `ltinet construct` wrote.

    The table is a CSV file with a header: the first column is called t or time, the others are the inputs in their
    order; a time given twice marks a jump. It may also be a .npz or .mat file with arrays t and u. The outputs have the
    columns t, y1, y2, … or the arrays t and y.
    """
    if net == STANDARD == table:
        raise typer.BadParameter("only one of them can come from standard input", param_hint="'NET' / '--input'")
    solver = _given(engine, {"method": method, "rtol": rtol, "atol": atol})
    kind = format_of(output, file_format)
    check_target(output)
    start_file = {"the initial state": x0} if x0 is not None and is_file(x0) else {}
    refuse_overwriting(output, {"the table of inputs": table, "the network": net, **start_file})
    if kind != "csv":
        refuse_terminal(output)
    network = read_network(net)
    start = None if x0 is None else read_initial_state(x0)
    samples = read_samples(table)
    result = _run(network, samples, {"x0": start, "hold": hold, "engine": engine, **solver})
    deliver(output, lambda path: WRITERS[kind](path, result.t, result.values))
    if output != STANDARD:
        remark(f"{len(result.t)} samples of {network.n_outputs} outputs written to {output}")


def _given(engine: str, solver: dict[str, Any]) -> dict[str, Any]:
    """The options of the solver that were given; none of them is for the exact engine."""
    given = {name: value for name, value in solver.items() if value is not None}
    if given and engine == "exact":
        raise typer.BadParameter(
            "the exact engine has no solver; add --engine neurons or --engine intervals",
            param_hint=" / ".join(f"'--{name}'" for name in given),
        )
    return given


def _run(network: DynamicNetwork, samples: Samples, options: dict[str, Any]) -> Samples:
    n_channels = samples.values.shape[-1]
    if n_channels != network.n_inputs:
        raise InvalidSignalError(
            f"{samples.title} has {n_channels} input columns beside the time, but the network has {network.n_inputs} "
            f"inputs; give one column for each"
        )
    try:
        solution = network.simulate(samples.values, samples.t, **options)
    except InvalidSignalError as error:
        raise InvalidSignalError(f"{samples.title}: {error}") from None
    finite = np.isfinite(solution.y).all(axis=-1)
    if not finite.all():
        place = int(np.argmin(finite.reshape(-1, len(solution.t)).all(axis=0)))
        raise SimulationError(
            f"the outputs are beyond the range of double precision from t = {solution.t[place]:g} on; the network is "
            "unstable or the inputs too large: end earlier or scale the inputs"
        )
    return Samples("outputs", solution.t, solution.y)
