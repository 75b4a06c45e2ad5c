"""The penalty on parameter changes equals ridge regression for linear models."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ltinet
from ltinet import nn


def data() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((200, 1))
    return torch.from_numpy(x), torch.from_numpy(0.3 * x - 0.2 * x**2 + 0.1 * rng.standard_normal((200, 1)))


def model() -> nn.Stack:
    direct = ltinet.construct(([[-1.0]], [[0.0]], [[0.0]], [[1.0]])).to_torch(1.0, trainable=False)
    return nn.Stack(direct, nn.Polynomial(1, 3))


@pytest.mark.parametrize("ridge", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("method", ["lm", "lbfgs"])
def test_it_is_ridge_regression(ridge: float, method: str) -> None:
    own, (x, y) = model(), data()
    nn.fit(own, (x, y), method=method, steps=20, ridge=ridge)
    X, start = torch.cat([x, x**2, x**3], -1), torch.tensor([[1.0], [0.0], [0.0]]).double()
    scale = float(y.std(correction=0)) ** 2 * len(y)
    H = X.mT @ X / scale + ridge * torch.eye(3).double()
    expected = start + torch.linalg.solve(H, X.mT @ (y - X @ start) / scale)
    torch.testing.assert_close(own.parts[1].weights, expected, rtol=1e-6, atol=1e-6)


def test_a_fit_that_goes_on_is_held_to_where_it_first_began(tmp_path: Path) -> None:
    path, whole, again = tmp_path / "fit.safetensors", model(), model()
    nn.fit(whole, data(), steps=20, every=5, ridge=1.0)
    nn.fit(again, data(), steps=10, every=5, ridge=1.0, checkpoint=path)
    nn.fit(again, data(), steps=20, every=5, ridge=1.0, checkpoint=path, resume=True)
    torch.testing.assert_close(again.parts[1].weights, whole.parts[1].weights, rtol=1e-12, atol=1e-14)


def test_what_is_no_weight_is_refused() -> None:
    for ridge in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ltinet.InvalidNetworkError, match="ridge must be"):
            nn.fit(model(), data(), ridge=ridge)
