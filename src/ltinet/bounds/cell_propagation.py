"""What becomes of errors that are committed along the way: how far they move the outputs, cell of time by cell of time.

An error that enters state i at time s moves the outputs at time t by C e^{F(t − s)} times it. Errors enter in three
ways: at the start, at every step of the recurrence, and all the time. Scalars |C_i| e^{Re λ (t − s)} sum up in closed
form; of coupled blocks the sizes of C e^{Fs} are taken from the matrix itself, since bounds by its entries would grow
where it decays.
"""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.crowds import Crowds
from ltinet.bounds.dense_chain import DenseChain, dense_chain, smeared
from ltinet.once import cached_property

PLACES = 8  # in each cell, at which C e^{Fs} is looked at


@dataclass(frozen=True, eq=False)
class Committed:
    """Errors on their way into the states `(n,)` or `(cells, n)`."""

    start: Array
    """At the first time."""
    each_step: Array
    """At every step of the recurrence."""
    n_steps: Array
    """How many of them there are in each cell, `(cells,)`."""
    all_the_time: Array
    """Per unit of time."""
    crowds: Crowds | None = None
    """How close steps stand, where they are not spread evenly."""

    def part(self, own: slice) -> "Committed":
        """Those of some states."""
        return Committed(self.start[own], self.each_step[:, own], self.n_steps, self.all_the_time[:, own], self.crowds)


def phi1(z: Array) -> Array:
    """(e^z − 1)/z for real z, 1 at zero."""
    safe = np.where(z == 0.0, 1.0, z)
    return np.asarray(np.where(z == 0.0, 1.0, np.expm1(safe) / safe))


def scalar_errors(growth: Array, errors: Committed, *, cell: float) -> Array:
    """Bounds `(cells, n)` on the errors of scalars with real parts `growth` `(n,)` anywhere in each cell of time."""
    with np.errstate(over="ignore", invalid="ignore"):
        kept = np.exp(growth * cell)
        most = np.maximum(1.0, kept)
        time = cell * phi1(growth * cell)
        entered = errors.each_step * lasting_steps(growth, errors, cell=cell) + errors.all_the_time * time
        bounds = np.empty_like(entered)
        before = errors.start
        for own, added in zip(bounds, entered, strict=True):
            np.add(_product(most, before), added, out=own)
            before = _product(kept, before) + added
    return bounds


def lasting_steps(growth: Array, errors: Committed, *, cell: float) -> Array:
    """The sum of e^{g s} over the times s since the steps of a cell, at most, `(cells, n)`."""
    if errors.crowds is not None:
        return errors.crowds.lasting(growth)
    first, others = np.minimum(errors.n_steps, 1.0)[:, None], np.maximum(errors.n_steps - 1.0, 0.0)[:, None]
    return np.asarray(first * np.maximum(1.0, np.exp(growth * cell)) + others * phi1(growth * cell))


def _product(factor: Array, error: Array) -> Array:
    """Nothing stays nothing, however fast it would grow."""
    return np.where(error == 0.0, 0.0, factor * error)


@dataclass(frozen=True, eq=False)
class DenseKernel:
    """How large C e^{Fs} is for lags s in cells of equal length: at most, and on the whole, `(cells, p, n)` each."""

    peak: Array
    integral: Array

    def lags(self, n_cells: int) -> tuple[Array, Array]:
        """Peaks and integrals over two neighbouring lags each: an output may stand anywhere in its cell."""
        peak = np.maximum(self.peak[:n_cells], np.concatenate([self.peak[:1], self.peak[: n_cells - 1]]))
        integral = self.integral[:n_cells] + np.concatenate([self.integral[:1] * 0.0, self.integral[: n_cells - 1]])
        return peak, integral

    def rates(self, errors: Committed, *, cell: float) -> Array:
        """How many steps but the first come in a unit of time, at most, `(cells,)`."""
        rate = np.maximum(errors.n_steps - 1.0, 0.0) / cell
        return rate if errors.crowds is None else rate * errors.crowds.crowding(0.5 * self.duration)

    @cached_property
    def duration(self) -> float:
        """How long it takes until C e^{Fs} has faded, where it fades first."""
        peak = np.max(self.peak, axis=0, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.nanmin(self.integral.sum(axis=0) / peak, initial=np.inf))

    def output_errors(self, errors: Committed, *, cell: float) -> Array:
        """Bounds `(cells, p)` on what errors of a coupled block do to the outputs anywhere in each cell."""
        n_cells = len(errors.each_step)
        first = errors.each_step * np.minimum(errors.n_steps, 1.0)[:, None]
        peak, integral = self.lags(n_cells)
        rate = errors.each_step * self.rates(errors, cell=cell)[:, None] + errors.all_the_time
        bounds = np.einsum("cpn,n->cp", peak, errors.start)
        both, weights = np.hstack([first, rate]), np.concatenate([peak, integral], axis=2).swapaxes(1, 2)
        for lag in range(n_cells):
            bounds[lag:] += both[: n_cells - lag] @ weights[lag]
        return np.asarray(bounds)


def dense_kernel(C: Array, F: Array, *, horizon: float, n_cells: int) -> DenseKernel:
    """Look at C e^{Fs} along all lags up to the horizon, most closely at the beginning, where a stiff block moves."""
    spacing = horizon / (n_cells * PLACES)
    chain = dense_chain(F, spacing)
    P, rows = chain.exponentials[0], np.array(C)
    values = np.empty((n_cells * PLACES + 1, *C.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for place in range(len(values)):
            values[place] = rows
            rows = rows @ P
        values = np.abs(values)
        inside = smeared(np.maximum(values[:-1], values[1:]), chain.pairs, gaps=spacing)
        first, peak_of_first = beginning(C, chain)
    inside[0] = np.maximum(inside[0], peak_of_first)
    areas = inside * spacing
    areas[0] = first
    by_cell = (n_cells, PLACES, *C.shape)
    return DenseKernel(inside.reshape(by_cell).max(axis=1), areas.reshape(by_cell).sum(axis=1))


def beginning(C: Array, chain: DenseChain) -> tuple[Array, Array]:
    """∫|C e^{Fs}| ds and the largest |C e^{Fs}| up to the length of a chain."""
    levels = np.abs(C @ chain.exponentials)
    largest = np.maximum(levels, np.concatenate([levels[1:], np.abs(C)[None]]))
    lengths = chain.length * 0.5 ** np.arange(1, len(largest) + 1)
    largest = smeared(largest, chain.pairs, gaps=lengths)
    lengths[-1] *= 2.0
    return np.tensordot(lengths, largest, axes=1), np.max(largest, axis=0)
