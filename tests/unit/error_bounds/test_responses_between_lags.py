"""Responses of coupled blocks between the lags at which kernels evaluate them."""

import numpy as np
import pytest
from scipy.linalg import expm, schur

from ltinet.error_bounds.propagation import dense_kernel

N_CELLS, N_FINE = 32, 40


@pytest.mark.parametrize("seed", range(12))
def test_kernels_cover_responses_between_lags(seed):
    """An estimate: 200 random blocks exceeded it by at most 10 %, with one lag in a cell by a factor of 7."""
    rng = np.random.default_rng(seed)
    for horizon in (4.0, 40.0):
        n = int(rng.integers(2, 7))
        A = 3.0 * rng.standard_normal((n, n))
        A -= (np.linalg.eigvals(A).real.max() + rng.uniform()) * np.eye(n)
        F, C = schur(A)[0], rng.standard_normal((2, n))
        kernel = dense_kernel(C, F, horizon=horizon, n_cells=N_CELLS)
        step, rows, largest = expm(F * (horizon / (N_CELLS * N_FINE))), C, []
        for _ in range(N_CELLS):
            within = [np.abs(rows)]
            for _ in range(N_FINE):
                rows = rows @ step
                within.append(np.abs(rows))
            largest.append(np.max(within, axis=0))
        known = np.array(largest) > 1e-6 * np.abs(C).max()
        peak = kernel.adjacent_lags(N_CELLS)[0]
        assert np.all(np.array(largest)[known] <= 1.12 * peak[known])
