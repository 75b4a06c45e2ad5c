"""Responses as tables in files, and as numbers on the screen."""

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.cli.streams import deliver, deliver_pieces
from ltinet.dynamic_network import DynamicNetwork
from ltinet.export.sample_files import WRITERS
from ltinet.model.formats import mat5, npz
from ltinet.plotting.bode import unwrapped_phase
from ltinet.shown import shown
from ltinet.solve.solution import Solution
from ltinet.state_space import StateSpace
from ltinet.tables.writing import lines_of_numbers

_SHOWN = 40  # rows that are printed
_STEP_NUMBERS = ("final value", "rise time", "settling time", "overshoot", "undershoot", "peak", "peak time")


def write_times(
    target: str, kind: str, solution: Solution, names: Sequence[str], input_names: Sequence[str], *, has_inputs: bool
) -> None:
    """Times and responses: a CSV column for each pair, in other files the arrays t and y as `Solution` has them.

    With `has_inputs` y is `(m, T, p)`, one response to each input.
    """
    if kind != "csv":
        deliver(target, lambda path: WRITERS[kind](path, solution.t, solution.y))
        return
    y = solution.y if has_inputs else solution.y[None]
    header = ["t", *_pair_names(names, input_names)]
    _write_csv(target, header, np.column_stack([solution.t, *y]))


def write_frequencies(
    target: str,
    kind: str,
    omega: Array,
    H: NDArray[np.complex128],
    names: Sequence[str],
    input_names: Sequence[str],
    *,
    in_plane: bool,
    delays: Array,
) -> None:
    """Angular frequencies and H `(K, p, m)`: a CSV has two columns for each pair, other files omega and H.

    These are |H| and its phase in degrees, continuous beside the `delays` `(p, m)`, or with `in_plane` the real and the
    imaginary part.
    """
    if kind == "npz":
        deliver(target, lambda path: _write_npz(path, omega, H))
        return
    if kind == "mat":
        deliver(target, lambda path: mat5.write(path, {"omega": omega[:, None], "H": H}))  # type: ignore[dict-item]
        return
    two = ("real", "imaginary") if in_plane else ("magnitude", "phase")
    pairs = _pair_names(names, input_names)
    header = ["omega", *(f"{part} {pair}" if len(pairs) > 1 else part for pair in pairs for part in two)]
    places = [(row, column) for column in range(len(input_names)) for row in range(len(names))]
    columns = [(H[:, row, column], omega * delays[row, column]) for row, column in places]
    parts = [(own.real, own.imag) if in_plane else (np.abs(own), unwrapped_phase(own, late)) for own, late in columns]
    _write_csv(target, header, np.column_stack([omega, *chain.from_iterable(parts)]))


def response_numbers(
    system: StateSpace | DynamicNetwork, kind: str, pairs: Mapping[tuple[int, int], str]
) -> str:  # fmt: skip
    """What one reads off a step response or a Bode plot, one row for each pair (output, input); "–" for what is not."""
    if kind == "step":
        info = system.step_info()
        names = ("dead time", *_STEP_NUMBERS) if np.any(info.dead_time) else _STEP_NUMBERS
        numbers = {name: getattr(info, name.replace(" ", "_")) for name in names}
    else:
        numbers = {"gain at rest": system.dcgain(), "bandwidth": system.bandwidth()}
    heading = {"overshoot": "overshoot %", "undershoot": "undershoot %", "bandwidth": "bandwidth (rad/time)"}
    rows = [("", *(heading.get(name, name) for name in numbers))]
    for (row, column), title in list(pairs.items())[:_SHOWN]:
        rows.append((shown(title), *(_shown_number(values[row, column]) for values in numbers.values())))
    widths = [max(len(cells[place]) for cells in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) for cells in rows]
    if len(pairs) > _SHOWN:
        lines.append(f"… and {len(pairs) - _SHOWN} more; choose with --input and --output")
    return "\n".join(lines)


def _shown_number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.5g}"


def _pair_names(names: Sequence[str], input_names: Sequence[str]) -> list[str]:
    if len(input_names) == 1:
        return list(names)
    return [f"{name} from {source}" for source in input_names for name in names]


def _write_npz(path: Path, omega: Array, H: NDArray[np.complex128]) -> None:
    npz.write(path, {"omega": omega, "H": H})  # type: ignore[dict-item]


def _write_csv(target: str, header: Sequence[str], table: Array) -> None:
    first = io.StringIO()
    csv.writer(first, lineterminator="\n").writerow(header)
    deliver_pieces(target, chain([first.getvalue().encode()], lines_of_numbers(table)))
