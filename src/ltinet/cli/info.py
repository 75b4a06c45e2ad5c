"""Command `ltinet info`: the content of a file as text or JSON, with poles, damping and DC gain."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, format_rows
from ltinet.analysis.poles import Damping, format_pole
from ltinet.cli.io import show_status, write_stdout
from ltinet.cli.options import flag
from ltinet.cli.sources import MatrixNames, SourceName, read_system_or_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.network.summary import network_facts, summary_rows
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import UNNAMED
from ltinet.systems.system_matrices import SystemFacts, system_facts

JSONNumber = float | str | None
"""Number in JSON, which has neither infinity nor NaN: "inf", "-inf" and null stand for them."""
_MAX_POLES = 4  # shown in text
_MAX_GAINS = 9  # entries of the DC gain shown in text


def behavior_facts(model: StateSpace | DynamicNetwork) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return poles, damping and DC gain as data for JSON, and as pairs of a label and a text.

    Poles stand in one order in all lists, slowest first; the DC gain has a row for each output.
    """
    damping, gain = model.damping(), model.dcgain()
    facts = {
        "dt": model.dt,
        "poles": [[pole.real, pole.imag] for pole in damping.poles.tolist()],
        "natural_frequencies": _json_numbers(damping.natural_frequency),
        "damping_ratios": _json_numbers(damping.damping_ratio),
        "time_constants": _json_numbers(damping.time_constant),
        "dc_gain": [_json_numbers(row) for row in gain],
    }
    is_system = isinstance(model, StateSpace)  # summaries of networks have the time step already
    rows = [("time step", f"{model.dt:g}, discrete in time")] if is_system and model.dt is not None else []
    return facts, [*rows, *_pole_rows(damping), ("DC gain", _format_gain(gain))]


def to_json_number(value: float) -> JSONNumber:
    """Return a number, or its replacement in JSON: "inf", "-inf" or null."""
    return None if np.isnan(value) else value if np.isfinite(value) else str(value)


def _json_numbers(values: NDArray[np.float64]) -> list[JSONNumber]:
    return [to_json_number(value) for value in values.tolist()]


def _pole_rows(damping: Damping) -> list[tuple[str, str]]:
    if not len(damping):
        return []
    upper = [pole for pole in damping.poles.tolist() if pole.imag >= 0.0]  # one of each pair
    listed = ", ".join(format_pole(pole).replace("+", "±") for pole in upper[:_MAX_POLES])
    more = f", … and {len(upper) - _MAX_POLES} faster" if len(upper) > _MAX_POLES else ""
    rows = [("poles", f"{listed}{more}")]
    ratios = damping.damping_ratio[np.isfinite(damping.damping_ratio)]
    if len(ratios):
        frequencies = _format_range(damping.natural_frequency)
        rows.append(("damping", f"ratio {_format_range(ratios)}, natural frequency {frequencies} rad/time"))
    return rows


def _format_range(values: Array) -> str:
    low, high = f"{values.min():.4g}", f"{values.max():.4g}"
    return low if low == high else f"{low} to {high}"


def _format_gain(gain: Array) -> str:
    outputs, inputs = gain.shape
    if not gain.size:
        return "none"
    if gain.size == 1:
        return f"{gain[0, 0]:.5g}"
    if gain.size <= _MAX_GAINS:
        return "; ".join(", ".join(f"{value:.5g}" for value in row) for row in gain) + f"  ({outputs} × {inputs})"
    sizes = np.abs(gain[~np.isnan(gain)])
    return f"{outputs} × {inputs}, largest |gain| {sizes.max(initial=0.0):.5g}"


Rows = list[tuple[str, str]]


def info(
    file: SourceName,
    as_json: Annotated[bool, flag("--json", "One JSON object, numbers in full precision.")] = False,
    matrix: MatrixNames = None,
) -> None:
    """Show the content of a file.

    FILE is a network (.safetensors) or a system: a .mat or .npz file, a folder of Matrix Market files, or a built-in
    system such as example:heat_rod. In JSON "inf", "-inf" and null stand for values that are infinite or undefined: the
    gain of an integrator, for example.
    """
    model = read_system_or_network(file, matrix)
    facts: dict[str, Any]
    descriptor = model.sparse if isinstance(model, StateSpace) else None
    is_large = descriptor is not None and descriptor.is_large  # poles of large sparse systems are not computed
    if isinstance(model, DynamicNetwork):
        facts = dict(network_facts(model.network, model.form, model.dt))
        names = UNNAMED if model.system is None else model.system.matrices.names
        title, rows = summary_rows(network_facts(model.network, model.form, model.dt), names, model.signal_settings)
    else:
        system = system_facts(model.matrices)
        facts, names = dict(system), model.matrices.names
        title, rows = _system_rows(system)
        large = [("matrices", descriptor.description)] if is_large and descriptor is not None else []
        rows = [*names.without_states.rows, *rows, *large, *model.signal_settings.rows]
    if is_large:
        facts["dt"] = model.dt
    else:
        with show_status(f"computing poles of {format_count(model.n_states, 'state')}"):
            behavior, more = behavior_facts(model)
        facts, rows = {**facts, **behavior}, [*rows, *more]
    facts |= {f"{kind[:-1]}_names": list(labels) for kind, labels in names.by_kind.items()}
    if model.signal_settings.facts:
        facts["signal_settings"] = model.signal_settings.facts
    _show(facts, title, rows, as_json=as_json)


def _show(facts: Mapping[str, Any], title: str, rows: Rows, *, as_json: bool) -> None:
    if as_json:
        plain = {name: to_json_number(fact) if isinstance(fact, float) else fact for name, fact in facts.items()}
        write_stdout(json.dumps(plain, indent=2, allow_nan=False) + "\n")
    elif sys.stdout is not None and sys.stdout.isatty():
        _print_table(title, rows)
    else:
        write_stdout(format_rows(title, rows) + "\n")


def _print_table(title: str, rows: Rows) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for label, value in rows:
        table.add_row(label, value)
    console = Console(highlight=False)
    console.print(title, style="bold")
    console.print(Padding(table, (0, 0, 0, 2)))


def _system_rows(facts: SystemFacts) -> tuple[str, Rows]:
    n, n_real, n_pairs = facts["n_states"], facts["n_real_eigenvalues"], facts["n_complex_pairs"] or 0
    rows = [("states", str(n)), ("A", f"{facts['nonzeros_of_A']} of {n * n} entries are not zero")]
    rows.append(("feedthrough", "yes, D is not zero" if facts["has_feedthrough"] else "none, D is zero"))
    if facts["real_parts"] is not None:
        low, high = facts["real_parts"]
        rows.append(("eigenvalues", f"{n_real} real, {format_count(n_pairs, 'complex pair')}"))
        rows.append(("real parts", f"{low:.4g} to {high:.4g}"))
    inputs, outputs = format_count(facts["n_inputs"], "input"), format_count(facts["n_outputs"], "output")
    return f"linear time-invariant system, {inputs} → {outputs}", rows
