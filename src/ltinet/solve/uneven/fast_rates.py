"""Steps of scalars that turn or decay far in a step: exponentials from a table, the rest from them.

e^{λh} is e^{λg} e^{λd} for the nearest g on a grid, which is looked up, and what is left of h. That is a Chebyshev
series in d, with the same polynomials for all rates: a matrix product. Where |λh| ≥ 1, φ₁ and φ₂ are differences
without loss, and with the slope s of the inputs

    h φ₁ B u_k + h φ₂ B (u_{k+1} − u_k) = (e^{λh} − 1) (B u_k/λ + B s/λ²) − h B s/λ
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.solve.steps.propagators import phi_functions
from ltinet.solve.uneven import chebyshev
from ltinet.solve.uneven.doubled import exponentials
from ltinet.solve.uneven.slow_rates import as_real, driven, sums
from ltinet.tolerances import EPS

_CELLS, _MOST_CELLS = 64, 1024  # of the grid between 0 and H: as many as |λ|H


@dataclass(frozen=True)
class FastRates:
    """Rates with |λh| ≥ 1, for lengths up to H."""

    kept: NDArray[np.bool_]
    """Whose factors are e^{λh} − 1."""
    cell: float
    high: NDArray[Any]
    """e^{λg}, or e^{λg} − 1, on the grid, `(cells + 1, n_rates)`."""
    low: NDArray[Any] | None
    """What its doubles lack, which counts where states last: it is the same in many steps."""
    series: NDArray[Any]
    """Of (e^{λd} − 1)/d, `(terms, n_rates)`."""
    of_values: NDArray[Any]
    """B/λ, transposed."""
    of_slopes: NDArray[Any]
    """B/λ², transposed."""
    linear: bool

    def step(self, h: Array, now: Array, then: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """The same, and what inputs `(batch, k, m)` at both ends add, `(batch, k, n_rates)`."""
        factors = self.factors(h)
        changes = factors if self.kept.all() else factors - np.where(self.kept, 0.0, 1.0)
        if not self.linear:
            added = driven(now, self.of_values)
            added *= changes
            return factors, added
        lengths = h[:, None]
        rise = np.where(lengths > 0.0, then - now, 0.0)
        slopes = rise / np.where(lengths > 0.0, lengths, 1.0)
        added = driven(np.concatenate([now, slopes], axis=-1), np.concatenate([self.of_values, self.of_slopes]))
        added *= changes
        added -= driven(rise, self.of_values)
        return factors, added

    def factors(self, h: Array) -> NDArray[Any]:
        """By what steps of lengths h multiply states, `(k, n_rates)`."""
        cells = np.rint(h / self.cell).astype(np.intp)
        d = h - cells * self.cell  # exact: a cell is a power of two
        polynomials = np.empty((len(self.series), len(h)))
        chebyshev.polynomials(d, -0.5 * self.cell, 0.5 * self.cell, out=polynomials)
        polynomials *= d
        rest, high = sums(polynomials, self.series), self.high.take(cells, axis=0)
        factors: NDArray[Any] = rest * high
        if self.low is not None:
            factors += rest if self.kept.all() else rest * self.kept
            factors += self.low.take(cells, axis=0)
        factors += high
        return factors


def fast_rates(
    rates: NDArray[Any], drive: NDArray[Any], longest: float, *, kept: NDArray[np.bool_], linear: bool
) -> FastRates:
    """Prepare rates for lengths up to the longest, a power of two; factors less one where they are `kept`."""
    wanted = max(_CELLS, min(float(np.abs(rates).max()) * longest, _MOST_CELLS))
    cells = 2 ** math.ceil(math.log2(wanted))
    cell = longest / cells
    table = exponentials(rates, cell, cells + 1, less_one=kept)
    rho = 0.5 * cell * float(np.abs(rates).max())
    parts = chebyshev.nodes(-0.5 * cell, 0.5 * cell, chebyshev.degree_for(rho, left=EPS / 16.0))
    first, _ = phi_functions(rates * parts[:, None])
    return FastRates(
        kept=kept,
        cell=cell,
        high=table.high,
        low=table.low if kept.any() else None,
        series=np.ascontiguousarray(chebyshev.coefficients(as_real(rates * first))).view(rates.dtype),
        of_values=drive / rates,
        of_slopes=drive / rates / rates,
        linear=linear,
    )
