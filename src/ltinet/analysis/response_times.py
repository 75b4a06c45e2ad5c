"""Times at which a response is sampled if none are given, chosen from the modes that it shows.

A response is shown until its visible modes have faded to 1e-3 of the final value, for ten periods of an undamped
oscillation, or until a growing mode has grown a thousandfold. Times are even if few enough of them resolve the
fastest mode; otherwise they are spaced logarithmically in pieces that double in length, and closer where an
oscillation needs it.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array, rounding_tolerance
from ltinet.simulation.modal import ModalSystem

# MERGED ltinet.analysis.response_times
# Which modes a response shows, and how strongly: what times are chosen from.

_VISIBLE = 1e-3  # of the strongest mode between the same input and output
_MAX_AMPLITUDES = 10_000_000  # amplitudes that are looked at one by one; beyond, all modes count as visible


class Modes(NamedTuple):
    """Rates λ, and how strongly each shows between every output and every way to start it, `(modes, p, starts)`."""

    rates: NDArray[np.complex128]
    amplitudes: Array
    is_integrator: NDArray[np.bool_]
    to_step: bool

    @property
    def fastest(self) -> float:
        """The largest |λ|."""
        return float(np.abs(self.rates).max(initial=0.0))

    def visible(self) -> "Modes":
        """Those that one can see."""
        strongest = self.amplitudes.max(axis=0, initial=0.0)
        return self.those(((self.amplitudes >= _VISIBLE * strongest) & (self.amplitudes > 0.0)).any(axis=(1, 2)))

    def without_integrators(self) -> "Modes":
        """Those that do something by themselves."""
        return self.those(~self.is_integrator)

    def show_integrators(self, final: Array) -> bool:
        """Whether an integrator is seen: by the final values of a step, `(p, starts)`, or by its own share."""
        if self.to_step:  # amplitudes of hidden ones are rounding over rounding
            return not bool(np.isfinite(final).all())
        return bool(self.visible().is_integrator.any())

    def those(self, keep: NDArray[np.bool_]) -> "Modes":
        """Some of them."""
        return Modes(self.rates[keep], self.amplitudes[keep], self.is_integrator[keep], self.to_step)


def response_modes(
    system: ModalSystem, starts: Array, outputs: list[int], *, to_step: bool, n_integrators: int
) -> Modes:
    """The modes of a response that begins in packed states `(starts, n)`, or that follows steps which lead there.

    A step of an input that pushes a mode by g leaves c g/λ of it. Of modes that are coupled in a block nobody knows the
    shares: each counts as much as the block. The slowest `n_integrators` are integrators, whatever rounding
    made of them.
    """
    rates, C = system.rates, system.C[outputs]
    n_pairs, n_scalars = system.n_pairs, len(rates)
    pairs = starts[:, : 2 * n_pairs].reshape(len(starts), n_pairs, 2)
    pushed = np.concatenate(
        [np.hypot(pairs[..., 0], pairs[..., 1]), np.abs(starts[:, 2 * n_pairs : n_pairs + n_scalars])], 1
    )
    all_rates, amplitudes = [rates], [_products(np.abs(C), pushed)]
    place = n_pairs + n_scalars
    for block in system.blocks:
        values = np.linalg.eigvals(block.F).astype(np.complex128)
        own = np.linalg.norm(starts[:, place : place + len(block.F)], axis=1)
        size = np.outer(np.linalg.norm(block.C[outputs], axis=1), own)
        all_rates.append(values)
        amplitudes.append(np.broadcast_to(size, (len(values), *size.shape)))
        place += len(block.F)
    found, size = np.concatenate(all_rates), np.concatenate(amplitudes)
    is_integrator = _slowest(found, n_integrators)
    if to_step:
        size = size / np.where(is_integrator | (found == 0.0), 1.0, np.abs(found))[:, None, None]
    return Modes(found, size, is_integrator, to_step)


def _slowest(rates: NDArray[np.complex128], count: int) -> NDArray[np.bool_]:
    """The slowest modes, as many as have `count` states; of a pair that with a positive frequency stands for both."""
    if not count:
        return np.zeros(len(rates), dtype=np.bool_)
    sizes = np.abs(rates)
    order = np.argsort(sizes, kind="stable")
    states = np.cumsum(np.where(rates.imag > 0.0, 2, np.where(rates.imag < 0.0, 0, 1))[order])
    return np.asarray(sizes <= sizes[order][np.searchsorted(states, count)])


def _products(C: Array, pushed: Array) -> Array:
    if C.size * len(pushed) > _MAX_AMPLITUDES:
        return np.ones((C.shape[1], 1, 1))
    return np.asarray(C.T[:, :, None] * pushed.T[:, None, :])


# MERGED ltinet.analysis.response_times
# How times are spaced where even ones would be too many: closest where the fastest mode that still swings asks.

_MAX_SAMPLES_PER_RADIAN = 4.0  # of an oscillation: 25 in a period
MIN_SAMPLES_PER_RADIAN = 1.0  # six in a period: with fewer a line between them is not the curve
_PER_DECADE = (400.0, 100.0)  # of times where nothing swings; the second where oscillations need the others
_DENSITY_BISECTIONS = 60  # of an interval for a share of the times: all bits of it


class Oscillations(NamedTuple):
    """Frequencies of modes that oscillate, and until when each is seen."""

    frequencies: Array
    until: Array

    def fastest_from(self, time: float) -> float:
        """The largest frequency of what is still seen at a time."""
        return float(self.frequencies[self.until > time].max(initial=0.0))


def graded_times(first: float, end: float, swings: Oscillations, most: int) -> tuple[Array, float | None]:
    """At most so many times from 0 to the end, and the slowest oscillation that they do not follow, None if all are.

    From `first` on they come in pieces that double in length. A piece is spaced logarithmically, or evenly where an
    oscillation asks for more. If all together are too many, every oscillation gets the same share of what it asks for.
    """
    edges = np.append(first * 2.0 ** np.arange(max(math.ceil(math.log2(end / first)), 1)), end)
    lengths = np.diff(edges)
    asked = np.array([swings.fastest_from(float(start)) for start in edges[:-1]])
    decades = np.log10(edges[1:] / edges[:-1])
    for per_decade in _PER_DECADE:
        quiet = np.ceil(per_decade * decades)
        if quiet.sum() + (_MAX_SAMPLES_PER_RADIAN * asked * lengths).sum() <= most - 2:
            break
    density = _max_density(quiet, asked * lengths, most - 2 - len(lengths))
    pieces = [np.array([0.0, first])]
    for start, stop, rest, lively in zip(edges[:-1], edges[1:], quiet, density * asked * lengths, strict=True):
        count = math.ceil(max(rest, lively, 1.0))
        spaced = np.linspace(start, stop, count + 1) if lively > rest else np.geomspace(start, stop, count + 1)
        pieces.append(spaced[1:])
    missed = asked[(density < MIN_SAMPLES_PER_RADIAN) & (density * asked * lengths > quiet)]
    return np.concatenate(pieces), float(missed.min()) if missed.size else None


def _max_density(quiet: Array, radians: Array, most: float) -> float:
    """The most times in a radian, at most four, with which all pieces together have no more times than may be."""
    low, high = 0.0, _MAX_SAMPLES_PER_RADIAN
    if np.maximum(quiet, high * radians).sum() <= most:
        return high
    for _ in range(_DENSITY_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(quiet, middle * radians).sum() <= most else (low, middle)
    return low


# MERGED ltinet.analysis.response_times
# Times at which a response is shown where nobody gave them: until it has settled, close enough to see every mode.

MAX_TIMES = 5000
_MOST_NUMBERS = 20_000_000  # of all curves together: 160 MB
_MIN_TIMES = 201  # a curve of fewer points looks like a polygon
_SAMPLES_PER_RADIAN = 4.0  # of the fastest mode: 25 in a period
_FADED = 1e-3  # of the final value, or of the peak where that is zero: what is left of a mode at the end
_GROWTH = 1e3  # of modes that grow
_PERIODS = 10  # of modes that are not damped
_DOUBLINGS = 60  # of an end: more than any rates and amplitudes that are numbers need
_TIME_BISECTIONS = 30  # of an interval for a time that is drawn


class TimeSpan(NamedTuple):
    """How long a response is shown, what its fastest mode is, and what is to be said about that."""

    end: float
    fastest: float
    settles: bool
    notes: tuple[str, ...]
    swings: Oscillations
    """What oscillates, and until when it is seen."""
    returns: bool = False
    """Whether it repeats itself in the end, by a single oscillation that is not damped."""
    is_bounded: bool = False
    """Whether nothing grows."""


def select_time_span(modes: Modes, final: Array) -> TimeSpan:
    """When a response has settled, from its visible modes and its final values, `(p, starts)`.

    Without damping it never settles, and with growth it leaves: both get a sensible end and a note.
    """
    shown = modes.without_integrators().visible()
    rates = shown.rates
    noise = rounding_tolerance(len(modes.rates)) * np.abs(rates)
    grows = rates.real > noise
    swings = (np.abs(rates.real) <= noise) & (rates.imag != 0.0)
    fades = ~(grows | swings)
    if grows.any():
        end = math.log(_GROWTH) / float(rates.real[grows].max())
        told = f"it grows without bound; shown until t = {_round_up(end):g}, after a thousandfold growth"
        return TimeSpan(
            _round_up(end), shown.fastest, False, (told,), _oscillations(shown, np.full(len(rates), np.inf))
        )
    left = _times_to_fade(shown, fades, final)
    end, notes = float(left[fades].max(initial=0.0)), []
    if swings.any():
        slowest = float(np.abs(rates.imag[swings]).min())
        end = max(end, _PERIODS * 2.0 * math.pi / slowest)
        notes.append(f"an oscillation of {slowest:g} rad per unit of time is not damped: it never settles")
    returns = len(np.unique(np.abs(rates.imag[swings]))) == 1
    is_bounded = not modes.show_integrators(final)
    if not is_bounded:
        end = 2.0 * end if end > 0.0 else 10.0
        notes.append(_integrator_note(modes))
    end = _round_up(end) if end > 0.0 else 1.0
    notes = [f"{note}; shown until t = {end:g}" for note in notes]
    return TimeSpan(
        end, shown.fastest, not notes, tuple(notes), _oscillations(shown, left), returns and is_bounded, is_bounded
    )


def sample_times(span: TimeSpan, most: int = MAX_TIMES) -> tuple[Array, tuple[str, ...]]:
    """At most so many times from 0 to the end of a span, evenly spaced where that shows its fastest mode; a note.

    Otherwise they are spaced logarithmically, from a twentieth of the fastest mode's time on, after 0, and closer where
    something swings; what swings too fast to be followed is told.
    """
    radians = span.end * span.fastest
    if MIN_SAMPLES_PER_RADIAN * radians <= most:
        count = int(np.clip(math.ceil(_SAMPLES_PER_RADIAN * radians) + 1, _MIN_TIMES, most))
        return np.linspace(0.0, span.end, count), ()
    times, missed = graded_times(0.05 / span.fastest, span.end, span.swings, most)
    told = f"{len(times)} times do not follow an oscillation of {missed or 0.0:.3g} rad per unit of time to its end"
    return times, () if missed is None else (f"{told}; give times of your own to see it",)


def settling_time_bound(modes: Modes, reference: Array, *, share: float) -> float:
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
    for _ in range(_TIME_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_late(middle) else (middle, high)
    return high


def max_times(n_curves: int) -> int:
    """How many times there may be for so many curves: 5,000, or fewer where all of them would fill the memory."""
    return int(np.clip(_MOST_NUMBERS // max(n_curves, 1), _MIN_TIMES, MAX_TIMES))


def extend_span(span: TimeSpan, least: float = 0.0) -> TimeSpan:
    """A span that ends at a later time, or is longer by a half, for a response that has not settled yet."""
    return span._replace(end=_round_up(max(least, 1.5 * span.end)))


def deviation_reference(final: Array, peak: Array) -> Array:
    """What deviations are measured by: the final value, or the peak where that is zero or nothing beside it."""
    size = np.abs(final)
    return np.where(np.isfinite(size) & (size > 1e-9 * peak), size, peak)


def _integrator_note(modes: Modes) -> str:
    largest = float(np.abs(modes.rates[modes.is_integrator]).max(initial=0.0))
    told = f" (poles of {largest:.1g} are rounding)" if largest > 0.0 else ""
    return f"there is an integrator{told}: it {'never settles' if modes.to_step else 'need not return to zero'}"


def _oscillations(modes: Modes, until: Array) -> Oscillations:
    lively = modes.rates.imag != 0.0
    return Oscillations(np.abs(modes.rates.imag[lively]), until[lively])


def _times_to_fade(modes: Modes, fades: NDArray[np.bool_], final: Array) -> Array:
    """When nothing that one could see is left of each mode; those that do not fade stay for ever."""
    found = np.full(len(modes.rates), np.inf)
    if not fades.any():
        return found
    amplitudes, rates = modes.amplitudes[fades], modes.rates[fades]
    peak = amplitudes.max(axis=0)
    reference = deviation_reference(final if final.shape == peak.shape else np.zeros(peak.shape), peak)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.log(np.nan_to_num(amplitudes / (_FADED * reference), nan=0.0, posinf=0.0))
        times = np.maximum(left, 0.0).max(axis=(1, 2)) / -rates.real
    found[fades] = np.where(np.isfinite(times), times, 0.0)
    return found


def _round_up(value: float) -> float:
    """Up to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit * (1.0 - 1e-12)) * unit
