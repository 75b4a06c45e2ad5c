"""A measured frequency response in the units in which it is fitted: frequencies around 1, channels of one size."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex


@dataclass(frozen=True)
class ScaledResponse:
    """Places s = jω/`unit` and H/(`rows` `columns`) there, with a weight for every number."""

    s: Complex
    H: Complex
    """Shape (K, p, m)."""
    weights: Array
    """Shape (K, p, m): errors times weights are what is made small; their mean square is the squared relative error."""
    unit: float
    """Frequency that is 1 here, rad/s."""
    rows: Array
    """Unit of every output, (p, 1)."""
    columns: Array
    """Unit of every input, (1, m)."""

    def part(self, chosen: NDArray[np.bool_]) -> "ScaledResponse":
        """The same at some of the frequencies."""
        return replace(self, s=self.s[chosen], H=self.H[chosen], weights=self.weights[chosen])

    def dual(self) -> "ScaledResponse":
        """The transposed response."""
        H, weights = self.H.transpose(0, 2, 1), self.weights.transpose(0, 2, 1)
        return replace(self, H=H, weights=weights, rows=self.columns.T, columns=self.rows.T)

    def error(self, H: Complex) -> float:
        """Root mean square of the weighted error: relative to the root mean square of each channel."""
        wrong = np.abs(H - self.H) * self.weights
        return float(np.sqrt(np.mean(wrong * wrong)))


def scaled(omega: Array, H: Complex, weights: Array | None) -> ScaledResponse:
    """Data in units of their own: √(lowest · highest) frequency, and rows and columns of |H| near 1.

    Without weights every channel counts by its error relative to its own root mean square, so that a channel eight
    decades below another one is fitted to as many digits.
    """
    positive = omega[omega > 0.0]
    unit = float(np.sqrt(positive.min()) * np.sqrt(positive.max())) if len(positive) else 1.0
    size = np.sqrt(np.mean(np.abs(H) ** 2, axis=0))
    rows, columns = _units(size)
    inner = H / (rows * columns)
    size = size / (rows * columns)
    largest = float(size.max(initial=0.0))
    # A channel of nothing but zeros has no size of its own: it is to be zero on the scale of the others.
    relative = 1.0 / np.where(size > 0.0, size, largest if largest > 0.0 else 1.0)
    own = np.broadcast_to(relative, H.shape)
    if weights is not None:
        given = np.broadcast_to(weights, H.shape) * (rows * columns)
        own = given / np.sqrt(np.mean((given * np.abs(inner)) ** 2)) if np.any(given * np.abs(inner)) else given
    s = np.asarray(1j * omega / unit, dtype=np.complex128)
    return ScaledResponse(s, inner, np.array(own), unit, rows, columns)


def _units(size: Array) -> tuple[Array, Array]:
    """Units of rows and columns that bring the sizes of all channels nearest to 1 in the mean of their logarithms."""
    positive = size > 0.0
    logs = np.log(np.where(positive, size, 1.0))
    rows, columns = np.zeros((size.shape[0], 1)), np.zeros((1, size.shape[1]))
    for _ in range(20):  # alternating means; with no zeros among the sizes the second round changes nothing
        rows = _mean(logs - columns, positive, axis=1)
        columns = _mean(logs - rows, positive, axis=0)
    return np.exp(rows), np.exp(columns)


def _mean(values: Array, counted: NDArray[np.bool_], axis: int) -> Array:
    total = np.sum(np.where(counted, values, 0.0), axis=axis, keepdims=True)
    return np.asarray(total / np.maximum(np.sum(counted, axis=axis, keepdims=True), 1))
