"""Poles of a system, with natural frequency, damping ratio and time constant of each.

For a pole λ the natural frequency is |λ|, the damping ratio −Re λ/|λ| and the time constant −1/Re λ. In discrete
time they are those of s = log(z)/dt, with frequencies below π/dt.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.display import displayed_rows, html_table, omission_row, text_table
from ltinet._util.text import format_count, format_first_names
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.analysis.poles
# The poles of a system.


def compute_poles(system: SystemMatrices) -> NDArray[np.complex128]:
    """The eigenvalues of A by falling real part, of a pair that with positive imaginary part first."""
    with limit_blas_threads(system.n_states):
        values = np.linalg.eigvals(system.A).astype(np.complex128)
    return values[np.lexsort((-values.imag, -values.real))]


# MERGED ltinet.analysis.poles
# How modes behave: natural frequency, damping ratio and time constant of every pole, as a table.

_HEADINGS = ("pole", "natural frequency", "damping ratio", "time constant")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Damping:
    """Every pole with its natural frequency, damping ratio and time constant, slowest first; prints as a table."""

    poles: NDArray[np.complex128]
    """λ, in discrete time z."""
    natural_frequency: NDArray[np.float64]
    """|λ|, in radians per unit of time."""
    damping_ratio: NDArray[np.float64]
    """−Re λ/|λ|, from −1 to 1; NaN for an integrator, which has none."""
    time_constant: NDArray[np.float64]
    """−1/Re λ: negative for a mode that grows, infinite for one that does neither."""

    def __len__(self) -> int:
        return len(self.poles)

    def __repr__(self) -> str:
        return f"Damping({len(self)} poles)"

    def __str__(self) -> str:
        return text_table(_HEADINGS, self._rows())

    def _repr_html_(self) -> str:
        return html_table(_HEADINGS, self._rows())

    def _rows(self) -> list[list[str]]:
        rows = displayed_rows(len(self))
        return [omission_row(len(self), len(_HEADINGS)) if at is None else self._row(at) for at in rows]

    def _row(self, at: int) -> list[str]:
        ratio = self.damping_ratio[at]
        return [
            format_pole(complex(self.poles[at])),
            f"{self.natural_frequency[at]:.5g}",
            "–" if np.isnan(ratio) else f"{ratio + 0.0:.5g}",  # not "-0"
            f"{self.time_constant[at]:.5g}",
        ]


def damping_table(poles: NDArray[np.complex128], dt: float | None) -> Damping:
    """The table of these poles; in discrete time of the s with z = e^{s dt}, frequencies below π/dt."""
    with np.errstate(divide="ignore", invalid="ignore"):
        s = poles if dt is None else np.log(poles) / dt
        order = np.lexsort((-s.imag, np.abs(s)))
        s = s[order]
        frequency = np.abs(s)
        ratio = np.where(np.isinf(frequency), 1.0, -s.real / frequency)
        constant = np.where(s.real == 0.0, np.inf, -1.0 / s.real)
    return Damping(poles[order], frequency, ratio, constant)


def format_pole(pole: complex) -> str:
    """A pole in five digits."""
    if pole.imag == 0.0:
        return f"{pole.real:.5g}"
    return f"{pole.real:.5g} {'+' if pole.imag > 0 else '−'} {abs(pole.imag):.5g}i"


# MERGED ltinet.analysis.poles
# A system in a few lines, for a notebook.

_QUICK = 400  # states: their poles take a tenth of a second
_MAX_POLES = 4


def system_summary_rows(system: SystemMatrices) -> tuple[str, list[tuple[str, str]]]:
    """A title, and what there is to say as pairs of a label and a value; poles of systems that are not large."""
    ends = f"{format_count(system.n_inputs, 'input')} → {format_count(system.n_outputs, 'output')}"
    time = "continuous time" if system.dt is None else f"discrete time, dt = {system.dt:g}"
    states = (
        f"{system.n_states}: {format_first_names(system.state_names)}" if system.n_states else "none, a static gain"
    )
    rows = [
        ("time", time),
        ("inputs", format_first_names(system.input_names)),
        ("outputs", format_first_names(system.output_names)),
        ("states", states),
        ("feedthrough", "D ≠ 0" if np.any(system.D) else "none"),
    ]
    if system.sparse is not None:
        rows.append(("matrices", system.sparse.description))
    if 0 < system.n_states <= _QUICK:
        rows += _pole_rows(system)
    return f"state-space system, {ends}", rows


def _pole_rows(system: SystemMatrices) -> list[tuple[str, str]]:
    poles = compute_poles(system)
    upper = poles[poles.imag >= 0.0]
    first = [format_pole(complex(pole)).replace("+", "±") for pole in upper[:_MAX_POLES]]
    more = [f"… ({len(poles)} in all)"] if len(upper) > _MAX_POLES else []
    return [("poles", ", ".join([*first, *more]))]
