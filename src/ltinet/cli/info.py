"""`ltinet info`: what is in a file, for people and for programs."""

import json
import sys
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from ltinet.cli.sources import read_system_or_network
from ltinet.cli.streams import send
from ltinet.dynamic_network import DynamicNetwork
from ltinet.network.summary import summary_rows
from ltinet.shown import count_of
from ltinet.state_space import StateSpace

Rows = list[tuple[str, str]]


def info(
    file: Annotated[str, typer.Argument(metavar="FILE", hidden=True)],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, with numbers in full precision.")] = False,
) -> None:
    """Show what a file holds.

    FILE is a network (.safetensors) or a system: a .mat or .npz file, a folder of Matrix Market files, or a built-in
    system such as example:heat_rod.
    """
    thing = read_system_or_network(file)
    if as_json:
        facts = _network_facts(thing) if isinstance(thing, DynamicNetwork) else _system_facts(thing)
        send(json.dumps(facts, indent=2) + "\n")
        return
    title, rows = summary_rows(thing.network, thing.form) if isinstance(thing, DynamicNetwork) else _system_rows(thing)
    if sys.stdout is not None and sys.stdout.isatty():
        _print_table(title, rows)
    else:
        width = max(len(label) for label, _ in rows)
        send("\n".join([title, *(f"  {label:<{width}}  {value}" for label, value in rows)]) + "\n")


def _print_table(title: str, rows: Rows) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for label, value in rows:
        table.add_row(label, value)
    console = Console(highlight=False)
    console.print(title, style="bold")
    console.print(Padding(table, (0, 0, 0, 2)))


def _system_rows(system: StateSpace) -> tuple[str, Rows]:
    facts = _system_facts(system)
    n, n_real, n_pairs = system.n_states, facts["n_real_eigenvalues"], facts["n_complex_pairs"]
    rows = [("states", str(n)), ("A", f"{facts['nonzeros_of_A']} of {n * n} entries are not zero")]
    rows.append(("feedthrough", "yes, D is not zero" if facts["has_feedthrough"] else "none, D is zero"))
    if n:
        low, high = facts["real_parts"]
        rows.append(("eigenvalues", f"{n_real} real, {count_of(n_pairs, 'complex pair')}"))
        rows.append(("real parts", f"{low:.4g} to {high:.4g}"))
    return (
        f"linear time-invariant system, {count_of(system.n_inputs, 'input')} → {count_of(system.n_outputs, 'output')}",
        rows,
    )


def _system_facts(system: StateSpace) -> dict[str, Any]:
    eigenvalues = np.linalg.eigvals(system.A)
    n_real = int(np.count_nonzero(eigenvalues.imag == 0.0))
    real_parts = [float(eigenvalues.real.min()), float(eigenvalues.real.max())] if system.n_states else None
    return {
        "kind": "system",
        "n_states": system.n_states,
        "n_inputs": system.n_inputs,
        "n_outputs": system.n_outputs,
        "nonzeros_of_A": int(np.count_nonzero(system.A)),
        "has_feedthrough": bool(np.any(system.D)),
        "n_real_eigenvalues": n_real,
        "n_complex_pairs": (system.n_states - n_real) // 2,
        "real_parts": real_parts,
    }


def _network_facts(net: DynamicNetwork) -> dict[str, Any]:
    counts = ("n_states", "n_inputs", "n_outputs", "n_layers", "n_neurons", "n_first_order", "n_second_order")
    weights = ("n_connections", "n_weights", "n_weights_dense", "sparsity", "weight_norm")
    facts: dict[str, Any] = {"kind": "network"} | {name: getattr(net, name) for name in counts + weights}
    if net.form is not None:
        facts |= {name: getattr(net.form, name) for name in ("condition", "condition_raw", "residual")}
    per_layer = ("kind", "n_first_order", "n_second_order", "n_connections")
    facts["layers"] = [{name: getattr(layer, name) for name in per_layer} for layer in net.layers]
    return facts
