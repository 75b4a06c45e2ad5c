"""What every kind of input can do, so that whoever runs one need not know which kind it is.

A new kind is a class with these names, in a file of this room; `simulate` takes it as it is. One that users give as
another library's object, to be recognised, gets a line in `as_signal.KINDS`.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ltinet.signals.arrays import Times, Values
from ltinet.signals.sampled import Lines


class Smooth(Protocol):
    """Values of an input: smooth between knots, right-continuous at them."""

    @property
    def n_inputs(self) -> int:
        """Number of channels."""
        ...

    @property
    def knots(self) -> Times:
        """All times at which it is not smooth, ascending."""
        ...

    def value(self, t: Times) -> Values:
        """u(t), `(..., len(t), n_inputs)`, the value after a jump."""
        ...

    def value_before(self, t: Times) -> Values:
        """u(t⁻), the value before a jump."""
        ...


@runtime_checkable
class Signal(Smooth, Protocol):
    """An input, or a batch of them."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch, () for a single signal."""
        ...

    @property
    def start(self) -> float:
        """The first time at which it is known."""
        ...

    @property
    def stop(self) -> float:
        """The last."""
        ...

    @property
    def degree(self) -> int | None:
        """Its degree if it is a polynomial between knots, None if it is not."""
        ...

    def derivative(self, t: Times) -> Values:
        """u̇(t), after a knot."""
        ...

    def sampled_over(self, t: Times, *, tolerance: float) -> Lines:
        """Samples from t[0] to t[-1] within `tolerance` of it, for each channel relative to its largest value."""
        ...

    def unbatched(self) -> Sequence["Signal"]:
        """The signals of a batch, one by one; itself if it is a single one."""
        ...

    def through(self, weights: Values) -> "Signal":
        """Weights · u, a signal of as many channels as the weights have rows."""
        ...

    def counted_from(self, origin: float) -> "Signal | None":
        """The same with times counted from an origin, None where that would take digits from them or change it."""
        ...
