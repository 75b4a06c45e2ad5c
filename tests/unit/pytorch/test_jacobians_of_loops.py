"""Jacobians of feedback models: one solution for all columns, equal to backward passes."""

import numpy as np
import pytest
import torch

import ltinet
from ltinet import nn
from ltinet.nn import feedback, optimizers
from ltinet.nn.training_data import TrainingRecord
from ltinet.torch import newton


def model(hold: str) -> nn.Stack:
    A, B = np.array([[0.0, 1.0], [-1.0, -0.3]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    loop = ltinet.construct((A, B, np.array([[1.0, 0.2], [1.0, 0.1]]))).to_torch(0.3, hold=hold)
    spring = nn.Polynomial(1, 3, start="zero")
    with torch.no_grad():
        spring.weights[1:, 0] = torch.tensor([0.1, -0.4])
    return nn.Stack(nn.Feedback(loop, spring, window=16), nn.Polynomial(1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_jacobian_matches_backward(hold: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own, rng = model(hold), np.random.default_rng(2)
    shapes = ((1, 40, 1), (2, 25, 1))
    records = [TrainingRecord(*(torch.from_numpy(rng.standard_normal(shape)) for _ in range(2))) for shape in shapes]
    named = {name: each for name, each in own.named_parameters() if each.numel()}

    def residuals(given: list[TrainingRecord]) -> torch.Tensor:
        return torch.cat([(own(u) - y).flatten() for u, y in given])

    gradient = torch.autograd.grad(residuals(records).square().sum(), list(named.values()))
    expected = torch.cat([each.flatten() for each in gradient])
    solved = []
    monkeypatch.setattr(
        feedback, "solve_trajectory", lambda *a, **k: solved.append(1) or newton.solve_trajectory(*a, **k)
    )
    found = []
    for many in (1, 1000):  # together, and one by one
        monkeypatch.setattr(optimizers, "_MIN_BATCHED_COLUMNS", many)
        value, J = optimizers.LevenbergMarquardtOptimizer(own, named, residuals)._linearize(records)
        found.append(J)
        torch.testing.assert_close(2.0 * value @ J, expected, rtol=1e-10, atol=1e-10 * float(expected.abs().max()))
    assert len(solved) == 2 * len(records)
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-11)


def test_levenberg_marquardt_damps_overflow() -> None:
    own = torch.nn.Module()
    own.place = torch.nn.Parameter(torch.tensor([3.0], dtype=torch.float64))
    tried = []

    def residuals(_: list[TrainingRecord]) -> torch.Tensor:
        tried.append(float(own.place.detach()))
        if abs(tried[-1]) > 4.0:
            raise ltinet.SimulationError("it explodes")
        return torch.atan(own.place)

    # The step of Gauss and Newton from 3 goes to 3 − 10 atan 3 = −9.5.
    loss = optimizers.LevenbergMarquardtOptimizer(own, {"place": own.place}, residuals).step([])
    assert loss == pytest.approx(np.arctan(3.0) ** 2, rel=1e-14)
    assert min(tried) < -4.0
    assert abs(tried[-1]) < 3.0
