"""Numbers that the page of `ltinet explore` shows, read from its DOM, compared with those of the library."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import ltinet
from ltinet.explorer.subject import MAX_STATES, Subject, example_system

TABLES = ("response", "poles", "bode", "phase", "trade")
FACTS = ("n_layers", "n_neurons", "n_connections", "n_weights")
_DIGITS = 5.1e-7  # relative: the page shows seven digits
_ROUNDED = 1e-9  # of the largest value: other threads may round otherwise, and what cancels shows it
_ROWS = 24  # of a table
_MOST_ROWS = 60
_READ = """(names) => {
  if (!names.every((name) => document.querySelector(`[data-id='${name}'] details table`))) return null;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const texts = (row) => [...row.cells].map((own) => own.textContent);
  return {
    facts: Object.fromEntries(all("[data-fact][data-value]").map((own) => [own.dataset.fact, own.dataset.value])),
    tables: Object.fromEntries(names.map((name) => [name, all(`[data-id='${name}'] tbody tr`).map(texts)])),
    patterns: ["before", "after"].map((name) => document.querySelector(`[data-id='${name}'] p`).textContent),
  };
}"""


@dataclass(frozen=True)
class Shown:
    """Numbers of a page, as they stand there."""

    facts: dict[str, str]
    tables: dict[str, list[list[str]]]
    patterns: list[str]


def read_shown(tab: Any) -> Shown:
    """All of them at once; tables are written a moment after the drawings, and anew when a band arrives."""
    return Shown(**tab.wait_for_function(_READ, arg=list(TABLES)).json_value())


@dataclass(frozen=True)
class Expected:
    """An example as the library has it, computed apart from the page."""

    subject: Subject
    points: ltinet.TradeoffCurve

    @classmethod
    def of(cls, name: str) -> "Expected":
        """The example of this name, reduced first where the page does that."""
        system = example_system(name)
        found = ltinet.reduce(system, tolerance=1e-6) if system.n_states > MAX_STATES else None
        small = system if found is None else found.system
        return cls(Subject(name, system, small, found), ltinet.condition_tradeoff(small))

    def budgets(self) -> list[float]:
        """Ten limits on and just above the points of the trade-off curve, or over its range where it has few points."""
        if len(self.points) < 10:
            return [10.0**power for power in range(10)]
        places = np.linspace(0, len(self.points) - 1, 10).round().astype(int)
        return [self.points[place].condition * (1.0 + 1e-9 * (turn % 2)) for turn, place in enumerate(places)]

    def differences(self, shown: Shown, budget: float) -> list[str]:
        """What the page shows otherwise."""
        net = self.points.within(budget).network
        found = [name for name in FACTS if json.loads(shown.facts[name]) != getattr(net, name)]
        if net.form is None or json.loads(shown.facts["condition"]) != net.form.condition:
            found.append("condition")
        if f"{_n_entries(self.subject)} of {self.subject.full_order_system.n_states}²" not in shown.patterns[0]:
            found.append("entries of A")
        if not shown.patterns[1].endswith("%)") or f" of {net.n_states}² entries" not in shown.patterns[1]:
            found.append("entries of the blocks")
        columns = _columns(self, net)
        wrong = [key for key, values in columns.items() if not _agree(_column(shown, *key), values)]
        return found + [f"column {place} of {table}" for table, place in wrong]


def _columns(expected: Expected, net: ltinet.DynamicNetwork) -> dict[tuple[str, int], ArrayLike]:
    """Columns of tables by the name of the table and their place in it."""
    t = np.linspace(0.0, expected.subject.end(0, 0), 801)
    u = np.zeros((len(t), net.n_inputs))
    u[:, 0] = 1.0
    y = net.simulate(u, t, hold="zero").y[:, 0]
    omega = expected.subject.frequencies
    H = net.frequency_response(omega)[:, 0, 0]
    is_known = expected.subject.response is not None
    poles, counts = net.poles(), [layer.n_states for layer in net.layers]
    layers = np.repeat(np.arange(net.n_layers), counts)
    given = expected.subject.response[:, 0, 0] if expected.subject.response is not None else H
    return {
        ("response", 0): _thinned(t), ("response", 1): _thinned(y),
        ("poles", 0): poles.real[:_MOST_ROWS], ("poles", 1): poles.imag[:_MOST_ROWS],
        ("poles", 2): layers[:_MOST_ROWS],
        ("bode", 0): _thinned(omega), ("bode", 1): _thinned(np.abs(given)),
        ("bode", 1 + is_known): _thinned(np.abs(H)), ("phase", 1 + is_known): _thinned(_phase(H)),
        ("trade", 0): [own.condition for own in expected.points][:_MOST_ROWS],
        ("trade", 1): [own.n_connections for own in expected.points][:_MOST_ROWS],
        ("trade", 2): [own.n_layers for own in expected.points][:_MOST_ROWS],
    }  # fmt: skip


def _n_entries(subject: Subject) -> int:
    large = subject.full_order_system.sparse
    return int(np.count_nonzero(subject.full_order_system.A) if large is None else large.state.count_nonzero())


def _thinned(values: ArrayLike) -> ArrayLike:
    """Those of a curve that its table has."""
    kept = np.asarray(values)
    return kept[:: max(1, -(-len(kept) // _ROWS))]


def _phase(values: NDArray[np.complex128]) -> ArrayLike:
    return np.degrees(np.unwrap(np.angle(values)))


def _column(shown: Shown, table: str, place: int) -> list[float]:
    """Numbers of a column; a gain of zero has no place on a logarithmic axis, and a dash in its table."""
    return [0.0 if row[place] == "–" else float(row[place]) for row in shown.tables[table]]


def _agree(shown: Sequence[float], values: ArrayLike) -> bool:
    wanted = np.asarray(values, dtype=float)
    if len(shown) != len(wanted):
        return False
    size = np.abs(wanted).max(initial=0.0)
    return bool(np.all(np.abs(np.asarray(shown) - wanted) <= _DIGITS * np.abs(wanted) + _ROUNDED * size))
