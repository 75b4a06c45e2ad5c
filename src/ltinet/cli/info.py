"""`ltinet info`: what is in a file, for people and for programs."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from ltinet.cli.behaviour import as_figure, behaviour
from ltinet.cli.messages import working
from ltinet.cli.sources import MatrixNames, SourceName, read_system_or_network
from ltinet.cli.streams import send
from ltinet.dynamic_network import DynamicNetwork
from ltinet.model.facts import SystemFacts, system_facts
from ltinet.model.names import UNNAMED
from ltinet.model.sparse_pencil import SparsePencil
from ltinet.network.facts import network_facts
from ltinet.network.summary import summary_rows
from ltinet.shown import count_of, shown_rows
from ltinet.state_space import StateSpace

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
    with working(f"looking at {count_of(thing.n_states, 'state')}"):
        further, more = behaviour(thing)
    if isinstance(thing, DynamicNetwork):
        of_network = network_facts(thing.network, thing.form)
        names = UNNAMED if thing.system is None else thing.system.matrices.names
        title, rows = summary_rows(of_network, names, thing.signal_settings)
        _show({**of_network, **further, **_settings(thing)}, title, [*rows, *more], as_json=as_json)
    else:
        of_system = system_facts(thing.matrices)
        title, rows = _system_rows(of_system)
        rows = [*thing.matrices.names.of_ends.rows, *rows, *thing.signal_settings.rows]
        _show({**of_system, **further, **_settings(thing)}, title, [*rows, *more], as_json=as_json)


def _settings(thing: StateSpace | DynamicNetwork) -> dict[str, Any]:
    """Names, delays, operating point, hold and sample time, where there are some."""
    system = thing if isinstance(thing, StateSpace) else thing.system
    names = UNNAMED if system is None else system.matrices.names
    found: dict[str, Any] = {f"{kind[:-1]}_names": list(own) for kind, own in names.given.items()}
    return {**found, "signal_settings": thing.signal_settings.facts} if thing.signal_settings.facts else found


def _show_large(system: StateSpace, pencil: SparsePencil, *, as_json: bool) -> None:
    """What a sparse model is whose poles nobody knows."""
    facts = system_facts(system.matrices)
    title, rows = _system_rows(facts)
    rows = [*system.matrices.names.of_ends.rows, *rows, ("matrices", pencil.told), *system.signal_settings.rows]
    _show({**facts, "dt": system.dt, **_settings(system)}, title, rows, as_json=as_json)


def _show(facts: Mapping[str, Any], title: str, rows: Rows, *, as_json: bool) -> None:
    if as_json:
        plain = {name: as_figure(fact) if isinstance(fact, float) else fact for name, fact in facts.items()}
        send(json.dumps(plain, indent=2, allow_nan=False) + "\n")
    elif sys.stdout is not None and sys.stdout.isatty():
        _print_table(title, rows)
    else:
        send(shown_rows(title, rows) + "\n")


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
        rows.append(("eigenvalues", f"{n_real} real, {count_of(n_pairs, 'complex pair')}"))
        rows.append(("real parts", f"{low:.4g} to {high:.4g}"))
    inputs, outputs = count_of(facts["n_inputs"], "input"), count_of(facts["n_outputs"], "output")
    return f"linear time-invariant system, {inputs} → {outputs}", rows
