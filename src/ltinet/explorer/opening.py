"""What a dropped file holds, told in a few words: looked at in a process of its own before anything is made of it."""

from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.desk import Desk
from ltinet.explorer.files import read_dropped
from ltinet.explorer.state import State
from ltinet.explorer.subject import held_file
from ltinet.explorer.views.numbers import Plain
from ltinet.shown import shown
from ltinet.tables.table import Table


def told_of(desk: Desk, state: State) -> Plain:
    """The kind of a file, and of a table its columns."""
    file = held_file(desk.files, state.system.removeprefix("file:"))
    held = read_dropped(file)
    told: Plain = {"name": shown(file.name)}
    if isinstance(held, Table):
        return {**told, "kind": "table", "columns": [shown(name) for name in held.names], "rows": len(held.t)}
    kind = "network" if isinstance(held, DynamicNetwork) else "system"
    return {**told, "kind": kind, "n_states": held.n_states, "n_inputs": held.n_inputs, "n_outputs": held.n_outputs}
