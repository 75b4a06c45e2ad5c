"""`nn.Monotone` increases for all parameters and is the integral of its slopes."""

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid

import ltinet
from ltinet import nn


def drawn(seed: int, n_channels: int = 2) -> nn.Monotone:
    rng = np.random.default_rng(seed)
    low = rng.uniform(-3.0, 1.0, n_channels)
    model = nn.Monotone(
        n_channels, int(rng.integers(1, 9)), low=low.tolist(), high=(low + rng.uniform(0.1, 4.0, n_channels)).tolist()
    )
    with torch.no_grad():
        model.log_ratios += torch.from_numpy(rng.standard_normal(model.log_ratios.shape))
        model.offset += torch.from_numpy(rng.standard_normal(n_channels))
    return model


def integral(model: nn.Monotone, channel: int, x: float) -> float:
    """From zero to x of the line between the slopes at the knots: the trapezoidal rule is exact between knots."""
    slopes = np.exp(np.cumsum(model.log_ratios.detach().numpy()[channel]))
    knots = np.linspace(model.low[channel], model.high[channel], model.n_pieces + 1)
    ends = sorted((0.0, x))
    places = np.concatenate([[ends[0]], knots[(knots > ends[0]) & (knots < ends[1])], [ends[1]]])
    area = float(trapezoid(np.interp(places, knots, slopes), places))
    return area if x >= 0.0 else -area


@pytest.mark.default_cases(10)
@pytest.mark.parametrize("seed", range(20))
def test_monotone_is_integral_of_slopes(seed: int) -> None:
    model = drawn(seed)
    x = np.linspace(-6.0, 6.0, 301)
    y = model(torch.from_numpy(np.stack([x, x], -1))).detach().numpy()
    for channel in range(2):
        expected = float(model.offset.detach()[channel]) + np.array([integral(model, channel, own) for own in x])
        # Some dozen sums of numbers of the size of the largest: their roundings add up.
        np.testing.assert_allclose(y[:, channel], expected, rtol=0.0, atol=1e-13 * np.abs(expected).max())
        assert (np.diff(y[:, channel]) > 0.0).all()


def test_it_begins_as_a_line() -> None:
    x = torch.linspace(-5.0, 5.0, 41, dtype=torch.float64)[:, None]
    model = nn.Monotone(2, 3, low=(-1.0, -4.0), high=(2.0, 0.0), slope=(0.5, 2.0))
    torch.testing.assert_close(model(x.expand(-1, 2)), torch.cat([0.5 * x, 2.0 * x], -1), rtol=1e-14, atol=1e-14)


def test_monotone_feedback_is_stable() -> None:
    A, C = np.diag([-0.01, -0.02]), np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    B = np.array([[1.0, -1.0, 0.0], [0.5, 0.0, -1.0]])
    u = torch.from_numpy(10.0 * np.random.default_rng(0).standard_normal((1, 200, 1)))
    for seed in range(5):
        model = nn.Feedback(ltinet.construct((A, B, C)).to_torch(0.5), drawn(seed))
        with torch.no_grad():
            y = model(u)
        assert bool(torch.isfinite(y).all())
        assert float(y.abs().max()) <= 100.0 * float(u.abs().max())  # as far as the first pole alone would let it


def test_invalid_monotone_raises() -> None:
    with pytest.raises(ltinet.InvalidNetworkError, match="give low < high"):
        nn.Monotone(1, low=1.0, high=1.0)
    with pytest.raises(ltinet.InvalidNetworkError, match="give slope > 0"):
        nn.Monotone(1, slope=0.0)
    with pytest.raises(ltinet.InvalidNetworkError, match="or 2 of them"):
        nn.Monotone(2, low=(0.0, 1.0, 2.0), high=5.0)
    with pytest.raises(ltinet.InvalidNetworkError, match="n_pieces must be an integer"):
        nn.Monotone(1, 0)
