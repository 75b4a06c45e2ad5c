"""Measured frequency responses: validation, and scaling to the units in which they are fitted.

Frequencies are sorted and unique, H has the shape `(K, outputs, inputs)`, and H is real at ω = 0. Fits work with s =
jω/unit, where the unit is √(lowest · highest) frequency, and with rows and columns of H divided by powers that bring
all channels near 1. Without weights every channel counts by its error relative to its root mean square.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import Array, Complex
from ltinet._util.text import format_count
from ltinet.errors import InvalidSignalError

# Two thirds of so many frequencies determine a model of order 1 with feedthrough; two are left for testing.
MIN_FREQUENCIES = 6


class FrequencyData(NamedTuple):
    """Validated response with ascending frequencies."""

    omega: Array
    H: Complex
    """`(K, p, m)`."""
    weights: Array | None
    """`(K, p, m)`, not negative."""


def validate_frequency_data(
    omega: ArrayLike, H: ArrayLike, weights: ArrayLike | None, *, fewest: int = MIN_FREQUENCIES
) -> FrequencyData:
    """Return ascending and distinct frequencies, with H and weights as arrays of three axes.

    Raises InvalidSignalError where values are not finite, negative or of a wrong shape, where a frequency has two
    responses, or where there are fewer than `fewest`.
    """
    frequencies = _frequencies(omega)
    values = _response(H, len(frequencies))
    _require_real_dc_gain(frequencies, values)
    weight_array = None if weights is None else _weights(weights, values.shape)
    order = np.argsort(frequencies, kind="stable")
    frequencies, values = frequencies[order], values[order]
    for at in np.flatnonzero(np.diff(frequencies) == 0.0):
        if np.any(values[at] != values[at + 1]):
            raise InvalidSignalError(
                f"omega holds {frequencies[at]:.6g} rad/s more than once with different responses; "
                "average repeated measurements first"
            )
    distinct = np.append(np.diff(frequencies) > 0.0, True)
    frequencies, values = frequencies[distinct], values[distinct]
    if len(frequencies) < fewest:
        raise InvalidSignalError(
            f"omega has {format_count(len(frequencies), 'value')}; a model of order 1 needs "
            f"at least {fewest}, and one of order n about 3 n"
        )
    return FrequencyData(frequencies, values, None if weight_array is None else weight_array[order][distinct])


def _frequencies(omega: ArrayLike) -> Array:
    array = _numbers(omega, "omega")
    if array.ndim != 1:
        raise InvalidSignalError(f"omega has shape {array.shape}; give a list of frequencies in rad/s")
    if np.iscomplexobj(array):
        raise InvalidSignalError("omega is complex; give ω in rad/s, not s = jω")
    _require_finite(array, "omega")
    if np.any(array < 0.0):
        at = int(np.argmax(array < 0.0))
        raise InvalidSignalError(
            f"omega[{at}] is {array[at]:.6g}; give frequencies of 0 and above, the response of a real system at −ω "
            "is the conjugate of that at ω"
        )
    return array.astype(np.float64)


def _response(H: ArrayLike, n_frequencies: int) -> Complex:
    array = _numbers(H, "H")
    if array.ndim not in (1, 3) or len(array) != n_frequencies:
        hint = ""
        if array.ndim == 3 and array.shape[2] == n_frequencies:
            hint = "; it seems to be (outputs, inputs, frequencies): pass np.moveaxis(H, -1, 0)"
        elif array.ndim == 2 and n_frequencies in array.shape:
            hint = "; for one input pass H[:, :, None], for one output H[:, None, :], with frequencies first"
        raise InvalidSignalError(
            f"H has shape {array.shape} for {n_frequencies} frequencies; it must be ({n_frequencies},) or "
            f"({n_frequencies}, outputs, inputs){hint}"
        )
    values = array.astype(np.complex128).reshape(n_frequencies, *(array.shape[1:] or (1, 1)))
    if values.size == 0 and n_frequencies:
        raise InvalidSignalError(f"H has shape {array.shape}; there must be at least one input and one output")
    _require_finite(values, "H")
    return values


def _require_real_dc_gain(omega: Array, H: Complex) -> None:
    dc_gain = H[omega == 0.0]
    size = float(np.max(np.abs(H), initial=0.0))
    if np.any(np.abs(dc_gain.imag) > np.sqrt(np.finfo(float).eps) * size):
        raise InvalidSignalError(
            f"H at omega = 0 is {dc_gain.ravel()[np.argmax(np.abs(dc_gain.imag))]:.6g}; the gain of a real system is "
            "real there: leave this frequency out, or pass its real part"
        )


def _weights(weights: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = _numbers(weights, "weights")
    if np.iscomplexobj(array):
        raise InvalidSignalError("weights are complex; give real numbers of 0 and above, such as 1/|H|")
    full = array[:, None, None] if array.shape == shape[:1] else array
    if full.shape not in (shape, (shape[0], 1, 1)):
        raise InvalidSignalError(f"weights have shape {array.shape}; it must be ({shape[0]},) or that of H, {shape}")
    _require_finite(full, "weights")
    if np.any(full < 0.0) or not np.any(full > 0.0):
        raise InvalidSignalError("weights must not be negative, and not all 0; 1/|H| fits relative errors")
    return np.array(np.broadcast_to(full, shape), dtype=np.float64)


def _numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise InvalidSignalError(f"{name} has masked entries; leave out these frequencies first")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InvalidSignalError(f"{name} cannot be read as numbers: {error}") from None
    if array.dtype.kind not in "biufc":
        raise InvalidSignalError(f"{name} has dtype {array.dtype}; give numbers")
    return array


def _require_finite(array: NDArray[Any], name: str) -> None:
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        index = ", ".join(str(at) for at in bad[0])
        raise InvalidSignalError(
            f"{name}[{index}] is {array[tuple(bad[0])]}; leave out frequencies without a measurement, and ω = 0 if the "
            "system has an integrator"
        )


# Scaling.


@dataclass(frozen=True)
class ScaledResponse:
    """Points s = jω/`unit` and H/(`rows` `columns`) there, with a weight for every entry."""

    s: Complex
    H: Complex
    """`(K, p, m)`."""
    weights: Array
    """`(K, p, m)`; the mean square of weighted errors is minimized, and is the squared relative error."""
    unit: float
    """Unit of frequency, rad/s."""
    rows: Array
    """Unit of every output, `(p, 1)`."""
    columns: Array
    """Unit of every input, `(1, m)`."""
    feedthrough: bool = True
    """False for models with D = 0."""

    def part(self, chosen: NDArray[np.bool_]) -> "ScaledResponse":
        """Return the response at some of the frequencies."""
        return replace(self, s=self.s[chosen], H=self.H[chosen], weights=self.weights[chosen])

    def dual(self) -> "ScaledResponse":
        """Return the transposed response."""
        H, weights = self.H.transpose(0, 2, 1), self.weights.transpose(0, 2, 1)
        return replace(self, H=H, weights=weights, rows=self.columns.T, columns=self.rows.T)

    def error(self, H: Complex) -> float:
        """Return the root mean square of the weighted errors of H."""
        errors = np.abs(H - self.H) * self.weights
        return float(np.sqrt(np.mean(errors * errors)))


def scale_response(omega: Array, H: Complex, weights: Array | None, *, feedthrough: bool = True) -> ScaledResponse:
    """Scale frequencies by √(lowest · highest), and rows and columns of |H| to near 1.

    Without weights every channel counts by its error relative to its own root mean square, so that a channel eight
    decades below another one is fitted to as many digits.
    """
    positive = omega[omega > 0.0]
    unit = float(np.sqrt(positive.min()) * np.sqrt(positive.max())) if len(positive) else 1.0
    size = np.sqrt(np.mean(np.abs(H) ** 2, axis=0))
    rows, columns = _channel_units(size)
    inner = H / (rows * columns)
    size = size / (rows * columns)
    largest = float(size.max(initial=0.0))
    # Errors of a channel that is zero are relative to the largest channel.
    relative = 1.0 / np.where(size > 0.0, size, largest if largest > 0.0 else 1.0)
    scaled_weights = np.broadcast_to(relative, H.shape)
    if weights is not None:
        scaled_weights = np.broadcast_to(weights, H.shape) * (rows * columns)
        products = scaled_weights * np.abs(inner)
        if np.any(products):
            scaled_weights = scaled_weights / np.sqrt(np.mean(products**2))
    s = np.asarray(1j * omega / unit, dtype=np.complex128)
    return ScaledResponse(s, inner, np.array(scaled_weights), unit, rows, columns, feedthrough)


def _channel_units(size: Array) -> tuple[Array, Array]:
    """Return units of rows and columns for which the logarithms of all sizes are smallest in the mean square."""
    i, j = np.nonzero(size)
    is_row = i[:, None] == np.arange(size.shape[0])
    is_column = j[:, None] == np.arange(size.shape[1])
    # One factor may move from all rows to all columns: the solution of least norm.
    logs = np.linalg.lstsq(np.hstack([is_row, is_column]).astype(np.float64), np.log(size[i, j]), rcond=None)[0]
    rows, columns = np.split(np.exp(logs), [size.shape[0]])
    return rows[:, None], columns[None]
