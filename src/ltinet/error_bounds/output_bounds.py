"""Error bounds of outputs: a posteriori for a solution, and a priori as a certificate of a network.

For a run by ODE solvers, y = Σ Φ z + D u turns the errors of all layers into errors of the outputs, reported as a sum of
named parts for any time and overall. Errors of the exact engine are known with their signs, up to a remainder. Errors that
were not bounded are reported as infinite. The certificate bounds the output error for inputs with |u| ≤ 1 and x(0) = 0 up
to a horizon; by linearity it scales with the largest input.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from ltinet._util.floating_point import EPS, Array
from ltinet.error_bounds.defect import LayerErrorBound


@dataclass(frozen=True, eq=False)
class OutputErrorBound:
    """Bound on the error of every output at every time for a single signal, as a sum of named parts."""

    cells: Array
    """Edges of the cells of time."""
    parts: Mapping[str, Array]
    """Bounds that hold on every cell, `(cells, p)` each."""
    layers: tuple[LayerErrorBound, ...] = ()
    """Error estimates and bounds of the layers of a run by ODE solvers; none for the exact engine."""
    Phi: tuple[Array, ...] = ()

    def at(self, t: Array) -> dict[str, Array]:
        """Return the parts at any times, `(len(t), p)` each."""
        cell = np.clip(np.searchsorted(self.cells, t, side="right") - 1, 0, len(self.cells) - 2)
        parts = {name: values[cell] for name, values in self.parts.items()}
        if self.layers:
            errors = np.hstack([layer.error_estimate(t) for layer in self.layers])
            parts = {"solver": np.abs(errors @ np.hstack(self.Phi).T), **parts}  # with signs: errors cancel
        return parts

    def overall(self) -> dict[str, Array]:
        """Return the parts at the time at which their sum is largest, `(p,)` each."""
        parts = dict(self.parts)
        if self.layers:
            on_cells = [layer.output_error(self.cells, Phi) for layer, Phi in zip(self.layers, self.Phi, strict=True)]
            parts = {"solver": np.sum(on_cells, axis=0), **parts}
        worst = np.argmax(np.sum(list(parts.values()), axis=0), axis=0)
        return {name: np.take_along_axis(values, worst[None], axis=0)[0] for name, values in parts.items()}


@dataclass(frozen=True, eq=False)
class SolutionErrorBound:
    """Bounds for all signals of a batch."""

    bounds: tuple[OutputErrorBound, ...]
    batch_shape: tuple[int, ...]
    origin: float = 0.0
    """Time of the solution at which the time of the bounds is zero."""

    def at(self, t: Array) -> dict[str, Array]:
        """Return the parts at any times, `(..., len(t), p)` each."""
        return self._stack([bound.at(t - self.origin) for bound in self.bounds])

    def overall(self) -> dict[str, Array]:
        """Return the parts over all times, `(..., p)` each."""
        return self._stack([bound.overall() for bound in self.bounds])

    def _stack(self, parts: list[dict[str, Array]]) -> dict[str, Array]:
        return {
            name: np.stack([member[name] for member in parts]).reshape(*self.batch_shape, *parts[0][name].shape)
            for name in parts[0]
        }


@dataclass(frozen=True, eq=False)
class OutputErrors:
    """Errors of outputs `(..., T, p)` that are known with their signs, and bounds on what remains."""

    correction: Array
    """Exact outputs minus those of the run, up to the remainder."""
    remainder: Array

    @property
    def bound(self) -> Array:
        """Bound on the errors; infinite where it overflows."""
        bound = np.abs(self.correction) * (1.0 + 4.0 * EPS) + self.remainder
        return np.where(np.isfinite(bound), bound, np.inf)


@final
@dataclass(frozen=True)
class UnknownBound:
    """Bound of an error for which none is known: infinite."""

    batch_shape: tuple[int, ...]
    n_outputs: int

    def at(self, t: Array) -> dict[str, Array]:
        """Return infinity for all times."""
        return {"solver": np.full((*self.batch_shape, len(t), self.n_outputs), np.inf)}

    def overall(self) -> dict[str, Array]:
        """Return infinity."""
        return {"solver": np.full((*self.batch_shape, self.n_outputs), np.inf)}


@dataclass(frozen=True, eq=False)
class ReductionError:
    """Bound ‖G − G_r‖ ‖u‖ of the error of a reduction, from the energy of every input of a batch over time."""

    norm: float
    """‖G − G_r‖ in the H2 norm, in discrete time in the H∞ norm; infinite if it is unknown."""
    t: Array
    energy: Array
    """∫ |u|², in discrete time Σ |u|², from the first time to each of t, `(..., K)`."""
    n_outputs: int

    def at(self, t: Array) -> Array:
        """Return the bound at any times, `(..., len(t), p)`, with the energy up to the next of the known times."""
        index = np.clip(np.searchsorted(self.t, t, side="left"), 0, len(self.t) - 1)
        return self._bound(self.energy[..., index])

    def overall(self) -> Array:
        """Return the bound over all times, `(..., p)`."""
        return self._bound(self.energy[..., -1])

    def _bound(self, energy: Array) -> Array:
        with np.errstate(invalid="ignore"):
            bound = np.where(energy > 0.0, self.norm * np.sqrt(energy), 0.0)
        return np.repeat(bound[..., None], self.n_outputs, axis=-1)


@dataclass(frozen=True, eq=False)
class Certificate:
    """A priori bounds on the error of every output for |u| ≤ 1 and x(0) = 0 up to a horizon.

    They hold for held inputs and for straight lines between samples, on a grid of equal steps. The exact engine is
    linear: for |u| ≤ a they are a times as large. `rounding` is an estimate: it counts the roundings of single steps, and
    sizes of propagators are evaluated at some lags only.

    Parameters
    ----------
    horizon : float
        Length of time.
    n_steps : int
        Number of equal steps.
    rounding : ndarray
        Bound on the effect of rounding in the steps of the exact engine, `(p,)`.
    decomposition : ndarray
        Bound on the effect of A X − X F, B − X G and C X − Φ, `(p,)`; zero if the network was not made from a system.
    gain : ndarray
        Bound on the outputs themselves, `(p,)`: peak-to-peak gain from gains of neurons.
    paper_constants : tuple of float
        Constant 1 + C + C² + … of Theorem 2 for every layer.
    layer_constants : tuple of float
        Largest row sum of (I − G)⁻¹ of every layer, a smaller constant for the same purpose.
    reduction : ndarray, optional
        Bound on the error of a model reduction, ‖G − G_r‖ in the H2 norm times √(m horizon); None without one.
    """

    horizon: float
    n_steps: int
    rounding: Array
    decomposition: Array
    gain: Array
    paper_constants: tuple[float, ...]
    layer_constants: tuple[float, ...]
    reduction: Array | None = None

    @property
    def total(self) -> Array:
        """Sum of all parts."""
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
