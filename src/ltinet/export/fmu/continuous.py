"""Tables for steps of any length (rates, inputs and dense blocks of the continuous-time system), and for delays."""

import numpy as np

from ltinet.arrays import Array
from ltinet.export.c.tables import listed, number
from ltinet.export.fmu.description import MANY_PIECES
from ltinet.export.step_model import StepModel
from ltinet.model.signal_settings import SignalSettings


def continuous_sizes(model: StepModel) -> str:
    """What the header needs to know."""
    return f"#define MODEL_BLOCK_ENTRIES {sum(len(block.F) ** 2 for block in model.blocks)}"


def continuous_section(model: StepModel) -> str:
    """Rates, B and the dense blocks; nothing for a model without states."""
    if not model.n_states:
        return ""
    rows = ["    {\n" + _numbers(row) + "}" for row in (model.B.T if model.n_inputs else np.zeros((1, 1)))]
    parts = [
        f"static const double RATE_RE[MODEL_ROOM(SCALARS)] = {{\n{_numbers(model.rates.real)}}};",
        f"static const double RATE_IM[MODEL_ROOM(SCALARS)] = {{\n{_numbers(model.rates.imag)}}};",
        "static const double B[MODEL_ROOM(MODEL_INPUTS)][MODEL_STATES] = {\n" + ",\n".join(rows) + "};",
    ]
    return "\n".join([*parts, *_blocks(model)])


def _numbers(values: Array) -> str:
    return listed([number(value, "double") for value in values.tolist()] or ["0"])


def _blocks(model: StepModel) -> list[str]:
    if not model.blocks:
        return []
    sizes = np.array([len(block.F) for block in model.blocks])
    first = len(model.rates) + model.n_pairs + np.cumsum(sizes) - sizes
    tables = {"STATE": first, "STATES": sizes, "AT": np.cumsum(sizes**2) - sizes**2}
    lines = [
        f"static const int BLOCK_{name}[MODEL_BLOCKS] = {{\n{listed(map(str, own.tolist()), per_line=12)}}};"
        for name, own in tables.items()
    ]
    entries = np.concatenate([block.F.ravel() for block in model.blocks])
    return [*lines, f"static const double F_BLOCK[MODEL_BLOCK_ENTRIES] = {{\n{_numbers(entries)}}};"]


def delay_sizes(model: StepModel, signals: SignalSettings) -> str:
    """Sizes of what is around the core of a model with delays or an operating point."""
    copies, longest = np.unique(signals.array("output_delay", model.n_outputs)), longest_delay(model, signals)
    defined = {
        "COPIES": max(len(copies), 1),
        "PIECES": MANY_PIECES * int(np.ceil(longest / model.dt)) + 64,
        "LINES_BETWEEN_POINTS": int(signals.hold == "linear"),
    }
    return "\n".join(f"#define MODEL_{name} {value}" for name, value in defined.items())


def delays_section(model: StepModel, signals: SignalSettings) -> str:
    """Delays and the operating point."""
    m, p = model.n_inputs, model.n_outputs
    copies, places = np.unique(signals.array("output_delay", p), return_inverse=True)
    copies = copies if len(copies) else np.zeros(1)
    tables = {
        "INPUT_DELAY[MODEL_ROOM(MODEL_INPUTS)]": signals.array("input_delay", m),
        "COPY_DELAY[MODEL_COPIES]": copies,
        "U0[MODEL_ROOM(MODEL_INPUTS)]": signals.array("u0", m),
        "Y0[MODEL_ROOM(MODEL_OUTPUTS)]": signals.array("y0", p),
    }
    lines = [f"static const double {name} = {{\n{_numbers(own)}}};" for name, own in tables.items()]
    lines.append(f"static const double LONGEST_DELAY = {number(longest_delay(model, signals), 'double')};")
    own = listed(map(str, places.tolist() or [0]), per_line=12)
    return "\n".join([*lines, f"static const int OUTPUT_COPY[MODEL_ROOM(MODEL_OUTPUTS)] = {{\n{own}}};"])


def longest_delay(model: StepModel, signals: SignalSettings) -> float:
    """The largest delay from an input to an output."""
    return float(signals.total_delay(model.n_outputs, model.n_inputs).max(initial=0.0))
