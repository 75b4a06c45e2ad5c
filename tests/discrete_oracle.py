"""Recurrence x[k+1] = A x[k] + B u[k], y[k] = C x[k] + D u[k] in 400 bits, and systems in discrete time to test with it."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from flint import arb_mat, ctx
from numpy.typing import NDArray

import ltinet

Array = NDArray[np.float64]
_BITS = 400  # states are rounded in every step, at 2⁻⁴⁰⁰ of their size
STEP_FACTORS = (0.3, 30.0, 3000.0)  # time steps in units of the fastest time constant of a data set


def recurrence(system: ltinet.StateSpace, u: Array, x0: Array | None = None) -> Array:
    """Outputs `(T, p)` of the recurrence, rounded once to double precision."""
    n, before, ctx.prec = system.n_states, ctx.prec, _BITS
    try:
        matrix = _exact(np.block([[system.A, system.B], [system.C, system.D]]))
        state = [0.0] * n if x0 is None else x0.tolist()
        outputs = []
        for sample in u:
            both = (matrix * arb_mat(n + len(sample), 1, [*state, *sample.tolist()])).mid().entries()
            state = both[:n]
            outputs.append([float(value) for value in both[n:]])
        return np.array(outputs).reshape(len(u), system.n_outputs)
    finally:
        ctx.prec = before


def _exact(matrix: Array) -> arb_mat:
    return arb_mat(*matrix.shape, matrix.ravel().tolist())


def sampled_data_sets(data_dir: Path, names: Iterable[str]) -> dict[str, ltinet.StateSpace]:
    """Data sets with fast, medium and slow sampling; growing ones only while 200 steps grow by less than 1e12."""
    systems = {}
    for name in names:
        extra = {"C": np.eye(28)} if name == "helicopter_v73" else {}
        system = ltinet.load_system(data_dir / f"{name}.mat", **extra)
        poles = system.poles()
        for factor in STEP_FACTORS:
            dt = float(2.0 ** np.round(np.log2(factor / np.abs(poles).max())))
            if 200 * dt * poles.real.max() < 27.0:
                systems[f"{name}_{factor:g}".replace(".", "_")] = system.to_discrete(dt)
    return systems


def random_system(seed: int) -> ltinet.StateSpace:
    """Stable system with poles that are drawn near 1, near −1, at zero, repeated or anywhere, in skewed coordinates."""
    rng = np.random.default_rng(seed)
    blocks: list[Array] = []
    for _ in range(rng.integers(1, 6)):
        distance = 10.0 ** rng.uniform(-6.0, -0.5)
        pole = [1.0 - distance, distance - 1.0, 0.0, rng.uniform(-0.9, 0.9)][rng.integers(4)]
        angle = distance * rng.uniform(0.1, 3.0)
        kind = rng.integers(4)
        if kind == 0:
            blocks.append(pole * np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]))
        elif kind == 1:
            blocks.append(np.array([[pole, distance], [0.0, pole]]))
        else:
            blocks.append(np.array([[pole]]))
    n = sum(len(block) for block in blocks)
    A, first = np.zeros((n, n)), 0
    for block in blocks:
        A[first : first + len(block), first : first + len(block)] = block
        first += len(block)
    T = (np.eye(n) + rng.uniform(0.0, 1.5) * rng.standard_normal((n, n))) * 10.0 ** rng.uniform(-2.0, 2.0, (n, 1))
    m, p = rng.integers(1, 4, 2)
    B, C, D = rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))
    return ltinet.StateSpace(T @ A @ np.linalg.inv(T), T @ B, C @ np.linalg.inv(T), D, dt=0.1)
