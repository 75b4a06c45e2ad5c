"""What somebody should know before trusting a fitted response, in sentences."""

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.identification.from_frequency.orders import FLOOR, TriedOrder

_POOR = 0.2  # relative error of a channel that nobody would call a fit
_FAR = 10.0  # times the highest frequency, or below the lowest: a pole there is felt as a constant or a slope at most


def remarks(
    poles: Complex, omega: Array, errors: Array, *, tried: tuple[TriedOrder, ...], allowed: list[int]
) -> tuple[str, ...]:
    """Channels that are not fitted, an order at its limit, peaks between frequencies and poles far outside of them."""
    told = []
    poor = np.argwhere(errors > _POOR)
    if len(poor):
        i, j = poor[0]
        told.append(
            f"{len(poor)} of {errors.size} channels are fitted badly: output {i} of input {j} to {errors[i, j]:.2g} of "
            "its size"
        )
    if tried and len(poles) == allowed[-1] and tried[-1].held_out > FLOOR:
        told.append(f"order {len(poles)} is the largest that was allowed; a larger one may fit better")
    narrow = _between(poles, omega)
    if narrow.size:
        told.append(
            f"{len(narrow)} resonances are narrower than the step between frequencies, the first at "
            f"{np.min(narrow.imag):.4g} rad/s: their heights are not in the data"
        )
    positive = omega[omega > 0.0]
    sizes = np.abs(poles)
    far = (sizes > _FAR * positive.max()) | ((sizes > 0.0) & (sizes * _FAR < positive.min()))
    if np.any(far):
        told.append(
            f"{int(np.count_nonzero(far))} poles lie a decade or more outside of the measured frequencies; "
            "what the model does there is extrapolated"
        )
    return tuple(told)


def _between(poles: Complex, omega: Array) -> Complex:
    """Pairs whose half width is less than a quarter of the step between the frequencies around them."""
    upper = poles[(poles.imag > omega[0]) & (poles.imag < omega[-1])]
    at = np.clip(np.searchsorted(omega, upper.imag), 1, len(omega) - 1)
    return np.asarray(upper[np.abs(upper.real) < 0.25 * (omega[at] - omega[at - 1])])
