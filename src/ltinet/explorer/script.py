"""A view as a script: the calls of the library that give its numbers again."""

from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.desk import Desk
from ltinet.explorer.driving import CHIRP, N_TIMES, Run
from ltinet.explorer.examples import EXAMPLES
from ltinet.explorer.files import read_dropped
from ltinet.explorer.state import State
from ltinet.explorer.subject import held_file
from ltinet.tables.table import Table

_BEGINNING = '''"""A view of `ltinet explore`, reproduced; {address}"""

import dataclasses

import numpy as np

import ltinet
'''


def script_of(desk: Desk, state: State) -> str:
    """Python that ends with `net`, its `solution` and its answer `H` to the frequencies `omega`."""
    run = desk.run(state)[0]
    parts = [
        _BEGINNING.format(address=state.query().replace('"', "")),
        *_system(desk, state),
        *_reduction(desk, state),
        f"net = ltinet.ladder(system).within({state.k!r}).network",
        *_lost(desk, state),
        "print(net)",
        "",
        *_driving(desk, state, run),
        *_moved(run, desk.seen(state).net),
        f"solution = moved.simulate(u, t, x0=x0, hold={run.hold!r})",
        f'print("largest |y|", np.abs(solution.y[:, {state.output - 1}]).max())',
        f'print("certified error", solution.error_bound()[{state.output - 1}])',
        "omega = system.shown_frequencies()",
        "H = net.frequency_response(omega)",
    ]
    return "\n".join(parts) + "\n"


def _system(desk: Desk, state: State) -> list[str]:
    kind, _, name = state.system.partition(":")
    if kind == "example":
        own = EXAMPLES[name]
        given = "".join(f", {key}={value!r}" for key, value in own.parameters.items())
        return [f"system = ltinet.named_system({own.name!r}{given})"]
    file = held_file(desk.files, name)
    if file.suffix == ".safetensors":
        return [f"given = ltinet.load({file.name!r})", "system = given.system or given.to_state_space()"]
    held = read_dropped(file)
    if isinstance(held, Table):
        return [
            f"table = ltinet.read_table({file.name!r})",
            f"u, y = table.values[:, {_indices(state.drive)}], table.values[:, {_indices(state.answer)}]",
            "found = ltinet.identify(u, y, dt=(table.t[-1] - table.t[0]) / (len(table.t) - 1))",
            f"system = found.system.with_names(inputs={_names(held, state.drive)}, "
            f"outputs={_names(held, state.answer)})",
        ]
    return [f"system = ltinet.load_system({file.name!r})"]


def _reduction(desk: Desk, state: State) -> list[str]:
    found = desk.subject(state).reduction
    if found is None:
        return []
    wanted = f"order={state.order}" if state.order is not None else "tolerance=1e-06"
    return [f"reduced = ltinet.reduce(system, {wanted})", "system = reduced.system"]


def _lost(desk: Desk, state: State) -> list[str]:
    """Bounds count what a reduction left out."""
    subject = desk.subject(state)
    if subject.reduction is not None:
        return ["net = dataclasses.replace(net, reduced_error=reduced.mean())"]
    if subject.reduced_error is not None:
        return ["net = dataclasses.replace(net, reduced_error=given.reduced_error)"]
    return []


def _driving(desk: Desk, state: State, run: Run) -> list[str]:
    if state.u.startswith("file:"):
        file, count = held_file(desk.files, state.u.removeprefix("file:")), run.u.shape[1]
        chosen = state.drive if len(state.drive) == count else tuple(range(1, count + 1))
        return [
            f"table = ltinet.read_table({file.name!r})",
            f"t, u, x0 = table.t, table.values[:, {_indices(chosen)}], None",
        ]
    lines = [
        f"t = np.linspace(0.0, {float(run.t[-1])!r}, {N_TIMES})",
        f"u, x0 = np.zeros((len(t), {run.u.shape[1]})), None",
    ]
    driven = state.input - 1
    if state.u == "impulse":
        return [*lines, f"x0 = system.B[:, {driven}]"]
    if state.u == "step":
        return [*lines, f"u[:, {driven}] = 1.0"]
    return [*lines, "share = t / t[-1]", f"u[:, {driven}] = {CHIRP}"]


def _moved(run: Run, net: DynamicNetwork) -> list[str]:
    """The network with the signal settings of the run: curves are deviations from the operating point."""
    own = run.settings
    if own == net.signal_settings or not net.signal_settings.moves_signals:
        return ["moved = net"]
    changes = f"input_delay={_listed(own.input_delay)}, output_delay={_listed(own.output_delay)}, u0=0, y0=0"
    return [f"moved = net.with_signal_settings({changes})"]


def _listed(numbers: tuple[float, ...] | None) -> list[float] | int:
    return 0 if numbers is None else list(numbers)


def _names(table: Table, numbers: tuple[int, ...]) -> list[str]:
    return [table.names[number - 1] for number in numbers]


def _indices(numbers: tuple[int, ...]) -> list[int]:
    return [number - 1 for number in numbers]
