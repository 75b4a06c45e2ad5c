"""Errors of outputs from errors of all layers: y = Σ Φ z + D u."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.dense_output import LayerErrorBound


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
