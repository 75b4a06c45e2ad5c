"""The engines by name: whoever writes another adds a file, and a line to the table.

An engine takes a prepared network, a signal, times and x0, and gives back a solution, whose trajectory knows outputs
and states at any time and bounds its own error.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import SimulationError
from ltinet.shown import shown
from ltinet.signals.signal import Signal
from ltinet.solve.exact.engine import ExactEngine
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solution import Solution
from ltinet.solve.solvers.engine import SolverEngine


class Engine(Protocol):
    """A way to run a network."""

    @property
    def options(self) -> frozenset[str]:
        """The names of the options that it knows."""
        ...

    def run(
        self,
        prepared: PreparedNetwork,
        signal: Signal,
        t: Array,
        *,
        x0: ArrayLike | None,
        n_jobs: int,
        options: Mapping[str, Any],
    ) -> Solution:
        """Outputs at the ascending times t, from the user's state x0 at t[0], zero if it is None.

        `options` are those that were given, all of them known to the engine; it checks their values.
        """
        ...


ENGINES: dict[str, Engine] = {
    "exact": ExactEngine(),
    "neurons": SolverEngine("neurons"),
    "intervals": SolverEngine("intervals"),
}


def chosen_engine(name: Any, given: Mapping[str, Any]) -> tuple[Engine, dict[str, Any]]:
    """The engine of a name, with the options that were given, not None.

    Raises:
        SimulationError: no engine has this name, or it does not know one of the options: it would have no effect.
    """
    if not isinstance(name, str) or name not in ENGINES:
        raise SimulationError(f"engine is {shown(repr(name))}; known are {_listed(map(_quoted, ENGINES))}")
    engine, options = ENGINES[name], {option: value for option, value in given.items() if value is not None}
    if not engine.options.issuperset(options):
        foreign = [option for option in options if option not in engine.options]
        owners = [f"engine={_quoted(other)}" for other, own in ENGINES.items() if foreign[0] in own.options]
        way_out = f"leave out what belongs to {_listed(owners)}, or choose that" if owners else "no engine knows it"
        raise SimulationError(f"engine={_quoted(name)} has no {' and no '.join(foreign)}; {way_out}")
    return engine, options


def _quoted(name: str) -> str:
    return f'"{name}"'


def _listed(names: Any) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else str(last)
