"""Hypothesis: triangles are solved to a backward error of rounding, however few entries they have and wherever s is."""

import numpy as np
import pytest

import ltinet
from ltinet.blockdiag.eigenmodes import QuasiTriangularMatrix
from ltinet.blockdiag.schur import real_schur

EPS = np.finfo(float).eps


def drawn(seed, density):
    """A quasi-triangle in LAPACK's form, of some real eigenvalues and some pairs, with couplings of this density."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 3, int(rng.integers(1, 30)))
    n = int(sizes.sum())
    R = np.triu(rng.standard_normal((n, n)) * (rng.random((n, n)) < density))
    for start in (np.cumsum(sizes) - sizes)[sizes == 2]:
        a, b, c = rng.uniform(0.3, 3.0, 3) * 10.0 ** rng.uniform(-2, 2)
        R[start : start + 2, start : start + 2] = [[-a, b], [-c, -a]]
    return R, rng


def backward_error(R, s, X, right):
    """By which share of |s I − R| |X| + |b| the equations do not hold, the largest of all."""
    residual = s * X - np.tensordot(R, X, 1) - right
    size = np.abs(s) * np.abs(X) + np.tensordot(np.abs(R), np.abs(X), 1) + np.abs(right)
    return float(np.max(np.abs(residual) / np.where(size > 0.0, size, 1.0), initial=0.0))


@pytest.mark.default_cases(12)
@pytest.mark.parametrize("density", [0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_equations_hold_to_rounding(seed, density):
    R, rng = drawn(seed, density)
    n, m = len(R), int(rng.integers(1, 4))
    eigenvalues = np.linalg.eigvals(R)
    near = eigenvalues[:3] * (1.0 + 1e-9) + 1e-9j
    s = np.concatenate([1j * np.geomspace(1e-3, 1e3, 20), near])
    for right in (rng.standard_normal((n, m, 1)), rng.standard_normal((n, m, len(s))) + 1j):
        for own in (QuasiTriangularMatrix(R), QuasiTriangularMatrix(R).reversed_transpose):
            X = own.solve(s, right)
            assert X.shape == (n, m, len(s))
            # A sum of n products is off by n roundings. The inverse of a pair mixes two rows, whose parts of X may be
            # a hundred times apart here.
            assert backward_error(own.R, s, X, right) <= 1e3 * n * EPS
            whole = np.array([np.linalg.solve(z * np.eye(n) - own.R, r) for z, r in _each(s, right)])
            np.testing.assert_allclose(
                np.moveaxis(X, 2, 0)[:20], whole[:20], rtol=0, atol=1e-7 * np.abs(whole[:20]).max()
            )


def _each(s, right):
    return [(z, right[:, :, min(k, right.shape[2] - 1)]) for k, z in enumerate(s)]


@pytest.mark.parametrize("power", [-600, 600])
def test_units_of_time_change_nothing_but_units(power):
    """Powers of two are exact: the same bits, scaled, where neither over- nor underflow interferes."""
    R, rng = drawn(3, 1.0)
    right, s, unit = rng.standard_normal((len(R), 1, 1)), 1j * np.geomspace(0.1, 10.0, 7), 2.0**power
    plain = QuasiTriangularMatrix(R).solve(s, right)
    np.testing.assert_allclose(QuasiTriangularMatrix(unit * R).solve(unit * s, right) * unit, plain, rtol=1e-12)


def test_a_schur_form():
    A = np.random.default_rng(0).standard_normal((40, 40))
    schur, s = real_schur(A), np.array([0.5j, 20.0j])
    X = QuasiTriangularMatrix(schur.R).solve(s, (schur.Z.T @ np.eye(40))[:, :, None])
    for k, z in enumerate(s):
        np.testing.assert_allclose(schur.Z @ X[:, :, k], np.linalg.inv(z * np.eye(40) - A), atol=1e-12)


@pytest.mark.parametrize(("p", "m"), [(1, 1), (0, 2), (2, 0), (12, 9), (9, 12)])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_every_shape_has_its_frequency_response(n, p, m):
    rng = np.random.default_rng(n)
    A, B, C, D = (rng.standard_normal(shape) for shape in ((n, n), (n, m), (p, n), (p, m)))
    omega = np.array([0.5, 3.0, 7.0])
    truth = np.array([C @ np.linalg.solve(1j * w * np.eye(n) - A, B) + D for w in omega]).reshape(3, p, m)
    for jordan in (False, True):  # where neurons cannot stand apart there is a triangle
        own = -np.eye(n) + np.eye(n, k=1) if jordan else A
        if jordan:
            truth = np.array([C @ np.linalg.solve(1j * w * np.eye(n) - own, B) + D for w in omega]).reshape(3, p, m)
        H = ltinet.StateSpace(own, B, C, D).frequency_response(omega)
        np.testing.assert_allclose(H, truth, rtol=0, atol=1e-12 * max(np.abs(truth).max(initial=0.0), 1.0))
