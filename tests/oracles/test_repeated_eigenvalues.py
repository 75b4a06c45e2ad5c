"""Hypothesis: repeated eigenvalues, hidden by a similarity, give certified forms, and weights as large as the data."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import ltinet
from evidence import (
    assert_eigenvalues_of,
    assert_lapack_standard,
    assert_pattern,
    assert_within_budget,
)
from hard_matrices import jordan, rotated
from network_examples import network_response, rounded, system_response

EPS = np.finfo(float).eps
SEEDS = range(12)


def semisimple(seed):
    """A random similarity of repeated real eigenvalues, slow ones beside one that is up to 1e4 times as fast."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    V = rng.standard_normal((n, n))
    values = -rng.choice([1.0, 2.0, 10.0 ** rng.uniform(-1.0, 4.0)], size=n)
    return V @ np.diag(values) @ np.linalg.inv(V)


def in_other_units(seed):
    """The same in units that differ by up to ten decades."""
    A = semisimple(seed)
    units = 10.0 ** np.random.default_rng(seed).uniform(-5.0, 5.0, len(A))
    return A * units[:, None] / units


def with_chains(seed):
    """Jordan chains of two and three, a repeated eigenvalue with all its vectors, and a change of 1e-15."""
    rng = np.random.default_rng(seed)
    A = rotated(block_diag(jordan(3, -1.0), jordan(2, -1.0), -1.0 * np.eye(2), jordan(2, -4.0)), seed)
    return A * (1.0 + 1e-15 * rng.standard_normal(A.shape))


FAMILIES = {"semisimple": semisimple, "other units": in_other_units, "chains": with_chains}


@pytest.mark.parametrize("max_condition", [10.0, 1e4])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_forms_are_certified(family, seed, max_condition):
    A = FAMILIES[family](seed)
    form = ltinet.block_diagonalize(A, max_condition=max_condition)
    assert_lapack_standard(A, form)
    assert_within_budget(A, form, max_condition)
    assert_pattern(form)
    if family != "other units":  # there σ_min would have to be looked for in balanced coordinates as well
        assert_eigenvalues_of(A, form)


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_are_of_the_size_of_the_data(seed):
    A, rng = semisimple(seed), np.random.default_rng(seed)
    B, C = rng.standard_normal((len(A), 2)), rng.standard_normal((2, len(A)))
    net = ltinet.construct((A, B, C))
    assert net.n_second_order == 0
    # ‖T⁻¹B‖ ≤ ‖T⁻¹‖‖B‖ and ‖C T‖ ≤ ‖C‖‖T‖; the eigenvalues are on the diagonal and no larger than ‖A‖.
    size = np.sqrt(len(A)) * np.linalg.norm(A, 2)
    inputs, outputs = np.linalg.norm(net.form.T_inv, 2) * np.linalg.norm(B), np.linalg.norm(net.form.T, 2)
    assert net.weight_norm <= 2.0 * (size + inputs + outputs * np.linalg.norm(C))


def test_the_case_that_was_found():
    M = np.random.default_rng(10).standard_normal((6, 6))
    A = M @ np.diag([-1, -1, -1, -2, -2, -1e4]) @ np.linalg.inv(M)
    B, C = np.random.default_rng(1).standard_normal((6, 2)), np.random.default_rng(2).standard_normal((2, 6))
    net = ltinet.construct((A, B, C))
    assert net.weight_norm == pytest.approx(1e4, rel=0.01)  # the fast eigenvalue; it was 1.7e13
    assert (net.n_first_order, net.n_connections) == (6, 0)


NEARLY_REAL = {
    "a coupling of 1e-15": np.array([[-1.0, 1e-15], [-1e-15, -1.0]]),
    "a chain": np.array([[-1.0, 1.0], [-1e-33, -1.0]]),
    "a similarity": rotated(np.array([[-1.0, 0.5, 0.2], [0.0, -1.0, 0.4], [0.0, 0.0, -2.0]]), 3),
}


@pytest.mark.parametrize("name", NEARLY_REAL)
def test_algorithms_3_and_a1_solve_what_has_become_first_order(name):
    A, rng = NEARLY_REAL[name], np.random.default_rng(4)
    system = ltinet.StateSpace(A, rng.standard_normal((len(A), 2)), rng.standard_normal((2, len(A))))
    net = ltinet.construct(system)
    t, u = np.arange(41) * 0.1, rng.standard_normal((41, 2))
    exact = net.simulate(u, t).y
    for engine in ("per_neuron", "per_interval"):
        found = net.simulate(u, t, engine=engine, rtol=1e-10, atol=1e-12).y
        np.testing.assert_allclose(found, exact, atol=1e-7 * np.max(np.abs(exact)))  # solvers err a thousandfold
    for s in (0.3j, 2.0j):
        error = rounded(network_response(net.network, s)) - rounded(system_response(system, s))
        assert np.linalg.norm(error, 2) <= 1e4 * EPS  # ‖C‖‖(s − A)⁻¹‖‖B‖ ≤ 10, cond(T) ≤ 100


def test_files_keep_a_pair_that_became_two(tmp_path):
    net = ltinet.construct((NEARLY_REAL["a coupling of 1e-15"], np.eye(2), np.eye(2)))
    assert (net.n_first_order, net.n_layers, net.n_connections) == (2, 1, 1)
    assert "2 first-order, 0 second-order" in str(net)
    net.save(tmp_path / "net.safetensors")
    loaded = ltinet.load(tmp_path / "net.safetensors")
    assert loaded == net
    assert loaded.form.n_connections == 1
    assert len(net.plot.architecture().axes[0].collections) > 0
    assert net.plot.sparsity().axes[0].get_title() == "2 neurons, 1 of 1 possible connections"
