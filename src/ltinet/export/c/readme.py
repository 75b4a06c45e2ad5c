"""The README of exported C, from its text in the package."""

from string import Template

import numpy as np

from ltinet.export.c.self_test import n_steps_of
from ltinet.export.c.sources import source
from ltinet.export.c.tables import operations, padded
from ltinet.export.manifest import MANY_STEPS, input_names, output_names
from ltinet.export.rounding.bound import RoundingBound
from ltinet.export.settings import PRECISIONS, ExportSettings
from ltinet.export.step_model import StepModel
from ltinet.export.tapped import TappedModel
from ltinet.shown import count_of
from ltinet.solve.prepared import PreparedNetwork

_HOLDS = {
    "zero": "Inputs are kept until the next sample (zero hold).",
    "linear": "Inputs go in straight lines from sample to sample (linear hold).",
}
_NEEDED = {
    "model": "Two files are all that a program needs, `{prefix}.c` and `{prefix}.h`.",
    "delayed": "Four files are all that a program needs: `{prefix}.c`, `{prefix}.h`, `{prefix}_core.c` and "
    "`{prefix}_core.h`.",
}
_HALVES = "| `{prefix}_advance`, `{prefix}_output` | the two halves of a step |\n"
_REACH = "from the operating point, from the initial state"
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
    tapped: TappedModel | None = None,
) -> str:
    """How to call it, what it costs and how exact it is."""
    products, sums = _operations(model, tapped)
    inputs, outputs = input_names(prepared), output_names(prepared)
    return Template(source("c", "README.md")).substitute(
        prefix=prefix,
        upper=prefix.upper(),
        dt=repr(settings.dt),
        steps=n_steps_of(tapped),
        needed=_NEEDED["model" if tapped is None else "delayed"].format(prefix=prefix),
        halves=_HALVES.format(prefix=prefix) if tapped is None else "",
        delays="" if tapped is None else _delays(tapped, settings, inputs, outputs),
        reach="from the initial state" if tapped is None else _REACH,
        facts=_facts(model, settings),
        start="all states zero" if settings.x0 is None else "the x0 that was given",
        user_states=_USER_STATES.format(prefix=prefix) if user_states else "",
        hold=_HOLDS[settings.hold],
        products=products,
        sums=sums,
        memory=_memory(model, settings, tapped),
        flash=_flash(model, settings, tapped, user_states=user_states),
        signals=_signals(inputs, outputs),
        bounds=_bounds(bound, outputs),
        decomposition=_decomposition(prepared),
    )


def _facts(model: StepModel, settings: ExportSettings) -> str:
    parts = [count_of(model.n_pairs, "pair"), count_of(model.n_reals, "real")]
    parts.append(count_of(len(model.blocks), "dense block"))
    states = f"{count_of(model.n_states, 'state')} ({', '.join(parts)})"
    ends = f"{count_of(model.n_inputs, 'input')}, {count_of(model.n_outputs, 'output')}"
    return f"{ends}, {states}; one exact step of {settings.dt!r} at a time, in {settings.dtype} precision."


def _operations(model: StepModel, tapped: TappedModel | None) -> tuple[int, int]:
    if tapped is None:
        return operations(model)
    products, sums = operations(tapped.step)
    partial = int(tapped.is_partial.sum()) * len(tapped.taps)
    return products + partial, sums + partial + tapped.n_inputs + tapped.n_outputs


def _delays(tapped: TappedModel, settings: ExportSettings, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
    """The section on delays and the operating point."""
    own = settings.signals
    rows = [
        f"| `{place}[{number}]` | {_cell(name)} | {delay!r} | {offset!r} |"
        for place, names, delays, offsets in (
            ("u", inputs, own.array("input_delay", len(inputs)), own.array("u0", len(inputs))),
            ("y", outputs, own.array("output_delay", len(outputs)), own.array("y0", len(outputs))),
        )
        for number, (name, delay, offset) in enumerate(zip(names, delays.tolist(), offsets.tolist(), strict=True))
    ]
    n_outputs = count_of(int(tapped.output_steps.sum()), "output")
    kept = f"{count_of(int(tapped.history.sum()), 'sample')} of inputs and {n_outputs}"
    return "\n".join(
        [
            "",
            "## Delays and operating point",
            "",
            "Give `u` and read `y` as they are measured: `y - y0` responds to `u - u0`. Before the first sample",
            "inputs are at `u0`; until something arrives, outputs are at `y0`. Delays are exact, even if they are no",
            "multiple of the step: the input then switches, or has its corner, inside the step. A state keeps",
            f"{kept}.",
            "",
            "| in C | name | delay | operating point |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _width(settings: ExportSettings) -> int:
    return np.dtype(PRECISIONS[settings.dtype]).itemsize


def _memory(model: StepModel, settings: ExportSettings, tapped: TappedModel | None) -> int:
    """Bytes of a state; integers of a core and of what is around it fill up to whole numbers."""
    if tapped is not None:
        width = _width(settings)
        numbers = max(int(tapped.history.sum()), 1) + max(int(tapped.output_steps.sum()), 1) + max(tapped.n_outputs, 1)
        integers = 4 * (max(tapped.n_inputs, 1) + max(tapped.n_outputs, 1) + 1)
        return _memory(tapped.step, settings, None) + -(-(numbers * width + integers) // width) * width
    n_slow = 2 * model.slow_pairs + model.slow_reals
    n_slow += sum(len(block.F) for block in model.blocks[len(model.blocks) - model.slow_blocks :])
    numbers = max(padded(model, settings.dtype), 1) + max(model.n_inputs, 1) + n_slow
    width = _width(settings)
    return -(-(numbers * width + 4) // width) * width


def _flash(model: StepModel, settings: ExportSettings, tapped: TappedModel | None, *, user_states: bool) -> int:
    """Bytes of the tables."""
    width = _width(settings)
    if tapped is None:
        return _table_numbers(model, settings, user_states=user_states) * width
    m, p, taps = tapped.n_inputs, tapped.n_outputs, len(tapped.taps)
    numbers = _table_numbers(tapped.step, settings, user_states=user_states) + m + p
    partial = (p * taps * width + 4 * p) if tapped.is_partial.any() else 0
    return numbers * width + 4 * (3 * taps + 2 * m + 2 * p) + partial


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


def _decomposition(prepared: PreparedNetwork) -> str:
    """What the block-diagonal form adds to the bound; nothing for a network without a system."""
    if prepared.form is None:
        return ""
    return (
        "The exact solution is that of the network. Its matrix differs from that of the system by\n"
        f"{_shown(prepared.form.backward_error)} of it (backward error, in balanced units); cond(T) is "
        f"{_shown(prepared.form.condition_raw)}\nin your units of the states. Outputs of the system may differ by "
        "up to cond(T) roundings of the largest state.\n\n"
    )


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
