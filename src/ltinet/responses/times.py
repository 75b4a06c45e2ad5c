"""Times at which a response is shown where nobody gave them: until it has settled, close enough to see every mode."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.responses.modes import Modes
from ltinet.tolerances import rounding

MOST_TIMES = 5000
_MOST_NUMBERS = 20_000_000  # of all curves together: 160 MB
_FEWEST = 201  # a curve of fewer points looks like a polygon
_PER_RADIAN = 4.0  # of the fastest mode: 25 in a period
_LEAST_PER_RADIAN = 1.0  # six in a period: below this time is spaced logarithmically
_PER_DECADE = 400  # of logarithmic times
_LEFT = 1e-3  # of the final value, or of the peak where that is zero: what is left of a mode at the end
_GROWTH = 1e3  # of modes that grow
_PERIODS = 10  # of modes that are not damped


class Span(NamedTuple):
    """How long a response is shown, what its fastest mode is, and what is to be said about that."""

    end: float
    fastest: float
    settles: bool
    remarks: tuple[str, ...]


def span_of(modes: Modes, final: Array) -> Span:
    """When a response has settled, from its visible modes and its final values, `(p, starts)`.

    Without damping it never settles, and with growth it leaves: both get a sensible end and a remark.
    """
    shown = modes.without_integrators().visible()
    rates = shown.rates
    noise = rounding(len(modes.rates)) * np.abs(rates)
    grows = rates.real > noise
    swings = (np.abs(rates.real) <= noise) & (rates.imag != 0.0)
    fades = ~(grows | swings)
    if grows.any():
        end = math.log(_GROWTH) / float(rates.real[grows].max())
        told = f"it grows without bound; shown until t = {_rounded(end):g}, after a thousandfold growth"
        return Span(_rounded(end), shown.fastest, settles=False, remarks=(told,))
    end, remarks = _time_to_fade(shown, fades, final), []
    if swings.any():
        slowest = float(np.abs(rates.imag[swings]).min())
        end = max(end, _PERIODS * 2.0 * math.pi / slowest)
        remarks.append(f"an oscillation of {slowest:g} rad per unit of time is not damped: it never settles")
    if modes.show_integrators(final):
        end = 2.0 * end if end > 0.0 else 10.0
        remarks.append(_of_integrators(modes))
    end = _rounded(end) if end > 0.0 else 1.0
    remarks = [f"{remark}; shown until t = {end:g}" for remark in remarks]
    return Span(end, shown.fastest, not remarks, tuple(remarks))


def times_until(span: Span, most: int = MOST_TIMES) -> Array:
    """At most so many times from 0 to the end of a span, evenly spaced where that shows its fastest mode.

    Otherwise they are spaced logarithmically, from a twentieth of the fastest mode's time on, after 0.
    """
    radians = span.end * span.fastest
    if _LEAST_PER_RADIAN * radians <= most:
        count = int(np.clip(math.ceil(_PER_RADIAN * radians) + 1, _FEWEST, most))
        return np.linspace(0.0, span.end, count)
    first = 0.05 / span.fastest
    count = int(np.clip(math.ceil(_PER_DECADE * math.log10(span.end / first)), _FEWEST - 1, most - 1))
    return np.concatenate([[0.0], np.geomspace(first, span.end, count)])


def most_times(n_curves: int) -> int:
    """How many times there may be for so many curves: 5,000, or fewer where all of them would fill the memory."""
    return int(np.clip(_MOST_NUMBERS // max(n_curves, 1), _FEWEST, MOST_TIMES))


def lengthened(span: Span) -> Span:
    """A span that is longer by a half, for a response that has not settled yet."""
    return span._replace(end=_rounded(1.5 * span.end))


def reference_of(final: Array, peak: Array) -> Array:
    """What deviations are measured by: the final value, or the peak where that is zero or nothing beside it."""
    size = np.abs(final)
    return np.where(np.isfinite(size) & (size > 1e-9 * peak), size, peak)


def _of_integrators(modes: Modes) -> str:
    largest = float(np.abs(modes.rates[modes.is_integrator]).max(initial=0.0))
    told = f" (poles of {largest:.1g} are rounding)" if largest > 0.0 else ""
    return f"there is an integrator{told}: it {'never settles' if modes.to_step else 'need not return to zero'}"


def _time_to_fade(modes: Modes, fades: NDArray[np.bool_], final: Array) -> float:
    """When nothing that one could see is left of any mode that fades."""
    if not fades.any():
        return 0.0
    amplitudes, rates = modes.amplitudes[fades], modes.rates[fades]
    peak = amplitudes.max(axis=0)
    reference = reference_of(final if final.shape == peak.shape else np.zeros(peak.shape), peak)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.log(np.nan_to_num(amplitudes / (_LEFT * reference), nan=0.0, posinf=0.0))
        times = np.maximum(left, 0.0).max(axis=(1, 2)) / -rates.real
    return float(np.max(times[np.isfinite(times)], initial=0.0))


def _rounded(value: float) -> float:
    """Up to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit * (1.0 - 1e-12)) * unit
