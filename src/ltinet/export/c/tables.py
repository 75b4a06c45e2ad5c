"""Tables, sizes and signal names of a model as C source text.

Numbers are hexadecimal floating-point literals and therefore exact. Rows are padded with zeros, so that outputs can be
summed in a fixed number of partial sums side by side.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet.export.c.templates import c_comment, c_identifiers, protect_model_names
from ltinet.export.step_model import PRECISIONS, ExportSettings, StepModel
from ltinet.export.tapped_delay_line import TappedModel
from ltinet.systems.matrices import Matrix

# Partial sums of an output, side by side in vector units; empirical numbers of states from which they are faster. Speed
# only (make bench-export).
_MIN_STATES_FOR_LANES, _MIN_STATES_FOR_MANY_LANES = 16, 96
_MANY_LANES = 8
_VECTOR_BYTES = 16  # width of common vector units
_NUMBERS_PER_LINE = 4


def n_partial_sums(model: StepModel, dtype: str) -> int:
    """Return the number of partial sums of an output, a power of two."""
    if model.n_states < _MIN_STATES_FOR_LANES:
        return 1
    is_large = model.n_states >= _MIN_STATES_FOR_MANY_LANES
    return _MANY_LANES if is_large else _VECTOR_BYTES // np.dtype(PRECISIONS[dtype]).itemsize


def padded_state_count(model: StepModel, dtype: str) -> int:
    """Return the number of states, padded to a multiple of the partial sums."""
    lanes = n_partial_sums(model, dtype)
    return -(-model.n_states // lanes) * lanes


def sizes_section(
    model: StepModel, settings: ExportSettings, *, inputs: Sequence[str], outputs: Sequence[str], user_states: bool
) -> str:
    """Return the section of the header with the sizes of a model."""
    defined = {
        "INPUTS": model.n_inputs,
        "OUTPUTS": model.n_outputs,
        "STATES": model.n_states,
        "PADDED": padded_state_count(model, settings.dtype),
        "LANES": n_partial_sums(model, settings.dtype),
        "LINEAR": int(settings.hold == "linear"),
        "USER_STATES": int(user_states),
        "PAIRS": model.n_pairs,
        "FAST_PAIRS": model.n_pairs - model.slow_pairs,
        "REALS": model.n_reals,
        "FAST_REALS": model.n_reals - model.slow_reals,
        "BLOCKS": len(model.blocks),
        "FAST_BLOCKS": len(model.blocks) - model.slow_blocks,
        "LARGEST_BLOCK": max((len(block.F) for block in model.blocks), default=1),
        "EQUAL_BLOCKS": int(len({len(block.F) for block in model.blocks}) <= 1),
        "SLOW": model.n_slow_states,
        "LOST_OF_REALS": 2 * model.slow_pairs,
        "LOST_OF_BLOCKS": 2 * model.slow_pairs + model.slow_reals,
    }
    lines = [f"typedef {settings.dtype} model_real;", "", f"#define MODEL_DT {settings.dt.hex()} /* {settings.dt!r} */"]
    lines += [f"#define MODEL_{name} {value}" for name, value in defined.items()]
    products, sums = count_operations(model)
    lines += ["", f"/* One step: {products} multiplications and {sums} additions. */"]
    lines += [*_c_enumeration("IN", inputs), *_c_enumeration("OUT", outputs)]
    return "\n".join(lines)


def count_operations(model: StepModel) -> tuple[int, int]:
    """Return multiplications and additions of one step with its outputs."""
    n, m, p = model.n_states, model.n_inputs, model.n_outputs
    dense = sum(len(block.F) ** 2 for block in model.blocks)
    drive_and_outputs = n * m * (2 if model.hold == "linear" else 1) + p * (n + m)
    products = 4 * model.n_pairs + model.n_reals + dense + drive_and_outputs
    dense_sums = dense - sum(len(block.F) for block in model.blocks)
    return products, 2 * model.n_pairs + dense_sums + drive_and_outputs + 7 * model.n_slow_states


def tables_section(model: StepModel, settings: ExportSettings, *, user_states: bool) -> str:
    """Return the constants of the source."""
    scalars, n = model.P.copy(), model.n_pairs
    slow = np.r_[n - model.slow_pairs : n, len(scalars) - model.slow_reals : len(scalars)]
    scalars[slow] = model.P_minus_1[slow]
    writer, n_padded = _TableWriter(settings.dtype), padded_state_count(model, settings.dtype)
    n_fast = len(model.blocks) - model.slow_blocks
    steps = [(block.P if index < n_fast else block.P_minus_1).T for index, block in enumerate(model.blocks)]
    parts = [
        writer.row("P_RE", scalars[:n].real, "PAIRS"),
        writer.row("P_IM", scalars[:n].imag, "PAIRS"),
        writer.row("P_REAL", scalars[n:].real, "REALS"),
        *write_block_tables(model, "P_BLOCK", steps, settings.dtype),
        writer.rows("G0", model.Gamma0.T, "INPUTS", "STATES") if model.n_states else "",
        writer.rows("G1", model.Gamma1.T, "INPUTS", "STATES") if model.n_states and model.hold == "linear" else "",
        writer.rows("C", np.pad(model.C, ((0, 0), (0, n_padded - model.n_states))), "OUTPUTS", "PADDED"),
        writer.rows("D", model.D, "OUTPUTS", "INPUTS"),
        writer.row("START", model.start, "STATES", always=True),
        writer.rows("T", model.T, "STATES", "STATES") if user_states else "",
    ]
    return "\n".join(part for part in parts if part)


def signals_section(tapped: TappedModel, *, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """Return the section of the header with the sizes of a model with delays or an operating point."""
    defined = {
        "INPUTS": tapped.n_inputs,
        "OUTPUTS": tapped.n_outputs,
        "TAPS": len(tapped.taps),
        "PARTIAL": int(tapped.is_partial.any()),
        "LONGEST_LAG": tapped.longest_lag,
        "HISTORY": int(tapped.history.sum()),
        "WAITING": int(tapped.output_steps.sum()),
    }
    lines = [f"#define MODEL_{name} {value}" for name, value in defined.items()]
    return "\n".join([*lines, *_c_enumeration("IN", inputs), *_c_enumeration("OUT", outputs)])


def delays_section(tapped: TappedModel, settings: ExportSettings) -> str:
    """Return the tables of taps, ring buffers and the operating point."""
    writer = _TableWriter(settings.dtype)
    history, waiting = tapped.history, tapped.output_steps
    integers: dict[str, tuple[ArrayLike, str]] = {
        "TAP_INPUT": ([tap.channel for tap in tapped.taps], "TAPS"),
        "TAP_LAG": ([tap.lag for tap in tapped.taps], "TAPS"),
        "TAP_ENDS_LINE": ([int(tap.ends_line) for tap in tapped.taps], "TAPS"),
        "HISTORY_FIRST": (np.cumsum(history) - history, "INPUTS"),
        "HISTORY_LENGTH": (history, "INPUTS"),
        "WAITING_FIRST": (np.cumsum(waiting) - waiting, "OUTPUTS"),
        "WAITING_LENGTH": (waiting, "OUTPUTS"),
    }
    parts = [c_integer_table(name, f"MODEL_DIM(MODEL_{size})", values) for name, (values, size) in integers.items()]
    parts.append(writer.row("U0", tapped.u0, "INPUTS", always=True))
    parts.append(writer.row("Y0", tapped.y0, "OUTPUTS", always=True))
    if tapped.is_partial.any():
        parts.append(c_integer_table("IS_PARTIAL", "MODEL_DIM(MODEL_OUTPUTS)", tapped.is_partial.astype(int)))
        parts.append(writer.rows("L", tapped.L, "OUTPUTS", "TAPS"))
    return "\n".join(parts)


def c_number(value: float, dtype: str) -> str:
    """Return a number as an exact C literal."""
    exact = float(PRECISIONS[dtype](value))
    return exact.hex() + ("f" if dtype == "float" else "") if exact else "0"


def c_list(numbers: Iterable[str], *, indent: str = "    ", per_line: int = _NUMBERS_PER_LINE) -> str:
    """Return numbers separated by commas, in lines."""
    entries = list(numbers)
    lines = [", ".join(entries[first : first + per_line]) for first in range(0, len(entries), per_line)]
    return ",\n".join(indent + line for line in lines)


def c_integer_table(name: str, size: str, values: ArrayLike) -> str:
    """Return an array of integers; one zero for an empty one."""
    numbers = c_list(map(str, np.asarray(values).tolist() or [0]), per_line=12)
    return f"static const int {name}[{size}] = {{\n{numbers}}};\n"


class _TableWriter:
    """Writer of C arrays in one precision."""

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype

    def row(self, name: str, values: Array, size: str, *, always: bool = False) -> str:
        """Return a vector; "" for an empty one, unless `always`."""
        if not len(values) and not always:
            return ""
        numbers = [c_number(value, self._dtype) for value in values.tolist()] or ["0"]
        return f"static const model_real {name}[MODEL_DIM(MODEL_{size})] = {{\n{c_list(numbers)}}};\n"

    def rows(self, name: str, values: Array, n_rows: str, n_columns: str) -> str:
        """Return a matrix, row by row; one zero for an empty one, which no loop reads."""
        entries: list[list[Any]] = values.tolist() if values.size else [[0.0]]
        lists = ["    {\n" + c_list([c_number(value, self._dtype) for value in row]) + "}" for row in entries]
        head = f"static const model_real {name}[MODEL_DIM(MODEL_{n_rows})][MODEL_DIM(MODEL_{n_columns})]"
        return f"{head} = {{\n" + ",\n".join(lists) + "};\n"


def write_block_tables(model: StepModel, name: str, matrices: Sequence[Matrix], dtype: str) -> list[str]:
    """Return first states, sizes and first entries of the dense blocks, and the entries of a matrix for each."""
    if not model.blocks:
        return []
    sizes = np.array([len(matrix) for matrix in matrices])
    first_state = len(model.rates) + model.n_pairs + np.cumsum(sizes) - sizes
    offsets = {"FIRST_STATE": first_state, "SIZE": sizes, "FIRST_ENTRY": np.cumsum(sizes**2) - sizes**2}
    integers = [c_integer_table(f"BLOCK_{part}", "MODEL_BLOCKS", values) for part, values in offsets.items()]
    entries = np.concatenate([matrix.ravel() for matrix in matrices])
    numbers = c_list(c_number(value, dtype) for value in entries.tolist())
    return [*integers, f"static const {dtype} {name}[{len(entries)}] = {{\n{numbers}}};\n"]


def _c_enumeration(kind: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    entries = [f"    MODEL_{kind}_{word} = {index}," for index, word in enumerate(c_identifiers(names))]
    entries[-1] = entries[-1].rstrip(",")
    lines = [f"{line} /* {protect_model_names(c_comment(name))} */" for line, name in zip(entries, names, strict=True)]
    return ["", "enum {", *lines, "};"]
