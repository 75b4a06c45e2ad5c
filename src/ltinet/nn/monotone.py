"""Static maps that increase by construction: drains, springs and saturations whose form is not known."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, final

import torch
from torch import Tensor, nn

from ltinet.errors import InvalidNetworkError
from ltinet.nn.counts import require_counts
from ltinet.nn.maps import DoubleModule

Ends = float | Sequence[float]


@final
class Monotone(DoubleModule):
    """For each channel an increasing map: its slope is a line between even knots from `low` to `high`, constant beyond.

    Slopes at the knots are exponentials, so that it increases whatever is learnt: fed back with a negative weight it
    pulls towards rest. The first slope and the logarithms of ratios of neighbours are the parameters, and a constant.
    It begins as `slope` times x. `low`, `high` and `slope` are numbers for all channels, or one for each.
    """

    def __init__(
        self, n_channels: int, n_pieces: int = 6, *, low: Ends = -1.0, high: Ends = 1.0, slope: Ends = 1.0
    ) -> None:
        super().__init__()
        require_counts(n_channels=n_channels, n_pieces=n_pieces)
        self.n_inputs = self.n_outputs = n_channels
        self.n_pieces = n_pieces
        self.low, self.high, self.slope = (
            _for_each(own, n_channels, name) for own, name in ((low, "low"), (high, "high"), (slope, "slope"))
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


def _for_each(given: Ends, n_channels: int, name: str) -> tuple[float, ...]:
    try:
        numbers = tuple(map(float, given)) if isinstance(given, Iterable) else (float(given),) * n_channels
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != n_channels or not all(map(math.isfinite, numbers)):
        raise InvalidNetworkError(f"{name} is {given}; give a finite number, or {n_channels} of them")
    return numbers
