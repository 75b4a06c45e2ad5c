"""Hypothesis: a network that was loaded, pickled or just constructed gives the same numbers to the last bit.

T is kept in factors until someone asks for it, and a file knows only the product: one order of rounding for both.
"""

import copy
import pickle

import numpy as np
import pytest

import ltinet
from hard_matrices import random_dense, rotated, skew_symmetric


def drawn_systems():
    rng = np.random.default_rng(4)
    matrices = {
        "factors": random_dense(31, 3) - 6.0 * np.eye(31),
        "orthogonal": skew_symmetric(30) - np.eye(30),
        "symmetric": rotated(np.diag(-np.arange(1.0, 13.0)), 2),
        "balanced": random_dense(12, 5) * np.geomspace(1e-5, 1e5, 12)[:, None] / np.geomspace(1e-5, 1e5, 12)
        - np.eye(12),
    }
    for name, A in matrices.items():
        n = len(A)
        yield pytest.param((A, rng.standard_normal((n, 2)), rng.standard_normal((3, n))), id=name)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("system", list(drawn_systems()))
@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
def test_states_and_outputs_have_the_same_bytes(system, batch, tmp_path):
    net = ltinet.construct(system)
    net.save(tmp_path / "net.safetensors")
    others = ltinet.load(tmp_path / "net.safetensors"), pickle.loads(pickle.dumps(net)), copy.deepcopy(net)  # noqa: S301 - our own bytes
    rng = np.random.default_rng(0)
    t, u = 0.01 * np.arange(40), rng.standard_normal((*batch, 40, 2))
    x0 = rng.standard_normal((*batch, len(system[0])))
    expected = net.simulate(u, t, x0=x0)
    for other in others:
        found = other.simulate(u, t, x0=x0)
        for name in ("y", "states"):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name
