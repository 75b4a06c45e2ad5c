"""Outputs of a model with delays and an operating point, by matrix exponentials in 40 digits on shifted knots.

Independent of the library: the input of each channel is a list of exact knots t_k + τ_j with a constant or a line
between them, and the state goes from one knot of any channel to the next by one exponential of an augmented matrix.
"""

import mpmath as mp
import numpy as np

_SAME = 8 * 2.0**-52  # of the largest time: a knot that rounding puts beside an output time acts from that time on


def exact_outputs(system, u, t, *, hold, x0=None):
    """Return y `(T, p)` at the times t of samples u `(T, m)`, rounded once, for a `StateSpace` with settings."""
    with mp.workdps(40):
        return _outputs(system, u, t, hold, x0)


def _outputs(system, u, t, hold, x0):
    m, p, n = system.n_inputs, system.n_outputs, system.n_states
    A, B, C, D = (mp.matrix(own.tolist()) for own in (system.A, system.B, system.C, system.D))
    times = [mp.mpf(float(own)) for own in t]
    same = _SAME * max(abs(times[0]), abs(times[-1]))
    channels = []
    for j in range(m):
        delay = mp.mpf(float(system.input_delay[j]))
        values = [mp.mpf(float(own)) - mp.mpf(float(system.u0[j])) for own in u[:, j]]
        channels.append(([own + delay for own in times], values, delay > 0))
    reads = sorted({own - mp.mpf(float(delay)) for own in times for delay in system.output_delay} | set(times))
    ends = sorted({own for own in reads if times[0] <= own} | {k for ks, _, _ in channels for k in ks if k < times[-1]})
    x = mp.matrix([mp.mpf(float(own)) for own in (np.zeros(n) if x0 is None else x0)])
    states, now = {}, times[0]
    for end in [times[0], *ends]:
        if end - now > 0:
            middle = (now + end) / 2
            start, slope = zip(*(_line(channel, middle, now, hold) for channel in channels), strict=True)
            x = _step(A, B, x, mp.matrix(list(start)), mp.matrix(list(slope)), end - now)
            now = end
        states[end] = x.copy()
    y = np.empty((len(t), p))
    for k, time in enumerate(times):
        for i in range(p):
            source, level = time - mp.mpf(float(system.output_delay[i])), mp.mpf(float(system.y0[i]))
            source = times[0] if abs(source - times[0]) < same else source
            if source < times[0]:
                y[k, i] = float(level)
                continue
            # Of a time given twice the first is before the jump.
            moment = -same if k + 1 < len(times) and times[k + 1] == time else same
            v = mp.matrix([_value(channel, source, hold, moment) for channel in channels])
            y[k, i] = float((C[i, :] * states[source])[0] + (D[i, :] * v)[0] + level)
    return y


def _value(channel, time, hold, moment):
    """The value at a time, a moment later or, of a jump, before it."""
    knots, values, _ = channel
    k = sum(1 for own in knots if own <= time + moment) - 1
    if k < 0:
        return mp.mpf(0)
    if hold == "zero" or k + 1 == len(knots):
        return values[k]
    return values[k] + (values[k + 1] - values[k]) * (time - knots[k]) / (knots[k + 1] - knots[k])


def _line(channel, middle, start, hold):
    """Value at the start of an interval without knots inside, and slope."""
    knots, values, _ = channel
    k = sum(1 for own in knots if own <= middle) - 1
    if k < 0:
        return mp.mpf(0), mp.mpf(0)
    if hold == "zero" or k + 1 == len(knots):
        return values[k], mp.mpf(0)
    slope = (values[k + 1] - values[k]) / (knots[k + 1] - knots[k])
    return values[k] + slope * (start - knots[k]), slope


def _step(A, B, x, value, slope, h):
    """Return x after a time h with the input value + slope·s, by an exponential of size n + 2."""
    n = A.rows
    M = mp.zeros(n + 2)
    M[:n, :n] = A
    for i, (a, b) in enumerate(zip(B * slope, B * value, strict=True)):
        M[i, n], M[i, n + 1] = a, b
    M[n, n + 1] = 1
    start = mp.matrix([*x, 0, 1])
    return (mp.expm(M * h, method="taylor") * start)[:n, 0]
