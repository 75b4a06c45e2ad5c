"""How modes behave: natural frequency, damping ratio and time constant of every pole, as a table."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ltinet.views import html_table, left_out, shown_places, text_table

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
        rows = shown_places(len(self))
        return [left_out(len(self), len(_HEADINGS)) if at is None else self._row(at) for at in rows]

    def _row(self, at: int) -> list[str]:
        ratio = self.damping_ratio[at]
        return [
            shown_pole(complex(self.poles[at])),
            f"{self.natural_frequency[at]:.5g}",
            "–" if np.isnan(ratio) else f"{ratio + 0.0:.5g}",  # not "-0"
            f"{self.time_constant[at]:.5g}",
        ]


def damping_of(poles: NDArray[np.complex128], dt: float | None) -> Damping:
    """The table of these poles; in discrete time of the s with z = e^{s dt}, frequencies below π/dt."""
    with np.errstate(divide="ignore", invalid="ignore"):
        s = poles if dt is None else np.log(poles) / dt
        order = np.lexsort((-s.imag, np.abs(s)))
        s = s[order]
        frequency = np.abs(s)
        ratio = np.where(np.isinf(frequency), 1.0, -s.real / frequency)
        constant = np.where(s.real == 0.0, np.inf, -1.0 / s.real)
    return Damping(poles[order], frequency, ratio, constant)


def shown_pole(pole: complex) -> str:
    """A pole in five digits."""
    if pole.imag == 0.0:
        return f"{pole.real:.5g}"
    return f"{pole.real:.5g} {'+' if pole.imag > 0 else '−'} {abs(pole.imag):.5g}i"
