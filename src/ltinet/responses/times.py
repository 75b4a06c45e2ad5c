"""Times at which a response is shown where nobody gave them: until it has settled, close enough to see every mode."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.responses.modes import Modes
from ltinet.responses.spacing import FEWEST_PER_RADIAN, Swings, spaced_times
from ltinet.tolerances import rounding

MOST_TIMES = 5000
_MOST_NUMBERS = 20_000_000  # of all curves together: 160 MB
_FEWEST = 201  # a curve of fewer points looks like a polygon
_PER_RADIAN = 4.0  # of the fastest mode: 25 in a period
_LEFT = 1e-3  # of the final value, or of the peak where that is zero: what is left of a mode at the end
_GROWTH = 1e3  # of modes that grow
_PERIODS = 10  # of modes that are not damped
_DOUBLINGS = 60  # of an end: more than any rates and amplitudes that are numbers need
_HALVINGS = 30  # of an interval for a time that is drawn


class Span(NamedTuple):
    """How long a response is shown, what its fastest mode is, and what is to be said about that."""

    end: float
    fastest: float
    settles: bool
    remarks: tuple[str, ...]
    swings: Swings
    """What oscillates, and until when it is seen."""
    returns: bool = False
    """Whether it repeats itself in the end, by a single oscillation that is not damped."""
    is_bounded: bool = False
    """Whether nothing grows."""


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
        return Span(_rounded(end), shown.fastest, False, (told,), _swings(shown, np.full(len(rates), np.inf)))
    left = _times_to_fade(shown, fades, final)
    end, remarks = float(left[fades].max(initial=0.0)), []
    if swings.any():
        slowest = float(np.abs(rates.imag[swings]).min())
        end = max(end, _PERIODS * 2.0 * math.pi / slowest)
        remarks.append(f"an oscillation of {slowest:g} rad per unit of time is not damped: it never settles")
    returns = len(np.unique(np.abs(rates.imag[swings]))) == 1
    is_bounded = not modes.show_integrators(final)
    if not is_bounded:
        end = 2.0 * end if end > 0.0 else 10.0
        remarks.append(_of_integrators(modes))
    end = _rounded(end) if end > 0.0 else 1.0
    remarks = [f"{remark}; shown until t = {end:g}" for remark in remarks]
    return Span(
        end, shown.fastest, not remarks, tuple(remarks), _swings(shown, left), returns and is_bounded, is_bounded
    )


def times_until(span: Span, most: int = MOST_TIMES) -> tuple[Array, tuple[str, ...]]:
    """At most so many times from 0 to the end of a span, evenly spaced where that shows its fastest mode; a remark.

    Otherwise they are spaced logarithmically, from a twentieth of the fastest mode's time on, after 0, and closer where
    something swings; what swings too fast to be followed is told.
    """
    radians = span.end * span.fastest
    if FEWEST_PER_RADIAN * radians <= most:
        count = int(np.clip(math.ceil(_PER_RADIAN * radians) + 1, _FEWEST, most))
        return np.linspace(0.0, span.end, count), ()
    times, missed = spaced_times(0.05 / span.fastest, span.end, span.swings, most)
    told = f"{len(times)} times do not follow an oscillation of {missed or 0.0:.3g} rad per unit of time to its end"
    return times, () if missed is None else (f"{told}; give times of your own to see it",)


def surely_settled(modes: Modes, reference: Array, *, share: float) -> float:
    """The time after which all modes together are below a share of the references `(p, starts)`, if all fade.

    By the sum of their amplitudes: modes that cancel each other for a while, as those of a delay do, count in full.
    """
    amplitudes = modes.amplitudes / np.where(reference > 0.0, reference, np.inf)
    decays = -modes.rates.real
    if not len(decays) or not amplitudes.any() or decays.min() <= 0.0:
        return 0.0

    def is_late(time: float) -> bool:
        return bool((np.tensordot(np.exp(-decays * time), amplitudes, 1) <= share).all())

    low, high = 0.0, 1.0 / float(decays.max())
    for _ in range(_DOUBLINGS):
        if is_late(high):
            break
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_late(middle) else (middle, high)
    return high


def most_times(n_curves: int) -> int:
    """How many times there may be for so many curves: 5,000, or fewer where all of them would fill the memory."""
    return int(np.clip(_MOST_NUMBERS // max(n_curves, 1), _FEWEST, MOST_TIMES))


def lengthened(span: Span, least: float = 0.0) -> Span:
    """A span that ends at a later time, or is longer by a half, for a response that has not settled yet."""
    return span._replace(end=_rounded(max(least, 1.5 * span.end)))


def reference_of(final: Array, peak: Array) -> Array:
    """What deviations are measured by: the final value, or the peak where that is zero or nothing beside it."""
    size = np.abs(final)
    return np.where(np.isfinite(size) & (size > 1e-9 * peak), size, peak)


def _of_integrators(modes: Modes) -> str:
    largest = float(np.abs(modes.rates[modes.is_integrator]).max(initial=0.0))
    told = f" (poles of {largest:.1g} are rounding)" if largest > 0.0 else ""
    return f"there is an integrator{told}: it {'never settles' if modes.to_step else 'need not return to zero'}"


def _swings(modes: Modes, until: Array) -> Swings:
    lively = modes.rates.imag != 0.0
    return Swings(np.abs(modes.rates.imag[lively]), until[lively])


def _times_to_fade(modes: Modes, fades: NDArray[np.bool_], final: Array) -> Array:
    """When nothing that one could see is left of each mode; those that do not fade stay for ever."""
    found = np.full(len(modes.rates), np.inf)
    if not fades.any():
        return found
    amplitudes, rates = modes.amplitudes[fades], modes.rates[fades]
    peak = amplitudes.max(axis=0)
    reference = reference_of(final if final.shape == peak.shape else np.zeros(peak.shape), peak)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.log(np.nan_to_num(amplitudes / (_LEFT * reference), nan=0.0, posinf=0.0))
        times = np.maximum(left, 0.0).max(axis=(1, 2)) / -rates.real
    found[fades] = np.where(np.isfinite(times), times, 0.0)
    return found


def _rounded(value: float) -> float:
    """Up to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit * (1.0 - 1e-12)) * unit
