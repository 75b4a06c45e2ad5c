"""Times of samples, as users have them: exact, rounded, far from zero, uneven, with jumps."""

import math
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]
Kind = Literal["exact", "offset", "rounded", "rounded offset", "uneven", "random"]
KINDS: dict[Kind, float] = {
    "exact": 0.32, "offset": 0.14, "rounded": 0.18, "rounded offset": 0.08, "uneven": 0.18, "random": 0.10,
}  # fmt: skip
"""Shares: even and doubles to the last bit, at zero and far from it; even but rounded, likewise; of a few lengths over
three decades; of any length."""

_SHORT_BITS = 10  # of a step whose multiples are exact: leaves 43 for the number of steps and the offset


def draw_times(rng: Generator, kind: Kind, *, n_steps: int, step: float, most_lengths: int = 8) -> Array:
    """n_steps + 1 times with steps of about the given length on average."""
    k = np.arange(n_steps + 1)
    short = shorten(step)
    if kind == "exact":
        return k * short
    if kind == "offset":
        return (int(2.0 ** rng.uniform(6.0, 36.0)) * (1 if rng.random() < 0.8 else -1)) * short + k * short
    if kind == "rounded":
        full = step * (1.0 + 0.1 * rng.random())
        return k * full if rng.random() < 0.5 else np.linspace(0.0, n_steps * full, n_steps + 1)
    if kind == "rounded offset":  # seconds since 1970 are 1e9 steps of a second, 1e12 of a millisecond
        return step * 10.0 ** rng.uniform(4.0, 10.0) + k * (step * (1.0 + 0.1 * rng.random()))
    if kind == "uneven":
        lengths = np.unique(np.round(10.0 ** rng.uniform(0.0, 3.0, rng.integers(2, most_lengths + 1))))
        ticks = rng.choice(lengths, n_steps, p=(1.0 / lengths) / np.sum(1.0 / lengths))
    else:
        ticks = rng.integers(1, 2**13, n_steps).astype(float)
    unit = shorten(step * n_steps / np.sum(ticks))
    return np.concatenate([[0.0], np.cumsum(ticks)]) * unit


def with_jumps(rng: Generator, t: Array) -> Array:
    """Some times given twice, which marks jumps; the number of times stays."""
    jumps = rng.choice(len(t) - 1, min(len(t) - 1, int(rng.integers(1, 7))), replace=False)
    repeats = np.ones(len(t), dtype=int)
    repeats[jumps] = 2
    return np.repeat(t, repeats)[: len(t)]


def draw_queries(rng: Generator, t: Array, *, number: int) -> Array:
    """Times for dense output: parts of intervals, samples themselves, and both ends."""
    moving = np.flatnonzero(np.diff(t) > 0.0)
    k = rng.choice(moving, min(number, len(moving)), replace=False)
    inside = t[k] + (t[k + 1] - t[k]) * rng.choice([0.0, 0.25, 0.5, 0.8125], len(k))
    return np.concatenate([t[:1], np.sort(inside), t[-1:]])


def shorten(length: float) -> float:
    """A positive length to a few bits, so that its multiples are doubles."""
    mantissa, exponent = math.frexp(length)
    return math.ldexp(round(mantissa * 2**_SHORT_BITS), exponent - _SHORT_BITS)
