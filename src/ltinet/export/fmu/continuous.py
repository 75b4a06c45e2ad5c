"""Tables for steps of any length: rates, inputs and dense blocks of the continuous-time system."""

import numpy as np

from ltinet.arrays import Array
from ltinet.export.c.tables import listed, number
from ltinet.export.step_model import StepModel


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
