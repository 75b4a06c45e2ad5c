"""What a network can promise before it has run: the error of its outputs per unit of the largest input."""

from dataclasses import dataclass, replace

import numpy as np

from ltinet.arrays import Array


@dataclass(frozen=True, eq=False)
class Certificate:
    """For inputs with |u| ≤ 1 and x(0) = 0: bounds on the error of every output up to the horizon, `(p,)` each.

    They hold for inputs held and for straight lines. The exact engine is linear: for |u| ≤ a they are a times as large.
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
    reduction: Array | None = None
    """From what a reduction left out, ‖G − G_r‖ in the H2 norm times √(m horizon); None where nothing was."""

    @property
    def total(self) -> Array:
        """The sum of all parts."""
        both = np.asarray(self.rounding + self.decomposition)
        return both if self.reduction is None else both + self.reduction

    def __str__(self) -> str:
        def largest(values: Array) -> str:
            return f"{np.max(values, initial=0.0):.2e}"

        return "\n".join(
            [
                f"certificate for |u| ≤ 1, x(0) = 0, {self.n_steps} steps up to t = {self.horizon:g}",
                f"  error of outputs   ≤ {largest(self.total)}",
                f"    rounding         ≤ {largest(self.rounding)}",
                f"    decomposition    ≤ {largest(self.decomposition)}",
                *([] if self.reduction is None else [f"    reduction        ≤ {largest(self.reduction)}"]),
                f"  size of outputs    ≤ {largest(self.gain)}",
            ]
        )


def worse_of(one: Certificate, other: Certificate) -> Certificate:
    """A certificate for runs of both kinds: the larger bounds of errors, and the smaller ones of outputs."""
    return replace(
        one,
        rounding=np.maximum(one.rounding, other.rounding),
        decomposition=np.maximum(one.decomposition, other.decomposition),
        gain=np.minimum(one.gain, other.gain),
    )


def with_reduction(own: Certificate, reduced_error: float | None, n_inputs: int) -> Certificate:
    """The same with what a reduction left out: |u| ≤ 1 has at most the energy m·horizon."""
    if reduced_error is None:
        return own
    return replace(own, reduction=np.full(len(own.rounding), reduced_error * np.sqrt(n_inputs * own.horizon)))
