"""Command `ltinet info`: the content of a file as text or JSON, with poles, damping and DC gain."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, format_rows
from ltinet.analysis.poles import Damping, format_pole
from ltinet.cli.io import show_status, write_stdout
from ltinet.cli.sources import MatrixNames, SourceName, read_system_or_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.network.summary import network_facts, summary_rows
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import UNNAMED
from ltinet.systems.sparse_descriptor import SparseDescriptor
from ltinet.systems.system_matrices import SystemFacts, system_facts

JSONNumber = float | str | None
"""A number in JSON, which knows neither infinity nor NaN: "inf", "-inf" and null stand for them."""
_POLES = 4  # that are shown
_GAINS = 9  # that are shown


class BehaviourFacts(TypedDict):
    """How a system behaves; every value passes as JSON. The lists of poles run along each other, slowest pole first."""

    dt: float | None
    poles: list[list[float]]
    """Real and imaginary parts."""
    natural_frequencies: list[JSONNumber]
    damping_ratios: list[JSONNumber]
    time_constants: list[JSONNumber]
    dc_gain: list[list[JSONNumber]]
    """A row for each output, an entry for each input."""


def describe_behaviour(thing: StateSpace | DynamicNetwork) -> tuple[BehaviourFacts, list[tuple[str, str]]]:
    """The facts, and what is to be read of them as pairs of a label and a value."""
    dt = thing.dt if isinstance(thing, StateSpace) else None
    damping, gain = thing.damping(), thing.dcgain()
    facts: BehaviourFacts = {
        "dt": dt,
        "poles": [[pole.real, pole.imag] for pole in damping.poles.tolist()],
        "natural_frequencies": _json_numbers(damping.natural_frequency),
        "damping_ratios": _json_numbers(damping.damping_ratio),
        "time_constants": _json_numbers(damping.time_constant),
        "dc_gain": [_json_numbers(row) for row in gain],
    }
    rows = [] if dt is None else [("time step", f"{dt:g}, discrete in time")]
    return facts, [*rows, *_pole_rows(damping), ("DC gain", _shown_gain(gain))]


def to_json_number(value: float) -> JSONNumber:
    """The number, or what stands for it where JSON has none."""
    return None if np.isnan(value) else value if np.isfinite(value) else str(value)


def _json_numbers(values: NDArray[np.float64]) -> list[JSONNumber]:
    return [to_json_number(value) for value in values.tolist()]


def _pole_rows(damping: Damping) -> list[tuple[str, str]]:
    if not len(damping):
        return []
    upper = [pole for pole in damping.poles.tolist() if pole.imag >= 0.0]  # of a pair the other one is known
    listed = ", ".join(format_pole(pole).replace("+", "±") for pole in upper[:_POLES])
    more = f", … and {len(upper) - _POLES} faster" if len(upper) > _POLES else ""
    rows = [("poles", f"{listed}{more}")]
    known = damping.damping_ratio[np.isfinite(damping.damping_ratio)]
    frequencies = damping.natural_frequency
    if len(known):
        rows.append(("damping", f"ratio {_range(known)}, natural frequency {_range(frequencies)} rad/time"))
    return rows


def _range(values: Array) -> str:
    low, high = f"{values.min():.4g}", f"{values.max():.4g}"
    return low if low == high else f"{low} to {high}"


def _shown_gain(gain: Array) -> str:
    outputs, inputs = gain.shape
    if not gain.size:
        return "none"
    if gain.size == 1:
        return f"{gain[0, 0]:.5g}"
    if gain.size <= _GAINS:
        return "; ".join(", ".join(f"{value:.5g}" for value in row) for row in gain) + f"  ({outputs} × {inputs})"
    sizes = np.abs(gain[~np.isnan(gain)])
    return f"{outputs} × {inputs}, largest |gain| {sizes.max(initial=0.0):.5g}"


Rows = list[tuple[str, str]]


def info(
    file: SourceName,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, numbers in full precision.")] = False,
    matrix: MatrixNames = None,
) -> None:
    """Show what a file holds.

    FILE is a network (.safetensors) or a system: a .mat or .npz file, a folder of Matrix Market files, or a built-in
    system such as example:heat_rod. In JSON "inf", "-inf" and null stand for what has no number there: an infinite
    gain or time constant, the damping ratio of an integrator.
    """
    thing = read_system_or_network(file, matrix)
    if isinstance(thing, StateSpace) and thing.sparse is not None and thing.sparse.is_large:
        _show_large(thing, thing.sparse, as_json=as_json)
        return
    with show_status(f"looking at {format_count(thing.n_states, 'state')}"):
        further, more = describe_behaviour(thing)
    if isinstance(thing, DynamicNetwork):
        of_network = network_facts(thing.network, thing.form)
        names = UNNAMED if thing.system is None else thing.system.matrices.names
        title, rows = summary_rows(of_network, names, thing.signal_settings)
        _show({**of_network, **further, **_settings(thing)}, title, [*rows, *more], as_json=as_json)
    else:
        of_system = system_facts(thing.matrices)
        title, rows = _system_rows(of_system)
        rows = [*thing.matrices.names.without_states.rows, *rows, *thing.signal_settings.rows]
        _show({**of_system, **further, **_settings(thing)}, title, [*rows, *more], as_json=as_json)


def _settings(thing: StateSpace | DynamicNetwork) -> dict[str, Any]:
    """Names, delays, operating point, hold and sample time, where there are some."""
    system = thing if isinstance(thing, StateSpace) else thing.system
    names = UNNAMED if system is None else system.matrices.names
    found: dict[str, Any] = {f"{kind[:-1]}_names": list(own) for kind, own in names.by_kind.items()}
    return {**found, "signal_settings": thing.signal_settings.facts} if thing.signal_settings.facts else found


def _show_large(system: StateSpace, pencil: SparseDescriptor, *, as_json: bool) -> None:
    """What a sparse model is whose poles nobody knows."""
    facts = system_facts(system.matrices)
    title, rows = _system_rows(facts)
    rows = [
        *system.matrices.names.without_states.rows,
        *rows,
        ("matrices", pencil.description),
        *system.signal_settings.rows,
    ]
    _show({**facts, "dt": system.dt, **_settings(system)}, title, rows, as_json=as_json)


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
