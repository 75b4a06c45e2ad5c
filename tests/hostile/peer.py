"""What users would have without the library: `lsim` of (E⁻¹A, E⁻¹B), and `expm` step by step where it cannot."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, signal

from .draw import Case

Array = NDArray[np.float64]


class PeerResult(NamedTuple):
    """Outputs and states at the samples, and outputs at the times of dense output."""

    y: Array
    x: Array
    dense: Array | None


def solve_by_peer(case: Case) -> PeerResult:
    """The run of a case by SciPy; `lsim` for even times, products of `expm` for all others and between samples."""
    with np.errstate(all="ignore"):
        A = case.A if case.E is None else np.linalg.solve(case.E, case.A)
        B = case.B if case.E is None else np.linalg.solve(case.E, case.B)
        flat = case.u.reshape(-1, *case.u.shape[-2:])
        x0 = np.zeros(len(A)) if case.x0 is None else case.x0
        starts = np.broadcast_to(x0, (*case.u.shape[:-2], len(A))).reshape(-1, len(A))
        walk = _by_lsim if case.is_even else _by_steps
        x = np.stack([walk(case, A, B, u, start) for u, start in zip(flat, starts, strict=True)])
        y = x @ case.C.T + flat @ case.D.T
        batch = case.u.shape[:-2]
        dense = None if case.queries is None else _between(case, A, B, flat, x).reshape(*batch, -1, len(case.C))
        return PeerResult(y.reshape(*batch, *y.shape[1:]), x.reshape(*batch, *x.shape[1:]), dense)


def _by_lsim(case: Case, A: Array, B: Array, u: Array, x0: Array) -> Array:
    n = len(A)
    system = (A, B, np.eye(n), np.zeros(B.shape))
    # From zero: lsim would first run the state over the time before the first sample.
    try:
        _, _, x = signal.lsim(system, u, case.t - case.t[0], X0=x0, interp=case.hold == "linear")
    except ValueError:  # an offset has rounded the times so far that they are uneven to lsim
        return _by_steps(case, A, B, u, x0)
    return np.asarray(x).reshape(len(case.t), n)


def _by_steps(case: Case, A: Array, B: Array, u: Array, x0: Array) -> Array:
    x = np.empty((len(case.t), len(A)))
    x[0] = x0
    steps, known = np.diff(case.t), {}
    for k, step in enumerate(steps.tolist()):
        if step not in known:
            known[step] = exponential_step(A, B, step)
        x[k + 1] = advance(known[step], x[k], u[k], u[k + 1] if case.hold == "linear" else u[k])
    return x


def _between(case: Case, A: Array, B: Array, u: Array, x: Array) -> Array:
    """Outputs of every signal of the batch at the times of dense output, from the sample before."""
    assert case.queries is not None
    y = np.empty((len(u), len(case.queries), len(case.C)))
    for q, time in enumerate(case.queries.tolist()):
        k = int(np.searchsorted(case.t, time, side="right")) - 1
        part = time - case.t[k]
        share = part / (case.t[k + 1] - case.t[k]) if part > 0.0 and case.hold == "linear" else 0.0
        matrices = exponential_step(A, B, part)
        for own in range(len(u)):
            now = u[own, k]
            then = now + share * (u[own, k + 1] - now) if share else now
            y[own, q] = case.C @ advance(matrices, x[own, k], now, then) + case.D @ then
    return y


def exponential_step(A: Array, B: Array, h: float) -> tuple[Array, Array, Array]:
    """e^{Ah}, and what the input at the start and its rise over the step add."""
    n, m = B.shape
    augmented = np.zeros((n + 2 * m, n + 2 * m))
    augmented[:n, :n], augmented[:n, n : n + m], augmented[n : n + m, n + m :] = A * h, B * h, np.eye(m)
    whole = linalg.expm(augmented)
    return whole[:n, :n], whole[:n, n : n + m], whole[:n, n + m :]


def advance(step: tuple[Array, Array, Array], x: Array, now: Array, then: Array) -> Array:
    return np.asarray(step[0] @ x + step[1] @ now + step[2] @ (then - now))
