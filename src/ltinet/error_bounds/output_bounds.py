"""Error bounds of outputs: a posteriori for a solution, and a priori as a certificate of a network.

For a solution, y = Σ Φ z + D u turns the errors of all layers into errors of the outputs, reported as a sum of named
parts for any time and overall. Errors that were not bounded are reported as infinite. The certificate bounds the output
error for inputs with |u| ≤ 1 and x(0) = 0 up to a horizon; by linearity it scales with the largest input.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from ltinet._util.floating_point import Array
from ltinet.error_bounds.defect import LayerErrorBound

# MERGED ltinet.error_bounds.output_bounds
# Errors of outputs from errors of all layers: y = Σ Φ z + D u.


@dataclass(frozen=True, eq=False)
class OutputErrorBound:
    """A bound on the error of every output at every time, as the sum of named parts."""

    cells: Array
    """Edges of the cells of time."""
    parts: Mapping[str, Array]
    """Bounds that hold on every cell, `(cells, p)` each."""
    layers: tuple[LayerErrorBound, ...] = ()
    """Errors that were followed through each layer; none for the exact engine."""
    Phi: tuple[Array, ...] = ()

    def at(self, t: Array) -> dict[str, Array]:
        """The parts at any times, `(len(t), p)` each."""
        cell = np.clip(np.searchsorted(self.cells, t, side="right") - 1, 0, len(self.cells) - 2)
        found = {name: values[cell] for name, values in self.parts.items()}
        if self.layers:
            followed = np.hstack([layer.followed(t) for layer in self.layers])
            found = {"solver": np.abs(followed @ np.hstack(self.Phi).T), **found}  # with signs: errors cancel
        return found

    def overall(self) -> dict[str, Array]:
        """The parts where their sum is largest over all times, `(p,)` each."""
        parts = dict(self.parts)
        if self.layers:
            on_cells = [layer.followed_on(self.cells, Phi) for layer, Phi in zip(self.layers, self.Phi, strict=True)]
            parts = {"solver": np.sum(on_cells, axis=0), **parts}
        worst = np.argmax(np.sum(list(parts.values()), axis=0), axis=0)
        return {name: np.take_along_axis(values, worst[None], axis=0)[0] for name, values in parts.items()}


# MERGED ltinet.error_bounds.output_bounds
# The bound on the error of a solution, of all signals of a batch.


@dataclass(frozen=True, eq=False)
class SolutionErrorBound:
    """The bounds of all signals of a batch."""

    bounds: tuple[OutputErrorBound, ...]
    batch_shape: tuple[int, ...]
    origin: float = 0.0
    """The time that the bounds count theirs from."""

    def at(self, t: Array) -> dict[str, Array]:
        """The parts at any times, `(..., len(t), p)` each."""
        return self._stacked([bound.at(t - self.origin) for bound in self.bounds])

    def overall(self) -> dict[str, Array]:
        """The parts over all times, `(..., p)` each."""
        return self._stacked([bound.overall() for bound in self.bounds])

    def _stacked(self, parts: list[dict[str, Array]]) -> dict[str, Array]:
        return {
            name: np.stack([own[name] for own in parts]).reshape(*self.batch_shape, *parts[0][name].shape)
            for name in parts[0]
        }


# MERGED ltinet.error_bounds.output_bounds
# The bound of an error that nobody has bounded: infinite, never guessed.


@final
@dataclass(frozen=True)
class UnknownBound:
    """An error that nobody has bounded."""

    batch_shape: tuple[int, ...]
    n_outputs: int

    def at(self, t: Array) -> dict[str, Array]:
        """Infinite at all times."""
        return {"solver": np.full((*self.batch_shape, len(t), self.n_outputs), np.inf)}

    def overall(self) -> dict[str, Array]:
        """Infinite."""
        return {"solver": np.full((*self.batch_shape, self.n_outputs), np.inf)}


# MERGED ltinet.error_bounds.output_bounds
# What a network can promise before it has run: the error of its outputs per unit of the largest input.


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


def combine_certificates(one: Certificate, other: Certificate) -> Certificate:
    """A certificate for runs of both kinds: the larger bounds of errors, and the smaller ones of outputs."""
    return replace(
        one,
        rounding=np.maximum(one.rounding, other.rounding),
        decomposition=np.maximum(one.decomposition, other.decomposition),
        gain=np.minimum(one.gain, other.gain),
    )


def add_reduction_error(own: Certificate, reduction_error: float | None, n_inputs: int) -> Certificate:
    """The same with what a reduction left out: |u| ≤ 1 has at most the energy m·horizon."""
    if reduction_error is None:
        return own
    return replace(own, reduction=np.full(len(own.rounding), reduction_error * np.sqrt(n_inputs * own.horizon)))
