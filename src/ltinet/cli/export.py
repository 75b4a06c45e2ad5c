"""`ltinet export`: a network as something that runs without Python."""

import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from ltinet.cli.initial_state import checked_initial_state, is_file
from ltinet.cli.messages import remark, working
from ltinet.cli.overwriting import refuse_overwriting
from ltinet.cli.sources import SourceName, read_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError
from ltinet.export.manifest import Export
from ltinet.export.settings import Precision
from ltinet.shown import shown_path
from ltinet.signals.sampled import Hold

Target = Literal["c", "onnx"]
_WRITERS: dict[str, Callable[..., Export]] = {"c": DynamicNetwork.export_c, "onnx": DynamicNetwork.export_onnx}
_OPTIONS = {"prefix": ("c",), "user_states": ("c",)}  # which targets know of them


def export(  # noqa: PLR0913 - every option of an export is a parameter of the command
    file: SourceName,
    to: Annotated[Target, typer.Option(help="c: a folder with C99; onnx: a file.")],
    dt: Annotated[float, typer.Option(metavar="DT", show_default=False, help="The time step, in the unit of time.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", show_default=False, help="The folder or file to write.")
    ],
    hold: Annotated[
        Hold, typer.Option(help="The input between samples: kept (zero-order hold), or straight lines.")
    ] = "zero",
    dtype: Annotated[Precision, typer.Option(help="The precision of all numbers.")] = "double",
    x0: Annotated[
        str | None,
        typer.Option(
            "--x0", metavar="X", show_default=False, help="The state to begin in: 1,0,-2, or a .npz or .mat file."
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default="model", help="c: what files and names in them begin with."),
    ] = None,
    user_states: Annotated[
        bool, typer.Option("--user-states", help="c: add the matrix that gives states as the system has them.")
    ] = False,
) -> None:
    """Write a network as C or ONNX, to run without Python.

    FILE is a network, as `ltinet construct` writes it.
    """
    own = {"prefix": prefix, "user_states": user_states or None}
    given = {name: value for name, value in own.items() if value is not None}
    for name in given:
        if to not in _OPTIONS[name]:
            raise FileFormatError(f"--{name.replace('_', '-')} is not for {to}; leave it out, or choose another --to")
    sources = {"the network": file} | ({"the initial state": x0} if x0 is not None and is_file(x0) else {})
    refuse_overwriting(output, sources)
    net = read_network(file)
    start = None if x0 is None else checked_initial_state(x0, net.n_states)
    with working(f"exporting {net.n_states} states"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said below
        written = _written(net, to, output, dt=dt, hold=hold, dtype=dtype, x0=start, **given)
    for line in written.remarks:
        typer.echo(f"ltinet: {line}", err=True)
    remark(f"{', '.join(written.files)} written to {shown_path(output)}")


def _written(net: DynamicNetwork, to: Target, output: str, **options: Any) -> Export:
    return _WRITERS[to](net, output, **options)
