"""A run for the oracle of `ball_oracle`: its data as the doubles that they are, and the exact lengths of its steps."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Length = tuple[int, int]
"""Mantissa and exponent of a length of time, which is mantissa · 2^exponent."""

_EIGENBASIS = 1e9  # condition up to which an eigenbasis costs fewer bits than it saves


@dataclass(frozen=True)
class Case:
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
    def of(cls, A: Any, B: Any, C: Any, D: Any, E: Any, *, u: Any, t: Any, hold: str, x0: Any, at: Any) -> "Case":
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

    @cached_property
    def even_step(self) -> "Length | None":
        """The length of the steps, if all are the same to the last bit and none is a jump."""
        if len(self.t) < 2 or not self._exact_differences.all():
            return None
        steps = np.diff(self.t)
        return length_between(self.t[0], self.t[1]) if steps[0] > 0.0 and np.all(steps == steps[0]) else None

    @cached_property
    def _exact_differences(self) -> NDArray[np.bool_]:
        """Where t_{k+1} − t_k is a double (Knuth's two-sum leaves nothing)."""
        before, after = -self.t[:-1], self.t[1:]
        total = after + before
        part = total - after
        return np.asarray((after - (total - part)) + (before - part) == 0.0)

    @cached_property
    def lengths(self) -> list["Length"]:
        """The exact lengths of all steps."""
        known: dict[float, Length] = {}
        lengths = []
        for a, b, exact in zip(self.t[:-1].tolist(), self.t[1:].tolist(), self._exact_differences, strict=True):
            if exact:
                if b - a not in known:
                    known[b - a] = length_between(a, b)
                lengths.append(known[b - a])
            else:
                lengths.append(length_between(a, b))
        return lengths

    @cached_property
    def basis(self) -> Array:
        """Real and imaginary parts of approximate eigenvectors, or the identity where they are too close."""
        n = len(self.A)
        A = self.A if self.E is None else np.linalg.lstsq(self.E, self.A)[0]
        if not np.all(np.isfinite(A)):
            return np.eye(n)
        values, vectors = np.linalg.eig(A)
        V = np.where(values.imag < 0.0, vectors.imag, vectors.real)
        return np.ascontiguousarray(V) if np.linalg.cond(V) < _EIGENBASIS else np.eye(n)

    @cached_property
    def entering(self) -> Array:
        """(steps, batch, 2m) of u_k and u_{k+1}, or (steps, batch, m) of u_k alone."""
        u = self.u.transpose(1, 0, 2)
        return np.concatenate([u[:-1], u[1:]], axis=2) if self.linear else u[:-1]


def length_between(start: float, stop: float) -> Length:
    """The time from start to stop, exactly: a whole number times a power of two, the number odd or zero."""
    (a, b), (c, d) = float(start).as_integer_ratio(), float(stop).as_integer_ratio()
    common = max(b, d)  # both are powers of two
    mantissa, exponent = c * (common // d) - a * (common // b), 1 - common.bit_length()
    if mantissa == 0:
        return 0, 0
    twos = (mantissa & -mantissa).bit_length() - 1
    return mantissa >> twos, exponent + twos
