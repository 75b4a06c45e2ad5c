"""Static maps of `ltinet.nn` as ONNX nodes.

Each map is computed by the same operations as its PyTorch module. Its method `nodes` adds nodes from x `(batch, time,
n_inputs)` to `(batch, time, n_outputs)` and returns the name of the result.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from ltinet._util.floating_point import Array
from ltinet.export.onnx.graph import GraphBuilder


class PolynomialMap(NamedTuple):
    """Polynomial a₁ x + a₂ x² + … of each channel, x in units of a scale."""

    weights: Array
    """`(degree, channels)`, linear coefficients first."""
    scale: float

    def nodes(self, build: GraphBuilder, x: str) -> str:
        """Add nodes of Horner's rule."""
        scale = build.table(np.array([self.scale]))
        z = build.op("Div", x, scale)
        total = build.table(self.weights[-1])
        for weight in self.weights[-2::-1]:
            total = build.op("Add", build.op("Mul", total, z), weight)
        return build.op("Mul", build.op("Mul", total, z), scale)


class SplineMap(NamedTuple):
    """A line plus cubic B-splines at even knots for each channel."""

    slope: Array
    weights: Array
    """`(channels, pieces + 3)`."""
    low: float
    high: float

    def nodes(self, build: GraphBuilder, x: str) -> str:
        """Add nodes that evaluate every B-spline at every sample."""
        n_pieces = self.weights.shape[1] - 3
        knots = np.arange(-1.0, n_pieces + 2.0)
        from_low = build.op("Sub", build.op("Unsqueeze", x, [-1]), np.array([self.low]))
        in_pieces = build.op("Mul", from_low, np.array([n_pieces / (self.high - self.low)]))
        distance = build.op("Abs", build.op("Sub", in_pieces, knots))
        outer, inner = (_truncated_cube(build, distance, edge) for edge in (2.0, 1.0))
        # B(d) = ((2 − d)₊³ − 4 (1 − d)₊³)/6 at a distance of d knots.
        difference = build.op("Sub", outer, build.op("Mul", inner, np.array([4.0])))
        cubic = build.op("Div", difference, np.array([6.0]))
        weighted = build.op("Mul", cubic, self.weights)
        ones = np.ones((len(self.weights[0]), 1))  # onnxruntime's ReduceSum fails for empty batches
        curve = build.op("Squeeze", build.op("MatMul", weighted, ones), [-1])
        return build.op("Add", build.op("Mul", x, self.slope), curve)


class MonotoneMap(NamedTuple):
    """Constant plus integral of slopes that are linear between even knots, for each channel."""

    offset: Array
    slopes: Array
    """`(channels, pieces + 1)`."""
    low: Array
    high: Array

    def nodes(self, build: GraphBuilder, x: str) -> str:
        """Add nodes of the integrals of hat functions: t ∓ t²/2 beside a knot; the outer hats are unbounded."""
        n_pieces = self.slopes.shape[1] - 1
        width = ((self.high - self.low) / n_pieces)[:, None]
        knots = np.arange(n_pieces + 1.0)
        from_low = build.op("Sub", build.op("Unsqueeze", x, [-1]), self.low[:, None])
        position = build.op("Sub", build.op("Div", from_low, width), knots)
        above = _hat_integral(build, position, is_open=knots == n_pieces)
        below = _hat_integral(build, build.op("Neg", position), is_open=knots == 0)
        weighted = build.op("Mul", build.op("Sub", above, below), width * self.slopes)
        ones = np.ones((n_pieces + 1, 1))
        curve = build.op("Squeeze", build.op("MatMul", weighted, ones), [-1])
        return build.op("Add", curve, self.offset)


class TanhMap(NamedTuple):
    """y = L x + V tanh(W x + b) − V tanh(b)."""

    L: Array
    W: Array
    b: Array
    V: Array

    def nodes(self, build: GraphBuilder, x: str) -> str:
        """Add nodes of a linear map and one layer."""
        inner = build.op("Tanh", build.op("Add", build.op("MatMul", x, self.W.T), self.b))
        curve = build.op("MatMul", inner, self.V.T)
        total = build.op("Add", build.op("MatMul", x, self.L.T), curve)
        return build.op("Sub", total, self.V @ np.tanh(self.b))


MapNodes: TypeAlias = PolynomialMap | SplineMap | MonotoneMap | TanhMap
"""Map of a signal that acts on each sample alone."""


def _truncated_cube(build: GraphBuilder, distance: str, edge: float) -> str:
    """Return (edge − distance)³₊."""
    difference = build.op("Sub", np.array([edge]), distance)
    positive = build.op("Max", difference, np.zeros(1))
    return build.op("Mul", build.op("Mul", positive, positive), positive)


def _hat_integral(build: GraphBuilder, position: str, *, is_open: Array) -> str:
    """Return the integral of hats from their knots up to `position`: t − t²/2 up to 1, or t for an open hat, 0 below."""
    zero, one, half = (build.table(np.array([value])) for value in (0.0, 1.0, 0.5))
    above = build.op("Max", position, zero)
    limited = build.op("Min", above, one)
    hat = build.op("Sub", limited, build.op("Mul", build.op("Mul", limited, limited), half))
    bounded = build.op("Mul", hat, 1.0 - is_open)
    return build.op("Add", bounded, build.op("Mul", above, 1.0 * is_open))
