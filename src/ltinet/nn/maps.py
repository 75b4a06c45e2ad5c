"""Static maps that stand before, between and after networks: the same function of the sample at every time.

Each begins as the identity, or as zero for what is fed back, so that a model begins as its linear part. Parameters are
float64 as those of networks; a sample is mapped in its own type.
"""

from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from ltinet.errors import InvalidNetworkError
from ltinet.learn.double_precision import keeping_double
from ltinet.nn.counts import require_counts

Start = Literal["identity", "zero"]


class DoubleModule(nn.Module):
    """A module whose parameters stay in double precision when it is moved."""

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        return super()._apply(keeping_double(fn), recurse)


@final
class Polynomial(DoubleModule):
    """For each channel a polynomial without constant: y = a₁ x + a₂ x² + … with x in units of `scale`."""

    def __init__(self, n_channels: int, degree: int = 3, *, scale: float = 1.0, start: Start = "identity") -> None:
        super().__init__()
        require_counts(n_channels=n_channels, degree=degree)
        self.n_inputs = self.n_outputs = n_channels
        self.degree, self.scale, self.start = degree, float(scale), start
        weights = torch.zeros(degree, n_channels, dtype=torch.float64)
        weights[0] = float(start == "identity")
        self.weights = nn.Parameter(weights)

    def forward(self, x: Tensor, channels: Tensor | None = None) -> Tensor:
        """`(…, channels)` to `(…, channels)`, by Horner's rule; x may have some of the channels only, by number."""
        weights = self.weights if channels is None else self.weights.index_select(1, channels)
        weights, z = weights.to(x.dtype), x / self.scale
        total = weights[-1].expand_as(z)
        for weight in weights.flip(0)[1:]:
            total = total * z + weight
        return total * z * self.scale

    def description(self) -> dict[str, Any]:
        """What it was made with."""
        return {"n_channels": self.n_inputs, "degree": self.degree, "scale": self.scale, "start": self.start}


@final
class Spline(DoubleModule):
    """For each channel a line plus a cubic spline with even knots from `low` to `high`; outside, the line alone."""

    def __init__(
        self, n_channels: int, n_pieces: int = 8, *, low: float = -1.0, high: float = 1.0, start: Start = "identity"
    ) -> None:
        super().__init__()
        require_counts(n_channels=n_channels, n_pieces=n_pieces)
        if not high > low:
            raise InvalidNetworkError(f"a spline from {low} to {high} has no length; give low < high")
        self.n_inputs = self.n_outputs = n_channels
        self.n_pieces, self.low, self.high, self.start = n_pieces, float(low), float(high), start
        self.slope = nn.Parameter(torch.full((n_channels,), float(start == "identity"), dtype=torch.float64))
        self.weights = nn.Parameter(torch.zeros(n_channels, n_pieces + 3, dtype=torch.float64))

    def forward(self, x: Tensor, channels: Tensor | None = None) -> Tensor:
        """`(…, channels)` to `(…, channels)`; x may have some of the channels only, by number."""
        slope, weights = self.slope, self.weights
        if channels is not None:
            slope, weights = slope.index_select(0, channels), weights.index_select(0, channels)
        knots = torch.arange(-1, self.n_pieces + 2, dtype=x.dtype, device=x.device)
        place = (x.unsqueeze(-1) - self.low) * (self.n_pieces / (self.high - self.low)) - knots
        return x * slope.to(x.dtype) + (_cubic(place) * weights.to(x.dtype)).sum(-1)

    def description(self) -> dict[str, Any]:
        """What it was made with."""
        sizes = {"n_channels": self.n_inputs, "n_pieces": self.n_pieces, "start": self.start}
        return {**sizes, "low": self.low, "high": self.high}


def _cubic(place: Tensor) -> Tensor:
    """The cubic B-spline with knots at −2 … 2: from truncated powers that cancel beyond."""
    distance = place.abs()
    outer, inner = (2.0 - distance).clamp(min=0.0), (1.0 - distance).clamp(min=0.0)
    return (outer**3 - 4.0 * inner**3) / 6.0


@final
class MLP(DoubleModule):
    """A line plus a layer of tanh: y = L x + V tanh(W x + b), from any number of channels to any other.

    W and b are drawn at random by the seed, V begins at zero: the map begins as its line, and learns from the first
    step.
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, *, hidden: int = 8, seed: int = 0, start: Start = "identity"
    ) -> None:
        super().__init__()
        require_counts(n_inputs=n_inputs, n_outputs=n_outputs, hidden=hidden)
        self.n_inputs, self.n_outputs, self.hidden, self.seed, self.start = n_inputs, n_outputs, hidden, seed, start
        draw = torch.Generator().manual_seed(seed)
        line = torch.eye(n_outputs, n_inputs, dtype=torch.float64) * float(start == "identity")
        self.line = nn.Parameter(line)
        self.W = nn.Parameter(torch.randn(hidden, n_inputs, generator=draw, dtype=torch.float64) / n_inputs**0.5)
        self.b = nn.Parameter(torch.randn(hidden, generator=draw, dtype=torch.float64))
        self.V = nn.Parameter(torch.zeros(n_outputs, hidden, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """`(…, n_inputs)` to `(…, n_outputs)`."""
        line, W, b, V = (own.to(x.dtype) for own in (self.line, self.W, self.b, self.V))
        return x @ line.mT + torch.tanh(x @ W.mT + b) @ V.mT - torch.tanh(b) @ V.mT

    def description(self) -> dict[str, Any]:
        """What it was made with."""
        sizes = {"n_inputs": self.n_inputs, "n_outputs": self.n_outputs, "hidden": self.hidden}
        return {**sizes, "seed": self.seed, "start": self.start}
