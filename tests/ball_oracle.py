"""What outputs should have been, with a proof: Arb balls (python-flint), so that the oracle knows its own error.

E x' = A x + B u, y = C x + D u, for samples of u that are kept (`hold="zero"`) or joined by lines (`hold="linear"`).
All numbers are taken as the doubles that they are, times included: a step is the exact difference of two of them, and a
time given twice is a jump. A step is x ← P x + Q₀ u_k + Q₁ u_{k+1}, blocks of the exponential of the augmented matrix.

Balls that go through one product after the other widen as |P|ᵏ, not as Pᵏ: by 2^(T/2) for a plain rotation. Time is
therefore cut into pieces that run side by side from zero and are then linked by powers of P, so that only the logarithm
of the number of steps (its square root for uneven ones) widens them; what is left is met by more bits.

Nothing of ltinet takes part.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpz
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
_Length = tuple[int, int]
"""Mantissa and exponent of a length of time, which is mantissa · 2^exponent."""

_FIRST_BITS, _MOST_BITS = 192, 12288
_LARGEST = float(np.finfo(np.float64).max)
_WANTED = 2.0**-66  # radius over peak: 1.4e-20, four digits below the rounding of a double
_NOTHING = 2.0**-160  # radius over the size of what an output is made of, where it cancels to zero
_RADIX = 16  # steps of a piece: wide enough that calls cost little, short enough that balls do not widen
_SQUARINGS = 40  # of a matrix that cost less than its exponential
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
        """Largest magnitude over time, `(..., p)`."""
        return np.asarray(np.max(np.abs(self.mid), axis=-2, initial=0.0))


@dataclass(frozen=True)
class Response:
    """Outputs `(..., T, p)` and states `(..., T, n)`, at the samples or at the times asked for."""

    y: Balls
    x: Balls | None
    """The states, where they were asked for."""
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

    Given `at`, outputs are those at these times, after a jump where there is one; else those at the samples, before and
    after. Precision is doubled until the radii are small enough: those of y, and with `states` those of x as well.

    Raises:
        OverflowError: an output is larger than the largest double.
        ArithmeticError: more than 12,288 bits would be needed.
    """
    case = _Case.of(A, B, C, D, E, u=u, t=t, hold=hold, x0=x0, at=at)
    bits = case.first_bits()
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            found = case.solve(bits, states=states)
        if found is not None:
            return found
        bits *= 2
    raise ArithmeticError(f"the radius of the oracle stays above {_WANTED:.1e} of the peak at {_MOST_BITS} bits")


def _is_sharp(balls: Balls, size: float) -> bool:
    if not np.all(np.isfinite(balls.radius)):
        return False
    widest = np.max(balls.radius, axis=-2, initial=0.0)
    return bool(np.all((widest <= _WANTED * balls.peak) | (widest <= _NOTHING * size + 2.0 * _LEAST)))


@dataclass(frozen=True)
class _Case:
    """A run, checked and in arrays: u is `(batch, T, m)`, x0 `(batch, n)`."""

    A: Array
    B: Array
    C: Array
    D: Array
    E: Array | None
    u: Array
    t: Array
    linear: bool
    x0: Array
    at: Array | None
    batch_shape: tuple[int, ...]

    @classmethod
    def of(cls, A: Any, B: Any, C: Any, D: Any, E: Any, *, u: Any, t: Any, hold: str, x0: Any, at: Any) -> "_Case":
        A, B, C = (np.array(given, dtype=np.float64, ndmin=2) for given in (A, B, C))
        D = np.zeros((len(C), B.shape[1])) if D is None else np.array(D, dtype=np.float64, ndmin=2)
        E = None if E is None else np.array(E, dtype=np.float64, ndmin=2)
        t, u = np.array(t, dtype=np.float64), np.array(u, dtype=np.float64)
        u = u[:, None] if u.ndim == 1 else u
        if hold not in ("zero", "linear") or np.any(np.diff(t) < 0.0) or u.shape[-2:] != (len(t), B.shape[1]):
            raise ValueError(f"hold {hold!r}, t of shape {t.shape} and u of shape {u.shape} are no input of a run")
        batch_shape = u.shape[:-2]
        start = np.zeros(len(A)) if x0 is None else np.array(x0, dtype=np.float64)
        start = np.broadcast_to(start, (*batch_shape, len(A))).reshape(-1, len(A))
        places = None if at is None else np.atleast_1d(np.array(at, dtype=np.float64))
        return cls(A, B, C, D, E, u.reshape(-1, *u.shape[-2:]), t, hold == "linear", start, places, batch_shape)

    def first_bits(self) -> int:
        """Enough for most runs; pieces of √T uneven steps widen balls by at least half a bit a step."""
        return _FIRST_BITS if self._even_step() is not None else _FIRST_BITS + 2 * math.isqrt(len(self.t))

    def solve(self, bits: int, *, states: bool) -> Response | None:
        """The response at the working precision; None where so few bits do not tell it."""
        try:
            maps = _StepMaps.of(self)
        except ZeroDivisionError:  # E holds a singular matrix within its balls
            return None
        even = self._even_step()
        x = _uneven(maps, self) if even is None else _even(maps.at(even), self)
        if self.at is None:
            y = _exact(self.C) * x + _exact(self.D) * _exact(_columns(self.u))
        else:
            x, y = _between(maps, x, self)
        outputs = self._balls(y)
        # The size of what outputs are made of, for those that are zero: rows of C times the largest of all states.
        largest = max((float(abs(entry)) for entry in x.entries()), default=0.0) if not np.all(outputs.peak) else 0.0
        made_of = largest * np.max(np.abs(self.C), initial=0.0) + np.max(np.abs(self.D) @ np.abs(self.u).max((0, 1)))
        if not _is_sharp(outputs, made_of):
            return None
        if not states:
            return Response(outputs, None, bits)
        found = self._balls(x)
        return Response(outputs, found, bits) if _is_sharp(found, np.max(found.peak, initial=0.0)) else None

    def _even_step(self) -> "_Length | None":
        """The length of the steps, if all are the same to the last bit and none is a jump."""
        if len(self.t) < 2 or not self._exact_differences.all():
            return None
        steps = np.diff(self.t)
        return _length(self.t[0], self.t[1]) if steps[0] > 0.0 and np.all(steps == steps[0]) else None

    @cached_property
    def _exact_differences(self) -> NDArray[np.bool_]:
        """Where t_{k+1} − t_k is a double (Knuth's two-sum leaves nothing)."""
        before, after = -self.t[:-1], self.t[1:]
        total = after + before
        part = total - after
        return np.asarray((after - (total - part)) + (before - part) == 0.0)

    @cached_property
    def lengths(self) -> list["_Length"]:
        """The exact lengths of all steps."""
        known: dict[float, _Length] = {}
        lengths = []
        for a, b, exact in zip(self.t[:-1].tolist(), self.t[1:].tolist(), self._exact_differences, strict=True):
            if exact:
                if b - a not in known:
                    known[b - a] = _length(a, b)
                lengths.append(known[b - a])
            else:
                lengths.append(_length(a, b))
        return lengths

    def _balls(self, matrix: Any) -> Balls:
        """A matrix k × (T·batch) as doubles `(..., T, k)`; radii are rounded up."""
        k, times = matrix.nrows(), len(self.t if self.at is None else self.at)
        final = (*self.batch_shape, times, k)
        entries = matrix.entries()
        mid = np.array([float(entry) for entry in entries]).reshape(k, -1)
        if not np.all(np.isfinite(mid)):
            if any(entry.is_finite() and not (abs(entry) < _LARGEST) for entry in entries):
                raise OverflowError("an output exceeds the largest double")
            nothing = np.full(final, np.nan)  # balls so wide that they hold everything: more bits are needed
            return Balls(nothing, nothing, np.full(final, np.inf))
        rest = (matrix - _exact(mid)).entries()
        low = np.array([float(entry) for entry in rest])
        radius = np.array([float(entry.rad()) for entry in rest])
        radius = radius * (1.0 + 2.0**-50) + np.abs(low) * 2.0**-52 + _LEAST
        ordered = [own.reshape(k, times, -1).transpose(2, 1, 0).reshape(final) for own in (mid, low, radius)]
        return Balls(*ordered)


class _StepMaps:
    """Exponentials of the augmented matrix by the length of the step, made from powers of two of one unit.

    A step is a whole multiple of a power of two; its map is the product of those of its binary digits, which costs a
    tenth of an exponential and is exact in the same sense.
    """

    def __init__(self, generator: Any, n: int, m: int, *, linear: bool) -> None:
        self.generator, self.n, self.m, self.linear = generator, n, m, linear
        self._digits: dict[int, Any] = {}
        self._found: dict[_Length, tuple[Any, Any]] = {}

    @classmethod
    def of(cls, case: _Case) -> "_StepMaps":
        n, m = case.B.shape
        right = _exact(np.hstack([case.A, case.B]))
        if case.E is not None:
            right = _exact(case.E).solve(right)
        size = n + (2 if case.linear else 1) * m
        generator = arb_mat(size, size)
        for i in range(n):
            for j in range(n + m):
                generator[i, j] = right[i, j]
        for i in range(m if case.linear else 0):
            generator[n + i, n + m + i] = arb(1)  # the last states are the slopes of u
        return cls(generator, n, m, linear=case.linear)

    def at(self, key: _Length) -> tuple[Any, Any]:
        """P and Q of a step of mantissa · 2^exponent, where x ← P x + Q [u_k; u_{k+1}] (u_k alone for zero hold)."""
        if key not in self._found:
            self._found[key] = self._split(self.whole(key), key)
        return self._found[key]

    def whole(self, key: _Length) -> Any:
        """The exponential of generator · mantissa · 2^exponent."""
        mantissa, exponent = key
        size = self.generator.nrows()
        product = None
        for place in range(mantissa.bit_length()):
            if mantissa >> place & 1:
                digit = self._digit(exponent + place)
                product = digit if product is None else product * digit
        return arb_mat(size, size, _unit_entries(size)) if product is None else product

    def _digit(self, place: int) -> Any:
        if place not in self._digits:
            below = max((known for known in self._digits if known < place), default=-math.inf)
            if place - below < _SQUARINGS:
                half = self._digit(place - 1)
                self._digits[place] = half * half
            else:
                self._digits[place] = (self.generator * _power_of_two(place)).exp()
        return self._digits[place]

    def _split(self, whole: Any, key: _Length) -> tuple[Any, Any]:
        n, m = self.n, self.m
        P = _part(whole, range(n), range(n))
        first = _part(whole, range(n), range(n, n + m))
        if not self.linear:
            return P, first
        slope = _part(whole, range(n), range(n + m, n + 2 * m)) * (1 / _as_arb(key))
        return P, _side_by_side(first - slope, slope)


def _even(step: tuple[Any, Any], case: _Case) -> Any:
    """States at all samples of an even grid, n × (T·batch): pieces of _RADIX steps side by side."""
    P, Q = step
    batch, T = len(case.x0), len(case.t)
    pieces = -(-T // _RADIX)
    entering = np.zeros((pieces * _RADIX, batch, Q.ncols()))
    entering[: T - 1] = _entering(case)
    entering = entering.reshape(pieces, _RADIX, batch, -1)
    added = [Q * _exact(_columns_of(entering[:, j])) for j in range(_RADIX)]
    states = _scan(P, added, _exact(case.x0.T), pieces, batch)
    return _interleave(states, len(case.A), pieces, batch, T)


def _scan(P: Any, added: list[Any], start: Any, pieces: int, batch: int) -> list[Any]:
    """States before each step j of all pieces; `added[j]` holds what step j of every piece adds, one in a column."""
    if pieces > 1:
        end = added[0]
        for own in added[1:]:
            end = P * end + own
        start = _starts(_power(P, len(added)), end, start, pieces, batch)
    states = [start]
    for own in added[:-1]:
        states.append(P * states[-1] + own)
    return states


def _starts(P: Any, ends: Any, start: Any, pieces: int, batch: int) -> Any:
    """Where every piece starts, from where each would end if it started from zero: the same recurrence, shorter."""
    n = P.nrows()
    groups = -(-pieces // _RADIX)
    padded = np.full((n, groups * _RADIX, batch), arb(0), dtype=object)
    padded[:, :pieces] = _objects(ends, (n, pieces, batch))
    padded = padded.reshape(n, groups, _RADIX, batch)
    added = [arb_mat(n, groups * batch, padded[:, :, j].ravel().tolist()) for j in range(_RADIX)]
    return _interleave(_scan(P, added, start, groups, batch), n, groups, batch, pieces)


def _interleave(states: list[Any], n: int, pieces: int, batch: int, length: int) -> Any:
    """Columns in the order of time from one matrix for each step of a piece."""
    parts = [_objects(own, (n, pieces, batch)) for own in states]
    ordered = np.stack(parts, axis=2).reshape(n, -1, batch)[:, :length]
    return arb_mat(n, length * batch, ordered.ravel().tolist())


def _uneven(maps: _StepMaps, case: _Case) -> Any:
    """States at all samples for steps of any lengths: √T pieces of √T steps, linked by exponentials of their spans."""
    n, batch, keys = len(case.A), len(case.x0), case.lengths
    added = _added(maps, keys, case)
    length = max(1, math.isqrt(len(keys)))
    start, states = _exact(case.x0.T), []
    for begin in range(0, max(len(keys), 1), length):
        piece = range(begin, min(begin + length, len(keys)))
        states += _walk(maps, keys, added, start, piece)[:-1]
        if not piece:
            break
        from_zero = _walk(maps, keys, added, arb_mat(n, batch), piece)[-1]
        start = maps.at(_length(case.t[begin], case.t[piece.stop]))[0] * start + from_zero
    states.append(start)
    whole = np.stack([_objects(own, (n, batch)) for own in states], axis=1)
    return arb_mat(n, len(states) * batch, whole.ravel().tolist())


def _walk(maps: _StepMaps, keys: list[_Length], added: list[Any], start: Any, steps: range) -> list[Any]:
    states = [start]
    for k in steps:
        states.append(maps.at(keys[k])[0] * states[-1] + added[k] if keys[k][0] else states[-1])
    return states


def _added(maps: _StepMaps, keys: list[_Length], case: _Case) -> list[Any]:
    """What each step adds to the state: one product for all steps of a length."""
    n, batch = len(case.A), len(case.x0)
    entering, added = _entering(case), [arb_mat(n, batch)] * len(keys)
    places: dict[_Length, list[int]] = {}
    for k, key in enumerate(keys):
        places.setdefault(key, []).append(k)
    for key, own in places.items():
        if key[0]:
            columns = _objects(maps.at(key)[1] * _exact(_columns_of(entering[own])), (n, len(own), batch))
            for index, k in enumerate(own):
                added[k] = arb_mat(n, batch, columns[:, index].ravel().tolist())
    return added


def _between(maps: _StepMaps, states: Any, case: _Case) -> tuple[Any, Any]:
    """States and outputs at any times: one step of a part of an interval from the sample before."""
    n, m, batch, T = len(case.A), case.B.shape[1], len(case.x0), len(case.t)
    if case.at is None or np.any(case.at < case.t[0]) or np.any(case.at > case.t[-1]):
        raise ValueError("outputs are known between the first and the last sample only")
    sampled = _objects(states, (n, T, batch))
    x = np.empty((n, len(case.at), batch), dtype=object)
    value = np.empty((m, len(case.at), batch), dtype=object)
    for q, time in enumerate(case.at):
        k = int(np.searchsorted(case.t, time, side="right")) - 1
        now = _exact(case.u[:, k].T)
        at_k = arb_mat(n, batch, sampled[:, k].ravel().tolist())
        key = _length(case.t[k], time)
        if key[0]:
            share = _as_arb(key) / _as_arb(_length(case.t[k], case.t[k + 1]))
            then = now + (_exact(case.u[:, k + 1].T) - now) * share if case.linear else now
            P, Q = maps.at(key)
            at_k = P * at_k + Q * (_stacked(now, then) if case.linear else now)
            now = then
        x[:, q] = _objects(at_k, (n, batch))
        value[:, q] = _objects(now, (m, batch))
    found = arb_mat(n, len(case.at) * batch, x.ravel().tolist())
    inputs = arb_mat(m, len(case.at) * batch, value.ravel().tolist())
    return found, _exact(case.C) * found + _exact(case.D) * inputs


def _entering(case: _Case) -> Array:
    """(steps, batch, 2m) of u_k and u_{k+1}, or (steps, batch, m) of u_k alone."""
    u = case.u.transpose(1, 0, 2)
    return np.concatenate([u[:-1], u[1:]], axis=2) if case.linear else u[:-1]


def _length(start: float, stop: float) -> _Length:
    """The time from start to stop, exactly: a whole number times a power of two, the number odd or zero."""
    (a, b), (c, d) = float(start).as_integer_ratio(), float(stop).as_integer_ratio()
    common = max(b, d)  # both are powers of two
    mantissa, exponent = c * (common // d) - a * (common // b), 1 - common.bit_length()
    if mantissa == 0:
        return 0, 0
    twos = (mantissa & -mantissa).bit_length() - 1
    return mantissa >> twos, exponent + twos


def _as_arb(length: _Length) -> Any:
    return arb(length[0]) * _power_of_two(length[1])


def _power_of_two(exponent: int) -> Any:
    return arb(fmpz(1) << exponent) if exponent >= 0 else 1 / arb(fmpz(1) << -exponent)


def _power(P: Any, exponent: int) -> Any:
    """P to a power of two."""
    for _ in range(exponent.bit_length() - 1):
        P = P * P
    return P


def _exact(values: Array) -> Any:
    return arb_mat(*values.shape, values.ravel().tolist())


def _columns(values: Array) -> Array:
    """`(batch, T, k)` as k × (T·batch)."""
    return values.transpose(2, 1, 0).reshape(values.shape[2], -1)


def _columns_of(values: Array) -> Array:
    """`(T, batch, k)` as k × (T·batch)."""
    return values.reshape(-1, values.shape[2]).T


def _objects(matrix: Any, shape: tuple[int, ...]) -> NDArray[np.object_]:
    entries = np.empty(math.prod(shape), dtype=object)
    entries[:] = matrix.entries()
    return entries.reshape(shape)


def _part(matrix: Any, rows: range, columns: range) -> Any:
    return arb_mat(len(rows), len(columns), [matrix[i, j] for i in rows for j in columns])


def _side_by_side(left: Any, right: Any) -> Any:
    rows = zip(left.tolist(), right.tolist(), strict=True)
    return arb_mat(left.nrows(), left.ncols() + right.ncols(), [entry for a, b in rows for entry in (*a, *b)])


def _stacked(above: Any, below: Any) -> Any:
    return arb_mat(above.nrows() + below.nrows(), above.ncols(), above.entries() + below.entries())


def _unit_entries(size: int) -> list[int]:
    return [int(i == j) for i in range(size) for j in range(size)]
