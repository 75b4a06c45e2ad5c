"""Export of a network as a folder of C99: model, header, self-test, Makefile, README and manifest.

The self-test compares outputs with those of the step model in Python, within the rounding bounds of both. The README
states the interface, cost, memory and accuracy of the exported model.
"""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from string import Template

import numpy as np

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.errors import FileFormatError
from ltinet.export import manifest
from ltinet.export.c import tables
from ltinet.export.c.templates import fill_template, read_source, rename_model, validate_prefix
from ltinet.export.manifest import Export
from ltinet.export.rounding import RoundingBound
from ltinet.export.step_model import PRECISIONS, ExportSettings, StepModel, build_exported_model, growth_warnings
from ltinet.export.tapped_delay_line import TappedModel, build_tapped_model, exported_rounding_bound, run_tapped_model
from ltinet.simulation.context import SimulationContext

_TEST_STEPS = 64
_MAX_DELAY_STEPS = 2000  # added to the test for delays; more would make the test larger than the model
_SEED = 20260


def self_test_section(model: StepModel, settings: ExportSettings, tapped: TappedModel | None = None) -> str:
    """Return inputs, outputs in double precision and allowed differences of the self-test."""
    if tapped is None:
        u = _test_inputs(model.n_inputs, settings)
        y, allowed = reference_run(model, u), _allowed_differences(model, settings, u)
    else:
        u = _test_inputs(tapped.n_inputs, settings, around=tapped.u0, n_steps=n_test_steps(tapped))
        y, allowed = run_tapped_model(tapped, u), _allowed_differences(tapped, settings, u - tapped.u0)
    limits = (allowed if allowed.size else np.ones(1)).tolist()
    inputs = _c_rows(u if u.size else np.zeros((len(u), 1)), settings.dtype)
    outputs = _c_rows(y if y.size else np.zeros((len(y), 1)), "double")
    return "\n".join(
        [
            f"enum {{ TEST_STEPS = {len(u)} }};",
            f"static const model_real TEST_U[TEST_STEPS][MODEL_DIM(MODEL_INPUTS)] = {{\n{inputs}}};",
            f"static const double TEST_Y[TEST_STEPS][MODEL_DIM(MODEL_OUTPUTS)] = {{\n{outputs}}};",
            "static const double TEST_ALLOWED[MODEL_DIM(MODEL_OUTPUTS)] = {\n"
            f"{tables.c_list(tables.c_number(value, 'double') for value in limits)}}};",
        ]
    )


def n_test_steps(tapped: TappedModel | None) -> int:
    """Return the number of steps of the test: delays up to `_MAX_DELAY_STEPS` end before its last part."""
    if tapped is None:
        return _TEST_STEPS
    return _TEST_STEPS + min(tapped.longest_lag + int(tapped.output_steps.max(initial=0)), _MAX_DELAY_STEPS)


def reference_run(model: StepModel, u: Array) -> Array:
    """Return outputs `(T, p)` of the step model in NumPy and double precision, sample by sample."""
    z, outputs = model.start, []
    for k, sample in enumerate(u):
        if k:
            z = model.advanced(z) + model.Gamma0 @ u[k - 1] + model.Gamma1 @ sample
        outputs.append(model.C @ z + model.D @ sample)
    return np.array(outputs).reshape(len(u), model.n_outputs)


def _test_inputs(
    n_inputs: int, settings: ExportSettings, *, around: Array | None = None, n_steps: int = _TEST_STEPS
) -> Array:
    """Return noise that is exact in the precision."""
    samples = np.random.default_rng(_SEED).standard_normal((n_steps, n_inputs))
    samples = samples if around is None else samples + around
    return samples.astype(PRECISIONS[settings.dtype]).astype(np.float64)


def _allowed_differences(model: StepModel | TappedModel, settings: ExportSettings, u: Array) -> Array:
    """Return the sum of the bounds of exported code and reference; the largest number if it is infinite."""
    peak, n_steps = np.abs(u).max(axis=0, initial=0.0), float(len(u))
    of_code, of_reference = (
        exported_rounding_bound(model, precision, n_steps=n_steps, peak=peak).drift
        for precision in (PRECISIONS[settings.dtype], np.float64)
    )
    largest, tiny = np.finfo(np.float64).max, np.finfo(np.float64).tiny
    return np.clip(np.nan_to_num(of_code + of_reference, nan=largest, posinf=largest), tiny, largest)


def _c_rows(values: Array, dtype: str) -> str:
    rows = ([tables.c_number(value, dtype) for value in row] for row in values.tolist())
    return ",\n".join("    {" + tables.c_list(row, indent=" ").strip() + "}" for row in rows)


_HOLD_TEXTS = {
    "zero": "Inputs are constant until the next sample (zero-order hold).",
    "linear": "Inputs are linear between samples (first-order hold).",
    "none": "The model is in discrete time: a step is its difference equation.",
}
_NEEDED_FILES_TEXTS = {
    "model": "A program needs two files, `{prefix}.c` and `{prefix}.h`.",
    "delayed": "A program needs four files: `{prefix}.c`, `{prefix}.h`, `{prefix}_core.c` and `{prefix}_core.h`.",
}
_HALF_STEP_ROW = "| `{prefix}_advance`, `{prefix}_output` | the two halves of a step |\n"
_BOUND_CONDITIONS = "from the operating point, from the initial state"
_USER_STATES_TEXT = "| `{prefix}_get_user_state` | return this state in the coordinates of the original system |\n"


def readme_text(
    context: SimulationContext,
    model: StepModel,
    settings: ExportSettings,
    *,
    bound: RoundingBound,
    prefix: str,
    user_states: bool,
    tapped: TappedModel | None = None,
) -> str:
    """Return the README: interface, cost and accuracy."""
    products, sums = _operations(model, tapped)
    inputs, outputs = manifest.input_names(context), manifest.output_names(context)
    channels = [(array, *channel) for array, names in (("u", inputs), ("y", outputs)) for channel in enumerate(names)]
    signals = [f"| `{array}[{index}]` | {_markdown_cell(name)} |" for array, index, name in channels]
    return Template(read_source("c", "README.md")).substitute(
        prefix=prefix,
        upper=prefix.upper(),
        dt=repr(settings.dt),
        steps=n_test_steps(tapped),
        needed=_NEEDED_FILES_TEXTS["model" if tapped is None else "delayed"].format(prefix=prefix),
        halves=_HALF_STEP_ROW.format(prefix=prefix) if tapped is None else "",
        delays="" if tapped is None else _delays(tapped, settings, inputs, outputs),
        reach="from the initial state" if tapped is None else _BOUND_CONDITIONS,
        facts=_readme_facts(model, settings),
        start="all states zero" if settings.x0 is None else "x0",
        user_states=_USER_STATES_TEXT.format(prefix=prefix) if user_states else "",
        hold=_HOLD_TEXTS["none" if model.is_discrete else settings.hold],
        products=products,
        sums=sums,
        memory=_memory(model, settings, tapped),
        flash=_flash(model, settings, tapped, user_states=user_states),
        signals="\n".join(["| in C | name |", "|---|---|", *signals]),
        bounds=_bounds_table(bound, outputs),
        decomposition=_decomposition(context) + _reduction(context),
    )


def _readme_facts(model: StepModel, settings: ExportSettings) -> str:
    parts = [format_count(model.n_pairs, "pair"), format_count(model.n_reals, "real")]
    parts.append(format_count(len(model.blocks), "dense block"))
    states = f"{format_count(model.n_states, 'state')} ({', '.join(parts)})"
    ends = f"{format_count(model.n_inputs, 'input')}, {format_count(model.n_outputs, 'output')}"
    kind = "sample" if model.is_discrete else "exact step"
    return f"{ends}, {states}; one {kind} of {settings.dt!r} at a time, in {settings.dtype} precision."


def _operations(model: StepModel, tapped: TappedModel | None) -> tuple[int, int]:
    if tapped is None:
        return tables.count_operations(model)
    products, sums = tables.count_operations(tapped.step)
    partial = int(tapped.is_partial.sum()) * len(tapped.taps)
    return products + partial, sums + partial + tapped.n_inputs + tapped.n_outputs


def _delays(tapped: TappedModel, settings: ExportSettings, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
    """Return the section on delays and the operating point."""
    signals = settings.signals
    rows = [
        f"| `{array}[{index}]` | {_markdown_cell(name)} | {delay!r} | {offset!r} |"
        for array, names, delays, offsets in (
            ("u", inputs, signals.array("input_delay", len(inputs)), signals.array("u0", len(inputs))),
            ("y", outputs, signals.array("output_delay", len(outputs)), signals.array("y0", len(outputs))),
        )
        for index, (name, delay, offset) in enumerate(zip(names, delays.tolist(), offsets.tolist(), strict=True))
    ]
    n_outputs = format_count(int(tapped.output_steps.sum()), "output")
    return "\n".join(
        [
            "",
            "## Delays and operating point",
            "",
            "`u` and `y` are measured signals: `y - y0` responds to `u - u0`. Before the first sample inputs are at `u0`;",
            "until an input arrives, outputs are at `y0`. Delays are exact, also those that are not multiples of the",
            "step: the input then switches, or has its corner, inside the step. A state stores",
            f"{format_count(int(tapped.history.sum()), 'sample')} of inputs and {n_outputs}.",
            "",
            "| in C | name | delay | operating point |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _memory(model: StepModel, settings: ExportSettings, tapped: TappedModel | None) -> int:
    """Return the bytes of a state; integers are padded to the size of the numbers."""
    width = np.dtype(PRECISIONS[settings.dtype]).itemsize
    if tapped is not None:
        numbers = max(int(tapped.history.sum()), 1) + max(int(tapped.output_steps.sum()), 1) + max(tapped.n_outputs, 1)
        integers = 4 * (max(tapped.n_inputs, 1) + max(tapped.n_outputs, 1) + 1)
        return _memory(tapped.step, settings, None) + -(-(numbers * width + integers) // width) * width
    numbers = max(tables.padded_state_count(model, settings.dtype), 1) + max(model.n_inputs, 1) + model.n_slow_states
    return -(-(numbers * width + 4) // width) * width


def _flash(model: StepModel, settings: ExportSettings, tapped: TappedModel | None, *, user_states: bool) -> int:
    """Return the bytes of the tables."""
    width = np.dtype(PRECISIONS[settings.dtype]).itemsize
    if tapped is None:
        return _table_numbers(model, settings, user_states=user_states) * width
    m, p, taps = tapped.n_inputs, tapped.n_outputs, len(tapped.taps)
    numbers = _table_numbers(tapped.step, settings, user_states=user_states) + m + p
    partial = (p * taps * width + 4 * p) if tapped.is_partial.any() else 0
    return numbers * width + 4 * (3 * taps + 2 * m + 2 * p) + partial


def _table_numbers(model: StepModel, settings: ExportSettings, *, user_states: bool) -> int:
    n, m, p = model.n_states, model.n_inputs, model.n_outputs
    propagators = 2 * model.n_pairs + model.n_reals + sum(len(block.F) ** 2 for block in model.blocks)
    drive = n * m * (2 if model.hold == "linear" else 1)
    outputs = p * (tables.padded_state_count(model, settings.dtype) + m)
    return propagators + drive + outputs + n + (n * n if user_states else 0)


def _reduction(context: SimulationContext) -> str:
    """Return a paragraph on the error of the reduction that made the network; "" without one."""
    if context.reduction_error is None:
        return ""
    size = context.reduction_error
    limit = f"at most {size:.2g} times the L2 norm of the inputs" if np.isfinite(size) else "not bounded"
    return (
        "The network is a reduced model. Its outputs differ from those of the full model by another error, which is\n"
        f"{limit}.\n\n"
    )


def _decomposition(context: SimulationContext) -> str:
    """Return a paragraph on the error of the block-diagonal form; "" for a network without a system."""
    if context.form is None:
        return ""
    if context.dt is not None:
        return "The error after many steps is that of the system in double precision: it counts the decomposition of A.\n\n"
    return (
        "The exact solution is that of the network. The relative backward error of its matrix A is\n"
        f"{_format_value(context.form.backward_error)} in balanced units; cond(T) is "
        f"{_format_value(context.form.condition_raw)}\nin your units of the states. Outputs of the system may differ by "
        "up to cond(T) rounding errors of the largest state.\n\n"
    )


def _bounds_table(bound: RoundingBound, outputs: tuple[str, ...]) -> str:
    columns = zip(outputs, bound.size, bound.per_step, bound.drift, strict=True)
    rows = [f"| {' | '.join([_markdown_cell(name), *map(_format_value, values)])} |" for name, *values in columns]
    head = f"| output | size ≤ | error per step ≤ | error after {manifest.LONG_RUN_STEPS:.0e} steps ≤ |"
    return "\n".join([head, "|---|---|---|---|", *rows])


def _format_value(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else "not bounded"


def _markdown_cell(name: str) -> str:
    """Return a name as text in a Markdown table, without markup or HTML."""
    marks = "\\`*_{}[]<>()#+!|~&$"
    return "".join(f"\\{mark}" if mark in marks else mark for mark in name)


def write_c(
    context: SimulationContext,
    folder: str | PathLike[str],
    *,
    settings: ExportSettings,
    prefix: str,
    user_states: bool,
) -> Export:
    """Write the sources of a network."""
    prefix = validate_prefix(prefix)
    if user_states and context.has_operator:
        raise FileFormatError(
            f"T of this network of {context.network.n_states} states is an operator, not an array; omit user_states"
        )
    model = build_exported_model(context, settings)
    tapped = build_tapped_model(model, settings) if settings.signals.shifts_signals else None
    bound = manifest.long_run_bound(tapped or model, settings)
    inputs, outputs = manifest.input_names(context), manifest.output_names(context)
    if tapped is None:
        files = model_sources(model, settings, prefix=prefix, user_states=user_states, inputs=inputs, outputs=outputs)
    else:  # the core, and the delay lines around it
        signals = tables.signals_section(tapped, inputs=inputs, outputs=outputs)
        delays = tables.delays_section(tapped, settings)
        files = {
            f"{prefix}.c": fill_template(read_source("c", "delayed.c"), {"delays": delays}, prefix=prefix),
            f"{prefix}.h": fill_template(read_source("c", "delayed.h"), {"signals": signals}, prefix=prefix),
        }
        held = replace(settings, hold="zero")
        files |= model_sources(tapped.step, held, prefix=f"{prefix}_core", user_states=user_states)
    vectors = self_test_section(model, settings, tapped)
    makefile = read_source("c", "Makefile" if tapped is None else "Makefile.delayed")
    files |= {
        f"{prefix}_test.c": fill_template(read_source("c", "model_test.c"), {"vectors": vectors}, prefix=prefix),
        "Makefile": rename_model(makefile, prefix),
        "README.md": readme_text(
            context, model, settings, bound=bound, prefix=prefix, user_states=user_states, tapped=tapped
        ),
    }
    names = (*files, manifest.MANIFEST_FILE)
    record = manifest.build_manifest("c", context, settings, model=model, bound=bound, files=names)
    files[manifest.MANIFEST_FILE] = manifest.manifest_bytes(record)
    path = manifest.write_export_folder(folder, {name: text.encode() for name, text in files.items()})
    return Export(path, names, record, growth_warnings(model))


def model_sources(
    model: StepModel, settings: ExportSettings, *, prefix: str, user_states: bool, inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
) -> dict[str, str]:  # fmt: skip
    """Return the source and the header of a model, with the names of its inputs and outputs."""
    sizes = tables.sizes_section(model, settings, inputs=inputs, outputs=outputs, user_states=user_states)
    constants = tables.tables_section(model, settings, user_states=user_states)
    return {
        f"{prefix}.c": fill_template(read_source("c", "model.c"), {"tables": constants}, prefix=prefix),
        f"{prefix}.h": fill_template(read_source("c", "model.h"), {"sizes": sizes}, prefix=prefix),
    }
