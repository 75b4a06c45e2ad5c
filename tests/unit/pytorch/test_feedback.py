"""Feedback models: Newton's method on windows equals single steps, and overflow raises an error."""

import numpy as np
import pytest
import torch
from scipy import linalg
from scipy.integrate import solve_ivp

import ltinet
from ltinet import nn
from ltinet.torch.newton import converged_prefix, has_converged, solve_damped_step, solve_trajectory


def duffing(rng: np.random.Generator, *, n_neurons: int, hardness: float, dt: float, hold: str) -> nn.Feedback:
    """Oscillators in parallel, driven together, with a cubic spring on their sum."""
    frequencies, damping = rng.uniform(0.5, 2.0, n_neurons), rng.uniform(0.02, 0.3, n_neurons)
    A = np.zeros((2 * n_neurons, 2 * n_neurons))
    B, C = np.zeros((2 * n_neurons, 2)), np.zeros((2, 2 * n_neurons))
    for k, (w, d) in enumerate(zip(frequencies, damping, strict=True)):
        A[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[0.0, 1.0], [-(w**2), -2.0 * d * w]]
        B[2 * k + 1], C[:, 2 * k] = rng.uniform(0.5, 1.0), 1.0
    spring = nn.Polynomial(1, 3, start="zero")
    with torch.no_grad():
        spring.weights[1:, 0] = torch.tensor([-0.2 * hardness * rng.standard_normal(), -hardness])
    return nn.Feedback(ltinet.construct((A, B, C)).to_torch(dt, hold=hold), spring)


@pytest.mark.slow
def test_newton_equals_single_steps() -> None:
    rng, walked, worst = np.random.default_rng(11), 0, 0.0
    for case in range(200):
        hold = ("linear", "zero")[case % 2]
        model = duffing(rng, n_neurons=1 + case % 3, hardness=10.0 ** rng.uniform(-3.0, 0.5), dt=0.3, hold=hold)
        u = torch.from_numpy(rng.standard_normal((1, 24, 1)))
        with torch.no_grad():
            y = model(u)
            walked += model.last_run.n_sequential > 0
            model.window = 0
            expected = model(u)
        assert model.last_run.n_sequential == 24
        assert bool(torch.isfinite(expected).all())
        worst = max(worst, float((y - expected).abs().max() / expected.abs().max()))
    assert worst <= 1e-9
    assert walked <= 20  # it is Newton's method that was compared


@pytest.mark.slow
def test_damping_reduces_single_steps() -> None:
    rng, walked, worst = np.random.default_rng(3), {0: 0, 30: 0}, 0.0
    for case in range(10):
        hold = ("linear", "zero")[case % 2]
        model = duffing(rng, n_neurons=1 + case % 3, hardness=10.0 ** rng.uniform(0.3, 1.2), dt=0.1, hold=hold)
        u = torch.from_numpy(rng.standard_normal((1, 160, 1)))
        with torch.no_grad():
            loop = model.loop()
            start = model.rest_state(loop, u)
            expected = solve_trajectory(loop, u, start, model.map, window=0).states
            for most in walked:
                run = solve_trajectory(loop, u, start, model.map, window=1024, max_damped_passes=most)
                walked[most] += run.n_sequential
                worst = max(worst, float((run.states - expected).abs().max() / expected.abs().max()))
    assert worst <= 1e-9
    assert 4 * walked[30] < walked[0]


def test_damped_step_matches_least_squares() -> None:
    rng = np.random.default_rng(0)
    for steps, n in ((1, 2), (2, 1), (5, 3), (8, 2), (13, 2)):
        A, r = rng.standard_normal((2, steps, n, n)), rng.standard_normal((2, steps, n))
        found = solve_damped_step(torch.from_numpy(A), torch.from_numpy(r), 0.3)
        for own in range(2):
            J = np.eye(steps * n) - linalg.block_diag(np.zeros((n, n)), *A[own, 1:])[:, : steps * n] @ np.eye(
                steps * n, k=-n
            )
            rows, side = (
                np.vstack([J, np.sqrt(0.3) * np.eye(steps * n)]),
                np.concatenate([r[own].ravel(), 0 * r[own].ravel()]),
            )
            expected = np.linalg.lstsq(rows, side, rcond=None)[0]
            np.testing.assert_allclose(found[own].numpy().ravel(), expected, rtol=0.0, atol=1e-12)


def test_convergence_relative_to_states_so_far() -> None:
    rows = torch.tensor([[[1.0], [2.0], [3.0], [1e200]]], dtype=torch.float64)
    wrong = rows.clone()
    wrong[0, 2] += 1e-3
    assert converged_prefix(wrong, rows).shape[1] == 2
    assert not has_converged(wrong, rows)


def test_duffing_oscillator_matches_solve_ivp() -> None:
    rng = np.random.default_rng(0)
    model = duffing(rng, n_neurons=1, hardness=0.5, dt=0.02, hold="linear")
    t = 0.02 * np.arange(600)
    u = np.sin(1.1 * t)
    y = model(torch.from_numpy(u)[:, None]).detach().numpy().ravel()
    linear, spring = model.to_network().to_state_space(), model.map.weights.detach().numpy().ravel()

    def slope(time: float, x: np.ndarray) -> np.ndarray:
        xi = float((linear.C @ x)[1])
        return linear.A @ x + linear.B @ np.array([np.interp(time, t, u), spring @ [xi, xi**2, xi**3]])

    exact = solve_ivp(slope, (0.0, t[-1]), np.zeros(2), t_eval=t, rtol=1e-9, atol=1e-11, max_step=0.02).y
    # Between samples the spring's force is a line: an error of second order in the step, with factors of order one.
    assert np.abs(y - (linear.C @ exact)[0]).max() <= 0.02**2 * np.abs(exact).max()


def test_overflow_raises() -> None:
    model = duffing(np.random.default_rng(0), n_neurons=1, hardness=-5.0, dt=0.1, hold="zero")  # a spring that pushes
    with pytest.raises(ltinet.SimulationError, match="feedback network overflow"):
        model(torch.full((1, 100, 1), 3.0, dtype=torch.float64))


def test_starts_in_the_user_s_states() -> None:
    model = duffing(np.random.default_rng(0), n_neurons=1, hardness=0.0, dt=0.1, hold="linear")
    u, x0 = torch.zeros(1, 50, 1, dtype=torch.float64), torch.tensor([[0.3, -0.2]], dtype=torch.float64)
    expected = model.network(torch.zeros(1, 50, 2, dtype=torch.float64), x0=x0)[..., :1]
    torch.testing.assert_close(model(u, x0=x0), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_outputs_match_states() -> None:
    """One more linear pass over a loop that explodes on its way would multiply roundings by what it grows."""
    rng = np.random.default_rng(8)
    for case in range(6):
        model = duffing(rng, n_neurons=1 + case % 3, hardness=10.0 ** rng.uniform(0.3, 1.2), dt=0.1, hold="linear")
        u = torch.from_numpy(rng.standard_normal((1, 160, 1)))
        whole = model(u)
        state, pieces = None, []
        for place in range(160):
            y, state = model.step(u[:, place], state)
            pieces.append(y)
        assert float((whole - torch.stack(pieces, 1)).abs().max()) <= 1e-9 * float(whole.abs().max())
