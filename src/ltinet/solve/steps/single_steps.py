"""Evenly spaced samples, one step at a time: states at all of them, or outputs where blocks of time do not pay.

With many inputs and outputs no product is larger than those with B and C themselves.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property
from ltinet.solve.steps.one_step import OneStep
from ltinet.solve.steps.packing import pack
from ltinet.solve.steps.recurrence import Decay, accumulate
from ltinet.solve.steps.sharing import in_groups

_STATES_AT_ONCE = 2**19  # numbers: pieces of time whose states stay in the cache


@dataclass(frozen=True)
class SingleSteps:
    """A grid whose states are known at all samples."""

    step: OneStep
    into_state: Matrix
    """Γ, transposed, (m × n)."""
    from_state: Matrix
    """C, transposed, (n × p)."""
    decay: Decay
    """P of all states."""

    width = 1

    @cached_property
    def _feeds_through(self) -> bool:
        return bool(self.step.system.D.any())

    @cached_property
    def _input_weights(self) -> Matrix:
        """B of the scalars, packed, (m × 2 pairs + reals)."""
        system = self.step.system
        return pack(system, system.B.T, [])

    def outputs(self, u: Array, w: Array, *, threads: int = 1) -> Array:
        """Outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from packed w at the first."""
        y = np.empty((*u.shape[:2], self.step.system.n_outputs))

        def work(own: slice) -> None:
            self._fill_outputs(y[own], u[own], w[own])

        in_groups(work, len(u), at_once=len(u), threads=threads)
        return y

    def outputs_from(self, z: Array, u: Array, *, threads: int = 1) -> Array:
        """The same from packed states at the first sample."""
        return outputs_from(self, z, u, threads=threads)

    def outputs_and_state(self, u: Array, w: Array) -> tuple[Array, Array]:
        """The same, and packed w one step after the last sample."""
        y = np.empty((*u.shape[:2], self.step.system.n_outputs))
        return y, self._fill_outputs(y, u, w)

    def _fill_outputs(self, y: Array, u: Array, w: Array) -> Array:
        """Fill y, a piece of time after the other; the states after it."""
        system = self.step.system
        at_once = max(1, _STATES_AT_ONCE // max(1, system.n_states * len(u)))
        for begin in range(0, u.shape[1], at_once):
            own = slice(begin, begin + at_once)
            z, w = self.states(u[:, own], w)
            np.matmul(z, self.from_state, out=y[:, own])
            if self._feeds_through:
                y[:, own] += u[:, own] @ system.D.T
        return w

    def states(self, u: Array, w: Array) -> tuple[Array, Array]:
        """Packed z `(batch, T, n)` at all samples, and w one step after the last.

        Scalars are driven by B u: one product, from which G₁ u and Γ u follow by factors.
        """
        dense = slice(self._input_weights.shape[1], None)
        driven = _product_of_rows(u, self._input_weights)
        ends, z = np.empty((2, *u.shape[:-1], self.step.system.n_states))
        _scale(driven, self.step.gamma_factors, out=ends)
        _scale(driven, self.step.shift_factors, out=z)
        ends[..., dense], z[..., dense] = u @ self.into_state[:, dense], u @ self.step.shift.T[:, dense]
        accumulate(ends, w, self.decay)
        z[:, 0] += w
        z[:, 1:] += ends[:, :-1]
        return z, ends[:, -1]


class Grid(Protocol):
    """Evenly spaced samples, prepared."""

    @property
    def step(self) -> OneStep:
        """One step."""
        ...

    def outputs(self, u: Array, w: Array, *, threads: int = 1) -> Array:
        """Outputs at all samples, from packed w at the first."""
        ...


def outputs_from(grid: Grid, z: Array, u: Array, *, threads: int) -> Array:
    """Outputs `(batch, T, p)` at all samples of u `(batch, T, m)`, from packed states at the first.

    Where states grow fast the first step is taken by itself.
    """
    step = grid.step
    if not step.starts_apart:
        return grid.outputs(u, step.start(z, u[:, 0]), threads=threads)
    y = np.empty((*u.shape[:2], step.system.n_outputs))
    y[:, 0] = z @ step.out_of(1)[0].T + u[:, 0] @ step.system.D.T
    if u.shape[1] > 1:
        rest = np.ascontiguousarray(u[:, 1:])
        y[:, 1:] = grid.outputs(rest, step.after_first(z, u[:, 0]), threads=threads)
    return y


def single_steps(step: OneStep) -> SingleSteps:
    """Prepare a grid of single steps."""
    return SingleSteps(
        step,
        into_state=step.into(step.Gamma, 1)[0],
        from_state=np.ascontiguousarray(step.out_of(1)[0].T),
        decay=step.decay(1),
    )


def _product_of_rows(u: Array, weights: Matrix) -> Array:
    """U · weights; rows of zeros, as before and after a pulse, are not multiplied."""
    rows = u.any(axis=-1)
    if 2 * np.count_nonzero(rows) > rows.size:
        return np.asarray(u @ weights)
    product = np.zeros((*u.shape[:-1], weights.shape[1]))
    product[rows] = u[rows] @ weights
    return product


def _scale(driven: Array, factors: Complex, out: Array) -> None:
    """Packed scalars times a complex number each, into the leading part of `out`."""
    n_scalars = driven.shape[-1]
    pairs = 2 * (n_scalars - len(factors))
    if pairs:
        turned = out[..., :pairs].view(np.complex128)
        np.multiply(driven[..., :pairs].view(np.complex128), factors[: pairs // 2], out=turned)
    np.multiply(driven[..., pairs:], factors[pairs // 2 :].real, out=out[..., pairs:n_scalars])
