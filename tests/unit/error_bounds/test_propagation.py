"""Propagated errors and sizes of propagators compared with closed forms and sums over all steps."""

import numpy as np
import pytest

from ltinet.error_bounds.propagation import LocalErrors, propagate_scalar_errors, propagator_chain

CELL, STEPS_PER_CELL, N_CELLS = 0.5, 4, 6


def local_errors():
    rng = np.random.default_rng(0)
    per_step, per_time = rng.uniform(0.5, 1.0, (2, N_CELLS, 1))
    return LocalErrors(np.array([0.7]), per_step, np.full(N_CELLS, float(STEPS_PER_CELL)), per_time)


def error_at(t, growth, errors):
    """Error at time t: e^{g t} times the start, a sum over all steps so far, and the midpoint rule of the integral."""
    total = np.exp(growth * t) * errors.start[0]
    for cell in range(N_CELLS):
        for step in range(STEPS_PER_CELL):
            at = (cell + (step + 1) / STEPS_PER_CELL) * CELL
            if at <= t:
                total += np.exp(growth * (t - at)) * errors.per_step[cell, 0]
        left, right = cell * CELL, min((cell + 1) * CELL, t)
        if left < right:
            middles = left + (np.arange(200) + 0.5) * (right - left) / 200
            total += errors.per_time[cell, 0] * np.mean(np.exp(growth * (t - middles))) * (right - left)
    return total


@pytest.mark.parametrize("growth", [-3.0, -0.4, 0.0, 0.8])
def test_scalar_errors_are_covered_tightly(growth):
    errors = local_errors()
    bounds = propagate_scalar_errors(np.array([growth]), errors, cell=CELL)[:, 0]
    for cell, bound in enumerate(bounds):
        times = (cell + np.arange(1, 9) / 8) * CELL
        true = max(error_at(t, growth, errors) for t in times)
        # At most, all that enters in a cell enters at its more harmful end, and the start of the cell counts as well.
        assert true <= bound * (1.0 + 1e-6)
        assert bound <= true * np.exp(abs(growth) * CELL) * (1.0 + 1e-6)


def test_scalar_errors_add_up_without_growth():
    errors = local_errors()
    expected = 0.7 + np.cumsum(STEPS_PER_CELL * errors.per_step[:, 0] + CELL * errors.per_time[:, 0])
    np.testing.assert_allclose(propagate_scalar_errors(np.zeros(1), errors, cell=CELL)[:, 0], expected, rtol=1e-14)


def test_peaks_of_a_rotation_are_tight():
    # e^{Fs} of a rotation has sin s beside the diagonal; a quarter of a level on both sides of it adds 1/16 to squares.
    F = np.array([[0.0, 1.0], [-1.0, 0.0]])
    chain = propagator_chain(F, 1.0, steps=64)
    largest = np.sin(0.5 ** np.arange(7))
    for entry in ((0, 1), (1, 0)):
        peaks = chain.peak_to[:, *entry]
        assert np.all(peaks >= largest)
        assert np.all(peaks <= 1.1 * largest)
