"""What a network can promise before it has run: the error of its outputs per unit of the largest input."""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array


@dataclass(frozen=True, eq=False)
class Certificate:
    """For inputs with |u| ≤ 1 and x(0) = 0: bounds on the error of every output up to the horizon, `(p,)` each.

    The exact engine is linear: for |u| ≤ a the bounds are a times as large.
    """

    horizon: float
    n_steps: int
    rounding: Array
    """From rounding in the steps of the exact engine."""
    decomposition: Array
    """From what rounding left of A X − X F, B − X G and C X − Φ; zero for a network that is its own system."""
    gain: Array
    """How large the outputs themselves can be: the peak-to-peak gain, bounded by gains of neurons."""
    paper_constants: tuple[float, ...]
    """The constant 1 + C + C² + … of Theorem 2 for every layer."""
    layer_constants: tuple[float, ...]
    """What takes its place here: the largest row sum of (I − G)⁻¹ of every layer."""

    @property
    def total(self) -> Array:
        """The sum of both parts."""
        return np.asarray(self.rounding + self.decomposition)

    def __str__(self) -> str:
        def largest(values: Array) -> str:
            return f"{np.max(values, initial=0.0):.2e}"

        return "\n".join(
            [
                f"certificate for |u| ≤ 1, x(0) = 0, {self.n_steps} steps up to t = {self.horizon:g}",
                f"  error of outputs   ≤ {largest(self.total)}",
                f"    rounding         ≤ {largest(self.rounding)}",
                f"    decomposition    ≤ {largest(self.decomposition)}",
                f"  size of outputs    ≤ {largest(self.gain)}",
            ]
        )
