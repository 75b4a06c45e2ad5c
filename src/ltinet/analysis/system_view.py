"""A system in a few lines, for a notebook."""

import numpy as np

from ltinet.analysis.damping import shown_pole
from ltinet.analysis.poles import poles_of
from ltinet.model.system_matrices import SystemMatrices
from ltinet.shown import count_of, shown_first

_QUICK = 400  # states: their poles take a tenth of a second
_POLES = 4


def system_rows(system: SystemMatrices) -> tuple[str, list[tuple[str, str]]]:
    """A title, and what there is to say as pairs of a label and a value; poles of systems that are not large."""
    ends = f"{count_of(system.n_inputs, 'input')} → {count_of(system.n_outputs, 'output')}"
    time = "continuous time" if system.dt is None else f"discrete time, dt = {system.dt:g}"
    states = f"{system.n_states}: {shown_first(system.state_names)}" if system.n_states else "none, a static gain"
    rows = [
        ("time", time),
        ("inputs", shown_first(system.input_names)),
        ("outputs", shown_first(system.output_names)),
        ("states", states),
        ("feedthrough", "D ≠ 0" if np.any(system.D) else "none"),
    ]
    if system.sparse is not None:
        rows.append(("matrices", system.sparse.told))
    if 0 < system.n_states <= _QUICK:
        rows += _pole_rows(system)
    return f"state-space system, {ends}", rows


def _pole_rows(system: SystemMatrices) -> list[tuple[str, str]]:
    poles = poles_of(system)
    upper = poles[poles.imag >= 0.0]
    first = [shown_pole(complex(pole)).replace("+", "±") for pole in upper[:_POLES]]
    more = [f"… ({len(poles)} in all)"] if len(upper) > _POLES else []
    return [("poles", ", ".join([*first, *more]))]
