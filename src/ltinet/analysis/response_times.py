"""Default sample times of a response, chosen from its visible modes.

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

# Modes of a response.

# Of the strongest mode between the same input and output, and at the end of the final value, or of the peak if that is
# zero: smaller amplitudes are less than a pixel high in a drawing.
_VISIBLE_SHARE = 1e-3
ROUNDING_OF_PEAK = 1e-9
"""Share of the peak: smaller final values and overshoots are rounding of sums whose terms exceed the peak up to 10⁶ times."""
_MAX_AMPLITUDES = 10_000_000  # amplitudes that are computed; if there were more, all modes count as visible


class Modes(NamedTuple):
    """Rates λ, and their amplitudes between every output and every initial state, `(modes, p, starts)`."""

    rates: NDArray[np.complex128]
    amplitudes: Array
    is_integrator: NDArray[np.bool_]
    of_step: bool

    @property
    def fastest(self) -> float:
        """Largest |λ|."""
        return float(np.abs(self.rates).max(initial=0.0))

    def visible(self) -> "Modes":
        """Return the modes with visible amplitudes."""
        strongest = self.amplitudes.max(axis=0, initial=0.0)
        return self.select(((self.amplitudes >= _VISIBLE_SHARE * strongest) & (self.amplitudes > 0.0)).any(axis=(1, 2)))

    def select(self, mask: NDArray[np.bool_]) -> "Modes":
        """Return some of the modes."""
        return Modes(self.rates[mask], self.amplitudes[mask], self.is_integrator[mask], self.of_step)


def response_modes(
    system: ModalSystem, starts: Array, outputs: list[int], *, of_step: bool, n_integrators: int
) -> Modes:
    """Return the modes of a response to packed initial states `(starts, n)`, or to steps with these input columns.

    A step of an input with the coefficient g of a mode leaves the amplitude c g/λ. Amplitudes of modes that are coupled
    in a block are unknown: each counts as much as the block. The slowest `n_integrators` states are integrators, even
    if rounding moved their eigenvalues from zero.
    """
    rates, C = system.rates, system.C[outputs]
    n_pairs, n_scalars = system.n_pairs, len(rates)
    pairs = starts[:, : 2 * n_pairs].reshape(len(starts), n_pairs, 2)
    sizes = np.concatenate(
        [np.hypot(pairs[..., 0], pairs[..., 1]), np.abs(starts[:, 2 * n_pairs : n_pairs + n_scalars])], 1
    )
    are_known = C.size * len(sizes) <= _MAX_AMPLITUDES
    products = np.ones((len(rates), 1, 1))
    if are_known:
        products = np.asarray(np.abs(C).T[:, :, None] * sizes.T[:, None, :])
    all_rates, amplitudes = [rates], [products]
    offset = n_pairs + n_scalars
    for block in system.blocks:
        values = np.linalg.eigvals(block.F).astype(np.complex128)
        norms = np.linalg.norm(starts[:, offset : offset + len(block.F)], axis=1)
        size = np.outer(np.linalg.norm(block.C[outputs], axis=1), norms) if are_known else np.ones((1, 1))
        all_rates.append(values)
        amplitudes.append(np.broadcast_to(size, (len(values), *size.shape)))
        offset += len(block.F)
    rates, size = np.concatenate(all_rates), np.concatenate(amplitudes)
    is_integrator = slowest_modes(rates, n_integrators)
    if of_step:
        size = size / np.where(is_integrator | (rates == 0.0), 1.0, np.abs(rates))[:, None, None]
    return Modes(rates, size, is_integrator, of_step)


def slowest_modes(rates: NDArray[np.complex128], count: int) -> NDArray[np.bool_]:
    """Return a mask of the slowest modes with `count` states; in a pair Im λ > 0 counts for both."""
    if not count:
        return np.zeros(len(rates), dtype=np.bool_)
    sizes = np.abs(rates)
    order = np.argsort(sizes, kind="stable")
    states = np.cumsum(np.where(rates.imag > 0.0, 2, np.where(rates.imag < 0.0, 0, 1))[order])
    return np.asarray(sizes <= sizes[order][np.searchsorted(states, count)])


# Graded times.

_SAMPLES_PER_RADIAN = 4.0  # of the fastest mode: 25 in a period, lines between them are within 1 % of its amplitude
MIN_SAMPLES_PER_RADIAN = 1.0  # six in a period: with fewer, lines between samples do not follow the curve
_SAMPLES_PER_DECADE = (400.0, 100.0)  # without oscillations; the second where these need the other samples
_DENSITY_BISECTIONS = 60  # all bits of the density


class Oscillations(NamedTuple):
    """Frequencies of oscillating modes, and the time until which each is visible."""

    frequencies: Array
    until: Array


def graded_times(first: float, end: float, oscillations: Oscillations, max_count: int) -> tuple[Array, float | None]:
    """Return at most `max_count` times from 0 to the end, and the slowest oscillation that they do not resolve, or None.

    From `first` on times form pieces that double in length. A piece is spaced logarithmically, or evenly where an
    oscillation needs more samples. If that is too many, the samples of all oscillations are reduced in proportion.
    """
    edges = np.append(first * 2.0 ** np.arange(max(math.ceil(math.log2(end / first)), 1)), end)
    lengths = np.diff(edges)
    # The largest frequency that is still visible at the beginning of each piece.
    frequencies = np.array(
        [oscillations.frequencies[oscillations.until > start].max(initial=0.0) for start in edges[:-1]]
    )
    decades = np.log10(edges[1:] / edges[:-1])
    for per_decade in _SAMPLES_PER_DECADE:
        quiet = np.ceil(per_decade * decades)
        if quiet.sum() + (_SAMPLES_PER_RADIAN * frequencies * lengths).sum() <= max_count - 2:
            break
    density = _max_density(quiet, frequencies * lengths, max_count - 2 - len(lengths))
    pieces = [np.array([0.0, first])]
    for start, stop, n_logarithmic, n_linear in zip(
        edges[:-1], edges[1:], quiet, density * frequencies * lengths, strict=True
    ):
        count = math.ceil(max(n_logarithmic, n_linear, 1.0))
        spaced = (
            np.linspace(start, stop, count + 1) if n_linear > n_logarithmic else np.geomspace(start, stop, count + 1)
        )
        pieces.append(spaced[1:])
    missed = frequencies[(density < MIN_SAMPLES_PER_RADIAN) & (density * frequencies * lengths > quiet)]
    return np.concatenate(pieces), float(missed.min()) if missed.size else None


def _max_density(quiet: Array, radians: Array, max_count: float) -> float:
    """Return the largest number of samples per radian, up to four, with at most `max_count` samples in all pieces."""
    low, high = 0.0, _SAMPLES_PER_RADIAN
    if np.maximum(quiet, high * radians).sum() <= max_count:
        return high
    for _ in range(_DENSITY_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(quiet, middle * radians).sum() <= max_count else (low, middle)
    return low


# Time spans.

MAX_TIMES = 5000  # of a drawn curve: more are not seen
_MAX_NUMBERS = 20_000_000  # of all curves together: 160 MB
_MIN_TIMES = 201  # a curve of fewer points looks like a polygon
_GROWTH = 1e3  # factor by which growing modes grow
_PERIODS = 10  # of undamped modes
_DOUBLINGS = 60  # of an end time: more than finite rates and amplitudes need
_TIME_BISECTIONS = 30  # relative accuracy of 1e-9


class TimeSpan(NamedTuple):
    """Duration of a response, its fastest mode, and notes on both."""

    end: float
    fastest: float
    settles: bool
    notes: tuple[str, ...]
    oscillations: Oscillations
    returns: bool = False
    """True if it becomes periodic, with a single undamped oscillation."""
    is_bounded: bool = False
    """True if nothing grows."""


def select_time_span(modes: Modes, final: Array) -> TimeSpan:
    """Return the time span until a response has settled, from its visible modes and final values `(p, starts)`.

    Undamped and unstable responses get a suitable end and a note.
    """
    visible = modes.select(~modes.is_integrator).visible()
    rates = visible.rates
    noise = rounding_tolerance(len(modes.rates)) * np.abs(rates)
    grows = rates.real > noise
    undamped = (np.abs(rates.real) <= noise) & (rates.imag != 0.0)
    fades = ~(grows | undamped)
    if grows.any():
        end = _round_up(math.log(_GROWTH) / float(rates.real[grows].max()))
        note = f"it grows without bound; shown until t = {end:g}, after a thousandfold growth"
        return TimeSpan(end, visible.fastest, False, (note,), _oscillations(visible, np.full(len(rates), np.inf)))
    fade_times = _times_to_fade(visible, fades, final)
    end, notes = float(fade_times[fades].max(initial=0.0)), []
    if undamped.any():
        slowest = float(np.abs(rates.imag[undamped]).min())
        end = max(end, _PERIODS * 2.0 * math.pi / slowest)
        notes.append(f"an oscillation of {slowest:g} rad per unit of time is not damped: it never settles")
    returns = len(np.unique(np.abs(rates.imag[undamped]))) == 1
    # Integrators show in final values of steps, where amplitudes of hidden ones are quotients of rounding errors.
    is_bounded = bool(np.isfinite(final).all() if modes.of_step else not modes.visible().is_integrator.any())
    if not is_bounded:
        end = 2.0 * end if end > 0.0 else 10.0
        largest = float(np.abs(modes.rates[modes.is_integrator]).max(initial=0.0))
        size = f" (poles of {largest:.1g} are rounding)" if largest > 0.0 else ""
        consequence = "never settles" if modes.of_step else "need not return to zero"
        notes.append(f"there is an integrator{size}: it {consequence}")
    end = _round_up(end) if end > 0.0 else 1.0
    notes = [f"{note}; shown until t = {end:g}" for note in notes]
    oscillations, returns = _oscillations(visible, fade_times), returns and is_bounded
    return TimeSpan(end, visible.fastest, not notes, tuple(notes), oscillations, returns, is_bounded)


def sample_times(span: TimeSpan, max_count: int = MAX_TIMES) -> tuple[Array, tuple[str, ...]]:
    """Return at most `max_count` times from 0 to the end of a span, evenly spaced if that resolves its fastest mode; notes.

    Otherwise they are spaced logarithmically from a twentieth of the time constant of the fastest mode on, and closer
    for oscillations; a note names an oscillation that is not resolved.
    """
    radians = span.end * span.fastest
    if MIN_SAMPLES_PER_RADIAN * radians <= max_count:
        count = int(np.clip(math.ceil(_SAMPLES_PER_RADIAN * radians) + 1, _MIN_TIMES, max_count))
        return np.linspace(0.0, span.end, count), ()
    times, missed = graded_times(0.05 / span.fastest, span.end, span.oscillations, max_count)
    note = f"{len(times)} times do not follow an oscillation of {missed or 0.0:.3g} rad per unit of time to its end"
    return times, () if missed is None else (f"{note}; pass other times to see it",)


def settling_time_bound(modes: Modes, reference: Array, *, share: float) -> float:
    """Return the time after which all modes together are below a share of the references `(p, starts)`.

    Amplitudes are summed: modes that cancel each other for a while, as those of a delay do, count in full. The result
    is 0 if a mode does not decay.
    """
    amplitudes = modes.amplitudes / np.where(reference > 0.0, reference, np.inf)
    decays = -modes.rates.real
    if not len(decays) or not amplitudes.any() or decays.min() <= 0.0:
        return 0.0

    def has_settled(time: float) -> bool:
        return bool((np.tensordot(np.exp(-decays * time), amplitudes, 1) <= share).all())

    low, high = 0.0, 1.0 / float(decays.max())
    for _ in range(_DOUBLINGS):
        if has_settled(high):
            break
        low, high = high, 2.0 * high
    for _ in range(_TIME_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if has_settled(middle) else (middle, high)
    return high


def max_times(n_curves: int) -> int:
    """Return the largest number of times for a number of curves: 5,000, or fewer to limit memory."""
    return int(np.clip(_MAX_NUMBERS // max(n_curves, 1), _MIN_TIMES, MAX_TIMES))


def extend_span(span: TimeSpan, min_end: float = 0.0) -> TimeSpan:
    """Return a span that ends at a later time, and is longer by at least a half."""
    return span._replace(end=_round_up(max(min_end, 1.5 * span.end)))


def deviation_reference(final: Array, peak: Array) -> Array:
    """Return the scale of deviations: the final value, or the peak where that is zero or rounding of the peak."""
    size = np.abs(final)
    return np.where(np.isfinite(size) & (size > ROUNDING_OF_PEAK * peak), size, peak)


def _oscillations(modes: Modes, until: Array) -> Oscillations:
    oscillates = modes.rates.imag != 0.0
    return Oscillations(np.abs(modes.rates.imag[oscillates]), until[oscillates])


def _times_to_fade(modes: Modes, fades: NDArray[np.bool_], final: Array) -> Array:
    """Return the time after which each mode is invisible; infinite for those that do not fade."""
    result = np.full(len(modes.rates), np.inf)
    if not fades.any():
        return result
    amplitudes, rates = modes.amplitudes[fades], modes.rates[fades]
    peak = amplitudes.max(axis=0)
    reference = deviation_reference(final if final.shape == peak.shape else np.zeros(peak.shape), peak)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.log(np.nan_to_num(amplitudes / (_VISIBLE_SHARE * reference), nan=0.0, posinf=0.0))
        times = np.maximum(log_ratios, 0.0).max(axis=(1, 2)) / -rates.real
    result[fades] = np.where(np.isfinite(times), times, 0.0)
    return result


def _round_up(value: float) -> float:
    """Round up to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit * (1.0 - 1e-12)) * unit
