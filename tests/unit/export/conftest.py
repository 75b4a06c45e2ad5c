"""What tests of exports share: a network with all kinds of blocks."""

import numpy as np
import pytest
from scipy import linalg

import ltinet


@pytest.fixture(scope="session")
def mixed_net() -> ltinet.DynamicNetwork:
    """Pairs, reals and a Jordan block, fast and slow ones of each; two inputs, three outputs, feedthrough."""
    slow, fast = 1e-4, 3.0
    blocks = [np.array([[-own, 2.0 * own], [-2.0 * own, -own]]) for own in (slow, fast)]
    blocks += [np.diag([-2e-4, -1.0])]
    blocks += [np.array([[-own, own], [0.0, -own]]) for own in (0.5 * slow, 0.5 * fast)]
    rng = np.random.default_rng(4)
    A = linalg.block_diag(*blocks)
    V = np.linalg.qr(rng.standard_normal(A.shape))[0]
    B, C, D = rng.standard_normal((10, 2)), rng.standard_normal((3, 10)), rng.standard_normal((3, 2))
    system = ltinet.StateSpace(V @ A @ V.T, B, C, D, inputs=["Force (N)", "int"], outputs=["a b", "名前", "*/ x"])
    return ltinet.construct(system)
