"""Poles, damping and gain at rest of a system as `ltinet info` tells them: as plain data, and as lines."""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from ltinet.analysis.damping import Damping, shown_pole
from ltinet.arrays import Array
from ltinet.dynamic_network import DynamicNetwork
from ltinet.state_space import StateSpace

Figure = float | str | None
"""A number in JSON, which knows neither infinity nor NaN: "inf", "-inf" and null stand for them."""
_POLES = 4  # that are shown
_GAINS = 9  # that are shown


class BehaviourFacts(TypedDict):
    """How a system behaves; every value passes as JSON. The lists of poles run along each other, slowest pole first."""

    dt: float | None
    poles: list[list[float]]
    """Real and imaginary parts."""
    natural_frequencies: list[Figure]
    damping_ratios: list[Figure]
    time_constants: list[Figure]
    dc_gain: list[list[Figure]]
    """A row for each output, an entry for each input."""


def behaviour(thing: StateSpace | DynamicNetwork) -> tuple[BehaviourFacts, list[tuple[str, str]]]:
    """The facts, and what is to be read of them as pairs of a label and a value."""
    dt = thing.dt if isinstance(thing, StateSpace) else None
    damping, gain = thing.damping(), thing.dcgain()
    facts: BehaviourFacts = {
        "dt": dt,
        "poles": [[pole.real, pole.imag] for pole in damping.poles.tolist()],
        "natural_frequencies": _figures(damping.natural_frequency),
        "damping_ratios": _figures(damping.damping_ratio),
        "time_constants": _figures(damping.time_constant),
        "dc_gain": [_figures(row) for row in gain],
    }
    rows = [] if dt is None else [("time step", f"{dt:g}, discrete in time")]
    return facts, [*rows, *_pole_rows(damping), ("DC gain", _shown_gain(gain))]


def as_figure(value: float) -> Figure:
    """The number, or what stands for it where JSON has none."""
    return None if np.isnan(value) else value if np.isfinite(value) else str(value)


def _figures(values: NDArray[np.float64]) -> list[Figure]:
    return [as_figure(value) for value in values.tolist()]


def _pole_rows(damping: Damping) -> list[tuple[str, str]]:
    if not len(damping):
        return []
    upper = [pole for pole in damping.poles.tolist() if pole.imag >= 0.0]  # of a pair the other one is known
    listed = ", ".join(shown_pole(pole).replace("+", "±") for pole in upper[:_POLES])
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
