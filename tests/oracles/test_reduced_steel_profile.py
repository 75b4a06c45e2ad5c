"""Hypothesis: no run of the reduced steel profile is farther from the whole one than its bound says, at any time.

The reference is the sum over all 1,357 modes of SciPy's symmetric eigensolver, each stepped exactly along lines.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy import linalg

import ltinet
from ltinet._util.floating_point import Array

N_INPUTS = 50


def stepped(rates: Array, B: Array, C: Array, u: Array, h: float) -> Array:
    """Outputs of z' = rates·z + B u, y = C z from rest for u `(batch, T, m)` along lines."""
    z = rates * h  # all negative
    phi1 = np.expm1(z) / z
    series = 0.5 + z / 6.0 + z**2 / 24.0 + z**3 / 120.0
    phi2 = np.where(np.abs(z) > 1e-3, (phi1 - 1.0) / z, series)
    states, outputs = np.zeros((len(u), len(rates))), [np.zeros((len(u), len(C)))]
    forces = u @ B.T
    for step in range(u.shape[1] - 1):
        first, last = forces[:, step], forces[:, step + 1]
        states = np.exp(z) * states + h * (phi1 * first + phi2 * (last - first))
        outputs.append(states @ C.T)
    return np.stack(outputs, axis=1)


@pytest.fixture(scope="module")
def rail(data_dir: Path) -> ltinet.StateSpace:
    path = data_dir.parent / "large" / "rail_1357.mat"
    if not path.is_file():
        pytest.skip("the file ../shared/data/large/rail_1357.mat is not here")
    return ltinet.load_system(path)


@pytest.mark.slow
@pytest.mark.parametrize(("order", "h"), [(40, 30.0), (12, 2.0)])
def test_fifty_inputs(rail: ltinet.StateSpace, order: int, h: float) -> None:
    found = ltinet.reduce(rail, order=order)
    assert found.is_certified
    t = h * np.arange(60)
    rng = np.random.default_rng(order)
    u = rng.standard_normal((N_INPUTS, len(t), rail.n_inputs))
    u[::2] = np.cumsum(u[::2], axis=1)  # every second wanders, the others are noise
    sol = found.net.simulate(u, t)
    assert rail.sparse is not None
    assert rail.sparse.E is not None
    rates, V = linalg.eigh(rail.sparse.A.toarray(), rail.sparse.E.toarray())
    reference = stepped(rates, V.T @ rail.sparse.B, rail.C @ V, u, h)
    size = np.abs(reference).max(axis=(1, 2), keepdims=True)
    gap, bound = np.abs(sol.y - reference), sol.error_bound(t)
    assert np.isfinite(bound).all()
    assert (gap <= bound + 1e-10 * size).all()  # what the reference itself may lose, by cond(E)·eps
    if order == 40:
        assert (bound.max(axis=(1, 2)) <= 0.5 * size[:, 0, 0]).all()  # and the bound says something
