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

# Order of A up to which one thread computes its eigenvalues; speed only. The steps of the QR algorithm are small: on two busy
# cores two threads take 10 to 20 times as long for orders from 400 to 1000.
_MAX_SINGLE_THREAD_ORDER = 1000


def compute_poles(system: SystemMatrices) -> NDArray[np.complex128]:
    """Return the eigenvalues of A by falling real part; positive imaginary parts come first in a pair."""
    with limit_blas_threads(system.n_states, largest=_MAX_SINGLE_THREAD_ORDER):
        values = np.linalg.eigvals(system.A).astype(np.complex128)
    return values[np.lexsort((-values.imag, -values.real))]


_HEADINGS = ("pole", "natural frequency", "damping ratio", "time constant")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Damping:
    """Poles with natural frequency, damping ratio and time constant, slowest first; prints as a table.

    Parameters
    ----------
    poles : ndarray
        Poles λ, in discrete time z.
    natural_frequency : ndarray
        |λ| in radians per unit of time.
    damping_ratio : ndarray
        −Re λ/|λ|, from −1 to 1; NaN for an integrator.
    time_constant : ndarray
        −1/Re λ: negative for an unstable mode, infinite on the imaginary axis.
    """

    poles: NDArray[np.complex128]
    natural_frequency: NDArray[np.float64]
    damping_ratio: NDArray[np.float64]
    time_constant: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.poles)

    def __repr__(self) -> str:
        return f"Damping({len(self)} poles)"

    def __str__(self) -> str:
        return text_table(_HEADINGS, self._rows())

    def _repr_html_(self) -> str:
        return html_table(_HEADINGS, self._rows())

    def _rows(self) -> list[list[str]]:
        indices = displayed_rows(len(self))
        return [omission_row(len(self), len(_HEADINGS)) if i is None else self._row(i) for i in indices]

    def _row(self, i: int) -> list[str]:
        ratio = self.damping_ratio[i]
        return [
            format_pole(complex(self.poles[i])),
            f"{self.natural_frequency[i]:.5g}",
            "–" if np.isnan(ratio) else f"{ratio + 0.0:.5g}",  # not "-0"
            f"{self.time_constant[i]:.5g}",
        ]


def damping_table(poles: NDArray[np.complex128], dt: float | None) -> Damping:
    """Return the table of poles; in discrete time of the s with z = e^{s dt} and |Im s| ≤ π/dt."""
    with np.errstate(divide="ignore", invalid="ignore"):
        s = poles if dt is None else np.log(poles) / dt
        order = np.lexsort((-s.imag, np.abs(s)))
        s = s[order]
        frequency = np.abs(s)
        ratio = np.where(np.isinf(frequency), 1.0, -s.real / frequency)
        constant = np.where(s.real == 0.0, np.inf, -1.0 / s.real)
    return Damping(poles[order], frequency, ratio, constant)


def format_pole(pole: complex) -> str:
    """Return a pole as text with five digits."""
    if pole.imag == 0.0:
        return f"{pole.real:.5g}"
    return f"{pole.real:.5g} {'+' if pole.imag > 0 else '−'} {abs(pole.imag):.5g}i"


# Summary for notebooks.

_MAX_STATES_WITH_POLES = 400  # larger systems would take more than a tenth of a second
_MAX_POLES = 4  # in the summary


def system_summary_rows(system: SystemMatrices) -> tuple[str, list[tuple[str, str]]]:
    """Return a title and rows (label, text); poles are included for systems of up to 400 states."""
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
    if 0 < system.n_states <= _MAX_STATES_WITH_POLES:
        poles = compute_poles(system)
        upper = poles[poles.imag >= 0.0]
        first = [format_pole(complex(pole)).replace("+", "±") for pole in upper[:_MAX_POLES]]
        more = [f"… ({len(poles)} in all)"] if len(upper) > _MAX_POLES else []
        rows.append(("poles", ", ".join([*first, *more])))
    return f"state-space system, {ends}", rows
