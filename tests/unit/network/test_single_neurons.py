"""Hypothesis: layers of one neuron from the batched formulas equal those of the maps of Theorem 1."""

import numpy as np
import pytest

import ltinet
from ltinet.network.maps import m_lti, m_o
from ltinet.network.synthesis import first_order_layers, second_order_layers


def _check(single, blocks, B, C, n_real):
    Psi = np.zeros_like(single.Psi)
    for layer, phi, block, b, c in zip(single.layers, single.Phi, blocks, B, C, strict=True):
        for made, expected in zip(layer.matrices, m_lti(block, b, n_real=n_real), strict=True):
            np.testing.assert_allclose(made, expected, rtol=1e-14, atol=1e-14)
            assert not made.flags.writeable
        values, rates, feedthrough = m_o(block, b, c, n_real=n_real)
        np.testing.assert_allclose(phi, np.hstack([values, rates]), rtol=1e-14, atol=1e-14)
        Psi += feedthrough
    np.testing.assert_allclose(single.Psi, Psi, rtol=1e-13, atol=1e-14)


def test_first_order():
    rng = np.random.default_rng(0)
    a, B, C = rng.standard_normal(7), rng.standard_normal((7, 3)), rng.standard_normal((2, 7))
    single = first_order_layers(a, B=B, C=C)
    _check(single, a[:, None, None], B[:, None], C.T[:, :, None], n_real=1)


def test_second_order():
    rng = np.random.default_rng(1)
    blocks = np.array([[[a, b], [-c, a]] for a, b, c in rng.uniform(0.2, 2.0, (9, 3))])
    B, C = rng.standard_normal((9, 2, 3)), rng.standard_normal((9, 2, 2))
    _check(second_order_layers(blocks, B=B, C=C), blocks, B, C, n_real=0)


def test_weights_that_overflow_are_refused():
    blocks = np.array([[[0.0, 1e-200], [-1e-200, 0.0]]])
    with pytest.raises(ltinet.LtinetError, match="overflow"):
        second_order_layers(blocks, B=np.ones((1, 2, 1)), C=np.full((1, 1, 2), 1e200))
