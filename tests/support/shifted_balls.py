"""Outputs of a model with delays and an operating point, by exponentials on shifted knots in hundreds of bits.

Knots t_k + τ_j are exact fractions of the doubles that are given. Between two knots of any input the state goes by the
exponential of the augmented matrix, in Arb's arithmetic at `BITS` bits with midpoints taken after each step: what that
rounds is 2^(53 − BITS) of what doubles would. `by_doubles` does the same in doubles, as users do without the library.

A knot acts from an output time on where rounding alone puts it beside that time, as docs/how-to/delays-offsets-hold.md
says; `same` is how far apart such times may be.
"""

from bisect import bisect_right
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx, fmpq
from scipy import linalg

from ltinet import StateSpace

BITS = 320
_EPS = 2.0**-52


class Exact(NamedTuple):
    """Outputs `(T, p)`: a double and what it lacks."""

    mid: np.ndarray
    low: np.ndarray

    def distance(self, y: np.ndarray) -> np.ndarray:
        return np.abs((y - self.mid) - self.low)


class _Channel(NamedTuple):
    knots: list
    values: list
    zero_hold: bool

    def at(self, place: int, time) -> object:
        """The value at a time in the piece after a knot; nothing before the first knot."""
        if place < 0:
            return 0 * self.values[0]
        if self.zero_hold or place + 1 == len(self.knots) or self.knots[place + 1] == self.knots[place]:
            return self.values[place]
        share = (time - self.knots[place]) / (self.knots[place + 1] - self.knots[place])
        return self.values[place] + (self.values[place + 1] - self.values[place]) * share


def same(t: np.ndarray, delays: np.ndarray) -> float:
    """How far apart rounding may put times that are one: 8 ε of the largest, or a millionth of the shortest step."""
    largest = max(abs(float(t[0])), abs(float(t[-1]))) + float(delays.max(initial=0.0))
    return min(8.0 * _EPS * largest, 1e-6 * float(np.diff(np.unique(t)).min(initial=np.inf)))


def by_balls(system: StateSpace, u: np.ndarray, t: np.ndarray, *, x0: np.ndarray | None = None) -> Exact:
    """Return the outputs of a model by arithmetic of `BITS` bits."""
    before, ctx.prec = ctx.prec, BITS
    try:
        descriptor = system.descriptor
        if descriptor is None:
            A, B = arb_mat(system.A.tolist()), arb_mat(system.B.tolist())
        else:
            E = arb_mat(descriptor.E.tolist())
            A, B = (E.solve(arb_mat(own.tolist())).mid() for own in (descriptor.A, descriptor.B))
        n, m = system.n_states, system.n_inputs
        known: dict = {}

        def step(x, now, then, h):
            if h not in known:
                augmented = arb_mat(n + 2 * m, n + 2 * m)
                length = _arb(h)
                for i in range(n):
                    for j in range(n):
                        augmented[i, j] = A[i, j] * length
                    for j in range(m):
                        augmented[i, n + j] = B[i, j] * length
                for j in range(m):
                    augmented[n + j, n + m + j] = arb(1)
                known[h] = arb_mat([row[:] for row in augmented.exp().mid().tolist()[:n]])
            rise = [_arb(b - a) for a, b in zip(now, then, strict=True)]
            column = arb_mat([[own] for own in [*x, *map(_arb, now), *rise]])
            return [row[0] for row in (known[h] * column).mid().tolist()]

        def output(i, x, v):
            total = arb(float(system.y0[i]))
            for weight, own in zip(system.C[i].tolist(), x, strict=True):
                total += arb(weight) * own
            for weight, own in zip(system.D[i].tolist(), v, strict=True):
                total += arb(weight) * _arb(own)
            return total.mid()

        start = [arb(float(own)) for own in (np.zeros(n) if x0 is None else x0)]
        y = _walk(system, u, t, start, step, output, Fraction)
        mid = np.array([[float(own) for own in row] for row in y])
        low = np.array([[float(own - arb(float(own))) for own in row] for row in y])
        return Exact(mid, low)
    finally:
        ctx.prec = before


def by_doubles(system: StateSpace, u: np.ndarray, t: np.ndarray, *, x0: np.ndarray | None = None) -> np.ndarray:
    """Return the outputs of a model as stepping along the shifted signal by `scipy.linalg.expm` gives them."""
    n, m = system.n_states, system.n_inputs
    known: dict[float, np.ndarray] = {}

    def step(x, now, then, h):
        if h not in known:
            augmented = np.zeros((n + 2 * m, n + 2 * m))
            augmented[:n, :n], augmented[:n, n : n + m] = system.A * h, system.B * h
            augmented[n : n + m, n + m :] = np.eye(m)
            known[h] = linalg.expm(augmented)[:n]
        return known[h] @ np.concatenate([x, now, np.subtract(then, now)])

    def output(i, x, v):
        return float(system.C[i] @ x + system.D[i] @ np.array(v) + system.y0[i])

    start = np.zeros(n) if x0 is None else np.asarray(x0)
    with np.errstate(all="ignore"):
        return np.array(_walk(system, u, t, start, step, output, float))


def _walk(system, u, t, x, step, output, number):
    """Go from knot to knot and read outputs; `number` makes exact or rounded numbers of doubles."""
    limit = number(same(t, np.concatenate([system.input_delay, system.output_delay])))
    times = [number(float(own)) for own in t]
    channels = []
    for j in range(system.n_inputs):
        delay, level = number(float(system.input_delay[j])), number(float(system.u0[j]))
        values = [number(float(own)) - level for own in u[:, j]]
        channels.append(_Channel([own + delay for own in times], values, system.hold == "zero"))
    reads = []
    for delay in system.output_delay.tolist():
        own = [time - number(delay) for time in times]
        reads.append([times[0] if abs(source - times[0]) <= limit else source for source in own])
    ends = {own for row in reads for own in row if own > times[0]}
    ends |= {knot for own in channels for knot in own.knots if times[0] < knot < times[-1]}
    states, now = {times[0]: x}, times[0]
    for end in sorted(ends):
        places = [bisect_right(own.knots, now) - 1 for own in channels]
        begin = [own.at(k, now) for own, k in zip(channels, places, strict=True)]
        last = [own.at(k, end) for own, k in zip(channels, places, strict=True)]
        x = step(x, begin, last, end - now)
        states[end], now = x, end
    y = []
    for k in range(len(times)):
        first_of_two = k + 1 < len(times) and times[k + 1] == times[k]
        row = []
        for i, sources in enumerate(reads):
            source = sources[k]
            if source < times[0]:
                row.append(output(i, [0 * own for own in x], [0 * own.values[0] for own in channels]))
                continue
            # Of a time given twice the first is before the jump.
            v = [_value(own, source, -limit if first_of_two else limit) for own in channels]
            row.append(output(i, states[source], v))
        y.append(row)
    return y


def _value(channel: _Channel, time, moment):
    place = bisect_right(channel.knots, time + moment) - 1
    return channel.at(place, time)


def _arb(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))
