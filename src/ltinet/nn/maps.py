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
from ltinet.torch.validation import DoublePrecisionModule

InitialMap = Literal["identity", "zero"]
ChannelValues = float | Sequence[float]


class StaticMap(DoublePrecisionModule):
    """A map whose constructor arguments describe it."""

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as files store them.

        Returns
        -------
        dict
            Values by argument name.
        """
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Return the arguments of the constructor for `print`.

        Returns
        -------
        str
            Description of the module.
        """
        return ", ".join(f"{name}={value!r}" for name, value in self.description().items())


def require_positive_integers(**counts: int | None) -> None:
    """Raise InvalidNetworkError unless each count is an integer of at least one, or None."""
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise InvalidNetworkError(f"{name} must be an integer of at least 1, got {count!r}.")


@final
class Polynomial(StaticMap):
    """Polynomials without constant term, one for each channel: y = s (a₁ z + a₂ z² + …) with z = x/s.

    Parameters
    ----------
    n_channels : int
        Number of channels.
    degree : int
        Degree of the polynomials.
    scale : float
        Unit s of x and y.
    start : {"identity", "zero"}
        Initial map.

    Raises
    ------
    InvalidNetworkError
        A count is not a positive integer.

    Examples
    --------
    >>> import torch
    >>> from ltinet import nn
    >>> nn.Polynomial(1, degree=3)(torch.tensor([[2.0]]))
    tensor([[2.]], grad_fn=<MulBackward0>)
    """

    def __init__(self, n_channels: int, degree: int = 3, *, scale: float = 1.0, start: InitialMap = "identity") -> None:
        super().__init__()
        require_positive_integers(n_channels=n_channels, degree=degree)
        self.n_inputs = self.n_outputs = n_channels
        self.degree, self.scale, self.start = degree, float(scale), start
        weights = torch.zeros(degree, n_channels, dtype=torch.float64)
        weights[0] = float(start == "identity")
        self.weights = nn.Parameter(weights)

    def forward(self, x: Tensor, channels: Tensor | None = None) -> Tensor:
        """Evaluate the polynomials by Horner's rule.

        Parameters
        ----------
        x : Tensor
            Samples `(…, n_channels)`.
        channels : Tensor, optional
            Indices of the channels that x consists of; all channels by default.

        Returns
        -------
        Tensor
            Values in the shape of x.
        """
        weights = self.weights if channels is None else self.weights.index_select(1, channels)
        weights, z = weights.to(x.dtype), x / self.scale
        total = weights[-1].expand_as(z)
        for weight in weights.flip(0)[1:]:
            total = total * z + weight
        return total * z * self.scale

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as files store them.

        Returns
        -------
        dict
            Values by argument name.
        """
        return {"n_channels": self.n_inputs, "degree": self.degree, "scale": self.scale, "start": self.start}


@final
class Spline(StaticMap):
    """Lines plus cubic splines with even knots, one for each channel; outside the knots the line alone.

    Parameters
    ----------
    n_channels : int
        Number of channels.
    n_pieces : int
        Number of intervals between knots.
    low, high : float
        First and last knot.
    start : {"identity", "zero"}
        Initial map.

    Raises
    ------
    InvalidNetworkError
        A count is not a positive integer, or `high` is not above `low`.

    Examples
    --------
    >>> import torch
    >>> from ltinet import nn
    >>> nn.Spline(1, 8, low=-2.0, high=2.0)(torch.tensor([[1.5]]))
    tensor([[1.5000]], grad_fn=<AddBackward0>)
    """

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
            raise InvalidNetworkError(f"low must be below high, got {low} and {high}; give low < high.")
        self.n_inputs = self.n_outputs = n_channels
        self.n_pieces, self.low, self.high, self.start = n_pieces, float(low), float(high), start
        self.slope = nn.Parameter(torch.full((n_channels,), float(start == "identity"), dtype=torch.float64))
        self.weights = nn.Parameter(torch.zeros(n_channels, n_pieces + 3, dtype=torch.float64))

    def forward(self, x: Tensor, channels: Tensor | None = None) -> Tensor:
        """Evaluate the splines.

        Parameters
        ----------
        x : Tensor
            Samples `(…, n_channels)`.
        channels : Tensor, optional
            Indices of the channels that x consists of; all channels by default.

        Returns
        -------
        Tensor
            Values in the shape of x.
        """
        slope, weights = self.slope, self.weights
        if channels is not None:
            slope, weights = slope.index_select(0, channels), weights.index_select(0, channels)
        knots = torch.arange(-1, self.n_pieces + 2, dtype=x.dtype, device=x.device)
        position = (x.unsqueeze(-1) - self.low) * (self.n_pieces / (self.high - self.low)) - knots
        return x * slope.to(x.dtype) + (_cubic_b_spline(position) * weights.to(x.dtype)).sum(-1)

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as files store them.

        Returns
        -------
        dict
            Values by argument name.
        """
        sizes = {"n_channels": self.n_inputs, "n_pieces": self.n_pieces, "start": self.start}
        return {**sizes, "low": self.low, "high": self.high}


def _cubic_b_spline(position: Tensor) -> Tensor:
    """Return the cubic B-spline with knots −2 … 2, from truncated powers, which cancel outside."""
    distance = position.abs()
    outer, inner = (2.0 - distance).clamp(min=0.0), (1.0 - distance).clamp(min=0.0)
    return (outer**3 - 4.0 * inner**3) / 6.0


@final
class MLP(StaticMap):
    """A linear map plus one tanh layer: y = L x + V (tanh(W x + b) − tanh(b)).

    W and b are drawn at random and V begins at zero: the map begins as its linear part, and all weights get gradients
    after the first step.

    Parameters
    ----------
    n_inputs : int
        Number of channels of x.
    n_outputs : int
        Number of channels of y.
    hidden : int
        Number of hidden units.
    seed : int
        Seed of W and b.
    start : {"identity", "zero"}
        Initial L; the identity is truncated or padded with zeros to `n_outputs` rows.

    Raises
    ------
    InvalidNetworkError
        A count is not a positive integer.

    Examples
    --------
    >>> import torch
    >>> from ltinet import nn
    >>> nn.MLP(2, 1, hidden=4)(torch.ones(5, 2)).shape
    torch.Size([5, 1])
    """

    def __init__(
        self, n_inputs: int, n_outputs: int, *, hidden: int = 8, seed: int = 0, start: InitialMap = "identity"
    ) -> None:
        super().__init__()
        require_positive_integers(n_inputs=n_inputs, n_outputs=n_outputs, hidden=hidden)
        self.n_inputs, self.n_outputs, self.hidden, self.seed, self.start = n_inputs, n_outputs, hidden, seed, start
        generator = torch.Generator().manual_seed(seed)
        line = torch.eye(n_outputs, n_inputs, dtype=torch.float64) * float(start == "identity")
        self.line = nn.Parameter(line)
        self.W = nn.Parameter(torch.randn(hidden, n_inputs, generator=generator, dtype=torch.float64) / n_inputs**0.5)
        self.b = nn.Parameter(torch.randn(hidden, generator=generator, dtype=torch.float64))
        self.V = nn.Parameter(torch.zeros(n_outputs, hidden, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Evaluate the map.

        Parameters
        ----------
        x : Tensor
            Samples `(…, n_inputs)`.

        Returns
        -------
        Tensor
            Values `(…, n_outputs)`.
        """
        line, W, b, V = (weight.to(x.dtype) for weight in (self.line, self.W, self.b, self.V))
        return x @ line.mT + torch.tanh(x @ W.mT + b) @ V.mT - torch.tanh(b) @ V.mT

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as files store them.

        Returns
        -------
        dict
            Values by argument name.
        """
        sizes = {"n_inputs": self.n_inputs, "n_outputs": self.n_outputs, "hidden": self.hidden}
        return {**sizes, "seed": self.seed, "start": self.start}


@final
class Monotone(StaticMap):
    """Increasing maps, one for each channel, with slopes that are linear between even knots and constant beyond.

    Slopes at the knots are exponentials, so that the map increases whatever is learned: fed back with a negative
    weight it pulls towards rest. The parameters are an offset, the logarithm of the first slope and the logarithms of
    the ratios of neighboring slopes. The map begins as y = slope · x.

    Parameters
    ----------
    n_channels : int
        Number of channels.
    n_pieces : int
        Number of intervals between knots.
    low, high : float or sequence of float
        First and last knot, for all channels or one value for each.
    slope : float or sequence of float
        Initial slope, for all channels or one value for each.

    Raises
    ------
    InvalidNetworkError
        A count is not a positive integer, `high` is not above `low`, or a slope is not positive.

    Examples
    --------
    >>> import torch
    >>> from ltinet import nn
    >>> bool((nn.Monotone(1)(torch.linspace(-2, 2, 9)[:, None]).diff(dim=0) > 0).all())
    True
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
            _per_channel(values, n_channels, name) for values, name in ((low, "low"), (high, "high"), (slope, "slope"))
        )
        if any(not high > low for low, high in zip(self.low, self.high, strict=True)):
            raise InvalidNetworkError(f"low must be below high, got {low} and {high}; give low < high.")
        if any(not value > 0.0 for value in self.slope):
            raise InvalidNetworkError(f"slope must be positive, got {slope}; give slope > 0.")
        self.offset = nn.Parameter(torch.zeros(n_channels, dtype=torch.float64))
        log_ratios = torch.zeros(n_channels, n_pieces + 1, dtype=torch.float64)
        log_ratios[:, 0] = torch.tensor([math.log(value) for value in self.slope], dtype=torch.float64)
        self.log_ratios = nn.Parameter(log_ratios)

    def forward(self, x: Tensor) -> Tensor:
        """Evaluate the maps.

        Parameters
        ----------
        x : Tensor
            Samples `(…, n_channels)`.

        Returns
        -------
        Tensor
            Values in the shape of x.
        """
        slopes = self.slopes.to(x.dtype)
        integrals = self.hat_integrals(x) - self.hat_integrals(x.new_zeros(self.n_inputs))
        return self.offset.to(x.dtype) + (integrals * slopes).sum(-1)

    @property
    def slopes(self) -> Tensor:
        """Slopes at the knots, `(n_channels, n_pieces + 1)`."""
        return self.log_ratios.cumsum(-1).exp()

    def hat_integrals(self, x: Tensor) -> Tensor:
        """Integrate the hat function of each knot from that knot to x; the hats of the outer knots extend to infinity.

        Parameters
        ----------
        x : Tensor
            Samples `(…, n_channels)`.

        Returns
        -------
        Tensor
            Integrals `(…, n_channels, n_pieces + 1)`.
        """
        low, high = (torch.tensor(values, dtype=x.dtype, device=x.device) for values in (self.low, self.high))
        width = (high - low) / self.n_pieces
        knots = torch.arange(self.n_pieces + 1, dtype=x.dtype, device=x.device)
        position = ((x - low) / width).unsqueeze(-1) - knots
        # ∫₀ᵗ (1 − |s|) ds = t − t|t|/2 for |t| ≤ 1, constant beyond; the outer hats are 1 beyond their knots.
        t = position.clamp(-1.0, 1.0)
        inside = t - 0.5 * t * t.abs()
        first = inside[..., :1].clamp(min=0.0) + position[..., :1].clamp(max=0.0)
        last = inside[..., -1:].clamp(max=0.0) + position[..., -1:].clamp(min=0.0)
        return width.unsqueeze(-1) * torch.cat([first, inside[..., 1:-1], last], -1)

    def description(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as files store them.

        Returns
        -------
        dict
            Values by argument name.
        """
        sizes = {"n_channels": self.n_inputs, "n_pieces": self.n_pieces}
        return {**sizes, "low": list(self.low), "high": list(self.high), "slope": list(self.slope)}


def _per_channel(values: ChannelValues, n_channels: int, name: str) -> tuple[float, ...]:
    try:
        numbers = tuple(map(float, values)) if isinstance(values, Iterable) else (float(values),) * n_channels
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != n_channels or not all(map(math.isfinite, numbers)):
        raise InvalidNetworkError(f"{name} must be a finite number or {n_channels} of them, got {values}.")
    return numbers
