"""Command `ltinet margin`: stability margins of an open loop as a table or JSON."""

import json
from dataclasses import fields
from typing import Annotated, Any

import numpy as np

from ltinet._util.text import format_count
from ltinet.cli.info import to_json_number
from ltinet.cli.io import print_note, show_status, write_stdout
from ltinet.cli.options import flag, option, parse_channel
from ltinet.cli.sources import MatrixNames, SourceName, read_system_or_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSystemError
from ltinet.state_space import StateSpace


def margin(
    file: SourceName,
    input: Annotated[str | None, option("N", "Input of the loop: 1, 2, … or u1, u2, …", "--input")] = None,
    channel: Annotated[str | None, option("N", "Output of the loop: 1, 2, … or y1, y2, …", "--output")] = None,
    as_json: Annotated[bool, flag("--json", "One JSON object, numbers in full precision.")] = False,
    matrix: MatrixNames = None,
) -> None:
    """Compute the stability margins of an open loop.

    FILE is a system, or a network (.safetensors), with delays if it has any; the
    feedback is negative. Gain, phase, delay and modulus margins
    are printed with their frequencies and further crossings. Of a loop with several inputs and as many outputs the
    disk margin is printed, which holds for changes in all channels together; --input and --output choose one loop.
    """
    model = read_system_or_network(file, matrix)
    system = model.to_state_space() if isinstance(model, DynamicNetwork) else model
    row = parse_channel(channel, model.output_names, option="--output", noun="output")
    column = parse_channel(input, model.input_names, option="--input", noun="input")
    if row is not None or column is not None:
        system = _select(system, row or 0, column or 0)
    if system.n_inputs != system.n_outputs:
        raise InvalidSystemError(
            f"the loop has {format_count(system.n_inputs, 'input')} and {format_count(system.n_outputs, 'output')}; "
            "choose one loop with --input and --output, or give an open loop with as many outputs as inputs for its disk "
            "margin"
        )
    with show_status(f"computing margins of {system.n_states} states"):
        is_single = (system.n_outputs, system.n_inputs) == (1, 1)
        disk = system.disk_margin()
        margins = system.margin() if is_single else None
    if as_json:
        facts = {"disk_" + item.name: getattr(disk, item.name) for item in fields(disk)}
        if margins is not None:
            facts |= {item.name: getattr(margins, item.name) for item in fields(margins)}
        write_stdout(json.dumps({name: _plain(value) for name, value in facts.items()}, indent=2) + "\n")
        return
    if margins is None:
        print_note(
            f"{system.n_inputs} inputs and outputs: disk margin for changes in all channels; margins of one loop, the "
            "others open: --input, --output"
        )
    write_stdout(f"{disk}\n" if margins is None else f"{margins}\n{disk}\n")


def _select(system: StateSpace, row: int, column: int) -> StateSpace:
    """Return the system from one input to one output, with their delays."""
    return StateSpace(
        system.A, system.B[:, [column]], system.C[[row]], system.D[[row]][:, [column]], dt=system.dt,
        input_delay=[system.input_delay[column]], output_delay=[system.output_delay[row]],
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """Return a value for JSON, which has neither infinity nor NaN."""
    if isinstance(value, np.ndarray | tuple | list):
        return [_plain(entry) for entry in value]
    return to_json_number(float(value)) if isinstance(value, float) else value
