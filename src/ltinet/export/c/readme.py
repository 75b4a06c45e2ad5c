"""The README of exported C, from its text in the package."""

from string import Template

import numpy as np

from ltinet.export.c.sources import source
from ltinet.export.c.tables import operations, padded
from ltinet.export.manifest import MANY_STEPS, input_names, output_names
from ltinet.export.rounding.bound import RoundingBound
from ltinet.export.settings import PRECISIONS, ExportSettings
from ltinet.export.step_model import StepModel
from ltinet.shown import count_of
from ltinet.solve.prepared import PreparedNetwork

_HOLDS = {
    "zero": "Inputs are kept until the next sample (zero hold).",
    "linear": "Inputs go in straight lines from sample to sample (linear hold).",
}
_USER_STATES = (
    "| `{prefix}_get_user_state` | the same state in the coordinates of the system that the network was made from |\n"
)


def readme(
    prepared: PreparedNetwork,
    model: StepModel,
    settings: ExportSettings,
    *,
    bound: RoundingBound,
    prefix: str,
    user_states: bool,
) -> str:
    """How to call it, what it costs and how exact it is."""
    products, sums = operations(model)
    inputs, outputs = input_names(prepared), output_names(prepared)
    return Template(source("c", "README.md")).substitute(
        prefix=prefix,
        upper=prefix.upper(),
        dt=repr(settings.dt),
        steps=64,
        facts=_facts(model, settings),
        start="all states zero" if settings.x0 is None else "the x0 that was given",
        user_states=_USER_STATES.format(prefix=prefix) if user_states else "",
        hold=_HOLDS[settings.hold],
        products=products,
        sums=sums,
        memory=_memory(model, settings),
        flash=_table_numbers(model, settings, user_states=user_states) * _width(settings),
        signals=_signals(inputs, outputs),
        bounds=_bounds(bound, outputs),
    )


def _facts(model: StepModel, settings: ExportSettings) -> str:
    parts = [count_of(model.n_pairs, "pair"), count_of(model.n_reals, "real")]
    parts.append(count_of(len(model.blocks), "dense block"))
    states = f"{count_of(model.n_states, 'state')} ({', '.join(parts)})"
    ends = f"{count_of(model.n_inputs, 'input')}, {count_of(model.n_outputs, 'output')}"
    return f"{ends}, {states}; one exact step of {settings.dt!r} at a time, in {settings.dtype} precision."


def _width(settings: ExportSettings) -> int:
    return np.dtype(PRECISIONS[settings.dtype]).itemsize


def _memory(model: StepModel, settings: ExportSettings) -> int:
    n_slow = 2 * model.slow_pairs + model.slow_reals
    n_slow += sum(len(block.F) for block in model.blocks[len(model.blocks) - model.slow_blocks :])
    numbers = max(padded(model, settings.dtype), 1) + max(model.n_inputs, 1) + n_slow
    width = _width(settings)
    return -(-(numbers * width + 4) // width) * width


def _table_numbers(model: StepModel, settings: ExportSettings, *, user_states: bool) -> int:
    n, m, p = model.n_states, model.n_inputs, model.n_outputs
    dense = sum(len(block.F) ** 2 for block in model.blocks)
    drive = n * m * (2 if model.hold == "linear" else 1)
    return (
        2 * model.n_pairs
        + model.n_reals
        + dense
        + drive
        + p * (padded(model, settings.dtype) + m)
        + n
        + (n * n if user_states else 0)
    )


def _signals(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
    rows = [f"| `u[{place}]` | {_cell(name)} |" for place, name in enumerate(inputs)]
    rows += [f"| `y[{place}]` | {_cell(name)} |" for place, name in enumerate(outputs)]
    return "\n".join(["| in C | name |", "|---|---|", *rows])


def _bounds(bound: RoundingBound, outputs: tuple[str, ...]) -> str:
    rows = [
        f"| {_cell(name)} | {_shown(size)} | {_shown(step)} | {_shown(drift)} |"
        for name, size, step, drift in zip(outputs, bound.size, bound.per_step, bound.drift, strict=True)
    ]
    head = f"| output | its size at most | per step at most | after {MANY_STEPS:.0e} steps at most |"
    return "\n".join([head, "|---|---|---|---|", *rows])


def _shown(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else "not bounded"


def _cell(name: str) -> str:
    """A name in a table of Markdown, as text: neither markup nor HTML."""
    marks = "\\`*_{}[]<>()#+!|~&$"
    return "".join(f"\\{mark}" if mark in marks else mark for mark in name)
