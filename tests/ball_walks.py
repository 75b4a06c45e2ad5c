"""States of a run in balls, at the samples and between them.

Balls that go through one product after the other widen as |P|ᵏ, not as Pᵏ: by 2^(T/2) for a plain rotation. Time is
therefore cut into pieces that run side by side from zero and are then linked by powers of P, so that only the logarithm
of the number of steps (its square root for uneven ones) widens them.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from ball_case import Case, Length, length_between
from ball_steps import StepMaps, as_arb, exact, objects

Array = NDArray[np.float64]

_RADIX = 16  # steps of a piece: wide enough that calls cost little, short enough that balls do not widen


def even_states(step: tuple[Any, Any], case: Case, start: Any) -> Any:
    """States at all samples of an even grid, n × (T·batch): pieces of _RADIX steps side by side."""
    P, Q = step
    batch, T = len(case.x0), len(case.t)
    pieces = -(-T // _RADIX)
    entering = np.zeros((pieces * _RADIX, batch, Q.ncols()))
    entering[: T - 1] = case.entering
    entering = entering.reshape(pieces, _RADIX, batch, -1)
    added = [Q * exact(_columns_of(entering[:, j])) for j in range(_RADIX)]
    states = _scan(P, added, start, pieces, batch)
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
    padded[:, :pieces] = objects(ends, (n, pieces, batch))
    padded = padded.reshape(n, groups, _RADIX, batch)
    added = [arb_mat(n, groups * batch, padded[:, :, j].ravel().tolist()) for j in range(_RADIX)]
    return _interleave(_scan(P, added, start, groups, batch), n, groups, batch, pieces)


def _interleave(states: list[Any], n: int, pieces: int, batch: int, length: int) -> Any:
    """Columns in the order of time from one matrix for each step of a piece."""
    parts = [objects(own, (n, pieces, batch)) for own in states]
    ordered = np.stack(parts, axis=2).reshape(n, -1, batch)[:, :length]
    return arb_mat(n, length * batch, ordered.ravel().tolist())


def uneven_states(maps: StepMaps, case: Case, start: Any) -> Any:
    """States at all samples for steps of any lengths: √T pieces of √T steps, linked by exponentials of their spans."""
    n, batch, keys = len(case.A), len(case.x0), case.lengths
    length = max(1, math.isqrt(len(keys)))
    ends = [*range(0, len(keys), length), len(keys)]
    maps.prepare([*keys, *(length_between(case.t[a], case.t[b]) for a, b in pairwise(ends))])
    added = _added(maps, keys, case)
    states = []
    for begin in range(0, max(len(keys), 1), length):
        piece = range(begin, min(begin + length, len(keys)))
        states += _walk(maps, keys, added, start, piece)[:-1]
        if not piece:
            break
        from_zero = _walk(maps, keys, added, arb_mat(n, batch), piece)[-1]
        start = maps.at(length_between(case.t[begin], case.t[piece.stop]))[0] * start + from_zero
    states.append(start)
    whole = np.stack([objects(own, (n, batch)) for own in states], axis=1)
    return arb_mat(n, len(states) * batch, whole.ravel().tolist())


def _walk(maps: StepMaps, keys: list[Length], added: list[Any], start: Any, steps: range) -> list[Any]:
    states = [start]
    for k in steps:
        states.append(maps.at(keys[k])[0] * states[-1] + added[k] if keys[k][0] else states[-1])
    return states


def _added(maps: StepMaps, keys: list[Length], case: Case) -> list[Any]:
    """What each step adds to the state: one product for all steps of a length."""
    n, batch = len(case.A), len(case.x0)
    entering, added = case.entering, [arb_mat(n, batch)] * len(keys)
    places: dict[Length, list[int]] = {}
    for k, key in enumerate(keys):
        places.setdefault(key, []).append(k)
    for key, own in places.items():
        if key[0]:
            columns = objects(maps.at(key)[1] * exact(_columns_of(entering[own])), (n, len(own), batch))
            for index, k in enumerate(own):
                added[k] = arb_mat(n, batch, columns[:, index].ravel().tolist())
    return added


def outputs_between(maps: StepMaps, states: Any, case: Case) -> Any:
    """Outputs at any times: one step of a part of an interval from the sample before."""
    n, m, batch, T = len(case.A), case.B.shape[1], len(case.x0), len(case.t)
    if case.at is None or np.any(case.at < case.t[0]) or np.any(case.at > case.t[-1]):
        raise ValueError("outputs are known between the first and the last sample only")
    sampled = objects(states, (n, T, batch))
    x = np.empty((n, len(case.at), batch), dtype=object)
    value = np.empty((m, len(case.at), batch), dtype=object)
    before = np.searchsorted(case.t, case.at, side="right") - 1
    maps.prepare(length_between(case.t[k], time) for k, time in zip(before, case.at, strict=True))
    for q, (k, time) in enumerate(zip(before.tolist(), case.at.tolist(), strict=True)):
        now = exact(case.u[:, k].T)
        at_k = arb_mat(n, batch, sampled[:, k].ravel().tolist())
        key = length_between(case.t[k], time)
        if key[0]:
            share = as_arb(key) / as_arb(length_between(case.t[k], case.t[k + 1]))
            then = now + (exact(case.u[:, k + 1].T) - now) * share if case.linear else now
            P, Q = maps.at(key)
            at_k = P * at_k + Q * (_stacked(now, then) if case.linear else now)
            now = then
        x[:, q] = objects(at_k, (n, batch))
        value[:, q] = objects(now, (m, batch))
    found = arb_mat(n, len(case.at) * batch, x.ravel().tolist())
    inputs = arb_mat(m, len(case.at) * batch, value.ravel().tolist())
    return exact(case.C) * (maps.basis * found) + exact(case.D) * inputs


def _power(P: Any, exponent: int) -> Any:
    """P to a power of two."""
    for _ in range(exponent.bit_length() - 1):
        P = P * P
    return P


def _columns_of(values: Array) -> Array:
    """`(T, batch, k)` as k × (T·batch)."""
    return values.reshape(-1, values.shape[2]).T


def _stacked(above: Any, below: Any) -> Any:
    return arb_mat(above.nrows() + below.nrows(), above.ncols(), above.entries() + below.entries())
