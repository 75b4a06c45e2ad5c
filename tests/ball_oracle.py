"""What outputs should have been, with a proof: Arb balls (python-flint), so that the oracle knows its own error.

E x' = A x + B u, y = C x + D u, for samples of u that are kept (`hold="zero"`) or joined by lines (`hold="linear"`).
All numbers are taken as the doubles that they are, times included: a step is the exact difference of two of them, and a
time given twice is a jump. A step is x ← P x + Q₀ u_k + Q₁ u_{k+1}, blocks of the exponential of the augmented matrix.
States are those of an approximate eigenbasis where there is one, since balls widen least there: any V will do, as V⁻¹AV
is taken in balls as well. Bits are doubled until the radii are small.

Nothing of ltinet takes part.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike, NDArray

from ball_case import Case
from ball_steps import StepMaps, exact
from ball_walks import even_states, outputs_between, uneven_states

Array = NDArray[np.float64]

_FIRST_BITS, _MOST_BITS = 192, 12288
_LARGEST = float(np.finfo(np.float64).max)
_WANTED = 2.0**-66  # radius over peak: 1.4e-20, four digits below the rounding of a double
_NOTHING = 2.0**-160  # radius over the size of what an output is made of, where it cancels to zero
_LEAST = 5e-324  # what underflow of a radius may hide


@dataclass(frozen=True)
class Balls:
    """Numbers within `radius` of `mid + low`; `mid` is a double next to the number, `low` what it lacks."""

    mid: Array
    low: Array
    radius: Array

    def distance(self, values: ArrayLike) -> Array:
        """How far values are from the true numbers, to three digits or to the radius, whichever is worse."""
        return np.asarray(np.abs((np.asarray(values) - self.mid) - self.low))

    @property
    def peak(self) -> Array:
        """Largest magnitude over time, `(..., p)`; 0 where nothing tells the numbers from zero."""
        apart = np.any(np.abs(self.mid) > self.radius, axis=-2)
        return np.asarray(np.where(apart, np.max(np.abs(self.mid), axis=-2, initial=0.0), 0.0))


@dataclass(frozen=True)
class Response:
    """Outputs `(..., T, p)` at the samples; on request states there and outputs at other times."""

    y: Balls
    terms: Array
    """How large what outputs are made of becomes, |C| max |x| + |D| max |u|, `(..., p)`."""
    x: Balls | None
    """States `(..., T, n)`, where they were asked for."""
    between: Balls | None
    """Outputs `(..., len(at), p)` at the times asked for."""
    bits: int


def respond(
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    E: ArrayLike | None = None,
    *,
    u: ArrayLike,
    t: ArrayLike,
    hold: str = "linear",
    x0: ArrayLike | None = None,
    at: ArrayLike | None = None,
    states: bool = False,
) -> Response:
    """The response to samples u `(..., T, m)` at times t from x0 (zero if left out), radii below 2⁻⁶⁶ of each peak.

    Outputs at the samples are those before and after a jump; `between` holds those at the times `at`, after a jump
    where there is one. Precision is doubled until the radii are small enough: those of y, and with `states` those of x.

    Raises:
        OverflowError: an output is larger than the largest double.
        ArithmeticError: more than 12,288 bits would be needed.
    """
    case = Case.of(A, B, C, D, E, u=u, t=t, hold=hold, x0=x0, at=at)
    bits = _first_bits(case)
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            found = _solve(case, bits, states=states)
        if found is not None:
            return found
        bits *= 2
    raise ArithmeticError(f"the radius of the oracle stays above {_WANTED:.1e} of the peak at {_MOST_BITS} bits")


def _first_bits(case: Case) -> int:
    """Enough for most runs; pieces of √T uneven steps widen balls by at least half a bit a step."""
    return _FIRST_BITS if case.even_step is not None else _FIRST_BITS + 2 * math.isqrt(len(case.t))


def _solve(case: Case, bits: int, *, states: bool) -> Response | None:
    """The response at the working precision; None where so few bits do not tell it."""
    try:
        maps = StepMaps.of(case)
        z0 = maps.basis.solve(exact(case.x0.T))
    except ZeroDivisionError:  # E or V hold a singular matrix within their balls
        return None
    even = case.even_step
    z = uneven_states(maps, case, z0) if even is None else even_states(maps.at(even), case, z0)
    x = maps.basis * z
    outputs = _balls(case, exact(case.C) * x + exact(case.D) * exact(_columns(case.u)))
    terms = _terms(case, x)
    if not _is_sharp(outputs, terms):
        return None
    found = _balls(case, x) if states else None
    if found is not None and not _is_sharp(found, np.max(found.peak, axis=-1, keepdims=True, initial=0.0)):
        return None
    between = None if case.at is None else _balls(case, outputs_between(maps, z, case))
    if between is not None and not np.all(between.radius <= _allowed(outputs.peak, terms)[..., None, :]):
        return None
    return Response(outputs, terms, found, between, bits)


def _terms(case: Case, x: Any) -> Array:
    """The size of what outputs are made of, |C| max |x| + |D| max |u|."""
    states = np.abs([float(entry) for entry in x.entries()]).reshape(len(case.A), len(case.t), -1)
    largest = np.max(np.nan_to_num(states, nan=0.0, posinf=0.0), axis=1, initial=0.0).T
    inputs = np.max(np.abs(case.u), axis=1, initial=0.0)
    sums = largest @ np.abs(case.C).T + inputs @ np.abs(case.D).T
    return np.asarray(sums.reshape(*case.batch_shape, len(case.C)))


def _allowed(peak: Array, terms: Array) -> Array:
    return np.asarray(np.maximum(_WANTED * peak, _NOTHING * terms) + 2.0 * _LEAST)


def _is_sharp(balls: Balls, terms: Array) -> bool:
    if not np.all(np.isfinite(balls.radius)):
        return False
    return bool(np.all(np.max(balls.radius, axis=-2, initial=0.0) <= _allowed(balls.peak, terms)))


def _balls(case: Case, matrix: Any) -> Balls:
    """A matrix k × (T·batch) as doubles `(..., T, k)`; radii are rounded up."""
    k, times = matrix.nrows(), matrix.ncols() // len(case.x0)
    final = (*case.batch_shape, times, k)
    entries = matrix.entries()
    mid = np.array([float(entry) for entry in entries]).reshape(k, -1)
    if not np.all(np.isfinite(mid)):
        if any(entry.is_finite() and abs(entry) > _LARGEST for entry in entries):
            raise OverflowError("an output exceeds the largest double")
        nothing = np.full(final, np.nan)  # balls so wide that they hold everything: more bits are needed
        return Balls(nothing, nothing, np.full(final, np.inf))
    rest = (matrix - exact(mid)).entries()
    low = np.array([float(entry) for entry in rest])
    radius = np.array([float(entry.rad()) for entry in rest])
    radius = radius * (1.0 + 2.0**-50) + np.abs(low) * 2.0**-52 + _LEAST
    ordered = [own.reshape(k, times, -1).transpose(2, 1, 0).reshape(final) for own in (mid, low, radius)]
    return Balls(*ordered)


def _columns(values: Array) -> Array:
    """`(batch, T, k)` as k × (T·batch)."""
    return values.transpose(2, 1, 0).reshape(values.shape[2], -1)
