"""Reductions whose outputs are guaranteed at every time, for all inputs with a given L2 norm."""

import numpy as np
import pytest
from scipy import linalg

import ltinet
from ltinet import InvalidSystemError

STRING = ltinet.named_system("mass_spring_damper", n_masses=8)
PLATE = ltinet.named_system("heat_plate", n=400)


def worst_input(system, reduced, t):
    """Held input of L2 norm 1 that moves the error of the first output most at the last time: its time-reversed response."""
    A = linalg.block_diag(system.A, reduced.A)
    B, c = np.vstack([system.B, reduced.B]), np.concatenate([system.C[0], -reduced.C[0]])
    step = linalg.expm(A * t[1])
    rows, row = [], c
    for _ in t[:-1]:
        rows.append(row @ B)
        row = row @ step
    u = np.array(rows)[::-1]
    return np.vstack([u, u[-1:]]) / np.sqrt(t[1] * (u**2).sum())


@pytest.mark.parametrize(("system", "end", "share"), [(STRING, 60.0, 0.1), (PLATE, 0.5, 0.1), (PLATE, 0.5, 1e-3)])
def test_outputs_of_the_worst_input_are_within_the_tolerance(system, end, share):
    norm = 4.0
    largest = np.abs(system.step_response(np.linspace(0.0, end, 301)).y).max()
    red = ltinet.reduce(system, output_tolerance=share * largest, input_l2=norm)
    assert red.pointwise_bound * norm <= share * largest
    t = np.linspace(0.0, end, 801)
    u = norm * worst_input(system, red.system, t)
    error = np.abs(system.simulate(u, t, hold="zero").y - red.system.simulate(u, t, hold="zero").y)
    assert error.max() <= share * largest
    assert red.order < system.n_states
    assert "guarantee" in str(red)
    # The H∞ tolerance of a reduction as small as this one promises less.
    assert error.max() > 1e-3 * share * largest


@pytest.mark.parametrize("is_smooth", [False, True])
def test_outputs_of_random_inputs_are_within_the_tolerance(is_smooth):
    norm, tolerance = 0.5, 1e-6
    t = np.linspace(0.0, 0.2, 401)
    u = np.random.default_rng(3).standard_normal((20, 401, 2))
    u = np.cumsum(u, axis=1) if is_smooth else u
    u *= norm / np.sqrt(t[1] * (u[:, :-1] ** 2).sum(axis=(1, 2), keepdims=True))
    red = ltinet.reduce(PLATE, output_tolerance=tolerance, input_l2=norm)
    error = np.abs(PLATE.simulate(u, t, hold="zero").y - red.net.simulate(u, t, hold="zero").y)
    assert error.max() <= tolerance
    assert error.max() > 1e-3 * tolerance  # the tolerance decides the order


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output_tolerance": 0.1}, "input_l2 is missing"),
        ({"input_l2": 0.1}, "output_tolerance is missing"),
        (
            {"output_tolerance": 0.1, "input_l2": 1.0, "order": 3},
            "exactly one of order, tolerance and output_tolerance",
        ),
        ({"output_tolerance": 0.0, "input_l2": 1.0}, "output_tolerance must be a positive"),
        ({"output_tolerance": 1.0, "input_l2": np.inf}, "input_l2 must be a positive"),
        ({"output_tolerance": 1e-30, "input_l2": 1.0}, "output_tolerance is too small: rounding leaves"),
        ({}, "exactly one of order and tolerance is required, got neither.*output_tolerance"),
    ],
)
def test_what_cannot_be_guaranteed_is_one_clear_error(options, message):
    with pytest.raises(InvalidSystemError, match=message):
        ltinet.reduce(STRING, **options)


def test_systems_without_proof_are_refused():
    A = np.array([[0.3, 1.1], [0.7, -1.3]])  # one mode grows, and is separated up to rounding only
    assert np.linalg.eigvals(A).real.max() > 0.0
    growing = (A, [[1.0], [1.0]], [[1.0, 1.0]])
    with pytest.raises(InvalidSystemError, match="no bound on outputs at single times"):
        ltinet.reduce(growing, output_tolerance=0.1, input_l2=1.0)
