"""Static maps before, between and after networks: polynomials, splines, increasing maps and small neural networks.

A map applies the same function to the sample at every time. Each map begins as the identity, or as zero where it is fed
back, so that a model begins as its linear part. Parameters are float64 as those of networks; a sample is mapped in its
own type. `Monotone` increases by construction (drains, springs, saturations): its slope is positive and piecewise
linear between even knots and constant beyond them.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, final

import torch
from torch import Tensor, nn

from ltinet.errors import InvalidNetworkError
from ltinet.torch.validation import preserve_dtype

# MERGED ltinet.nn.maps
# Numbers of channels, pieces, steps and the like.


def require_positive_integers(**counts: int | None) -> None:
    """Refuse what is to be a whole number of at least one, or left out.

    Raises:
        InvalidNetworkError: one is not.
    """
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise InvalidNetworkError(f"{name} is {count!r}; give a whole number of at least one")


# MERGED ltinet.nn.maps
# Static maps that stand before, between and after networks: the same function of the sample at every time.
#
# Each begins as the identity, or as zero for what is fed back, so that a model begins as its linear part. Parameters are
# float64 as those of networks; a sample is mapped in its own type.

InitialMap = Literal["identity", "zero"]


class DoublePrecisionModule(nn.Module):
    """A module whose parameters stay in double precision when it is moved."""

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        return super()._apply(preserve_dtype(fn), recurse)


@final
class Polynomial(DoublePrecisionModule):
    """For each channel a polynomial without constant: y = a₁ x + a₂ x² + … with x in units of `scale`."""

    def __init__(self, n_channels: int, degree: int = 3, *, scale: float = 1.0, start: InitialMap = "identity") -> None:
        super().__init__()
        require_positive_integers(n_channels=n_channels, degree=degree)
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
class Spline(DoublePrecisionModule):
    """For each channel a line plus a cubic spline with even knots from `low` to `high`; outside, the line alone."""

    def __init__(
        self,
        n_channels: int,
        n_pieces: int = 8,
        *,
        low: float = -1.0,
        high: float = 1.0,
        start: InitialMap = "identity",
    ) -> None:
        super().__init__()
        require_positive_integers(n_channels=n_channels, n_pieces=n_pieces)
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
        return x * slope.to(x.dtype) + (_cubic_b_spline(place) * weights.to(x.dtype)).sum(-1)

    def description(self) -> dict[str, Any]:
        """What it was made with."""
        sizes = {"n_channels": self.n_inputs, "n_pieces": self.n_pieces, "start": self.start}
        return {**sizes, "low": self.low, "high": self.high}


def _cubic_b_spline(place: Tensor) -> Tensor:
    """The cubic B-spline with knots at −2 … 2: from truncated powers that cancel beyond."""
    distance = place.abs()
    outer, inner = (2.0 - distance).clamp(min=0.0), (1.0 - distance).clamp(min=0.0)
    return (outer**3 - 4.0 * inner**3) / 6.0


@final
class MLP(DoublePrecisionModule):
    """A line plus a layer of tanh: y = L x + V tanh(W x + b), from any number of channels to any other.

    W and b are drawn at random by the seed, V begins at zero: the map begins as its line, and learns from the first
    step.
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, *, hidden: int = 8, seed: int = 0, start: InitialMap = "identity"
    ) -> None:
        super().__init__()
        require_positive_integers(n_inputs=n_inputs, n_outputs=n_outputs, hidden=hidden)
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


# MERGED ltinet.nn.maps
# Static maps that increase by construction: drains, springs and saturations whose form is not known.

ChannelValues = float | Sequence[float]


@final
class Monotone(DoublePrecisionModule):
    """For each channel an increasing map: its slope is a line between even knots from `low` to `high`, constant beyond.

    Slopes at the knots are exponentials, so that it increases whatever is learnt: fed back with a negative weight it
    pulls towards rest. The first slope and the logarithms of ratios of neighbours are the parameters, and a constant.
    It begins as `slope` times x. `low`, `high` and `slope` are numbers for all channels, or one for each.
    """

    def __init__(
        self,
        n_channels: int,
        n_pieces: int = 6,
        *,
        low: ChannelValues = -1.0,
        high: ChannelValues = 1.0,
        slope: ChannelValues = 1.0,
    ) -> None:
        super().__init__()
        require_positive_integers(n_channels=n_channels, n_pieces=n_pieces)
        self.n_inputs = self.n_outputs = n_channels
        self.n_pieces = n_pieces
        self.low, self.high, self.slope = (
            _per_channel(own, n_channels, name) for own, name in ((low, "low"), (high, "high"), (slope, "slope"))
        )
        if any(not high > low for low, high in zip(self.low, self.high, strict=True)):
            raise InvalidNetworkError(f"a map from {low} to {high} has no length; give low < high")
        if any(not own > 0.0 for own in self.slope):
            raise InvalidNetworkError(f"slope is {slope}, and an increasing map has a positive one; give slope > 0")
        self.offset = nn.Parameter(torch.zeros(n_channels, dtype=torch.float64))
        logs = torch.zeros(n_channels, n_pieces + 1, dtype=torch.float64)
        logs[:, 0] = torch.tensor([math.log(own) for own in self.slope], dtype=torch.float64)
        self.log_ratios = nn.Parameter(logs)

    def forward(self, x: Tensor) -> Tensor:
        """`(…, channels)` to `(…, channels)`."""
        slopes = self.slopes.to(x.dtype)
        grown = self.grown(x) - self.grown(x.new_zeros(self.n_inputs))
        return self.offset.to(x.dtype) + (grown * slopes).sum(-1)

    @property
    def slopes(self) -> Tensor:
        """At the knots, `(channels, knots)`."""
        return self.log_ratios.cumsum(-1).exp()

    def grown(self, x: Tensor) -> Tensor:
        """The integrals `(…, channels, knots)` of the hat functions from their knots; the outer hats have no end."""
        low, high = (torch.tensor(own, dtype=x.dtype, device=x.device) for own in (self.low, self.high))
        width = (high - low) / self.n_pieces
        knots = torch.arange(self.n_pieces + 1, dtype=x.dtype, device=x.device)
        place = ((x - low) / width).unsqueeze(-1) - knots
        near = place.clamp(-1.0, 1.0)
        inside = near - 0.5 * near * near.abs()
        first = inside[..., :1].clamp(min=0.0) + place[..., :1].clamp(max=0.0)
        last = inside[..., -1:].clamp(max=0.0) + place[..., -1:].clamp(min=0.0)
        return width.unsqueeze(-1) * torch.cat([first, inside[..., 1:-1], last], -1)

    def description(self) -> dict[str, Any]:
        """What it was made with."""
        sizes = {"n_channels": self.n_inputs, "n_pieces": self.n_pieces}
        return {**sizes, "low": list(self.low), "high": list(self.high), "slope": list(self.slope)}


def _per_channel(given: ChannelValues, n_channels: int, name: str) -> tuple[float, ...]:
    try:
        numbers = tuple(map(float, given)) if isinstance(given, Iterable) else (float(given),) * n_channels
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != n_channels or not all(map(math.isfinite, numbers)):
        raise InvalidNetworkError(f"{name} is {given}; give a finite number, or {n_channels} of them")
    return numbers
